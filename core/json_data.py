"""Functions that walk plain JSON data of any shape, such as an engine's record of a memory."""

import re
from typing import Any

import orjson

from core import storable

_BASE64_KEY = "base64"
_BASE64_FIELD = b'"base64":'


def without_base64(value: Any) -> Any:
    """Return the data without the values of keys named `base64` (in any case), at any depth.

    Such values are file contents. Data without them is returned uncopied; nothing is changed in place. What cannot be
    written as JSON is replaced.
    """
    try:
        # Serializing the data costs less than walking its fields.
        data = orjson.dumps(value)
    except TypeError:
        value = storable.Repair().json("", value)
        data = orjson.dumps(value)
    return _without_base64(value) if _BASE64_FIELD in data.lower() else value


def _without_base64(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_base64(item) for key, item in value.items() if key.lower() != _BASE64_KEY}
    if isinstance(value, list | tuple):
        return [_without_base64(item) for item in value]
    return value


# An unterminated string runs to the end of the text, so that the scan stays linear for any text.
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def cut_json(text: str, levels: int) -> str:
    """Return JSON text with null for the objects and lists below so many levels. It is not parsed."""
    kept, start, depth = [], 0, 0
    for match in _STRUCTURE.finditer(text):
        if match[0] in {"[", "{"}:
            depth += 1
            if depth == levels + 1:
                kept += [text[start : match.start()], "null"]
        elif match[0] in {"]", "}"}:
            if depth == levels + 1:
                start = match.end()
            depth -= 1
    return "".join([*kept, text[start:]]) if depth <= levels else "".join(kept)
