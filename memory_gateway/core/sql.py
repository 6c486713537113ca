"""Plain statements for the reads that requests wait for, with as little around them as Django lets us have."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections


def rows(statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """What a statement brings. Errors: those of `django.db`."""
    # By its alias: `django.db.connection` finds it again for each attribute.
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(statement, values)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def slots(values: Sequence[Any]) -> str:
    """The placeholders of `IN (…)` for the values."""
    return ", ".join(["%s"] * len(values))


def uuid_value(key: UUID) -> UUID | str:
    """A UUID as the database keeps it: PostgreSQL as itself, SQLite as text."""
    return key if _has_uuids() else key.hex


@cache
def _has_uuids() -> bool:
    """Asked once: nearly every statement has an owner, and the way to this answer is long."""
    return connections[DEFAULT_DB_ALIAS].features.has_native_uuid_field


_SEPARATOR: Final = "\x1f"


def column(statement: str, values: Sequence[Any]) -> tuple[str, ...]:
    """The texts that a statement brings under the name `value`, in its order; none may hold U+001F.

    They come as one row: a thread lets go of the interpreter's lock for each row that SQLite gives it, and with other
    requests beside it waits each time until it is given back.
    """
    join = "string_agg" if connections[DEFAULT_DB_ALIAS].vendor == "postgresql" else "group_concat"
    [(joined,)] = rows(f"SELECT {join}(value, '{_SEPARATOR}') FROM ({statement}) AS found", values)
    return tuple(joined.split(_SEPARATOR)) if joined is not None else ()
