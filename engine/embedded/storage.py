"""Rows, index entries and statistics, written and removed together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Max

from engine.embedded import index
from engine.embedded.index import Entry
from engine.models import Memory, Session, owned_by
from engine.port import Owner

# A statement is built in memory with all that it carries.
_BATCH_ROWS = 200


@dataclass(frozen=True, slots=True)
class Draft:
    """Memories that come together or not at all, with their index entries: prepared before the transaction."""

    first_id: str
    memories: Sequence[Memory]
    entries: Sequence[Entry]

    @classmethod
    def of(cls, first_id: str, memories: Sequence[Memory]) -> Draft:
        return cls(first_id, memories, [index.entry_of(memory) for memory in memories])


def known(owner: Owner, memory_ids: Iterable[str]) -> set[str]:
    """Which of the ids exist already. No statement where none are asked for."""
    found = Memory.objects.filter(owned_by(owner), memory_id__in=list(memory_ids))
    return set(found.values_list("memory_id", flat=True))


def append(owner: Owner, session: Session, drafts: Sequence[Draft]) -> None:
    """Adds to the end of a session that the caller has locked; drafts that are known already are left out."""
    seen = known(owner, [draft.first_id for draft in drafts])
    seq = _next_seq(session)
    taken = _times(session, drafts)
    entries: list[Entry] = []
    memories: list[Memory] = []
    for draft in drafts:
        if draft.first_id in seen or not draft.memories:
            continue
        seen.add(draft.first_id)
        entries += _timed(draft, taken)
        memories += draft.memories
    for number, memory in enumerate(memories, start=seq):
        memory.session, memory.seq = session, number
    insert(owner, memories, entries)


def insert(owner: Owner, memories: Sequence[Memory], entries: Sequence[Entry]) -> None:
    """Saves new memories of an owner and indexes them. Call inside a transaction."""
    for memory, entry in zip(memories, entries, strict=True):
        memory.user_id, memory.app_id, memory.project_id = owner.user_pk, owner.app_id, owner.project_id
        memory.is_indexed, memory.token_count = True, entry.length
    saved = Memory.objects.bulk_create(memories, batch_size=_BATCH_ROWS)
    index.add(owner, {memory.pk: entry for memory, entry in zip(saved, entries, strict=True)})


def remove(owner: Owner, memories: Sequence[Memory]) -> None:
    """Deletes memories of an owner with their index entries, in a transaction of its own."""
    prepared = index.Prepared(memories)
    with transaction.atomic():
        # Looked up again under the lock: another may have deleted or changed some of them since.
        alive = list(Memory.objects.select_for_update().filter(owned_by(owner), pk__in=[one.pk for one in memories]))
        index.remove(owner, {memory.pk: prepared.entry_of(memory) for memory in alive if memory.is_indexed})
        Memory.objects.filter(owned_by(owner), pk__in=[memory.pk for memory in alive]).delete()


def _next_seq(session: Session) -> int:
    last = session.memories.aggregate(last=Max("seq"))["last"]
    return 0 if last is None else last + 1


def _times(session: Session, drafts: Sequence[Draft]) -> set[int]:
    """The times that are taken in the session where the drafts want to stand."""
    wanted = [memory.created_at_ms for draft in drafts for memory in draft.memories[:1]]
    if not wanted:
        return set()
    near = session.memories.filter(created_at_ms__gte=min(wanted), created_at_ms__lte=max(wanted) + len(wanted))
    return set(near.values_list("created_at_ms", flat=True))


def _timed(draft: Draft, taken: set[int]) -> Sequence[Entry]:
    """Moves a draft to the next free millisecond: two messages of one moment are still two, in their order."""
    first = wanted = draft.memories[0].created_at_ms
    while first in taken:
        first += 1
    taken.add(first)
    if first == wanted:
        return draft.entries
    for memory in draft.memories:
        memory.created_at_ms = first
    return [index.entry_of(memory) for memory in draft.memories]
