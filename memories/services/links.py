"""The links of one memory, and the decision of a person that no newer memory replaces it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from django.db import transaction

from accounts.audit import Actor, record
from memories.services import lookup
from memories.services.lookup import MemoryRef
from memories.services.scoped_hits import Scope, ScopedHit, SearchCommand
from memories.services.search import search
from store import writes
from store.models import Memory
from store.text.statements import statements
from store.types import MAX_TOP_K, NOT_REPLACED, StoredMemory

_CHARS = 240
"""Of a memory's text that its links are searched by."""


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
