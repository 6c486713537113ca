"""Sessions at a remote, where one id is one session although several users may use it.

The first user of an id holds it in the engine; other users' sessions get an engine id made unique by their user key."""

from collections.abc import Collection
from datetime import datetime
from functools import cache
from typing import Final, NamedTuple

from django.conf import settings
from django.db import connection

from core.errors import EngineRefused
from core.messages import Translatable as _
from core.persistence import sql
from remote import residue
from remote.engine_ids import is_kept_whole, unique_session_id
from store import sessions
from store.index import keyword
from store.models import IS_PURGED, Session, State, owned_by, owner_values
from store.types import Owner

_SEPARATOR: Final = "\x1e"  # occurs in no session id
# Sessions created under the embedded engine may share an engine id: the older row holds the id in EverOS.
_FROM_OWN = """
    FROM store_session AS own
    WHERE own.user_id = %s AND own.app_id = %s AND own.project_id = %s
      AND NOT EXISTS (
        SELECT 1 FROM store_session AS other
        WHERE other.engine_session_id = own.engine_session_id AND other.app_id = own.app_id
          AND other.project_id = own.project_id AND other.user_id <> own.user_id AND other.id < own.id)
"""
_IS_HELD_BY_OTHER = f"""
    SELECT EXISTS (
        SELECT 1 FROM store_session
        WHERE engine_session_id = %s AND app_id = %s AND project_id = %s AND id < %s AND user_id <> %s)
    OR EXISTS ({residue.IS_HELD})
"""
# Two ranges of an index, because nearly all entries are of one remote; and memories of sessions that were sent again.
_OF_OTHERS: Final = """
    SELECT 1 FROM remote_outboxentry WHERE user_id = %s AND base_url > '' AND base_url < %s
    UNION ALL SELECT 1 FROM remote_outboxentry WHERE user_id = %s AND base_url > %s
    UNION ALL SELECT 1 FROM remote_resend WHERE user_id = %s
"""
_IS_ASKED: Final = """
    own.state <> 'purged' AND NOT EXISTS (
        SELECT 1 FROM remote_resend AS again
        WHERE again.session_id = own.id AND again.ended_at IS NULL AND again.base_url = %s)
"""
"""The remote is asked for the session: former memories do not stand for it (`remote.resend`)."""
_HAS_NAME = "SELECT 1 FROM accounts_memoryuser WHERE id = %s AND user_id = %s"


class Known(NamedTuple):
    """Facts for a search: engine ids by session id, and the content of the owner's local index."""

    engine_ids: dict[str, str]
    is_indexed: bool
    has_other_remotes: bool
    """Memories that another remote derived may be there, or that stand for a session that is sent again."""


def known(owner: Owner, session_ids: Collection[str]) -> Known:
    """Return the engine ids of the owner's sessions among these, and more. One SQL statement."""
    values, base_url = owner_values(owner), settings.MEMORY_GATEWAY_BACKEND_BASE_URL
    parts = [
        f"SELECT '' AS value WHERE EXISTS ({keyword.IS_FILLED})",
        f"SELECT '{_SEPARATOR}' WHERE EXISTS ({_OF_OTHERS})",
    ]
    used = [*values, values[0], base_url, values[0], base_url, values[0]]
    if session_ids:
        pair = f"own.session_id || '{_SEPARATOR}' || own.engine_session_id"
        parts.append(f"{_select(pair, 'own.session_id', session_ids)} AND {_IS_ASKED}")
        used += [*values, *session_ids, base_url]
    found = sql.column(" UNION ALL ".join(parts), used)
    pairs = (one.split(_SEPARATOR) for one in found if len(one) > 1)
    return Known(dict(pairs), "" in found, _SEPARATOR in found)


