"""Find the memory that a caller names, and tell whether it can be decided about."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from accounts.models import MemoryUser
from core.errors import Conflict, InvalidInput, NotFound
from engines.port import Engine
from store.types import StoredMemory


@dataclass(frozen=True, slots=True)
class MemoryRef:
    """A memory by its id. Session, app and project narrow it down where several scopes have the same id."""

    memory_id: str
    session_id: str | None = None
    app_id: str | None = None
    project_id: str | None = None


def get_memory(user_pk: UUID, ref: MemoryRef, engine: Engine) -> StoredMemory:
    """Return the user's memory, a deleted one too. Raises: `NotFound`, `InvalidInput` if several scopes have one."""
    if "\x00" in ref.memory_id:  # PostgreSQL refuses the query
        raise NotFound("There is no such memory.")
    found = engine.find(user_pk, ref.memory_id, app_id=ref.app_id, project_id=ref.project_id)
    if ref.session_id is not None:
        found = [memory for memory in found if memory.session_id == ref.session_id]
    if not found:
        raise NotFound("There is no such memory.")
    if len(found) > 1:
        raise InvalidInput.of_field("app_id", "several of your scopes have this memory: send app_id and project_id")
    return found[0]


def is_active(memory: StoredMemory) -> bool:
    """Return True if neither the memory nor its session is deleted."""
    return memory.hidden_at is None and not memory.is_session_hidden


def require_active(memory: StoredMemory) -> None:
    """Raises: `Conflict` for a deleted memory."""
    if not is_active(memory):
        raise Conflict("This memory is in the trash: restore it first.")


def is_flushed(memory: StoredMemory, engine: Engine) -> bool:
    """Return False for a message that EverOS will replace by new memories, which no decision would reach."""
    return memory.memory_type != "unprocessed_message" or not engine.is_external


def require_flushed(memory: StoredMemory, engine: Engine) -> None:
    """Raises: `Conflict` for a message that is not flushed yet."""
    if not is_flushed(memory, engine):
        raise Conflict("This message is not a memory yet: flush its session first.")


def lock_user(user_pk: UUID) -> None:
    """Let a user's decisions happen one after the other. Call inside a transaction.

    `no_key`: adding memories refers to the user and may hold the session that a decision is about.
    """
    MemoryUser.objects.select_for_update(no_key=True).get(pk=user_pk)
