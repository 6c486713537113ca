"""How many live memories sessions and users have, from the rollups: one statement each."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db.models import Count, Sum

from engine.models import HourCount, Memory, SessionCount
from engine.rollups import EIGHT_DAYS_HOURS, Slice


def of_sessions(session_rows: Collection[int]) -> dict[int, int]:
    """By the rows of the sessions; those without memories may be missing."""
    rows = SessionCount.objects.filter(session_row__in=session_rows, of_agent=False)
    return dict(rows.values_list("session_row").annotate(number=Sum("memories")))


def held_by(session_rows: Collection[int]) -> dict[int, int]:
    """All memories of sessions, those of deleted sessions too, which the rollups leave out."""
    rows = Memory.objects.filter(session__in=list(session_rows)).order_by()
    return dict(rows.values_list("session").annotate(number=Count("pk")))


def of_users(user_pks: Collection[UUID]) -> dict[UUID, int]:
    rows = HourCount.objects.filter(
        slice=Slice.OF_USER, key__in=[pk.hex for pk in user_pks], span=EIGHT_DAYS_HOURS
    ).order_by()
    return {UUID(key): number for key, number in rows.values_list("key").annotate(number=Sum("memories"))}
