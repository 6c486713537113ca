"""How many live memories sessions and users have, from the rollups: one statement each."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db import connection
from django.db.models import Count, Sum

from core.sql import slots
from store.models import Memory, SessionCount
from store.rollups import LONG_HOURS, Slice

# The times of the longest cells one by one, then the users' cells of each: what others have is not walked.
_OF_USERS = """
    WITH RECURSIVE times (start) AS (
        SELECT min(start) FROM store_hourcount WHERE slice = %s AND key = '' AND span = %s
        UNION ALL
        SELECT (SELECT min(later.start) FROM store_hourcount later
            WHERE later.slice = %s AND later.key = '' AND later.span = %s AND later.start > times.start)
        FROM times WHERE times.start IS NOT NULL
    )
    SELECT cell.member, sum(cell.memories) FROM times JOIN store_hourcount cell ON cell.start = times.start
    WHERE cell.slice = %s AND cell.key = '' AND cell.span = %s AND cell.member IN ({})
    GROUP BY cell.member
"""
_LONG_CELLS = (int(Slice.USERS), LONG_HOURS)


def of_sessions(session_rows: Collection[int]) -> dict[int, int]:
    """By the rows of the sessions; those without memories may be missing."""
    rows = SessionCount.objects.filter(session_row__in=session_rows, of_agent=False)
    return dict(rows.values_list("session_row").annotate(number=Sum("memories")))


def held_by(session_rows: Collection[int]) -> dict[int, int]:
    """All memories of sessions, those of deleted sessions too, which the rollups leave out."""
    rows = Memory.objects.filter(session__in=list(session_rows)).order_by()
    return dict(rows.values_list("session").annotate(number=Count("pk")))


def of_users(user_pks: Collection[UUID]) -> dict[UUID, int]:
    if not user_pks:
        return {}
    statement = _OF_USERS.format(slots(user_pks))
    with connection.cursor() as cursor:
        cursor.execute(statement, [*_LONG_CELLS * 3, *(pk.hex for pk in user_pks)])
        return {UUID(key): int(number) for key, number in cursor.fetchall()}
