"""Sessions of an external engine, where one id is one session although several users may use it.

The first user of an id holds it in the engine; other users' sessions get an engine id made unique by their user key.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from functools import cache
from typing import Final

from django.db import connection

from core import sql
from core.errors import EngineRefused
from core.fairness import turn_of_user
from core.ids import parse_session_id
from store import sessions
from store.external import residue
from store.external.engine_ids import is_kept_whole, unique_session_id
from store.index import keyword
from store.models import Session, owned_by
from store.owned import owner_values
from store.types import Owner

_BETWEEN: Final = "\x1e"  # occurs in no session id
# A row made under another engine may have an id that another user holds in EverOS: the older row is the holder.
_OWN = """
    FROM store_session AS own
    WHERE own.user_id = %s AND own.app_id = %s AND own.project_id = %s
      AND NOT EXISTS (
        SELECT 1 FROM store_session AS other
        WHERE other.engine_session_id = own.engine_session_id AND other.app_id = own.app_id
          AND other.project_id = own.project_id AND other.user_id <> own.user_id AND other.id < own.id)
"""
_TAKEN = f"""
    SELECT EXISTS (
        SELECT 1 FROM store_session
        WHERE engine_session_id = %s AND app_id = %s AND project_id = %s AND id < %s AND user_id <> %s)
    OR EXISTS ({residue.HOLDS})
"""
_NAMED = "SELECT 1 FROM accounts_memoryuser WHERE id = %s AND user_id = %s"


def engine_ids(owner: Owner, session_ids: Collection[str]) -> tuple[dict[str, str], bool]:
    """Return the engine ids of those sessions that the owner has, and True if the owner's local index has entries.

    One statement.
    """
    if not session_ids:
        return {}, keyword.is_filled(owner)
    live = _select(f"own.session_id || '{_BETWEEN}' || own.engine_session_id AS value", "own.session_id", session_ids)
    values = owner_values(owner)
    found = sql.column(
        f"{live} AND own.deleted_at IS NULL UNION ALL SELECT '' WHERE EXISTS ({keyword.IS_FILLED})",
        [*values, *session_ids, *values],
    )
    return dict(pair.split(_BETWEEN) for pair in found if pair), "" in found


def session_ids(owner: Owner, engine_session_ids: Collection[str]) -> tuple[dict[str, str], frozenset[str]]:
    """Return the owner's session ids by engine id, and the engine ids of permanently deleted sessions.

    One statement.
    """
    if not engine_session_ids:
        return {}, frozenset()
    columns = "own.engine_session_id, own.session_id, own.deleted_at IS NULL"
    statement = _select(columns, "own.engine_session_id", engine_session_ids)
    rows = sql.rows(statement, [*owner_values(owner), *engine_session_ids])
    live = {engine_id: session_id for engine_id, session_id, is_live in rows if is_live}
    return live, frozenset(engine_id for engine_id, _, is_live in rows if not is_live)


def _select(columns: str, key: str, wanted: Collection[str]) -> str:
    return f"SELECT {columns} {_OWN} AND {key} IN ({sql.slots(wanted)})"


def find(owner: Owner, session_id: str) -> Session | None:
    """Return the owner's session, also a deleted one, or None."""
    return Session.objects.filter(owned_by(owner), session_id=session_id).first()


def claim(owner: Owner, session_id: str) -> Session:
    """Return the owner's session, created if missing, with an engine id that no other user holds.

    Call inside a transaction, which blocks other claims of the id and writers to the session until it ends. Raises:
    `EngineRefused` for a deleted session and an erased user.
    """
    _lock(session_id)
    with connection.cursor() as cursor:
        is_new = sessions.make(cursor, owner, session_id) is not None
    if is_new:
        _require_not_erased(owner)
    session = Session.objects.get(owned_by(owner), session_id=session_id)
    if session.deleted_at is not None:
        raise EngineRefused("This session was deleted for good: choose another session_id.")
    if not is_kept_whole(session.engine_session_id) or _is_taken(session):
        session.engine_session_id = unique_session_id(session_id, owner.user_pk)
        session.save(update_fields=["engine_session_id"])
    return session


def _require_not_erased(owner: Owner) -> None:
    """Check that the user still has the name under which erasure records residue.

    A session created after an erasure would not be recorded, and a new user of both names could reach it. Raises:
    `EngineRefused`.
    """
    if not sql.rows(_named_statement(), [sql.uuid_value(owner.user_pk), owner.user_id]):
        raise EngineRefused("This user was erased.")


@cache
def _named_statement() -> str:
    return f"{_NAMED} FOR NO KEY UPDATE" if connection.features.has_select_for_no_key_update else _NAMED


def _lock(session_id: str) -> None:
    """Lock the session id on PostgreSQL. SQLite's write transactions are serial anyway."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [session_id])


def _is_taken(session: Session) -> bool:
    """Return True if another or an erased user held the session's engine id first. One statement."""
    held_by = [session.engine_session_id, session.app_id, session.project_id]
    since = [session.pk, sql.uuid_value(session.user_id)]
    [(is_taken,)] = sql.rows(_TAKEN, [*held_by, *since, residue.digest_of(session)])
    return bool(is_taken)


def mark_flush_sent(session: Session, now: datetime) -> datetime | None:
    """Record that a flush is being sent. Return the time of an earlier one that is unconfirmed, else None."""
    if is_flush_open(session):
        return session.flushed_at
    session.flushed_at, session.searchable_at = now, None
    session.save(update_fields=["flushed_at", "searchable_at"])
    return None


def mark_flush_ended(session: Session, searchable_at: datetime) -> None:
    session.searchable_at = searchable_at
    session.save(update_fields=["searchable_at"])


def open_flushes(since: datetime, before: datetime, limit: int) -> list[Session]:
    """Return sessions with an unconfirmed flush sent within that time, round-robin by user, latest first.

    They come with their users.
    """
    unseen = Session.objects.filter(searchable_at__isnull=True, deleted_at__isnull=True)
    sent = unseen.filter(flushed_at__gte=since, flushed_at__lt=before).select_related("user")
    return list(sent.annotate(turn=turn_of_user("-flushed_at")).order_by("turn", "-flushed_at")[:limit])


def is_flush_open(session: Session) -> bool:
    """Return True if a flush was sent and its result is unknown."""
    return session.flushed_at is not None and session.searchable_at is None


def schedule_retry(session: Session, at: datetime | None) -> None:
    """Record when the session's unconfirmed calls are retried. None: nothing failed."""
    if session.retry_at != at:
        session.retry_at = at
        session.save(update_fields=["retry_at"])


def mark_deleted(owner: Owner, session_id: str, now: datetime) -> Session:
    """Mark the session as permanently deleted: it refuses late writes, and its hits are dropped."""
    session, _ = Session.objects.get_or_create(
        user_id=owner.user_pk,
        app_id=owner.app_id,
        project_id=owner.project_id,
        session_id=session_id,
        defaults={"engine_session_id": session_id, "kind": parse_session_id(session_id).kind, "deleted_at": now},
    )
    if session.deleted_at is None:
        session.deleted_at = now
        session.save(update_fields=["deleted_at"])
    return session


def restore_flush(session: Session, flushed_at: datetime | None, searchable_at: datetime | None) -> None:
    """Undo `mark_flush_sent`."""
    session.flushed_at, session.searchable_at = flushed_at, searchable_at
    session.save(update_fields=["flushed_at", "searchable_at"])
