"""Checks and repairs of values that become rows: both databases, JSON and UTF-8 must be able to carry them.

A check returns the value or names what is wrong with it and the remedy; callers' values pass checks. A repair changes
what cannot be stored and notes it; values that no caller can correct, such as the remote's answers, pass repairs.
`core.persistence.checked_rows` applies both to the fields of rows. This module does not import Django.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

import orjson

from core.errors import FieldError
from core.messages import Translatable as _

_Value = TypeVar("_Value")
MAX_JSON_DEPTH: Final = 64
"""The deepest nesting of JSON that callers send."""
STORED_DEPTH: Final = 100
"""The deepest nesting of a stored value, which wraps callers' JSON. Answers wrap it again; orjson writes 254 levels."""
MAX_GIVEN_JSON_BYTES: Final = 64 * 1024
"""The largest free JSON that a caller gives with one memory, such as mem0's `metadata`."""
_REPLACEMENT: Final = "\ufffd"
_UNSTORABLE: Final = re.compile(r"[\x00\ud800-\udfff]")
_MIN_INTEGER: Final = -(2**63)
_MAX_INTEGER: Final = 2**64 - 1
_MAX_DIGITS: Final = 4000  # Python converts no more than 4,300
_OFFSET: Final = timedelta(hours=15)  # zones are at most 14 hours apart from UTC
_FIRST: Final = datetime.min.replace(tzinfo=UTC) + _OFFSET
_LAST: Final = datetime.max.replace(tzinfo=UTC, microsecond=999_000) - _OFFSET
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
FIRST_MS: Final = (_FIRST - _EPOCH) // _MS
LAST_MS: Final = (_LAST - _EPOCH) // _MS
"""Unix milliseconds whose year is 1 to 9999 in every time zone."""
_NUL: Final = _("must not contain NUL characters (\\u0000)")
_LONE_SURROGATE: Final = _("must not contain a lone surrogate (\\ud800 to \\udfff): send the whole character")
_NO_NUMBER: Final = _("must be a number: JSON has no NaN")
_TOO_LARGE: Final = _("is too large a number: send it as text")
_NO_TIME: Final = _("must be a time in the years 1 to 9999, in every time zone")
_NO_NAN: Final = json.JSONEncoder(allow_nan=False, check_circular=False)
_MOVED: Final = _("the time was moved into the calendar")
# An unterminated string runs to the end of the data, so that the scan stays linear for any data.
_STRUCTURE_OF_TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_STRUCTURE: Final = re.compile(_STRUCTURE_OF_TEXT.pattern.encode(), re.DOTALL)


