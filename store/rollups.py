"""The rollups: counts of live memories by spans of UTC hours, and by session.

`store.rollup_triggers` writes them with the rows; here they are settled and, where they are not trusted, made anew.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final
from uuid import UUID

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from core.spilling import on_disk
from store.models import HourCount, Session, SessionCount
from store.rollup_triggers import ADD_SESSIONS, EMPTY_CELLS, ONTO_HOURS, ONTO_SESSIONS

HOUR_MS: Final = 3_600_000
DAY_HOURS: Final = 24
EIGHT_DAYS_HOURS: Final = 192
LONG_HOURS: Final = 768
Report = Callable[[str, int, int], None]
"""`report(step, done, total)`."""


class Slice(IntEnum):
    """A way of asking: what is in `HourCount.key`, what in `member`, whether by category, in which spans.

    Each has few rows in one piece of the index where another way of asking would walk all users' rows.
    """

    ALL = 0
    """Everything, by category: 1, 24 and 192 hours."""
    OF_AGENT = 1
    """Of one agent, all users, by category: 1, 24 and 192 hours."""
    OF_USER = 2
    """Of one user, by agent and category: 1, 24 and 192 hours."""
    AGENTS = 3
    """Everything, by agent: 1, 24 and 768 hours."""
    USERS = 4
    """Everything, by user: 1, 24 and 768 hours."""
    USERS_OF_AGENT = 5
    """Of one agent, by user: 1, 24 and 768 hours."""
    ORIGINS = 6
    """Everything, and of one user, by origin: 768 hours."""


_CELL: Final = "slice, key, span, start, member, category, app_id, project_id"
_SUMS: Final = "sum(memories), sum(low), sum(mid), sum(high), sum(weight)"
_INSERT: Final = f"INSERT INTO store_hourcount ({_CELL}, delta, memories, low, mid, high, weight) "
_GROUP: Final = "GROUP BY 1, 2, 3, 4, 5, 6, 7, 8"
_SETTLE_HOURS: Final = f"""
    WITH fresh AS (DELETE FROM store_hourcount WHERE delta <> 0 RETURNING *)
    INSERT INTO store_hourcount ({_CELL}, delta, memories, low, mid, high, weight)
    SELECT {_CELL}, 0, {_SUMS} FROM fresh GROUP BY {_CELL}
{ONTO_HOURS}"""
_SETTLE_SESSIONS: Final = f"""
    WITH fresh AS (DELETE FROM store_sessioncount WHERE delta <> 0 RETURNING *)
    INSERT INTO store_sessioncount (session_row, of_agent, agent_id, delta, memories, first_ms, last_ms)
    SELECT session_row, of_agent, agent_id, 0, sum(memories), min(first_ms), max(last_ms)
    FROM fresh GROUP BY session_row, of_agent, agent_id
{ONTO_SESSIONS.format(least="least", greatest="greatest")}"""
# One at a time: two would wait for each other's rows.
_TURN: Final = "SELECT pg_try_advisory_xact_lock(7201960)"
_OWN_TURN: Final = "SELECT pg_advisory_xact_lock(7201960) IS NOT NULL"


def settle(*, is_final: bool = False) -> bool:
    """Adds up what changed on PostgreSQL since the last time; whether there was anything. Writers need not wait.

    Leaves it to whoever does so already, unless it `is_final`: then everything committed before is surely added up.
    """
    if connection.vendor != "postgresql" or not _is_unsettled():
        return False
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_OWN_TURN if is_final else _TURN)
        if cursor.fetchone()[0]:
            for statement in (_SETTLE_HOURS, _SETTLE_SESSIONS, *EMPTY_CELLS):
                cursor.execute(statement)
    return True


def recount(user_pk: UUID | None = None, *, report: Report = lambda *_: None) -> None:
    """Makes the rollups anew from the rows: all, or one user's and with them the sums over all users.

    Writers wait meanwhile.
    """
    owner = None if user_pk is None else user_pk.hex
    steps = [_forget, _count_hours, _count_sums, _count_sessions]
    with on_disk(), transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("LOCK TABLE store_memory, store_session IN SHARE MODE")
        for done, step in enumerate(steps):
            report("rollups", done, len(steps))
            step(cursor, owner)
    report("rollups", len(steps), len(steps))


def _forget(cursor: CursorWrapper, owner: str | None) -> None:
    if owner is None:
        cursor.execute("DELETE FROM store_hourcount")
        cursor.execute("DELETE FROM store_sessioncount")
        return
    of_users = (Slice.OF_USER, Slice.ORIGINS)
    HourCount.objects.exclude(slice__in=of_users).delete()
    HourCount.objects.filter(slice__in=of_users, key__in=[owner, ""]).delete()
    sessions = Session.objects.filter(user_id=UUID(owner)).values("pk")
    SessionCount.objects.filter(session_row__in=sessions).delete()


def _count_hours(cursor: CursorWrapper, owner: str | None) -> None:
    """What is kept of each user."""
    counted = "count(*), sum(low), sum(mid), sum(high), sum(weight)"
    for of, span, start, member, category in (
        (Slice.OF_USER, 1, "hour", "agent_id", "category"),
        (Slice.OF_USER, DAY_HOURS, _part("hour", DAY_HOURS), "agent_id", "category"),
        (Slice.OF_USER, EIGHT_DAYS_HOURS, _part("hour", EIGHT_DAYS_HOURS), "agent_id", "category"),
        (Slice.ORIGINS, LONG_HOURS, _part("hour", LONG_HOURS), "origin", "''"),
    ):
        cells = f"{of:d}, owner, {span}, {start}, {member}, {category}, app_id, project_id"
        where = f"WHERE owner = '{owner}'" if owner else ""
        cursor.execute(_INSERT + f"SELECT {cells}, 0, {counted} FROM store_counted_memory {where} {_GROUP}")


def _count_sums(cursor: CursorWrapper, _owner: str | None) -> None:
    """What is kept of all users together, from what is kept of each."""
    for of, key, span, start, member, category, source, source_span in (
        (Slice.ALL, "''", 1, "start", "''", "category", Slice.OF_USER, 1),
        (Slice.ALL, "''", DAY_HOURS, "start", "''", "category", Slice.OF_USER, DAY_HOURS),
        (Slice.ALL, "''", EIGHT_DAYS_HOURS, "start", "''", "category", Slice.OF_USER, EIGHT_DAYS_HOURS),
        (Slice.OF_AGENT, "member", 1, "start", "''", "category", Slice.OF_USER, 1),
        (Slice.OF_AGENT, "member", DAY_HOURS, "start", "''", "category", Slice.OF_USER, DAY_HOURS),
        (Slice.OF_AGENT, "member", EIGHT_DAYS_HOURS, "start", "''", "category", Slice.OF_USER, EIGHT_DAYS_HOURS),
        (Slice.AGENTS, "''", 1, "start", "member", "''", Slice.OF_USER, 1),
        (Slice.AGENTS, "''", DAY_HOURS, "start", "member", "''", Slice.OF_USER, DAY_HOURS),
        (Slice.AGENTS, "''", LONG_HOURS, _LONG, "member", "''", Slice.AGENTS, DAY_HOURS),
        (Slice.USERS, "''", 1, "start", "key", "''", Slice.OF_USER, 1),
        (Slice.USERS, "''", DAY_HOURS, "start", "key", "''", Slice.OF_USER, DAY_HOURS),
        (Slice.USERS, "''", LONG_HOURS, _LONG, "member", "''", Slice.USERS, DAY_HOURS),
        (Slice.USERS_OF_AGENT, "member", 1, "start", "key", "''", Slice.OF_USER, 1),
        (Slice.USERS_OF_AGENT, "member", DAY_HOURS, "start", "key", "''", Slice.OF_USER, DAY_HOURS),
        (Slice.USERS_OF_AGENT, "key", LONG_HOURS, _LONG, "member", "''", Slice.USERS_OF_AGENT, DAY_HOURS),
        (Slice.ORIGINS, "''", LONG_HOURS, "start", "member", "''", Slice.ORIGINS, LONG_HOURS),
    ):
        cells = f"{of:d}, {key}, {span}, {start}, {member}, {category}, app_id, project_id"
        where = f"WHERE slice = {source:d} AND span = {source_span}"
        cursor.execute(_INSERT + f"SELECT {cells}, 0, {_SUMS} FROM store_hourcount {where} {_GROUP}")


def _count_sessions(cursor: CursorWrapper, owner: str | None) -> None:
    of_owner = f"session_row IN (SELECT session_row FROM store_counted_memory WHERE owner = '{owner}')"
    cursor.execute(ADD_SESSIONS.format(delta=0, sign=1, where=of_owner if owner else "true"))


def _part(start: str, hours: int) -> str:
    """The number of the span of so many hours that an hour lies in; negative before 1970."""
    return f"({start} - (({start} % {hours}) + {hours}) % {hours}) / {hours}"


def _is_unsettled() -> bool:
    return HourCount.objects.exclude(delta=0).exists() or SessionCount.objects.exclude(delta=0).exists()


_LONG: Final = _part("start", LONG_HOURS // DAY_HOURS)