def session_ids(owner: Owner, engine_session_ids: Collection[str]) -> tuple[dict[str, str], frozenset[str]]:
    """Return the owner's session ids by engine id, and the engine ids of sessions whose answers are not shown.

    These are permanently deleted, or sent again. One SQL statement.
    """
    if not engine_session_ids:
        return {}, frozenset()
    columns = f"own.engine_session_id, own.session_id, {_IS_ASKED}"
    statement = _select(columns, "own.engine_session_id", engine_session_ids)
    values = [settings.MEMORY_GATEWAY_BACKEND_BASE_URL, *owner_values(owner), *engine_session_ids]
    rows = sql.rows(statement, values)
    shown = {engine_id: session_id for engine_id, session_id, is_asked in rows if is_asked}
    return shown, frozenset(engine_id for engine_id, _, is_asked in rows if not is_asked)


def _select(columns: str, key: str, wanted: Collection[str]) -> str:
    return f"SELECT {columns} {_FROM_OWN} AND {key} IN ({sql.slots(wanted)})"


def find(owner: Owner, session_id: str) -> Session | None:
    """Return the owner's session, also a deleted one, or None."""
    return Session.objects.filter(owned_by(owner), session_id=session_id).first()


def claim(owner: Owner, session_id: str) -> Session:
    """Return the owner's session, created if missing, with an engine id that no other user holds.

    Call inside a transaction: until it ends, other claims of the id and writers to the session wait. Raises:
    `EngineRefused` for a deleted session and an erased user.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":  # SQLite runs one write transaction at a time anyway
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [session_id])
        is_new = sessions.create(cursor, owner, session_id) is not None
    # The user must still have the name under which an erasure notes what EverOS keeps: it would not note a session
    # created after it, and a new user of both names could reach its data.
    if is_new and not sql.rows(_has_name_statement(), [sql.uuid_value(owner.user_pk), owner.user_id]):
        raise EngineRefused(_("This user was erased."))
    session = Session.objects.get(owned_by(owner), session_id=session_id)
    if session.state == State.PURGED:
        raise EngineRefused(_("This session was deleted permanently: choose another session_id."))
    same_id = [session.engine_session_id, session.app_id, session.project_id]
    older_of_other = [session.pk, sql.uuid_value(session.user_id)]
    held = [*same_id, *older_of_other, residue.digest_of(session)]
    if not is_kept_whole(session.engine_session_id) or sql.rows(_IS_HELD_BY_OTHER, held)[0][0]:
        session.engine_session_id = unique_session_id(session_id, owner.user_pk)
        session.save(update_fields=["engine_session_id"])
    return session


@cache
def _has_name_statement() -> str:
    return f"{_HAS_NAME} FOR NO KEY UPDATE" if connection.features.has_select_for_no_key_update else _HAS_NAME


def mark_flush_sent(session: Session, now: datetime) -> datetime | None:
    """Record that a flush is being sent. Return the time of an earlier one that is unconfirmed, else None."""
    if is_flush_open(session):
        return session.flushed_at
    session.flushed_at, session.searchable_at = now, None
    session.save(update_fields=["flushed_at", "searchable_at"])
    return None


def mark_flush_ended(session: Session, searchable_at: datetime) -> None:
    """Record the end of a flush, unless the session is sent again meanwhile, under another id."""
    session.searchable_at = searchable_at
    same = Session.objects.filter(pk=session.pk, engine_session_id=session.engine_session_id)
    same.update(searchable_at=searchable_at)


def open_flushes(since: datetime, before: datetime, limit: int) -> list[Session]:
    """Return sessions with an unconfirmed flush sent in that period, round-robin by user, latest first.

    They come with their users.
    """
    unconfirmed = Session.objects.filter(~IS_PURGED, searchable_at__isnull=True)
    sent = unconfirmed.filter(flushed_at__gte=since, flushed_at__lt=before).select_related("user")
    return list(sent.annotate(turn=sql.turn_of_user("-flushed_at")).order_by("turn", "-flushed_at")[:limit])


def is_flush_open(session: Session) -> bool:
    """Return True if a flush was sent and its result is unknown."""
    return session.flushed_at is not None and session.searchable_at is None


def schedule_retry(session: Session, at: datetime | None) -> None:
    """Record when the session's unconfirmed calls are retried next; None if no call failed."""
    if session.retry_at != at:
        session.retry_at = at
        session.save(update_fields=["retry_at"])
