"""What kind of value a field of a document takes, read from its annotation."""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from profiles.schemas import Entry


def bare(annotation: Any) -> Any:
    """Without `Annotated` and without `| None`."""
    while get_origin(annotation) in {Annotated, Union, UnionType}:
        annotation = get_args(annotation)[0]
    return annotation


def item_of(annotation: Any) -> Any:
    """What a list holds; None for what is no list."""
    plain = bare(annotation)
    return bare(get_args(plain)[0]) if get_origin(plain) is list else None


def model_of(annotation: Any) -> type[BaseModel] | None:
    plain = bare(annotation)
    return plain if isinstance(plain, type) and issubclass(plain, BaseModel) else None


def entry_model(annotation: Any) -> type[Entry] | None:
    """What a list of named entries holds; None for anything else."""
    model = model_of(item_of(annotation))
    return model if model is not None and issubclass(model, Entry) else None


def choices(annotation: Any) -> tuple[str, ...]:
    """The words that a field can take; none if it takes any."""
    plain = bare(annotation)
    return get_args(plain) if get_origin(plain) is Literal else ()
