"""Plain SQL for hot paths, where the ORM's overhead exceeds the cost of the statement."""

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
    """Execute a statement with `%s` placeholders.

    For SQLite, Django converts the placeholders of every statement, which takes longer than to execute a short one.
    While no statement wrapper or log is active, the statement goes to SQLite directly.
    """
    if not _is_direct(cursor):
        cursor.execute(statement, values)
        return
    with cursor.db.wrap_database_errors:
        sqlite3.Cursor.execute(cursor.cursor, _with_sqlite_placeholders(statement), values)


def run_many(cursor: CursorWrapper, statement: str, values: Sequence[Sequence[Any]]) -> None:
    """Execute a statement once for each of many value lists."""
    if not _is_direct(cursor):
        cursor.executemany(statement, values)
        return
    with cursor.db.wrap_database_errors:
        sqlite3.Cursor.executemany(cursor.cursor, _with_sqlite_placeholders(statement), values)


def _is_direct(cursor: CursorWrapper) -> bool:
    """Return True if the cursor's statements may bypass Django; a logging cursor has another class."""
    return type(cursor) is CursorWrapper and _bypasses_django(cursor.db)


def _bypasses_django(db: BaseDatabaseWrapper) -> bool:
    """Return True for SQLite without statement wrappers other than a log.

    Raises: `TransactionManagementError` in a broken transaction.
    """
    if db.vendor != "sqlite" or db.execute_wrappers:
        return False
    db.validate_no_broken_transaction()
    return True


@lru_cache(maxsize=256)
def _with_sqlite_placeholders(statement: str) -> str:
    """Return the statement with SQLite's placeholders."""
    return _MARK.sub("?", statement).replace("%%", "%")


def rows(statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a query.

    Raises: the errors of `django.db`.
    """
    # By alias: `django.db.connection` looks the connection up for each attribute.
    db = connections[DEFAULT_DB_ALIAS]
    found: list[tuple[Any, ...]]
    if not db.queries_logged and _bypasses_django(db):
        db.ensure_connection()
        with db.wrap_database_errors:
            found = db.connection.execute(_with_sqlite_placeholders(statement), values).fetchall()
        return found
    with db.cursor() as cursor:
        cursor.execute(statement, values)
        found = cursor.fetchall()
    return found


def slots(values: Sized) -> str:
    """Return the placeholders of `IN (…)` for the values."""
    return ", ".join(["%s"] * len(values))


def uuid_value(key: UUID) -> UUID | str:
    """Return a UUID as the database stores it: PostgreSQL as UUID, SQLite as text."""
    return key if _has_uuids() else key.hex


def moment_value(moment: datetime) -> datetime | str:
    """Return an aware datetime as the database stores it: PostgreSQL as it is, SQLite as naive text in UTC."""
    return moment if _has_moments() else str(moment.astimezone(UTC).replace(tzinfo=None))


@cache
def _has_moments() -> bool:
    return connections[DEFAULT_DB_ALIAS].features.supports_timezones


@cache
def _has_uuids() -> bool:
    """Return the cached feature flag: nearly every statement asks for it."""
    return connections[DEFAULT_DB_ALIAS].features.has_native_uuid_field


@cache
def vendor() -> str:
    """Return `sqlite` or `postgresql`, cached."""
    return connections[DEFAULT_DB_ALIAS].vendor


_SEPARATOR: Final = "\x1f"


def column(statement: str, values: Sequence[Any]) -> tuple[str, ...]:
    """Return the texts of the column `value`, in order; none may contain U+001F.

    They are fetched as one row: a thread releases the GIL for each row that SQLite returns, and waits for it each time
    while other requests run.
    """
    join = "string_agg" if vendor() == "postgresql" else "group_concat"
    [(joined,)] = rows(f"SELECT {join}(value, '{_SEPARATOR}') FROM ({statement}) AS found", values)
    return tuple(joined.split(_SEPARATOR)) if joined is not None else ()
