"""Read stored values so that one which no reader accepts costs itself only, never the answer it is part of.

Databases hold more than JSON and calendars do: numbers beyond 64 bits or double precision, half characters (SQLite),
deep nesting, values of another kind, such as a list for an object, and times after the year 9999. Writing checks for
them (`core.storable`); rows that were stored before, or by other programs, are read up to what is readable, which is
logged once. Good values are read once, as fast as without this module.
"""

import logging
import threading
from collections import OrderedDict
from datetime import datetime
from typing import Any, Final, TypeVar

import orjson

from core import storable
from core.times import from_ms

logger = logging.getLogger("memory_gateway.stored_rows")

_MAX_LOGGED: Final = 10_000
_Kind = TypeVar("_Kind", dict[str, Any], list[Any])
_logged: OrderedDict[int, None] = OrderedDict()
_lock = threading.Lock()


def read_json(text: str, kind: type[_Kind], place: str) -> _Kind:
    """Return a stored object or list. What cannot be read is replaced. `place` names the row or column in the log."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _degraded(text, kind, place)
    # Data that is too deep has at least as many brackets.
    if type(found) is not kind or text.count("{") + text.count("[") > storable.STORED_DEPTH:
        return _degraded(text, kind, place)
    return found


def read_strings(text: str, place: str) -> list[str]:
    """Return a stored list of strings, without items of other kinds."""
    found = read_json(text, list, place)
    if {*map(type, found)} <= {str}:
        return found
    log_once(text, place, "it is not a list of strings")
    return [item for item in found if isinstance(item, str)]


def moment(value: int | datetime) -> datetime:
    """Return a stored time, or Unix milliseconds, as one that every time zone has: the nearest, if it is none."""
    if not isinstance(value, datetime) and storable.FIRST_MS <= value <= storable.LAST_MS:
        return from_ms(value)
    repair = storable.Repair()
    found = repair.moment("", value) if isinstance(value, datetime) else from_ms(repair.ms("", value))
    if repair.changes:
        log_once(value, str(value), "it is outside of the years 1 to 9999")
    return found


def _degraded(text: str, kind: type[_Kind], place: str) -> _Kind:
    repair = storable.Repair()
    try:
        found = repair.json("", storable.parse_json(storable.cut_json(text, storable.STORED_DEPTH)))
    except ValueError:
        found = None
    if isinstance(found, kind):
        log_once(text, place, repair.changes[0].message if repair.changes else "it nests too deeply")
        return found
    log_once(text, place, f"it is not {'an object' if kind is dict else 'a list'}")
    return kind()


def log_once(value: object, place: str, reason: str) -> None:
    """Log a value that is not completely readable, once in this process."""
    key = hash(value)
    with _lock:
        if key in _logged:
            return
        _logged[key] = None
        if len(_logged) > _MAX_LOGGED:
            _logged.popitem(last=False)
    logger.warning("%s: a stored value cannot be read completely: %s. The rest of its row is used.", place, reason)
