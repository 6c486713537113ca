"""Plain statements for those who wait: what is done around them takes longer than the statements themselves."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence, Sized
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, Final
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

_MARK: Final = re.compile("(?<!%)%s")


def run(cursor: CursorWrapper, statement: str, values: Sequence[Any]) -> None:
    """Executes a statement that marks its values by %s.

    For SQLite Django looks through each statement for such marks, which with all its steps takes longer than to execute
    a short one: where nobody watches the statements, SQLite is given it at once.
    """
    if not _is_direct(cursor):
        cursor.execute(statement, values)
        return
    with cursor.db.wrap_database_errors:
        sqlite3.Cursor.execute(cursor.cursor, _as_of_sqlite(statement), values)


def run_many(cursor: CursorWrapper, statement: str, values: Sequence[Sequence[Any]]) -> None:
    """The same once for each of many values."""
    if not _is_direct(cursor):
        cursor.executemany(statement, values)
        return
    with cursor.db.wrap_database_errors:
        sqlite3.Cursor.executemany(cursor.cursor, _as_of_sqlite(statement), values)


def _is_direct(cursor: CursorWrapper) -> bool:
    """Whether its statements may pass Django by: a cursor that keeps a log is of another kind."""
    return type(cursor) is CursorWrapper and _is_unwatched(cursor.db)


def _is_unwatched(db: BaseDatabaseWrapper) -> bool:
    """Whether this is SQLite and nobody but a log watches its statements.

    Errors: `TransactionManagementError` in a transaction that is broken.
    """
    if db.vendor != "sqlite" or db.execute_wrappers:
        return False
    db.validate_no_broken_transaction()
    return True


@lru_cache(maxsize=256)
def _as_of_sqlite(statement: str) -> str:
    """The statement with SQLite's own marks."""
    return _MARK.sub("?", statement).replace("%%", "%")


def rows(statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """What a statement brings. Errors: those of `django.db`."""
    # By its alias: `django.db.connection` finds it again for each attribute.
    db = connections[DEFAULT_DB_ALIAS]
    found: list[tuple[Any, ...]]
    if not db.queries_logged and _is_unwatched(db):
        db.ensure_connection()
        with db.wrap_database_errors:
            found = db.connection.execute(_as_of_sqlite(statement), values).fetchall()
        return found
    with db.cursor() as cursor:
        cursor.execute(statement, values)
        found = cursor.fetchall()
    return found


def slots(values: Sized) -> str:
    """The placeholders of `IN (…)` for the values."""
    return ", ".join(["%s"] * len(values))


def uuid_value(key: UUID) -> UUID | str:
    """A UUID as the database keeps it: PostgreSQL as itself, SQLite as text."""
    return key if _has_uuids() else key.hex


def moment_value(moment: datetime) -> datetime | str:
    """An aware moment as the database keeps it: PostgreSQL as itself, SQLite as text in UTC without saying so."""
    return moment if _has_moments() else str(moment.astimezone(UTC).replace(tzinfo=None))


@cache
def _has_moments() -> bool:
    return connections[DEFAULT_DB_ALIAS].features.supports_timezones


@cache
def _has_uuids() -> bool:
    """Asked once: nearly every statement has an owner, and the way to this answer is long."""
    return connections[DEFAULT_DB_ALIAS].features.has_native_uuid_field


@cache
def vendor() -> str:
    """`sqlite` or `postgresql`; asked once as well."""
    return connections[DEFAULT_DB_ALIAS].vendor


_SEPARATOR: Final = "\x1f"


def column(statement: str, values: Sequence[Any]) -> tuple[str, ...]:
    """The texts that a statement brings under the name `value`, in its order; none may hold U+001F.

    They come as one row: a thread lets go of the interpreter's lock for each row that SQLite gives it, and with other
    requests beside it waits each time until it is given back.
    """
    join = "string_agg" if vendor() == "postgresql" else "group_concat"
    [(joined,)] = rows(f"SELECT {join}(value, '{_SEPARATOR}') FROM ({statement}) AS found", values)
    return tuple(joined.split(_SEPARATOR)) if joined is not None else ()
