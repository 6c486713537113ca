"""Sessions of one user: made at first use, locked while they are written, refused once they are deleted."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.utils import timezone

from accounts.models import MemoryUser
from core.errors import EngineRefused
from core.ids import parse_session_id
from core.sql import moment_value, run
from store.models import Session, owned_by
from store.owned import owner_values
from store.types import Owner

# Plain, because every message that is added waits for it.
_OPEN = """
    SELECT id FROM store_session WHERE user_id = %s AND app_id = %s AND project_id = %s AND session_id = %s
        AND deleted_at IS NULL AND hidden_at IS NULL
"""
_MAKE = """
    INSERT INTO store_session (user_id, app_id, project_id, session_id, engine_session_id, kind, created_at)
    VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING RETURNING id
"""


def lock(cursor: CursorWrapper, owner: Owner, session_id: str) -> int:
    """Locks the session until the transaction ends, made if need be: its row id.

    Errors: `EngineRefused` for a deleted one.
    """
    pk = _open_or_made(cursor, owner, session_id)
    return _not_deleted(_there(owner, session_id)).pk if pk is None else pk


def locked(owner: Owner, session_id: str) -> Session:
    """The same session with its name. What else there is to it is read when it is used."""
    return _not_deleted(_locked(owner, session_id))


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


def _not_deleted(session: Session) -> Session:
    if session.deleted_at is not None:
        raise EngineRefused("This session was deleted; what comes later is not taken.")
    return session


def _locked(owner: Owner, session_id: str) -> Session:
    with connection.cursor() as cursor:
        pk = _open_or_made(cursor, owner, session_id)
    if pk is None:
        return _there(owner, session_id)
    known = {"id": pk, **_named(owner, session_id), "deleted_at": None, "hidden_at": None}
    return Session.from_db(connection.alias, list(known), list(known.values()))


def _there(owner: Owner, session_id: str) -> Session:
    """A session that somebody closed, or that another made at the same moment, locked."""
    return Session.objects.select_for_update().get(**_named(owner, session_id))


def _named(owner: Owner, session_id: str) -> dict[str, Any]:
    return {
        "user_id": owner.user_pk,
        "app_id": owner.app_id,
        "project_id": owner.project_id,
        "session_id": session_id,
    }


def make(cursor: CursorWrapper, owner: Owner, session_id: str) -> int | None:
    """The row id of a new session, which is locked; None if there is one already."""
    kind = parse_session_id(session_id).kind
    run(cursor, _MAKE, [*owner_values(owner), session_id, session_id, kind, moment_value(timezone.now())])
    row = cursor.fetchone()
    return row[0] if row else None


def _open_or_made(cursor: CursorWrapper, owner: Owner, session_id: str) -> int | None:
    """The row id of the session, locked; None if somebody closed it, or made it at the same moment."""
    run(cursor, _open_statement(), [*owner_values(owner), session_id])
    row = cursor.fetchone()
    return row[0] if row else make(cursor, owner, session_id)


@cache
def _open_statement() -> str:
    return f"{_OPEN} FOR UPDATE" if connection.features.has_select_for_update else _OPEN
