"""New rows in one statement for each batch: what the ORM does for a row costs more than the database does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import (
    BooleanField,
    CharField,
    DateTimeField,
    Field,
    FloatField,
    ForeignKey,
    IntegerField,
    Model,
    TextField,
    UUIDField,
)

from core.sql import run, slots, uuid_value

_PLAIN = (BooleanField, CharField, FloatField, IntegerField, TextField)
"""Fields whose values the database takes as they are."""
BATCH_ROWS = 200
"""A statement is built in memory with all that it carries."""


def insert(cursor: CursorWrapper, rows: Sequence[Model]) -> None:
    """Saves new rows of one model, and notes their keys in them. Without signals and without related objects."""
    for start in range(0, len(rows), BATCH_ROWS):
        batch = rows[start : start + BATCH_ROWS]
        _note(batch, _inserted(cursor, batch))


def _inserted(cursor: CursorWrapper, rows: Sequence[Model]) -> list[tuple[Any]]:
    """The keys of the rows, in their order."""
    run(cursor, _statement(type(rows[0]), len(rows)), [value for row in rows for value in _values(row)])
    keys: list[tuple[Any]] = cursor.fetchall()
    return keys


def _note(rows: Sequence[Model], keys: Sequence[tuple[Any]]) -> None:
    for row, (key,) in zip(rows, keys, strict=True):
        row.pk, row._state.adding, row._state.db = key, False, connection.alias  # noqa: SLF001  as the ORM does


@cache
def _fields(model: type[Model]) -> tuple[Field[Any, Any], ...]:
    return tuple(field for field in model._meta.concrete_fields if not field.primary_key)  # noqa: SLF001


@cache
def _statement(model: type[Model], count: int) -> str:
    names = [str(field.column) for field in _fields(model)]
    table = model._meta.db_table  # noqa: SLF001
    key = model._meta.pk.column  # noqa: SLF001
    values = ", ".join([f"({slots(names)})"] * count)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES {values} RETURNING {key}"


def _values(row: Model) -> list[Any]:
    return [value_of(row) for value_of in _readers(type(row))]


@cache
def _readers(model: type[Model]) -> tuple[Callable[[Any], Any], ...]:
    return tuple(_reader(field) for field in _fields(model))


def _reader(field: Field[Any, Any]) -> Callable[[Any], Any]:
    """How a column's value is taken from a row: asking the field each time takes longer than the statement."""
    read, target = attrgetter(field.attname), field.target_field if isinstance(field, ForeignKey) else field
    if isinstance(target, _PLAIN):
        return read
    if isinstance(target, UUIDField) and not target.null:
        return lambda row: uuid_value(read(row))
    if isinstance(target, DateTimeField) and target.null:  # seldom known of a new row
        return lambda row: None if read(row) is None else field.get_db_prep_save(read(row), connection)
    return lambda row: field.get_db_prep_save(field.pre_save(row, add=True), connection)
