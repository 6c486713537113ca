"""Replay another engine's messages as memories of this database, and adopt its memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import connection

from core.errors import EngineRefused
from engines.embedded import ingest
from engines.embedded.fetching import Fetch
from engines.embedded.ingest import ReadDocument
from engines.port import Replay
from store import storage
from store.index import keyword
from store.models import Memory, Session
from store.types import Message, Owner


def prepare(
    owner: Owner, session_id: str, message: Message, batch_id: str, *, read: ReadDocument, fetch: Fetch
) -> Replay:
    """Read a message's documents and prepare its memories, outside a transaction. Raises: `EngineUnavailable`."""
    drafts, is_whole = [], True
    for part in ingest.parts_of(owner, session_id, [message]):
        try:
            memories = ingest.rows_of(part, read, fetch)
        except EngineRefused:
            is_whole = False
            continue
        is_whole = is_whole and (part.item is None or part.item.type not in {"image", "audio"})
        for memory in memories:
            memory.batch_id = batch_id
            if batch_id:
                memory.memory_type = Memory.Type.EPISODE
        drafts.append(storage.Draft.of(part.first_id, memories))
    return Replay(batch_id, tuple(drafts), is_whole)


def save(owner: Owner, session: Session, replays: Iterable[Replay]) -> None:
    """Save and index memories at the end of a locked session. Call inside a transaction."""
    with connection.cursor() as cursor:
        storage.append(cursor, owner, session.pk, [draft for item in replays for draft in item.drafts])


def adopt(owner: Owner, memories: Sequence[Memory]) -> None:
    """Make copies of an external engine's memories local under their ids, and index them. Call inside a transaction."""
    entries = {memory: keyword.entry_of(memory) for memory in memories}
    keyword.remove(owner, {memory.pk: entry for memory, entry in entries.items() if memory.is_indexed})
    for memory in memories:
        memory.origin, memory.is_indexed = Memory.Origin.EMBEDDED, True
        memory.token_count = entries[memory].length
    Memory.objects.bulk_update(memories, ["origin", "is_indexed", "token_count"], batch_size=200)
    keyword.add(owner, entries)
