"""Making the embedded engine remember what another engine was told, word for word, and taking over what it made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import connection

from core.errors import EngineRefused
from documents.reader import read_document
from engines.embedded import ingest
from engines.embedded.fetching import Fetch, Fetcher
from engines.embedded.ingest import ReadDocument
from store import storage
from store.index import keyword
from store.models import Memory, Session
from store.types import Message, Owner

_FETCH = Fetcher()


@dataclass(frozen=True, slots=True)
class Told:
    """A message that another engine was told. `batch_id` names the flush that took it, empty: it waits for one."""

    message: Message
    batch_id: str


@dataclass(frozen=True, slots=True)
class Retold:
    """The same as memories of ours. `is_whole`: nothing of it was left out, as pictures and what cannot be read are."""

    batch_id: str
    drafts: tuple[storage.Draft, ...]
    is_whole: bool

    @property
    def memories(self) -> list[Memory]:
        return [memory for draft in self.drafts for memory in draft.memories]


def retell(
    owner: Owner, session_id: str, told: Told, *, read: ReadDocument = read_document, fetch: Fetch = _FETCH
) -> Retold:
    """Prepares a message's memories, documents read: before the transaction. Errors: `EngineUnavailable`."""
    drafts, is_whole = [], True
    for part in ingest.parts_of(owner, session_id, [told.message]):
        try:
            memories = ingest.rows_of(part, read, fetch)
        except EngineRefused:
            is_whole = False
            continue
        is_whole = is_whole and (part.item is None or part.item.type not in {"image", "audio"})
        for memory in memories:
            memory.batch_id = told.batch_id
            if told.batch_id:
                memory.memory_type = Memory.Type.EPISODE
        drafts.append(storage.Draft.of(part.first_id, memories))
    return Retold(told.batch_id, tuple(drafts), is_whole)


def write(owner: Owner, session: Session, retold: Iterable[Retold]) -> None:
    """Saves and indexes them at the end of a session that the caller has locked. Call inside a transaction."""
    with connection.cursor() as cursor:
        storage.append(cursor, owner, session.pk, [draft for item in retold for draft in item.drafts])


def take_over(owner: Owner, memories: Sequence[Memory]) -> None:
    """Makes memories of an upstream ours, as they read: their ids stay, and from now on our index finds them. Call
    inside a transaction."""
    entries = {memory: keyword.entry_of(memory) for memory in memories}
    keyword.remove(owner, {memory.pk: entry for memory, entry in entries.items() if memory.is_indexed})
    for memory in memories:
        memory.origin, memory.is_indexed = Memory.Origin.EMBEDDED, True
        memory.token_count = entries[memory].length
    Memory.objects.bulk_update(memories, ["origin", "is_indexed", "token_count"], batch_size=200)
    keyword.add(owner, entries)
