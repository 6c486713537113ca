"""Functions that walk plain JSON data of any shape, such as an engine's record of a memory."""

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
