"""Which of a user's memories is meant, and whether it can be decided about now."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from accounts.models import MemoryUser
from engine.port import Engine, StoredMemory
from memory_gateway.core.errors import Conflict, InvalidInput, NotFound


@dataclass(frozen=True, slots=True)
class Which:
    """A memory by its id. Session, app and project narrow it down where the same id is in several scopes."""

    memory_id: str
    session_id: str | None = None
    app_id: str | None = None
    project_id: str | None = None


def one(user_pk: UUID, which: Which, engine: Engine) -> StoredMemory:
    """The user's memory, a deleted one too. Errors: `NotFound`, `InvalidInput` if several scopes have one."""
    if "\x00" in which.memory_id:  # PostgreSQL cannot even ask for it
        raise NotFound("There is no such memory.")
    found = engine.find(user_pk, which.memory_id, app_id=which.app_id, project_id=which.project_id)
    if which.session_id is not None:
        found = [memory for memory in found if memory.session_id == which.session_id]
    if not found:
        raise NotFound("There is no such memory.")
    if len(found) > 1:
        raise InvalidInput.of_field("app_id", "several of your scopes have this memory: send app_id and project_id")
    return found[0]


def live(user_pk: UUID, which: Which, engine: Engine) -> StoredMemory:
    """The same, unless it is deleted. Errors: also `Conflict`."""
    memory = one(user_pk, which, engine)
    if memory.hidden_at is not None or memory.is_session_hidden:
        raise Conflict("This memory is in the trash: restore it first.")
    return memory


def require_settled(memory: StoredMemory, engine: Engine) -> None:
    """An upstream makes new memories of its messages, which no decision about a message would reach.

    Errors: `Conflict`.
    """
    if memory.memory_type == "unprocessed_message" and engine.name == "upstream":
        raise Conflict("This message is not a memory yet: flush its session first.")


def lock(user_pk: UUID) -> None:
    """Lets a user's decisions happen one after the other. Call inside a transaction.

    `no_key`: who adds memories refers to the user, and may hold the session that a decision is about.
    """
    MemoryUser.objects.select_for_update(no_key=True).get(pk=user_pk)