class NotStorable(ValueError):
    """Raised for a value that cannot be stored, with a message for its sender. `path` is the place inside JSON."""

    def __init__(self, message: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message, self.path = message, path

    def field(self, whole: str) -> str:
        """Return the place as the name of a field; `whole` if it is all of the JSON."""
        return ".".join(self.path) or whole


def check_text(value: str, max_chars: int | None = None) -> str:
    """Return a text that databases and UTF-8 can carry. Raises: `NotStorable`."""
    if max_chars is not None and len(value) > max_chars:
        raise NotStorable(_("must be at most %(number)s characters", number=max_chars))
    if "\x00" in value:
        raise NotStorable(_NUL)
    if has_surrogates(value):
        raise NotStorable(_LONE_SURROGATE)
    return value


def has_surrogates(value: str) -> bool:
    """Return True if a string holds a lone surrogate, which neither databases nor UTF-8 can carry."""
    if value.isascii():
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return True
    return False


def check_ms(value: int) -> int:
    """Return Unix milliseconds that are a time in every zone. Raises: `NotStorable`."""
    if not FIRST_MS <= value <= LAST_MS:
        raise NotStorable(_NO_TIME)
    return value


def check_moment(value: datetime) -> datetime:
    """Return a time that is one in every zone. Raises: `NotStorable`."""
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    if not _FIRST <= aware <= _LAST:
        raise NotStorable(_NO_TIME)
    return value


def check_number(value: float) -> float:
    """Return an integer of 64 bits, or a finite float. Raises: `NotStorable`."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotStorable(_NO_NUMBER if math.isnan(value) else _TOO_LARGE)
    elif not _MIN_INTEGER <= value <= _MAX_INTEGER:
        raise NotStorable(_TOO_LARGE)
    return value


def check_json(value: Any, *, max_depth: int = STORED_DEPTH, max_bytes: int | None = None) -> Any:
    """Return plain JSON data that databases can carry and that can be written as JSON again.

    Raises: `NotStorable` with the path, for one text, key, number or level too many; without it for too many bytes.
    """
    # Serializing the data costs less than walking its fields, which is left to data that looks suspicious.
    try:
        data = orjson.dumps(value)
    except TypeError:
        data = b""
    is_deep = data.count(b"{") + data.count(b"[") > max_depth
    if not data or is_deep or b"\\u0000" in data or (b"null" in data and _has_nan(value)):
        _check_value(value, (), max_depth)
    if max_bytes is not None and len(data) > max_bytes:
        raise NotStorable(_("must be at most %(limit)s bytes of JSON", limit=max_bytes))
    return value


def _has_nan(value: Any) -> bool:
    """Return True if JSON data, which orjson has written, has a NaN or infinity: orjson writes null."""
    try:
        _NO_NAN.encode(value)
    except ValueError:
        return True
    return False


def _check_value(value: Any, path: tuple[str, ...], levels: int) -> None:
    try:
        if isinstance(value, str):
            check_text(value)
        elif isinstance(value, int | float):
            check_number(value)
    except NotStorable as error:
        raise NotStorable(error.message, path) from None
    if isinstance(value, Mapping | list | tuple):
        if not levels:
            raise NotStorable(_("must nest at most %(number)s levels deep", number=len(path)), path)
        for name, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            _check_value(name, path, 0)
            _check_value(item, (*path, str(name)), levels - 1)


def parse_json(data: str | bytes) -> Any:
    """Return parsed JSON with numbers of any length and constants such as NaN, for a check or repair to find them.

    Raises: ValueError for other text, and `NotStorable` if it nests too deeply for Python.
    """
    try:
        return json.loads(data, parse_int=parse_integer)
    except RecursionError:
        raise NotStorable(_("must nest at most %(number)s levels deep", number=STORED_DEPTH)) from None


def parse_integer(digits: str) -> int | float:
    """Return the integer, or infinity for one that is too long for Python. For JSON decoders: `parse_int`."""
    return int(digits) if len(digits) <= _MAX_DIGITS else math.copysign(math.inf, -1 if digits[0] == "-" else 1)


def depth_exceeds(data: bytes, limit: int) -> bool:
    """Return True if JSON nests deeper than `limit`, counted outside strings and without parsing."""
    depth = 0
    for match in _STRUCTURE.finditer(data):
        first = data[match.start()]
        if first in b"[{":
            depth += 1
            if depth > limit:
                return True
        elif first in b"]}":
            depth -= 1
    return False


def cut_json(text: str, levels: int) -> str:
    """Return JSON text with null for the objects and lists below so many levels. It is not parsed."""
    kept, start, depth = [], 0, 0
    for match in _STRUCTURE_OF_TEXT.finditer(text):
        if match[0] in {"[", "{"}:
            depth += 1
            if depth == levels + 1:
                kept += [text[start : match.start()], "null"]
        elif match[0] in {"]", "}"}:
            if depth == levels + 1:
                start = match.end()
            depth -= 1
    return "".join([*kept, text[start:]]) if depth <= levels else "".join(kept)


class Repair:
    """Makes values storable, and notes in `changes` what it changed, by field."""

    def __init__(self) -> None:
        self.changes: list[FieldError] = []

    def text(self, field: str, value: str, max_chars: int | None = None) -> str:
        """Return the text with replaced characters, cut to `max_chars`."""
        text = _storable(value)
        if text != value:
            self._note(field, _("characters that cannot be stored were replaced"))
        if max_chars is not None and len(text) > max_chars:
            self._note(field, _("it was cut to %(number)s characters", number=max_chars))
            text = text[:max_chars]
        return text

    def ms(self, field: str, value: int) -> int:
        """Return the nearest Unix milliseconds that are a time in every zone."""
        return self._changed(field, value, min(max(value, FIRST_MS), LAST_MS), _MOVED)

    def moment(self, field: str, value: datetime) -> datetime:
        """Return the nearest time that is one in every zone."""
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        if _FIRST <= aware <= _LAST:
            return value
        return self._changed(field, value, min(max(aware, _FIRST), _LAST), _MOVED)

    def number(self, field: str, value: int, low: int, high: int) -> int:
        """Return the nearest number of a range."""
        return self._changed(field, value, min(max(value, low), high), _("the number was moved into its range"))

    def json(self, field: str, value: Any, *, max_depth: int = STORED_DEPTH, max_bytes: int | None = None) -> Any:
        """Return the data as they can be stored: with other characters, integers as floats or text, and null.

        Null replaces NaN, infinity and levels below `max_depth`. Of an object with more than `max_bytes`, the largest
        values are left out.
        """
        try:
            check_json(value, max_depth=max_depth, max_bytes=max_bytes)
        except NotStorable as error:
            place = ".".join([field, *error.path])
            self._note(place, _("what cannot be stored was replaced: %(reason)s", reason=error.message))
            return _within(_storable_json(value, max_depth), max_bytes)
        return value

    def _changed(self, field: str, value: _Value, storable: _Value, message: str) -> _Value:
        if storable != value:
            self._note(field, message)
        return storable

    def _note(self, field: str, message: str) -> None:
        self.changes.append(FieldError(field, message))


def _storable(text: str) -> str:
    if not _UNSTORABLE.search(text):
        return text
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # joins the halves of a character
    return _UNSTORABLE.sub(_REPLACEMENT, whole)


def _storable_json(value: Any, levels: int) -> Any:
    if isinstance(value, Mapping | list | tuple) and not levels:
        return None
    if isinstance(value, Mapping):
        return _unique((_storable(str(name)), _storable_json(item, levels - 1)) for name, item in value.items())
    if isinstance(value, list | tuple):
        return [_storable_json(item, levels - 1) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not _MIN_INTEGER <= value <= _MAX_INTEGER:
        return _storable_integer(value)
    return _storable(value) if isinstance(value, str) else value


def _storable_integer(value: int) -> float | str:
    """Return an integer beyond 64 bits as the float that equals it, which PostgreSQL writes so, or as text."""
    try:
        return float(value) if int(float(value)) == value else str(value)
    except OverflowError:
        return str(value)


def _unique(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object that keeps all items, also those whose names became equal."""
    found: dict[str, Any] = {}
    for name, item in items:
        unique = name
        while unique in found:
            unique += _REPLACEMENT
        found[unique] = item
    return found


def _within(value: Any, max_bytes: int | None) -> Any:
    if max_bytes is None or len(orjson.dumps(value)) <= max_bytes:
        return value
    sizes = {name: len(orjson.dumps({name: item})) for name, item in value.items()} if isinstance(value, dict) else {}
    kept, room = set(), max_bytes - 2
    for name in sorted(sizes, key=lambda name: sizes[name]):
        room -= sizes[name]
        if room >= 0:
            kept.add(name)
    return {name: item for name, item in value.items() if name in kept} if sizes else None
