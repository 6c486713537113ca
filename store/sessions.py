"""Sessions of one user: created on first use, locked by their writers, closed to writes once deleted."""

from datetime import datetime
from functools import cache
from typing import Final

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.utils import timezone

from accounts.models import MemoryUser
from core.errors import EngineRefused, InvalidInput
from core.ids import check_session_id, parse_session_id
from core.messages import Translatable as _
from core.persistence.sql import moment_value
from store.models import Session, State, owned_by, owner_columns, owner_values
from store.types import KEPT, NewExpiry, Owner

# Plain SQL, because every add waits for it.
_OPEN = """
    SELECT id FROM store_session WHERE user_id = %s AND app_id = %s AND project_id = %s AND session_id = %s
        AND state = 'live'
"""
_CREATE = """
    INSERT INTO store_session (user_id, app_id, project_id, session_id, engine_session_id, kind, created_at)
    VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING RETURNING id
"""
_KEY: Final = ("user", "app_id", "project_id", "session_id", "kind", "state")


def locked(owner: Owner, session_id: str) -> Session:
    """Return the session, locked and created if needed; fields outside its key are loaded on access.

    Raises: `EngineRefused` for a purged one.
    """
    session = _locked(owner, session_id)
    if session.state == State.PURGED:
        raise EngineRefused(_("This session was deleted permanently: choose another session_id."))
    return session


def existing(owner: Owner, session_id: str) -> Session | None:
    """Return the session, locked, if it exists and is not purged; fields outside its key are loaded on access."""
    found = Session.objects.select_for_update().filter(owned_by(owner), session_id=session_id)
    return found.exclude(state=State.PURGED).only(*_KEY).first()


def mark_purged(owner: Owner, session_id: str, now: datetime) -> Session:
    """Mark the session as purged, also one that does not exist yet, so that late writes are refused."""
    with transaction.atomic():
        lock_decisions(owner)
        session = _locked(owner, session_id)
        if session.state != State.PURGED:
            session.state, session.state_since = State.PURGED, now
            session.save(update_fields=["state", "state_since"])
    return session


def set_expiry(session: Session, expires_at: NewExpiry) -> None:
    """Set when a locked session expires; None: never."""
    if expires_at is not KEPT:
        Session.objects.filter(pk=session.pk).update(expires_at=expires_at)


def lock_decisions(owner: Owner) -> None:
    """Lock the user's decisions until the transaction ends.

    If a memory were hidden while its session is deleted, the rollups would subtract it twice.
    """
    MemoryUser.objects.select_for_update(no_key=True).filter(pk=owner.user_pk).first()


def _locked(owner: Owner, session_id: str) -> Session:
    with connection.cursor() as cursor:
        cursor.execute(_open_statement(), [*owner_values(owner), session_id])
        row = cursor.fetchone()
        pk = row[0] if row else create(cursor, owner, session_id)
    if pk is None:  # another process closed or created it at the same moment
        return Session.objects.select_for_update().get(owned_by(owner), session_id=session_id)
    fields = {"id": pk, **owner_columns(owner), "session_id": session_id, "state": State.LIVE}
    return Session.from_db(connection.alias, list(fields), list(fields.values()))


def create(cursor: CursorWrapper, owner: Owner, session_id: str) -> int | None:
    """Return the row id of a new, locked session; None if it exists already. Raises: `InvalidInput` for its id."""
    try:
        check_session_id(session_id)
    except ValueError as error:
        raise InvalidInput.of_field("session_id", error.args[0]) from None
    kind = parse_session_id(session_id).kind
    cursor.execute(_CREATE, [*owner_values(owner), session_id, session_id, kind, moment_value(timezone.now())])
    row = cursor.fetchone()
    return row[0] if row else None


@cache
def _open_statement() -> str:
    return f"{_OPEN} FOR UPDATE" if connection.features.has_select_for_update else _OPEN
