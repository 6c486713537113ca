"""The links of a user's memories, and the decision of a person that no newer memory replaces one."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final, NamedTuple
from uuid import UUID

from django.db import transaction

from accounts.audit import Actor, record
from memories.models import Override
from memories.services import current, lookup
from memories.services.lookup import MemoryRef
from memories.services.scoped_hits import Scope, ScopedHit, SearchCommand
from memories.services.search import search
from store import browse, writes
from store.browse import Selection
from store.categories import TABS
from store.models import Memory
from store.text.statements import statements
from store.types import MAX_TOP_K, NOT_REPLACED, Hit, Owner, StoredMemory

_CHARS = 240
"""Of a memory's text that its links are searched by."""
LATEST: Final = 500
"""The latest facts and messages of a user among which replaced ones are looked for."""
_OF_USER: Final = (*TABS["user"], "full_context_user")


class Links(NamedTuple):
    """The ids of newer memories that replace a memory, and of older ones that it replaces."""

    replaced_by: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()


def links_of(memory: StoredMemory) -> Links:
    """Return the links of a memory that searches find. No search for one that says nothing of a slot."""
    if not statements(memory.text) or not lookup.is_active(memory):
        return Links()
    scopes: frozenset[Scope] = frozenset({"all_user_memory"})
    command = SearchCommand(query=memory.text[:_CHARS], method="keyword", scopes=scopes, top_k=MAX_TOP_K // 2)
    command = replace(command, include_profile=False, enable_llm_rerank=False, min_relevance=0.0, fold=False)
    return _links_in(search(memory.owner, command).results, memory.memory_id)


def _links_in(found: Iterable[ScopedHit], memory_id: str) -> Links:
    named = next((item.links for item in found if item.hit.memory_id == memory_id), ())
    return Links(
        tuple(one.memory_id for one in named if one.is_newer), tuple(one.memory_id for one in named if not one.is_newer)
    )


def replaced_of(user_pk: UUID) -> dict[int, StoredMemory]:
    """Return the memories that replace others among the latest ones of a user, by the row ids of the others.

    Three SQL statements.
    """
    latest = browse.page(Selection(user_pk=user_pk, categories=_OF_USER, is_shown=True), limit=LATEST)
    saying = [memory for memory in latest.memories if statements(memory.text)]
    overrides = Override.objects.filter(row__in=[memory.row for memory in saying], undone_at__isnull=True)
    return replaced_among(saying, set(overrides.values_list("row_id", flat=True)))


def replaced_among(memories: Iterable[StoredMemory], edited: Collection[int]) -> dict[int, StoredMemory]:
    """Return the newest of these memories that replace others of them, by the row ids of the others.

    `edited` are the row ids of those that a person edited: they count more.
    """
    by_owner: defaultdict[Owner, dict[str, StoredMemory]] = defaultdict(dict)
    for memory in memories:
        if statements(memory.text):
            by_owner[memory.owner][memory.memory_id] = memory
    return {
        known[older].row: known[newer]
        for known in by_owner.values()
        for older, newer in current.replacements([_found(one, edited) for one in known.values()]).items()
    }


def _found(memory: StoredMemory, edited: Collection[int]) -> ScopedHit:
    hit = Hit(
        memory.memory_id,
        memory.memory_type,
        memory.session_id,
        memory.text,
        None,
        memory.created_at_ms,
        {},
        origin=memory.origin,
        role=str(memory.payload.get("role") or ""),
        sender_id=memory.sender_id,
        category=memory.category,
        is_passage=memory.chunk_index is not None,
        is_imported="imported_from" in memory.payload,
        is_kept=bool(memory.payload.get(NOT_REPLACED)),
    )
    return ScopedHit(hit, "all_user_memory", override_id=str(memory.row) if memory.row in edited else None)


def set_kept(user_pk: UUID, ref: MemoryRef, *, is_kept: bool, actor: Actor) -> bool:
    """Decide that no newer memory replaces a memory, or end that decision. Return False if nothing changed.

    The decision is a part of the row: it outlives rebuilds and travels in archives. Raises: `NotFound`, `InvalidInput`
    if several scopes have the memory, `Conflict` for a deleted one.
    """
    with transaction.atomic():
        lookup.lock_user(user_pk)
        found = lookup.get_memory(user_pk, ref)
        lookup.require_active(found)
        memory = Memory.objects.select_for_update().get(pk=found.row)
        if bool(memory.payload.get(NOT_REPLACED)) == is_kept:
            return False
        memory.payload = {name: value for name, value in memory.payload.items() if name != NOT_REPLACED}
        if is_kept:
            memory.payload[NOT_REPLACED] = True
        writes.save(found.owner, [memory], ["payload"])
        action = "memory.keep" if is_kept else "memory.keep_undo"
        record(actor, action, memory.memory_id, user_id=found.owner.user_id)
    return True
