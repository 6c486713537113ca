"""Rebuilds of both indexes of words, after an update that changes the tokens or if an index may be damaged.

One transaction empties the index, short ones fill it again; after each of them index, rows and statistics agree. So a
rebuild may be stopped at any point and started again, and searches find indexed rows meanwhile.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from django.db import connection, transaction

from core.persistence.database_errors import database_errors
from core.persistence.sql import temporary_data_on_disk
from store.index import keyword, pages, words
from store.models import IS_PURGED, IndexStatistics, IndexVersion, Memory
from store.text.tokens import TOKENIZER_VERSION
from store.types import Owner
from store.vectors import pages as vector_pages

BATCH_ROWS = 500


def is_needed() -> bool:
    """Return True if the index was built by another tokenizer."""
    return keyword.version() not in {None, TOKENIZER_VERSION}


def empty() -> None:
    """Empty the index and mark all memories as pending."""
    with database_errors(), temporary_data_on_disk(), transaction.atomic():
        keyword.clear()
        IndexStatistics.objects.all().delete()
        Memory.objects.filter(is_indexed=True).update(is_indexed=False, token_count=0)
        IndexVersion.objects.all().delete()
        IndexVersion.objects.create(tokenizer=TOKENIZER_VERSION)
        words.queue_all()


def pending_count() -> int:
    """Return how many memories are not yet in the index."""
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


def update_pages() -> int:
    """Write pages of facts and vectors that have another layout again; return the number of their owners."""
    with database_errors():
        outdated = list(pages.outdated())
        for owner in outdated:
            pages.update(owner)
        return max(len(outdated), vector_pages.update())


def fill_words(batch_rows: int = BATCH_ROWS) -> Iterator[int]:
    """Add all queued memories to the word index, yielding the size of each batch."""
    while True:
        with database_errors():
            waiting = words.pending(batch_rows)
            if not waiting:
                return
            _index_words(waiting)
        yield len(waiting)


def _index_words(waiting: Sequence[int]) -> None:
    memories = Memory.objects.exclude(IS_PURGED).filter(pk__in=waiting)
    prepared = keyword.Prepared(memories)
    with transaction.atomic(), connection.cursor() as cursor:
        # Looked up again under the lock: some may have been deleted or changed since.
        locked = memories.select_for_update().order_by("pk")
        words.put(cursor, {memory.pk: prepared.entry_of(memory).packed for memory in locked})
        words.dequeue(cursor, waiting)


def _index(memories: list[Memory]) -> None:
    prepared = keyword.Prepared(memories)
    with transaction.atomic():
        # Looked up again under the lock: some may have been deleted, changed, or indexed by another process.
        keys = [memory.pk for memory in memories]
        locked = Memory.objects.select_for_update(of=("self",)).filter(keyword.PENDING, pk__in=keys)
        _put({memory: prepared.entry_of(memory) for memory in locked.select_related("user")})


def _put(entries: Mapping[Memory, keyword.Entry]) -> None:
    """Index locked memories of any owners."""
    by_owner: defaultdict[Owner, dict[Memory, keyword.Entry]] = defaultdict(dict)
    for memory, entry in entries.items():
        memory.is_indexed, memory.token_count = True, entry.length
        owner = Owner(memory.user_id, memory.user.user_id, memory.app_id, memory.project_id)
        by_owner[owner][memory] = entry
    for owner, owned in by_owner.items():
        keyword.add(owner, owned)
    Memory.objects.bulk_update(entries, ["is_indexed", "token_count"])
