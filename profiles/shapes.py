"""Value types of document fields, derived from their annotations."""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from profiles.schemas import Entry


def inner_type(annotation: Any) -> Any:
    """Return the annotation without `Annotated` and `| None`."""
    while get_origin(annotation) in {Annotated, Union, UnionType}:
        annotation = get_args(annotation)[0]
    return annotation


def item_of(annotation: Any) -> Any:
    """Return the item type of a list; None for other types."""
    plain = inner_type(annotation)
    return inner_type(get_args(plain)[0]) if get_origin(plain) is list else None


def model_of(annotation: Any) -> type[BaseModel] | None:
    plain = inner_type(annotation)
    return plain if isinstance(plain, type) and issubclass(plain, BaseModel) else None


def entry_model(annotation: Any) -> type[Entry] | None:
    """Return the model of a list of named entries; None for other types."""
    model = model_of(item_of(annotation))
    return model if model is not None and issubclass(model, Entry) else None


def choices(annotation: Any) -> tuple[str, ...]:
    """Return the values allowed for a field; empty if any is allowed."""
    plain = inner_type(annotation)
    return get_args(plain) if get_origin(plain) is Literal else ()
