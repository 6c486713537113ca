"""Write and remove memories together with their index entries and statistics."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple, Self

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.expiry import lower
from core.persistence import sql
from core.times import to_ms
from documents.reading import Reading
from store import attributes, derived, expiry, states
from store.index import fact_pages, keyword
from store.index.keyword import IndexEntry
from store.ledger import Tombstone
from store.models import IndexStatistics, Memory, PendingMedia, owned_by, owner_values
from store.types import NewExpiry, Owner

_SESSION_STATE = """
    SELECT COALESCE(MAX(seq) + 1, 0) AS number, '' AS memory_id, 0 AS part FROM store_memory WHERE session_id = %s
    UNION ALL SELECT 0, memory_id, 1 FROM store_memory
        WHERE user_id = %s AND app_id = %s AND project_id = %s AND memory_id IN ({slots})
    UNION ALL SELECT created_at_ms, '', 2 FROM store_memory
        WHERE user_id = %s AND app_id = %s AND project_id = %s AND created_at_ms BETWEEN %s AND %s AND session_id = %s
    UNION ALL SELECT 0, memory_id, 3 FROM memories_tombstone
        WHERE user_id = %s AND app_id = %s AND project_id = %s AND undone_at IS NULL AND memory_id IN ({slots})
"""


_ROWS_AT_ONCE: Final = 500


class Cover(NamedTuple):
    """The cover of a message: by a live derived memory, and by one that its user edited (`store.cover`)."""

    is_covered: bool = False
    is_replaced: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """Memories that are stored together or not at all, with index entries computed before the transaction.

    If `first_id` exists already, the draft was stored before. `media` becomes pending with the first memory. `reading`
    says what was read of a file.
    """

    first_id: str
    memories: Sequence[Memory]
    entries: Sequence[IndexEntry]
    media: PendingMedia | None = None
    reading: Reading | None = None

    @classmethod
    def of(
        cls,
        first_id: str,
        memories: Sequence[Memory],
        media: PendingMedia | None = None,
        reading: Reading | None = None,
    ) -> Self:
        """Return the draft with its index entries."""
        return cls(first_id, memories, [keyword.entry_of(memory) for memory in memories], media, reading)


def known(owner: Owner, memory_ids: Iterable[str]) -> set[str]:
    """Return the memory ids that exist already. No SQL statement for an empty list."""
    wanted = list(memory_ids)
    if not wanted:
        return set()
    found = Memory.objects.filter(owned_by(owner), memory_id__in=wanted)
    return set(found.values_list("memory_id", flat=True))


def note_expiry(owner: Owner, drafts: Sequence[Draft], of_session: NewExpiry) -> dict[str, tuple[str, int]]:
    """Set when drafts expire that name no time, and lower the user's bound before their session is locked.

    Return the defaults that were applied, as `store.expiry.set_defaults`.
    """
    applied = expiry.set_defaults(owner, [memory for draft in drafts for memory in draft.memories])
    times = [memory.expires_at for draft in drafts for memory in draft.memories if memory.expires_at]
    times += [of_session] if isinstance(of_session, datetime) else []
    if times:
        lower(owner.user_pk, min(times))
    return applied


def append(owner: Owner, session: int, drafts: Sequence[Draft]) -> list[Draft]:
    """Append drafts to a session (row id) that the caller has locked; return the new ones.

    Those whose ids were deleted are stored hidden, and not returned.
    """
    if not drafts:
        return []
    seq, existing, occupied, deleted = _session_state(owner, session, drafts)
    new = _new_drafts(drafts, existing)
    entries = [entry for draft in new for entry in _with_free_time(draft, occupied)]
    memories = [memory for draft in new for memory in draft.memories]
    for number, memory in enumerate(memories, start=seq):
        memory.session_id, memory.seq = session, number
    insert(owner, memories, entries)
    if deleted:
        hold_deletions(owner, [memory for memory in memories if memory.memory_id in deleted])
    for draft in new:
        if draft.media is not None:
            draft.media.memory = draft.memories[0]
            draft.media.save(force_insert=True)
    return [draft for draft in new if draft.first_id not in deleted]


def insert(
    owner: Owner, memories: Sequence[Memory], entries: Sequence[IndexEntry] | None = None, *, is_new: bool = True
) -> None:
    """Save new memories of an owner and index them. Call inside a transaction, best with entries computed before it.

    `is_new` False: they were stored elsewhere before, at a time that they have or that is not known.

    For memories that expire, call `note_expiry` before the session is locked.
    """
    if entries is None:
        entries = [keyword.entry_of(memory) for memory in memories]
    now_ms = to_ms(timezone.now())
    for memory, entry in zip(memories, entries, strict=True):
        if is_new and memory.stored_at_ms is None:
            memory.stored_at_ms = now_ms
        memory.user_id, memory.app_id, memory.project_id = owner.user_pk, owner.app_id, owner.project_id
        memory.is_indexed, memory.token_count = True, entry.length
    with connection.cursor() as cursor:
        sql.insert(cursor, memories)
    derived.add(owner, dict(zip(memories, entries, strict=True)))
    expiry.note(memories)


def replace(
    owner: Owner, former: Mapping[int, IndexEntry], memories: Collection[Memory], fields: Collection[str]
) -> None:
    """Save `fields` of changed memories of an owner, which are locked; those with `is_indexed` are indexed again.

    `former` are the entries of those that were indexed, by row id. Call inside a transaction.
    """
    if not memories:
        return
    derived.remove(owner, former)
    entries = {memory: keyword.entry_of(memory) for memory in memories if memory.is_indexed}
    for memory, entry in entries.items():
        memory.token_count = entry.length
    Memory.objects.bulk_update(memories, {*fields, "is_indexed", "token_count"}, batch_size=_ROWS_AT_ONCE)
    derived.add(owner, entries)
    _follow_fields(owner, memories, fields)


def remove(owner: Owner, memories: Sequence[Memory]) -> None:
    """Delete memories of an owner with their index entries, and an emptied index, in a separate transaction."""
    prepared = keyword.Prepared(memories)
    with transaction.atomic():
        # Read again under the lock: another process may have deleted or changed some of them.
        locked = list(Memory.objects.select_for_update().filter(owned_by(owner), pk__in=[one.pk for one in memories]))
        derived.remove(owner, {memory.pk: prepared.entry_of(memory) for memory in locked if memory.is_indexed})
        Memory.objects.filter(owned_by(owner), pk__in=[memory.pk for memory in locked]).delete()
        IndexStatistics.objects.filter(owned_by(owner), documents=0).delete()


def save(owner: Owner, memories: Collection[Memory], fields: Collection[str]) -> None:
    """Save `fields` of changed memories that no word depends on, also in their facts. Call inside a transaction."""
    Memory.objects.bulk_update(memories, fields, batch_size=_ROWS_AT_ONCE)
    _write_facts(owner, memories, fields)
    _follow_fields(owner, memories, fields)


def set_cover(owner: Owner, covers: Mapping[str, Cover]) -> None:
    """Write by which memories others are covered, by memory id. Call inside a transaction."""
    of_owner = Memory.objects.select_for_update().filter(owned_by(owner), origin=Memory.Origin.EMBEDDED)
    ids, changed = sorted(covers), []
    for start in range(0, len(ids), _ROWS_AT_ONCE):
        for memory in of_owner.filter(memory_id__in=ids[start : start + _ROWS_AT_ONCE]).order_by("pk"):
            wanted = covers[memory.memory_id]
            if (memory.is_covered, memory.is_replaced) != wanted:
                memory.is_covered, memory.is_replaced = wanted
                changed.append(memory)
    save(owner, changed, Cover._fields)


def uncover(owner: Owner, memories: Iterable[Memory]) -> None:
    """Show derived memories that were stored covered. Call inside a transaction."""
    shown = list(memories)
    for memory in shown:
        memory.is_covered, memory.is_replaced = Cover()
    save(owner, shown, Cover._fields)


def set_category(owner: Owner, memory: Memory, category: str) -> None:
    """Save another category of a memory, unless it was changed meanwhile."""
    with transaction.atomic():
        if Memory.objects.filter(pk=memory.pk, category=memory.category).update(category=category):
            memory.category = category
            _write_facts(owner, [memory], ["category"])


def end_buffer(buffered: QuerySet[Memory], batch_id: str) -> int:
    """Turn the messages of a flush into episodes; return their number. No fact holds what changes."""
    return buffered.update(memory_type=Memory.Type.EPISODE, batch_id=batch_id)


def insert_unindexed(memories: Iterable[Memory]) -> None:
    """Save new memories that no derived store holds: purged ones, and those that `derived.fill` adds later."""
    Memory.objects.bulk_create(memories)


def _follow_fields(owner: Owner, memories: Collection[Memory], fields: Collection[str]) -> None:
    if "payload" in fields:
        attributes.write(owner, memories)
    if "expires_at" in fields:
        expiry.note(memories)


def _write_facts(owner: Owner, memories: Iterable[Memory], fields: Collection[str]) -> None:
    if not fact_pages.COLUMNS.isdisjoint(fields):
        fact_pages.update(owner, [memory.pk for memory in memories])


def _new_drafts(drafts: Sequence[Draft], existing: set[str]) -> list[Draft]:
    """Return the drafts with memories that do not exist yet, each once."""
    new: dict[str, Draft] = {}
    for draft in drafts:
        if draft.first_id not in existing and draft.memories:
            new.setdefault(draft.first_id, draft)
    return list(new.values())


def hold_deletions(owner: Owner, memories: Sequence[Memory]) -> None:
    """Hide new memories whose ids were deleted while their rows were not here."""
    by_id = {memory.memory_id: memory for memory in memories}
    for tombstone in Tombstone.ledger.filter(owned_by(owner), memory_id__in=by_id, row=None):
        tombstone.row = by_id[tombstone.memory_id]
        tombstone.save(update_fields=["row"])
    states.refresh_memories(owner, by_id)


def _session_state(owner: Owner, session: int, drafts: Sequence[Draft]) -> tuple[int, set[str], set[int], set[str]]:
    """Return the next `seq` of the session, existing drafts, occupied times near the new ones, and deleted drafts.

    One SQL statement, because every add waits for it. Times are read by the user's index, which is sorted by them,
    instead of scanning a long session.
    """
    ids = [draft.first_id for draft in drafts]
    wanted = [memory.created_at_ms for draft in drafts for memory in draft.memories[:1]] or [0]
    statement = _SESSION_STATE.format(slots=sql.slots(ids))
    between = [min(wanted), max(wanted) + len(wanted)]
    owned = owner_values(owner)
    rows = sql.rows(statement, [session, *owned, *ids, *owned, *between, session, *owned, *ids])
    return (
        next(number for number, memory_id, part in rows if part == 0),
        {memory_id for _, memory_id, part in rows if part == 1},
        {number for number, _, part in rows if part == 2},
        {memory_id for _, memory_id, part in rows if part == 3},
    )


def _with_free_time(draft: Draft, occupied: set[int]) -> Sequence[IndexEntry]:
    """Move a draft to the next free millisecond, so that messages of one time keep their order; return its entries."""
    first = wanted = draft.memories[0].created_at_ms
    while first in occupied:
        first += 1
    occupied.add(first)
    if first == wanted:
        return draft.entries
    for memory in draft.memories:
        memory.created_at_ms = first
    return [keyword.entry_of(memory) for memory in draft.memories]
