"""The one database read that every request pays for."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection

_LIVE_KEY = """
    SELECT u.id, u.user_id, k.id, k.last_used_at IS NULL OR k.last_used_at < %s
    FROM accounts_userkey k JOIN accounts_memoryuser u ON u.id = k.user_id
    WHERE k.digest = %s AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > %s)
"""


class LiveKey(NamedTuple):
    user_pk: UUID
    user_id: str
    key_id: UUID
    is_use_due: bool


def live_key(digest: str, *, now: datetime, used_before: datetime) -> LiveKey | None:
    """The key with that digest unless it is expired or revoked; `is_use_due` when its last use is older than
    `used_before`. One statement.
    """
    adapt = connection.ops.adapt_datetimefield_value
    with connection.cursor() as cursor:
        cursor.execute(_LIVE_KEY, [adapt(used_before), digest, adapt(now)])
        row = cursor.fetchone()
    return LiveKey(_uuid(row[0]), row[1], _uuid(row[2]), bool(row[3])) if row else None


def _uuid(value: UUID | str) -> UUID:
    """SQLite keeps UUIDs as text, PostgreSQL as themselves."""
    return value if isinstance(value, UUID) else UUID(value)
