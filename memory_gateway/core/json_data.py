"""Walks through plain JSON data of any shape, such as an engine's own record of a memory."""

from __future__ import annotations

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
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        return any(holds_nul(key) or holds_nul(item) for key, item in value.items())
    return isinstance(value, list) and any(holds_nul(item) for item in value)
