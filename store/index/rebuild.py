"""Making the keyword index anew: after an update that changes the tokens, or where an index is not trusted any more.

It begins by emptying the index in one transaction and goes on in short ones, each leaving index, rows and statistics in
agreement: it may be stopped at any point and started again. What is indexed already is found meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from django.db import transaction

from core.spilling import on_disk
from store.errors import database_errors
from store.index import keyword
from store.models import IndexStatistics, IndexVersion, Memory
from store.text.tokens import TOKENIZER_VERSION
from store.types import Owner

BATCH_ROWS = 500


def is_needed() -> bool:
    """Whether the index was built by another tokenizer."""
    return keyword.version() not in {None, TOKENIZER_VERSION}


def empty() -> None:
    """Takes everything out of the index and marks all memories as owed to it.

    But an upstream's memories that their users reworded, which are few, go back at once: once they were out, nothing
    would tell them from those that only the upstream finds.
    """
    with database_errors(), on_disk(), transaction.atomic():
        reworded = Memory.objects.filter(is_indexed=True, origin=Memory.Origin.UPSTREAM).select_related("user")
        kept = {memory: keyword.entry_of(memory) for memory in reworded.select_for_update(of=("self",))}
        keyword.clear()
        IndexStatistics.objects.all().delete()
        Memory.objects.filter(is_indexed=True).update(is_indexed=False, token_count=0)
        IndexVersion.objects.all().delete()
        IndexVersion.objects.create(tokenizer=TOKENIZER_VERSION)
        _put(kept)


def owed() -> int:
    """How many memories wait for their place in the index."""
    return Memory.objects.filter(keyword.OWED).count()


def fill(batch_rows: int = BATCH_ROWS) -> Iterator[int]:
    """Indexes all that is owed, yielding after each batch how many memories it held. Errors: `EngineUnavailable`."""
    while batch := _next_batch(batch_rows):
        with database_errors():
            _index(batch)
        yield len(batch)


def _next_batch(batch_rows: int) -> list[Memory]:
    with database_errors():
        return list(Memory.objects.filter(keyword.OWED).select_related("user").order_by("pk")[:batch_rows])


def _index(memories: list[Memory]) -> None:
    prepared = keyword.Prepared(memories)
    with transaction.atomic():
        # Looked up again under the lock: some may have been deleted, changed, or indexed by another process.
        keys = [memory.pk for memory in memories]
        locked = Memory.objects.select_for_update(of=("self",)).filter(keyword.OWED, pk__in=keys)
        _put({memory: prepared.entry_of(memory) for memory in locked.select_related("user")})


def _put(entries: Mapping[Memory, keyword.Entry]) -> None:
    """Indexes locked memories of whatever owners."""
    by_owner: defaultdict[Owner, dict[Memory, keyword.Entry]] = defaultdict(dict)
    for memory, entry in entries.items():
        memory.is_indexed, memory.token_count = True, entry.length
        owner = Owner(memory.user_id, memory.user.user_id, memory.app_id, memory.project_id)
        by_owner[owner][memory] = entry
    for owner, owned in by_owner.items():
        keyword.add(owner, owned)
    Memory.objects.bulk_update(entries, ["is_indexed", "token_count"])
