"""Make rows storable when they are exported, and the rows of archives that may be changed when they are imported.

A row of a database may hold what no other database or JSON reader accepts, and an archive what no gateway exported.
Memories, profiles and audit events are made storable: replaced characters, times within the calendar, cut data. Users,
sessions, resources and decisions of an archive are not, because a changed or skipped decision would bring back what a
user deleted: one of them that cannot be stored refuses its user.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from django.db.models import CharField, DateTimeField, Field, FloatField, IntegerField, JSONField, TextField
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from core.errors import FieldError
from core.messages import Translatable as _
from core.persistence.checked_rows import integer_range, is_ms
from core.storable import Repair
from operations.tables import Row

IDS: Final = frozenset({"memory_id", "session_id", "engine_session_id"})
"""Columns of ids that other rows name. Their repair keeps different ids different."""
_MAX_ID_CHARS: Final = 128  # of the shortest column of ids
_DIGEST_CHARS: Final = 12


def storable_row(fields: "Mapping[str, Field[Any, Any]]", data: Row) -> tuple[Row, list[FieldError]]:
    """Return JSON data of a row as it can be stored, and what was changed, by field.

    What a repair cannot make right, such as a missing field or an unknown choice, is left to the loader.
    """
    repair = Repair()
    row = {name: _value(fields[name], value, repair) if name in fields else value for name, value in data.items()}
    return row, repair.changes


def storable_id(value: str) -> str:
    """Return the id under which `storable_row` keeps a value."""
    return str(_id("memory_id", value, Repair()))


def _value(field: "Field[Any, Any]", value: Any, repair: Repair) -> Any:
    if value is None or field.choices:
        return value
    if field.is_relation:
        return [_id(field.name, name, repair) for name in value] if isinstance(value, list) else value
    function = next((function for kinds, function in _BY_KIND if isinstance(field, kinds)), None)
    return function(field, value, repair) if function else value


def _json(field: "Field[Any, Any]", value: Any, repair: Repair) -> Any:
    kind = list if field.default is list else dict
    if not isinstance(value, kind):
        if not field.has_default():
            return value
        _note(repair, field, _("a value of another kind was left out"))
        return kind()
    if kind is dict:
        return repair.json(field.name, value)
    ids = [_id(field.name, item, repair) for item in value if isinstance(item, str)]
    if len(ids) < len(value):
        _note(repair, field, _("a value of another kind was left out"))
    return ids


def _text(field: "Field[Any, Any]", value: Any, repair: Repair) -> Any:
    if not isinstance(value, str):
        return value
    return _id(field.name, value, repair) if field.name in IDS else repair.text(field.name, value, field.max_length)


def _id(name: str, value: Any, repair: Repair) -> Any:
    """Return an id that can be stored. A changed one ends with a digest, so that two ids do not become one."""
    if not isinstance(value, str):
        return value
    text = repair.text(name, value, _MAX_ID_CHARS)
    if text == value:
        return value
    digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]
    return f"{text[: _MAX_ID_CHARS - _DIGEST_CHARS - 1]}~{digest}"


def _moment(field: "Field[Any, Any]", value: Any, repair: Repair) -> Any:
    if not isinstance(value, str):
        return value
    try:
        found = parse_datetime(value)
    except ValueError:
        found = None
    if found is None:
        _note(repair, field, _("it is not a time"))
        # A hidden memory stays hidden; when it was sent is not known.
        return timezone.now().isoformat() if field.name == "state_since" or not field.null else None
    if timezone.is_naive(found):
        _note(repair, field, _("its zone was taken for UTC"))
        return repair.moment(field.name, found.replace(tzinfo=UTC)).isoformat()
    moved: datetime = repair.moment(field.name, found)
    return value if moved is found else moved.isoformat()


def _number(field: "Field[Any, Any]", value: Any, repair: Repair) -> Any:
    if not isinstance(value, int | float) or _is_finite(value):
        return value
    _note(repair, field, _("it is not a number"))
    return None if field.null else 0.0


def _integer(field: "Field[Any, Any]", value: Any, repair: Repair) -> Any:
    if isinstance(value, float) and (not math.isfinite(value) or value.is_integer()):
        value = int(min(max(value, -(2.0**63)), 2.0**63))
    if type(value) is not int:
        return value
    if is_ms(field):
        return repair.ms(field.name, value)
    return repair.number(field.name, value, *integer_range(field))


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that is too large for a float
        return False


_BY_KIND: Final[tuple[tuple[Any, Callable[[Any, Any, Repair], Any]], ...]] = (
    (JSONField, _json),
    (DateTimeField, _moment),
    ((CharField, TextField), _text),
    (FloatField, _number),
    (IntegerField, _integer),
)


def _note(repair: Repair, field: "Field[Any, Any]", message: str) -> None:
    repair.changes.append(FieldError(field.name, message))
