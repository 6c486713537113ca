"""Values that pass from one shape to another: API models, forms, commands and requests whose fields share names."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any


def shared(kind: type[Any], values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return those of the pairs of name and value that the dataclass `kind` has a field for."""
    given = dict(values)
    return {field.name: given[field.name] for field in fields(kind) if field.name in given}
