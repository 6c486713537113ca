"""Walks through plain JSON data of any shape, such as an engine's own record of a memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import orjson

_BASE64_KEY = "base64"
_MARK = b'"base64":'


def without_base64(value: Any) -> Any:
    """The data without what lies under keys named `base64` (in any case), at any depth: file contents.

    Data that holds none comes back as it is, uncopied; no data is changed in place.
    """
    # Every result of every search comes by here, and writing it as JSON costs less than looking at its fields.
    return _without_base64(value) if _MARK in orjson.dumps(value).lower() else value


def _without_base64(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_base64(item) for key, item in value.items() if key.lower() != _BASE64_KEY}
    if isinstance(value, list | tuple):
        return [_without_base64(item) for item in value]
    return value


def holds_nul(value: Any) -> bool:
    """Whether a text or a name in it has a NUL character, which PostgreSQL cannot keep."""
    return place_of_nul(value) is not None


def place_of_nul(value: Any) -> tuple[str, ...] | None:
    """The names and positions that lead to the first such text, or to the object with such a name."""
    if isinstance(value, str):
        return () if "\x00" in value else None
    if isinstance(value, dict):
        if any("\x00" in name for name in value):
            return ()
        items: Iterable[tuple[Any, Any]] = value.items()
    else:
        items = enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        if (place := place_of_nul(item)) is not None:
            return str(name), *place
    return None


def repeated_name(data: bytes) -> str | None:
    """Return a name that an object of the JSON document has twice: a parser would keep the last value silently."""
    repeated: list[str] = []

    def find(pairs: list[tuple[str, Any]]) -> None:
        if len(dict(pairs)) < len(pairs):
            repeated.append(Counter(name for name, _ in pairs).most_common(1)[0][0])

    json.loads(data, object_pairs_hook=find, parse_int=str, parse_float=str)
    return repeated[0] if repeated else None
