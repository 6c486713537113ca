"""Sessions of one user: made at first use, locked while they are written, refused once they are deleted."""

from __future__ import annotations

from datetime import datetime

from django.db import connection, transaction

from engine.embedded.owned import owner_values
from engine.models import Session, owned_by
from engine.port import EngineRefused, Owner
from memory_gateway.core.ids import parse_session_id

# Plain, because every message that is added waits for it.
_OF_OWNER = "SELECT * FROM engine_session WHERE user_id = %s AND app_id = %s AND project_id = %s AND session_id = %s"


def locked(owner: Owner, session_id: str) -> Session:
    """The session, made if need be, locked until the transaction ends. Errors: `EngineRefused` for a deleted one."""
    session = _locked(owner, session_id)
    if session.deleted_at is not None:
        raise EngineRefused("This session was deleted; what comes later is not taken.")
    return session


def live(owner: Owner, session_id: str) -> Session | None:
    """The session, locked, if it was ever written to and is not deleted."""
    found = Session.objects.select_for_update().filter(owned_by(owner), session_id=session_id, deleted_at__isnull=True)
    return found.first()


def mark_deleted(owner: Owner, session_id: str, now: datetime) -> Session:
    """Marks the session for good, also one that nothing was written to yet: a late write then finds the mark."""
    with transaction.atomic():
        session = _locked(owner, session_id)
        if session.deleted_at is None:
            session.deleted_at = now
            session.save(update_fields=["deleted_at"])
    return session


def _locked(owner: Owner, session_id: str) -> Session:
    """Locked, and made if need be. Another may make it at the same moment: then that one is locked."""
    lock = "FOR UPDATE" if connection.features.has_select_for_update else ""
    for session in Session.objects.raw(f"{_OF_OWNER} {lock}", [*owner_values(owner), session_id]):
        return session
    made, _ = Session.objects.get_or_create(
        user_id=owner.user_pk,
        app_id=owner.app_id,
        project_id=owner.project_id,
        session_id=session_id,
        defaults={"engine_session_id": session_id, "kind": parse_session_id(session_id).kind},
    )
    return Session.objects.select_for_update().get(pk=made.pk)
