"""Removing all rows of a user: what refers to others first, memories with their index entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from accounts.models import MemoryUser
from operations.tables import ALL, AUDIT, LOCAL, MEMORIES, USER, Table
from store import storage
from store.models import Memory
from store.types import Owner

BATCH_ROWS = 500
# What is made of the memories goes after them, or their removal would make it anew.
_ORDER = (*(table for table in reversed(ALL) if table not in {*LOCAL, AUDIT, USER}), *LOCAL)


def counts(user: MemoryUser) -> dict[str, int]:
    """How many rows each table has of the user."""
    return {table.name: table.rows(user).count() for table in ALL}


def remove_rows(user: MemoryUser, *, between: Callable[[int], None] = lambda _: None) -> Mapping[str, int]:
    """Removes everything but the user and their trail; how many rows of each table.

    May be cut short and called again; `between` hears after each batch how many rows it had.
    """
    removed: Counter[str] = Counter()
    for table in _ORDER:
        for batch in _batches(table, user):
            removed[table.name] += _remove(table, user, batch)
            between(len(batch))
    return removed


def remove_user(user: MemoryUser, *, until_event: int | None = None) -> None:
    """Removes the user and their trail, up to an event if one is named. Call inside a transaction, after the rest."""
    trail = AUDIT.rows(user)
    (trail if until_event is None else trail.filter(pk__lte=until_event)).delete()
    MemoryUser.objects.filter(pk=user.pk).delete()


def _batches(table: Table, user: MemoryUser) -> Iterator[Sequence[Any]]:
    while batch := list(table.rows(user)[:BATCH_ROWS]):
        yield batch


def _remove(table: Table, user: MemoryUser, batch: Sequence[Any]) -> int:
    if table is not MEMORIES:
        QuerySet(table.model).filter(pk__in=[row.pk for row in batch]).delete()
        return len(batch)
    scopes: dict[Owner, list[Memory]] = {}
    for memory in batch:
        owner = Owner(user.pk, user.user_id, memory.app_id, memory.project_id)
        scopes.setdefault(owner, []).append(memory)
    for owner, memories in scopes.items():
        storage.remove(owner, memories)
    return len(batch)
