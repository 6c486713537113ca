"""Sessions of one user: made at first use, locked while they are written, refused once they are deleted."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from engine.models import Session, owned_by
from engine.port import EngineRefused, Owner
from memory_gateway.core.ids import parse_session_id


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
    locked = Session.objects.select_for_update()
    session = locked.filter(owned_by(owner), session_id=session_id).first()
    if session is not None:
        return session
    made, _ = Session.objects.get_or_create(
        user_id=owner.user_pk,
        app_id=owner.app_id,
        project_id=owner.project_id,
        session_id=session_id,
        defaults={"engine_session_id": session_id, "kind": parse_session_id(session_id).kind},
    )
    return locked.get(pk=made.pk)
