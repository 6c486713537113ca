"""Find the memory or session that a caller names, and check that it can be deleted or overridden."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from accounts.models import MemoryUser, Principal
from accounts.profile_entries import ADDRESSES
from core.errors import Conflict, InvalidInput, NotFound
from core.ids import check_session_id, parse_session_id
from core.messages import Translatable as _
from core.storable import NotStorable, check_text
from engines.registry import get_engine
from remote import outbox
from store.models import Session, State
from store.types import Owner, StoredMemory


def owner_of(principal: Principal, app_id: str = "default", project_id: str = "default") -> Owner:
    return Owner(principal.user_pk, principal.user_id, app_id, project_id)


def require_own_session(owner: Owner, session_id: str) -> None:
    """Check a session id. Raises: `NotFound` for an invalid one, and for one that names another user."""
    try:
        session_id = check_session_id(session_id)
    except ValueError:
        raise NotFound(_("There is no such session.")) from None
    if parse_session_id(session_id).user_id not in {None, owner.session_name}:
        raise NotFound(_("There is no such session."))


def require_open(session: Session) -> None:
    """Raise `Conflict` for a session that is deleted or has expired."""
    if session.state == State.EXPIRED:
        raise Conflict(_("This session has expired. Restore it with a new expires_at before adding messages."))
    if session.state == State.TRASHED:
        raise Conflict(_("This session is in the trash. Restore it before adding messages."))


@dataclass(frozen=True, slots=True)
class MemoryRef:
    """A memory by its id. Session, app and project are needed only if several scopes have the same id."""

    memory_id: str
    session_id: str | None = None
    app_id: str | None = None
    project_id: str | None = None


def get_memory(user_pk: UUID, ref: MemoryRef) -> StoredMemory:
    """Return the user's memory, a deleted one too.

    Raises: `NotFound`, `InvalidInput` if several scopes have one, `Conflict` for the id of an entry of a profile.
    """
    if address := ADDRESSES.get(ref.memory_id):
        raise Conflict(_("This is a part of the profile, not a memory. Read or change it at %(path)s.", path=address))
    try:
        check_text(ref.memory_id)
    except NotStorable:
        raise NotFound(_("There is no such memory.")) from None
    found = _find(user_pk, ref, ref.memory_id)
    if not found:  # messages were memories by their message ids before they had separate memories
        ids = outbox.memory_ids_of(user_pk, ref.memory_id)
        found = [one for memory_id in ids for one in _find(user_pk, ref, memory_id)]
    if ref.session_id is not None:
        found = [memory for memory in found if memory.session_id == ref.session_id]
    if not found:
        raise NotFound(_("There is no such memory."))
    if len(found) > 1:
        raise InvalidInput.of_field(
            "app_id", _("is needed, because several of your scopes have this memory: send app_id and project_id")
        )
    return found[0]


def _find(user_pk: UUID, ref: MemoryRef, memory_id: str) -> Sequence[StoredMemory]:
    return get_engine().find(user_pk, memory_id, app_id=ref.app_id, project_id=ref.project_id)


def is_active(memory: StoredMemory) -> bool:
    """Return True if neither the memory nor its session is deleted."""
    return memory.is_live and not memory.is_session_hidden


def require_active(memory: StoredMemory) -> None:
    """Raise `Conflict` for a deleted memory, and one that has expired."""
    if memory.state == State.EXPIRED:
        raise Conflict(_("The memory has expired. Restore it first, with a new expires_at."))
    if not is_active(memory):
        raise Conflict(_("The memory is in the trash. Restore it first."))


def lock_user(user_pk: UUID) -> None:
    """Lock a user, to serialize decisions about their memories. Call inside a transaction.

    `no_key` avoids a deadlock with adding memories, which refers to the user and locks the session.
    """
    MemoryUser.objects.select_for_update(no_key=True).get(pk=user_pk)
