"""The stores that are derived from memories: each can be thrown away and made again from the rows.

Guarantees: what `add` and `remove` write is in the transaction of the memory, so a reader sees both or none; a store
that another version wrote is made again, and `differences` names one that does not agree with the rows.

Ours, because a search reads one user's part of all stores in one statement. Not chosen: triggers, which know no tokens
and vectors, and a search server, whose index lies outside the transaction. It costs a write to each store per memory.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from core.persistence.database_errors import database_errors
from core.persistence.sql import temporary_data_on_disk
from store import rollups
from store.index import keyword, pages
from store.index.keyword import Entry
from store.models import IndexStatistics, Memory
from store.types import Owner
from store.vectors import fill as vectors
from store.vectors import pages as vector_pages

BATCH_ROWS: Final = 500
_SAMPLED_OWNERS: Final = 200
_SAMPLED_MEMORIES: Final = 20_000
"""Together; of an owner with more, whose comparison would fill the memory, only the totals are compared."""
Add = Callable[[CursorWrapper, Owner, Mapping[Memory, Entry]], None]
Remove = Callable[[CursorWrapper, Owner, Mapping[int, Entry]], None]


@dataclass(frozen=True, slots=True)
class Derived:
    """A store that is derived from memories.

    `add` and `remove` are called in the transaction that writes the rows. `is_current`: this version wrote all of it.
    `rebuild` makes it again from the rows and yields the number of memories of each step; it may be stopped and begun
    again. `differences` compares it with the rows of some owners, and its totals with those of all.
    """

    name: str
    add: Add
    remove: Remove
    is_current: Callable[[], bool]
    rebuild: Callable[[], Iterator[int]]
    differences: Callable[[Sequence[Owner]], Iterator[str]]


def add(owner: Owner, entries: Mapping[Memory, Entry]) -> None:
    """Add saved memories of an owner to all stores. Call inside the transaction that writes their rows, after that."""
    if entries:
        with connection.cursor() as cursor:
            for store in STORES:
                store.add(cursor, owner, entries)


def remove(owner: Owner, entries: Mapping[int, Entry]) -> None:
    """Remove memories, by row id with the entries that they had. Call inside the transaction that changes the rows."""
    if entries:
        with connection.cursor() as cursor:
            for store in STORES:
                store.remove(cursor, owner, entries)


def sample() -> list[Owner]:
    """Return some owners by chance, whose memories are few enough to compare each."""
    of_some = IndexStatistics.objects.filter(documents__range=(1, _SAMPLED_MEMORIES)).select_related("user")
    chosen: list[Owner] = []
    left = _SAMPLED_MEMORIES
    for one in of_some.order_by("?")[:_SAMPLED_OWNERS]:
        if one.documents <= left:
            chosen.append(one.owner)
            left -= one.documents
    return chosen


# --- memories that wait for the keyword index ----------------------------------------------------------------------


def pending_count() -> int:
    """Return how many memories are not yet in the keyword index."""
    return Memory.objects.filter(keyword.PENDING).count()


def fill(batch_rows: int = BATCH_ROWS) -> Iterator[int]:
    """Index all pending memories, yielding the size of each batch. Raises: `EngineUnavailable`."""
    pending = Memory.objects.filter(keyword.PENDING).select_related("user").order_by("pk")[:batch_rows]
    while True:
        with database_errors():
            batch = list(pending.all())
            if not batch:
                return
            _index(batch)
        yield len(batch)


def _index(memories: list[Memory]) -> None:
    prepared = keyword.Prepared(memories)
    by_owner: defaultdict[Owner, dict[Memory, Entry]] = defaultdict(dict)
    with transaction.atomic():
        # Looked up again under the lock: some may have been deleted, changed, or indexed by another process.
        keys = [memory.pk for memory in memories]
        locked = Memory.objects.select_for_update(of=("self",)).filter(keyword.PENDING, pk__in=keys)
        for memory in locked.select_related("user"):
            entry = prepared.entry_of(memory)
            memory.is_indexed, memory.token_count = True, entry.length
            by_owner[Owner(memory.user_id, memory.user.user_id, memory.app_id, memory.project_id)][memory] = entry
        for owner, entries in by_owner.items():
            add(owner, entries)
        changed = [memory for entries in by_owner.values() for memory in entries]
        Memory.objects.bulk_update(changed, ["is_indexed", "token_count"])


# --- rebuilds ---------------------------------------------------------------------------------------------------------


def empty_keywords() -> None:
    """Empty the keyword index, and with it the facts of what it holds."""
    with database_errors(), temporary_data_on_disk(), transaction.atomic():
        keyword.empty()
        pages.empty()
        Memory.objects.filter(is_indexed=True).update(is_indexed=False, token_count=0)


def _rebuild_keywords() -> Iterator[int]:
    empty_keywords()
    yield from fill()


def _rebuild_facts() -> Iterator[int]:
    return (pages.rebuild(owner) for owner in _owners())


def _rebuild_vectors() -> Iterator[int]:
    yield from (vector_pages.rebuild(owner) for owner in _owners())
    vectors.mark_missing_pending()


def _rebuild_counts() -> Iterator[int]:
    with database_errors():
        rollups.recount()
        yield Memory.objects.count()


def _owners() -> Iterator[Owner]:
    with database_errors():
        owners = [one.owner for one in IndexStatistics.objects.select_related("user").order_by("pk")]
    for owner in owners:
        with database_errors():
            yield owner


def _kept_by_triggers(_cursor: CursorWrapper, _owner: Owner, _entries: Collection[object]) -> None:
    """Do nothing."""


STORES: Final = (
    # First: its statistics are the lock of all who write for an owner.
    Derived("keywords", keyword.add, keyword.remove, keyword.is_current, _rebuild_keywords, keyword.differences),
    Derived("facts", pages.add, pages.remove, pages.is_current, _rebuild_facts, pages.differences),
    Derived("vectors", vectors.add, vectors.remove, vector_pages.is_current, _rebuild_vectors, vectors.differences),
    Derived("counts", _kept_by_triggers, _kept_by_triggers, lambda: True, _rebuild_counts, rollups.differences),
)
BY_NAME: Final = {store.name: store for store in STORES}
