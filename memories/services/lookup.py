"""Find the memory or session that a caller names, and check that it can be deleted or overridden."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from accounts.bound_keys import app_of
from accounts.models import MemoryUser, Principal
from accounts.profile_entries import ADDRESSES
from core.errors import Conflict, InvalidInput, NotFound
from core.ids import check_session_id, parse_session_id
from core.messages import Translatable as _
from core.rest import Forbidden
from core.storable import NotStorable, check_text
from engines.registry import get_engine
from remote import outbox
from store import as_of
from store.models import MANUAL_ORIGINS, Memory, Session, State, owned_by
from store.types import Owner, StoredMemory


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


def owner_of(principal: Principal, app_id: str = "default", project_id: str = "default") -> Owner:
    """Return the owner in a scope. A key that is bound to an application is in its scopes. Raises: `Forbidden`."""
    return Owner(principal.user_pk, principal.user_id, app_of(principal, app_id) or app_id, project_id)


def ref_of(principal: Principal, ref: MemoryRef) -> MemoryRef:
    """Return the memory that a request names, for a bound key only what it may see.

    Raises: `NotFound`, `Forbidden`, `InvalidInput`, `Conflict`, as `get_memory`.
    """
    bound = replace(ref, app_id=app_of(principal, ref.app_id))
    if principal.agent_id:
        memory = get_memory(principal.user_pk, bound)
        if memory.origin in MANUAL_ORIGINS and memory.agent_id not in {"", principal.agent_id}:
            raise NotFound(_("There is no such memory."))
    return bound


def require_visible(principal: Principal, owner: Owner, session_id: str) -> None:
    """Check that a key bound to an agent decides over no memory of another. Raises: `Forbidden`."""
    if principal.agent_id:
        stored = Memory.objects.filter(owned_by(owner), session__session_id=session_id, origin__in=MANUAL_ORIGINS)
        if stored.exclude(agent_id__in=["", principal.agent_id]).exists():
            raise Forbidden(_("The session holds memories of other agents, which this API key may not decide over."))


def require_own_session(owner: Owner, session_id: str) -> None:
    """Check a session id. Raises: `NotFound` for an invalid one, and for one that names another user."""
    try:
        session_id = check_session_id(session_id)
    except ValueError:
        raise NotFound(_("There is no such session.")) from None
    if parse_session_id(session_id).user_id not in {None, owner.session_name}:
        raise NotFound(_("There is no such session."))


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


def get_shown(user_pk: UUID, ref: MemoryRef) -> StoredMemory:
    """Return a memory to show its text: one of an incognito session only if that is named. Raises: as `get_memory`."""
    memory = get_memory(user_pk, ref)
    if memory.is_incognito and ref.session_id is None:
        raise NotFound(_("There is no such memory."))
    return memory


def memory_at(memory: StoredMemory, at: datetime) -> StoredMemory:
    """Return a memory as it was at a time. Raises: `NotFound` if it was not current then, or is hidden now."""
    if not as_of.memories_of(memory.owner, at).filter(pk=memory.row).exists():
        raise NotFound(_("There was no such memory at that time, or it was deleted or has expired since."))
    [found] = as_of.reworded(memory.owner, [memory], at)
    return found


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
