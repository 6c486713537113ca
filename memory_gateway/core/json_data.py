"""Walks through plain JSON data of any shape, such as an engine's own record of a memory."""

from __future__ import annotations

from typing import Any

_BASE64_KEY = "base64"
_LENGTH = len(_BASE64_KEY)


def without_base64(value: Any) -> Any:
    """The data without what lies under keys named `base64` (in any case), at any depth: file contents.

    Data that holds none comes back as it is, uncopied; no data is changed in place.
    """
    if not _holds_base64(value):
        return value
    if isinstance(value, dict):
        return {key: without_base64(item) for key, item in value.items() if not _is_base64(key)}
    return [without_base64(item) for item in value]


def holds_nul(value: Any) -> bool:
    """Whether a text or a name in it has a NUL character, which PostgreSQL cannot keep."""
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        return any(holds_nul(key) or holds_nul(item) for key, item in value.items())
    return isinstance(value, list) and any(holds_nul(item) for item in value)


def _holds_base64(value: Any) -> bool:
    """Whether anything is to be left out; every field of every result is looked at here."""
    if isinstance(value, dict):
        if any([len(key) == _LENGTH and _is_base64(key) for key in value]):  # noqa: C419 - half the time of a generator
            return True
        value = value.values()
    elif not isinstance(value, list | tuple):
        return False
    return any([_holds_base64(item) for item in value if isinstance(item, (dict, list, tuple))])  # noqa: C419


def _is_base64(key: str) -> bool:
    return key.lower() == _BASE64_KEY
