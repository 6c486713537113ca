"""Walks through an engine's own record (`raw`): plain JSON data of any shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def strings(value: Any) -> Iterator[str]:
    """Every string value at any depth, keys not among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings(item)


def reworded(value: Any, old: str, new: str) -> Any:
    """A copy in which other words stand wherever a string holds the old ones whole."""
    if isinstance(value, str):
        return value.replace(old, new) if old else value
    if isinstance(value, Mapping):
        return {key: reworded(item, old, new) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [reworded(item, old, new) for item in value]
    return value
