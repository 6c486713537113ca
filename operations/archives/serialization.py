"""Convert rows to JSON data and back; equal content gives equal data on every database.

Generated keys are left out: references to such rows use natural keys, and references to the user are omitted.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, cast

from django.core.exceptions import ValidationError
from django.db.models import AutoField, BooleanField, Field, FloatField, ForeignKey, IntegerField, JSONField, Model
from django.utils.timezone import is_naive

from accounts.models import MemoryUser
from core.errors import InvalidInput
from core.persistence.checked_rows import check_row
from operations.archives import old_archives
from operations.archives.repairs import storable_row
from operations.tables import ALL, Row, Table, unpack

# From this size on, PostgreSQL returns floats in JSON as integers, and SQLite as floats.
_MIN_INTEGER = 1e16
_BATCH_ROWS = 500
# The JSON types of fields, in order of precedence.
_JSON_TYPES: tuple[tuple[type[Any], tuple[type[Any], ...]], ...] = (
    (BooleanField, (bool,)),
    (FloatField, (int, float)),
    (IntegerField, (int,)),
    (Field, (str,)),
)
_WORDS = {
    dict: "an object", list: "a list of strings", bool: "true or false", int: "a whole number", float: "a number",
    str: "a string",
}  # fmt: skip


def dump_rows(table: Table, user: MemoryUser) -> Iterator[Row]:
    """Yield a user's rows of a table as JSON data, in the table's order. Values that no archive holds are repaired."""
    fields = fields_of(table)
    related = [name for name, field in fields.items() if _has_natural_key(field)]
    rows = table.rows(user).select_related(*related) if related else table.rows(user)
    if table.not_archived is not None:
        rows = rows.exclude(table.not_archived)
    for row in rows.iterator(chunk_size=_BATCH_ROWS):
        yield dump_row(table, row)


def dump_row(table: Table, row: Model) -> Row:
    """Return a row as JSON data."""
    fields = fields_of(table)
    values = {name: _field_value(field, row) for name, field in fields.items()}
    return table.dump(row, {name: _as_json(value) for name, value in storable_row(fields, values)[0].items()})


class Loader:
    """Creates the rows of one user from JSON data."""

    def __init__(self, user: MemoryUser, old_rows: old_archives.Converter | None = None) -> None:
        self.old_rows = old_rows
        """Converts the rows of an older archive."""
        self._user = user
        self._keys: dict[tuple[str, tuple[Any, ...]], Any] = {}

    def row(self, table: Table, data: Any) -> Model:
        """Return an unsaved row; its references are resolved later. Raises: `InvalidInput`."""
        fields = fields_of(table)
        if not isinstance(data, dict):
            raise InvalidInput("is not an object")
        if not data.keys() <= fields.keys():
            raise InvalidInput("has fields that this gateway does not know; the archive may be of a newer version")
        missing = [name for name in fields if name not in data and not fields[name].has_default()]
        if missing:
            raise InvalidInput(f"lacks {', '.join(missing)}")
        for name, value in data.items():
            _check_kind(fields[name], value)
        unpack_own = partial(unpack, user_pk=self._user.pk, allowed=table.allowed_paths)
        if table.is_by_name:
            row = table.model(**{table.user: self._user.user_id})
        elif "__" in table.user or table.model is MemoryUser:
            row = table.model()
        else:
            row = table.model(**{table.user: self._user})
        for name, value in table.change_paths(data, unpack_own).items():
            if not _has_natural_key(fields[name]):
                setattr(row, fields[name].attname, _converted(fields[name], value))
        _check(row, table)
        return row

    def resolve(self, table: Table, row: Model, data: Row) -> None:
        """Set the references of a checked row. Raises: `InvalidInput` for a reference to another user's or no row."""
        for field in fields_of(table).values():
            value = data.get(field.name)
            if isinstance(field, ForeignKey) and value is not None:
                names = tuple(value) if _has_natural_key(field) else (value,)
                setattr(row, field.attname, self._key(_table_of(field), names))

    def _key(self, table: Table, names: tuple[Any, ...]) -> Any:
        known = (table.name, names)
        if known not in self._keys:
            wanted = dict(zip(table.key or ("pk",), names, strict=True))
            self._keys[known] = table.rows(self._user).filter(**wanted).values_list("pk", flat=True).first()
        if self._keys[known] is None:
            raise InvalidInput(f"a row references {table.name} {list(names)}, which does not exist")
        return self._keys[known]


