"""Sessions of one user: made at first use, locked while they are written, refused once they are deleted."""

from __future__ import annotations

from datetime import datetime

from django.db import connection, transaction

from accounts.models import MemoryUser
from engine.embedded.inserting import insert_unless_there
from engine.embedded.owned import owner_values
from engine.models import Session, owned_by
from engine.port import EngineRefused, Owner
from memory_gateway.core.ids import parse_session_id

# Plain, because every message that is added waits for it.
_OPEN = """
    SELECT id FROM engine_session WHERE user_id = %s AND app_id = %s AND project_id = %s AND session_id = %s
        AND deleted_at IS NULL AND hidden_at IS NULL
"""


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
        lock_decisions(owner)
        session = _locked(owner, session_id)
        if session.deleted_at is None:
            session.deleted_at = now
            session.save(update_fields=["deleted_at"])
    return session


def lock_decisions(owner: Owner) -> None:
    """Waits for the user's decisions under way: a memory that is hidden while its session goes would leave the counts
    twice."""
    MemoryUser.objects.select_for_update(no_key=True).filter(pk=owner.user_pk).first()


def _locked(owner: Owner, session_id: str) -> Session:
    """Locked, and made if need be. Another may make it at the same moment: then that one is locked."""
    if found := _open(owner, session_id):
        return found
    named = {"user_id": owner.user_pk, "app_id": owner.app_id, "project_id": owner.project_id, "session_id": session_id}
    session = Session(**named, engine_session_id=session_id, kind=parse_session_id(session_id).kind)
    if insert_unless_there(session):
        return session
    return _open(owner, session_id) or Session.objects.select_for_update().get(**named)


def _open(owner: Owner, session_id: str) -> Session | None:
    """The session if nobody closed it, locked: its key and name. What else there is to it is read when it is used."""
    lock = "FOR UPDATE" if connection.features.has_select_for_update else ""
    with connection.cursor() as cursor:
        cursor.execute(f"{_OPEN} {lock}", [*owner_values(owner), session_id])
        row = cursor.fetchone()
    if row is None:
        return None
    known = {
        "id": row[0],
        "user_id": owner.user_pk,
        "app_id": owner.app_id,
        "project_id": owner.project_id,
        "session_id": session_id,
        "deleted_at": None,
        "hidden_at": None,
    }
    return Session.from_db(connection.alias, list(known), list(known.values()))
