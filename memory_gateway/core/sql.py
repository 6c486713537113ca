"""Plain statements for the reads that requests wait for, with as little around them as Django lets us have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
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
    return key if connections[DEFAULT_DB_ALIAS].features.has_native_uuid_field else key.hex
