"""Delete and restore memories and sessions, as users do."""

from __future__ import annotations

from accounts.audit import Actor
from memories.services import decisions
from memories.services.lookup import MemoryRef
from store.ledger import Tombstone
from store.models import Memory
from store.types import Owner, StoredMemory

ACTOR = Actor.command("tests")


def delete(owner: Owner, *memory_ids: str) -> None:
    for memory_id in memory_ids:
        decisions.delete(owner.user_pk, MemoryRef(memory_id), actor=ACTOR)


def restore(owner: Owner, *memory_ids: str) -> None:
    for memory_id in memory_ids:
        decisions.restore(owner.user_pk, MemoryRef(memory_id), actor=ACTOR)


def delete_session(owner: Owner, session_id: str) -> None:
    decisions.delete_session(owner, session_id, actor=ACTOR)


def restore_session(owner: Owner, session_id: str) -> None:
    decisions.restore_session(owner, session_id, actor=ACTOR)


def newer_of(memory: Memory | StoredMemory) -> str:
    """Return the id of the memory that superseded this one, "" if none did."""
    open_ones = Tombstone.ledger.filter(
        memory_id=memory.memory_id, kind=Tombstone.Kind.SUPERSEDED, undone_at__isnull=True
    )
    return "".join(open_ones.values_list("other_id", flat=True))
