"""Rows, index entries and statistics, written and removed together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from core.sql import run, slots
from store import inserting
from store.index import keyword
from store.index.keyword import Entry
from store.models import Memory, owned_by
from store.owned import owner_values
from store.types import Owner

_END = """
    SELECT COALESCE(MAX(seq) + 1, 0) AS number, '' AS memory_id, 0 AS part FROM store_memory WHERE session_id = %s
    UNION ALL SELECT 0, memory_id, 1 FROM store_memory
        WHERE user_id = %s AND app_id = %s AND project_id = %s AND memory_id IN ({slots})
    UNION ALL SELECT created_at_ms, '', 2 FROM store_memory
        WHERE user_id = %s AND app_id = %s AND project_id = %s AND created_at_ms BETWEEN %s AND %s AND session_id = %s
"""


@dataclass(frozen=True, slots=True)
class Draft:
    """Memories that come together or not at all, with their index entries: prepared before the transaction."""

    first_id: str
    memories: Sequence[Memory]
    entries: Sequence[Entry]

    @classmethod
    def of(cls, first_id: str, memories: Sequence[Memory]) -> Draft:
        return cls(first_id, memories, [keyword.entry_of(memory) for memory in memories])


def known(owner: Owner, memory_ids: Iterable[str]) -> set[str]:
    """Which of the ids exist already. No statement where none are asked for."""
    wanted = list(memory_ids)
    if not wanted:
        return set()
    found = Memory.objects.filter(owned_by(owner), memory_id__in=wanted)
    return set(found.values_list("memory_id", flat=True))


def append(cursor: CursorWrapper, owner: Owner, session: int, drafts: Sequence[Draft]) -> None:
    """Adds to the end of a session (its row id) that the caller has locked; what is known already is left out."""
    if not drafts:
        return
    seq, seen, taken = _end_of(cursor, owner, session, drafts)
    memories, entries = _new(drafts, seen, taken)
    for number, memory in enumerate(memories, start=seq):
        memory.session_id, memory.seq = session, number
    _insert(cursor, owner, memories, entries)


def insert(owner: Owner, memories: Sequence[Memory], entries: Sequence[Entry]) -> None:
    """Saves new memories of an owner and indexes them. Call inside a transaction."""
    with connection.cursor() as cursor:
        _insert(cursor, owner, memories, entries)


def remove(owner: Owner, memories: Sequence[Memory]) -> None:
    """Deletes memories of an owner with their index entries, in a transaction of its own."""
    prepared = keyword.Prepared(memories)
    with transaction.atomic():
        # Looked up again under the lock: another may have deleted or changed some of them since.
        alive = list(Memory.objects.select_for_update().filter(owned_by(owner), pk__in=[one.pk for one in memories]))
        keyword.remove(owner, {memory.pk: prepared.entry_of(memory) for memory in alive if memory.is_indexed})
        Memory.objects.filter(owned_by(owner), pk__in=[memory.pk for memory in alive]).delete()


def _new(drafts: Sequence[Draft], seen: set[str], taken: set[int]) -> tuple[list[Memory], list[Entry]]:
    """What drafts that are not yet seen bring, each at a time that is free."""
    entries: list[Entry] = []
    memories: list[Memory] = []
    for draft in drafts:
        if draft.first_id in seen or not draft.memories:
            continue
        seen.add(draft.first_id)
        entries += _timed(draft, taken)
        memories += draft.memories
    return memories, entries


def _insert(cursor: CursorWrapper, owner: Owner, memories: Sequence[Memory], entries: Sequence[Entry]) -> None:
    for memory, entry in zip(memories, entries, strict=True):
        memory.user_id, memory.app_id, memory.project_id = owner.user_pk, owner.app_id, owner.project_id
        memory.is_indexed, memory.token_count = True, entry.length
    inserting.insert(cursor, memories)
    keyword.put(cursor, owner, list(zip(memories, entries, strict=True)))


def _end_of(
    cursor: CursorWrapper, owner: Owner, session: int, drafts: Sequence[Draft]
) -> tuple[int, set[str], set[int]]:
    """Where the session goes on, which of the drafts it holds already, and which times are taken where they want to
    stand. One statement: every message that is added waits for it. Times are looked up among the user's, whose index
    has them in order: a long session is not walked."""
    ids = [draft.first_id for draft in drafts]
    wanted = [memory.created_at_ms for draft in drafts for memory in draft.memories[:1]] or [0]
    statement = _END.format(slots=slots(ids))
    between = [min(wanted), max(wanted) + len(wanted)]
    owned = owner_values(owner)
    run(cursor, statement, [session, *owned, *ids, *owned, *between, session])
    rows = cursor.fetchall()
    return (
        next(number for number, memory_id, part in rows if part == 0),
        {memory_id for _, memory_id, part in rows if part == 1},
        {number for number, _, part in rows if part == 2},
    )


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
    return [keyword.entry_of(memory) for memory in draft.memories]