def _converted(field: Field[Any, Any], value: Any) -> Any:
    """Return the value as the field's Python type. Raises: `InvalidInput`, also for a time without its zone."""
    try:
        found = field.to_python(value)
    except ValidationError as error:
        raise InvalidInput(f"{field.name}: {'; '.join(error.messages)}") from None
    except OverflowError:
        raise InvalidInput(f"{field.name}: is too large a number") from None
    if isinstance(found, datetime) and is_naive(found):
        raise InvalidInput(f"{field.name} must be a time with its zone, such as 2026-01-31T12:00:00+00:00")
    return found


def _check_kind(field: Field[Any, Any], value: Any) -> None:
    """Raise `InvalidInput` for a value that Django would convert silently, such as a list for text."""
    if value is None and field.null:
        return
    if _has_natural_key(field):
        names = _table_of(field).key
        if not (isinstance(value, list) and len(value) == len(names) and all(isinstance(name, str) for name in value)):
            raise InvalidInput(f"{field.name} must be a list of names: {', '.join(names)}")
        return
    kinds: tuple[type[Any], ...] = (list,) if field.default is list else (dict,)
    if not isinstance(field, JSONField):
        kinds = next(kinds for of, kinds in _JSON_TYPES if isinstance(field, of))
    is_invalid = isinstance(value, float) and not math.isfinite(value)
    is_invalid |= isinstance(value, list) and not all(isinstance(item, str) for item in value)
    if type(value) not in kinds or is_invalid:
        raise InvalidInput(f"{field.name} must be {' or '.join(_WORDS[kind] for kind in kinds)}")


@cache
def fields_of(table: Table) -> dict[str, Field[Any, Any]]:
    """Return the exported fields of a table by name."""
    return {
        field.name: field
        for field in cast("Iterable[Field[Any, Any]]", table.model._meta.concrete_fields)  # noqa: SLF001
        if not isinstance(field, AutoField)
        and field.name not in table.left_out
        and field.related_model is not MemoryUser
        and not (table.is_by_name and field.name == table.user)
    }


def _has_natural_key(field: Field[Any, Any]) -> bool:
    """Return True if the field refers to its row by a natural key."""
    return isinstance(field, ForeignKey) and bool(_table_of(field).key)


def _table_of(field: Field[Any, Any]) -> Table:
    return next(table for table in ALL if table.model is field.related_model)


def _field_value(field: Field[Any, Any], row: Model) -> Any:
    if _has_natural_key(field):
        other = getattr(row, field.name)
        return None if other is None else [getattr(other, name) for name in _table_of(field).key]
    return getattr(row, field.attname)


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, dict):
        return {name: _as_json(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    if isinstance(value, float):
        return int(value) if abs(value) >= _MIN_INTEGER else value + 0.0  # `+ 0.0` makes negative zero positive
    return value


def _check(row: Model, table: Table) -> None:
    """Validate all fields except references. Raises: `InvalidInput`."""
    unchecked = [field.name for field in row._meta.concrete_fields if field.is_relation]  # noqa: SLF001
    unchecked += [name for name in table.cleared_by_purge if getattr(row, name) == ""]
    unchecked += ["user_id"] if table.is_by_name else []
    try:
        row.clean_fields(exclude=unchecked)
    except ValidationError as error:
        words = "; ".join(f"{name}: {' '.join(said)}" for name, said in error.message_dict.items())
        raise InvalidInput(words[:1000]) from None
    check_row(row)
