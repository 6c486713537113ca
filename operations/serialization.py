"""Rows as plain data and back: the same for the same content, whatever the database.

Keys that a database gives out by itself stay behind: what refers to such a row names it by its own words, and what
belongs to the user does not say so.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, cast

from django.core.exceptions import ValidationError
from django.db.models import AutoField, BooleanField, Field, FloatField, ForeignKey, IntegerField, JSONField, Model

from accounts.models import MemoryUser
from core.errors import InvalidInput
from operations import storage_paths
from operations.tables import ALL, Row, Table

# Beyond this PostgreSQL gives back whole numbers where SQLite gives floats.
_WHOLE_FROM = 1e16
# The kinds of JSON that fields are written as; what stands first is asked first.
_KINDS: tuple[tuple[type[Any], tuple[type[Any], ...]], ...] = (
    (JSONField, (dict,)),
    (BooleanField, (bool,)),
    (FloatField, (int, float)),
    (IntegerField, (int,)),
    (Field, (str,)),
)
_WORDS = {dict: "an object", bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def dumped(table: Table, user: MemoryUser, batch: int = 500) -> Iterator[Row]:
    """A user's rows of a table as plain data, in their order."""
    related = [field.name for field in _fields(table) if _is_named(field)]
    rows = table.rows(user).select_related(*related) if related else table.rows(user)
    for row in rows.iterator(chunk_size=batch):
        yield table.pack({field.name: _plain(field, row) for field in _fields(table)})


class Loader:
    """Makes the rows of one user of plain data."""

    def __init__(self, user: MemoryUser) -> None:
        self._user = user
        self._keys: dict[tuple[str, tuple[Any, ...]], Any] = {}

    def row(self, table: Table, data: Any) -> Model:
        """Not saved yet; what refers to rows refers to nothing yet. Errors: `InvalidInput`."""
        fields = {field.name: field for field in _fields(table)}
        if not isinstance(data, dict) or not data.keys() <= fields.keys():
            raise InvalidInput("holds fields that this gateway does not know: is it older than the archive?")
        missing = [name for name in fields if name not in data and not fields[name].has_default()]
        if missing:
            raise InvalidInput(f"lacks {', '.join(missing)}")
        for name, value in data.items():
            _check_kind(fields[name], value)
        if foreign := [place for place in table.places(data) if not storage_paths.is_of(self._user.pk, place)]:
            raise InvalidInput(f"names the file {foreign[0][:100]!r}, which is not this user's")
        row = table.model(**self._owner(table))
        for name, value in table.unpack(data).items():
            self._set(row, fields[name], value)
        _check(row, table)
        return row

    def resolve(self, table: Table, row: Model, data: Row) -> None:
        """Fills in what a checked row refers to. Errors: `InvalidInput` where that is not among the user's rows."""
        for field in _fields(table):
            told = data.get(field.name)
            if isinstance(field, ForeignKey) and told is not None:
                names = tuple(told) if _is_named(field) else (told,)
                setattr(row, field.attname, self._key(_table_of(field), names))

    def _owner(self, table: Table) -> dict[str, Any]:
        if table.is_by_name:
            return {table.user: self._user.user_id}
        return {} if "__" in table.user or table.model is MemoryUser else {table.user: self._user}

    def _set(self, row: Model, field: Field[Any, Any], value: Any) -> None:
        if _is_named(field):
            return
        try:
            setattr(row, field.attname, field.to_python(value))
        except ValidationError as error:
            raise InvalidInput(f"{field.name}: {'; '.join(error.messages)}") from None

    def _key(self, table: Table, names: tuple[Any, ...]) -> Any:
        known = (table.name, names)
        if known not in self._keys:
            wanted = dict(zip(table.key or ("pk",), names, strict=True))
            self._keys[known] = table.rows(self._user).filter(**wanted).values_list("pk", flat=True).first()
        if self._keys[known] is None:
            raise InvalidInput(f"a row refers to {table.name} {list(names)}, which is not there")
        return self._keys[known]


def _check_kind(field: Field[Any, Any], value: Any) -> None:
    """What Django would read as something else, such as a list as its words. Errors: `InvalidInput`."""
    if value is None and field.null:
        return
    if _is_named(field):
        names = _table_of(field).key
        if not (isinstance(value, list) and len(value) == len(names) and all(isinstance(name, str) for name in value)):
            raise InvalidInput(f"{field.name} must be a list of names: {', '.join(names)}")
        return
    kinds = next(kinds for of, kinds in _KINDS if isinstance(field, of))
    if type(value) not in kinds or (isinstance(value, float) and not math.isfinite(value)):
        raise InvalidInput(f"{field.name} must be {' or '.join(_WORDS[kind] for kind in kinds)}")


def _fields(table: Table) -> list[Field[Any, Any]]:
    return [
        field
        for field in cast("Iterable[Field[Any, Any]]", table.model._meta.concrete_fields)  # noqa: SLF001
        if not isinstance(field, AutoField)
        and field.name not in table.left_out
        and field.related_model is not MemoryUser
        and not (table.is_by_name and field.name == table.user)
    ]


def _is_named(field: Field[Any, Any]) -> bool:
    """Whether what it refers to is named by its words."""
    return isinstance(field, ForeignKey) and bool(_table_of(field).key)


def _table_of(field: Field[Any, Any]) -> Table:
    return next(table for table in ALL if table.model is field.related_model)


def _plain(field: Field[Any, Any], row: Model) -> Any:
    if _is_named(field):
        other = getattr(row, field.name)
        return None if other is None else [getattr(other, name) for name in _table_of(field).key]
    return _simple(getattr(row, field.attname))


def _simple(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, dict):
        return {name: _simple(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_simple(item) for item in value]
    if isinstance(value, float):
        return int(value) if abs(value) >= _WHOLE_FROM else value + 0.0  # no negative zero either
    return value


def _check(row: Model, table: Table) -> None:
    """The grammar of each field; what it refers to is looked up later. Errors: `InvalidInput`."""
    unchecked = [field.name for field in row._meta.concrete_fields if field.is_relation]  # noqa: SLF001
    unchecked += [name for name in table.emptied if getattr(row, name) == ""]
    unchecked += ["user_id"] if table.is_by_name else []
    try:
        row.clean_fields(exclude=unchecked)
    except ValidationError as error:
        words = "; ".join(f"{name}: {' '.join(said)}" for name, said in error.message_dict.items())
        raise InvalidInput(words[:1000]) from None
