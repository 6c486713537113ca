"""Delete and restore memories and sessions, as users do."""

from __future__ import annotations

from accounts.audit import Actor
from memories.services import decisions
from memories.services.lookup import MemoryRef
from store.types import Owner

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
