"""The database query that every request runs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from core import sql

_LIVE_KEY = """
    SELECT u.id, u.user_id, k.id, k.expires_at, k.last_used_at
    FROM accounts_userkey k JOIN accounts_memoryuser u ON u.id = k.user_id
    WHERE k.digest = %s AND k.revoked_at IS NULL
"""


class LiveKey(NamedTuple):
    user_pk: UUID
    user_id: str
    key_id: UUID
    last_used_at: datetime | None


def live_key(digest: str, *, now: datetime) -> LiveKey | None:
    """Return the key with that digest unless it is expired or revoked. One statement."""
    found = sql.rows(_LIVE_KEY, [digest])
    if not found:
        return None
    user_pk, user_id, key_id, expires_at, last_used_at = found[0]
    if expires_at is not None and _moment(expires_at) <= now:
        return None
    return LiveKey(_uuid(user_pk), user_id, _uuid(key_id), None if last_used_at is None else _moment(last_used_at))


def _uuid(value: UUID | str) -> UUID:
    """Return a UUID: SQLite stores it as text, PostgreSQL natively."""
    return value if isinstance(value, UUID) else UUID(value)


def _moment(value: datetime) -> datetime:
    """Return an aware datetime: SQLite stores it in UTC without a time zone."""
    return value if value.tzinfo else value.replace(tzinfo=UTC)
