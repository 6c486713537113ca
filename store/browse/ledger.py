"""Counting what a selection means: from the rollups where they know its conditions, from the rows where not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from django.db import connection

from core.sql import slots
from store.browse.selection import Selection
from store.browse.spans import FIRST_MS, LAST_MS, Piece, pieces
from store.rollups import DAY_HOURS, EIGHT_DAYS_HOURS, HOUR_MS, LONG_HOURS, Slice

# SQLite takes 500 parts of one statement.
_PIECES_AT_ONCE: Final = 200
SHORT: Final = (1, DAY_HOURS, EIGHT_DAYS_HOURS)
LONG: Final = (1, DAY_HOURS, LONG_HOURS)


_TOP: Final = """
    SELECT name, sum(memories) AS number, count(*) OVER () FROM ({union}) parts WHERE name <> ''
    GROUP BY name HAVING sum(memories) > 0 ORDER BY number DESC, name LIMIT %s
"""


class Sql(NamedTuple):
    """A piece of a statement, and what stands in its places."""

    text: str
    values: list[Any]


class Tally(NamedTuple):
    """How many memories of a category there are from `at_ms` on: a cell's or a piece's beginning."""

    at_ms: int
    category: str
    memories: int
    low: int
    mid: int
    high: int
    weight: int


class Source(NamedTuple):
    """A way of asking the rollups, and the same of the rows: the column of `member` there."""

    slice: Slice
    key: str
    member: str | None
    spans: tuple[int, ...]
    column: str


def is_rolled_up(selection: Selection) -> bool:
    """Whether the rollups know all its conditions."""
    others = (selection.session_id, selection.origin, selection.memory_type)
    bounds = (selection.importance_min, selection.importance_max)
    return not selection.in_trash and all(condition is None for condition in (*others, *bounds))


def by_category(selection: Selection) -> Source:
    """What tells how many of each category there are, at the times of hours."""
    if selection.user_pk is not None:
        return Source(Slice.OF_USER, selection.user_pk.hex, selection.agent_id, SHORT, "''")
    if selection.agent_id is not None:
        return Source(Slice.OF_AGENT, selection.agent_id, None, SHORT, "''")
    return Source(Slice.ALL, "", None, SHORT, "''")


def by_agent(selection: Selection) -> Source:
    if selection.user_pk is not None:
        return Source(Slice.OF_USER, selection.user_pk.hex, selection.agent_id, SHORT, "agent_id")
    return Source(Slice.AGENTS, "", selection.agent_id, LONG, "agent_id")


def by_user(selection: Selection) -> Source:
    member = None if selection.user_pk is None else selection.user_pk.hex
    if selection.agent_id is not None:
        return Source(Slice.USERS_OF_AGENT, selection.agent_id, member, LONG, "owner")
    return Source(Slice.USERS, "", member, LONG, "owner")


def tally(selection: Selection, source: Source, edges_ms: Sequence[int], *, by_time: bool = False) -> list[Tally]:
    """The counts by category between each edge and the next, in parts: for `by_time`, in one for each cell.

    One statement for every 200 pieces of time.
    """
    spans = source.spans if is_rolled_up(selection) else ()
    stretches = pieces(within(selection, edges_ms), spans)
    found: list[Tally] = []
    for first in range(0, len(stretches), _PIECES_AT_ONCE):
        parts = [
            _part(selection, source, piece, by_time=by_time) for piece in stretches[first : first + _PIECES_AT_ONCE]
        ]
        with connection.cursor() as cursor:
            cursor.execute(
                " UNION ALL ".join(part.text for part in parts), [value for part in parts for value in part.values]
            )
            found += [Tally(row[0], row[1], *map(int, row[2:])) for row in cursor.fetchall()]
    return found


def top(selection: Selection, source: Source, edges_ms: Sequence[int], limit: int) -> tuple[list[tuple[str, int]], int]:
    """The source's members with most memories between the edges, and how many members there are. One statement."""
    has_categories = source.spans == SHORT or selection.wanted_categories() is None
    spans = source.spans if is_rolled_up(selection) and has_categories else ()
    stretches = pieces(within(selection, [edges_ms[0], edges_ms[-1]]), spans)
    if not stretches:
        return [], 0
    parts = [_part(selection, source, piece, by_member=True) for piece in stretches]
    union = " UNION ALL ".join(part.text for part in parts)
    with connection.cursor() as cursor:
        cursor.execute(_TOP.format(union=union), [*(value for part in parts for value in part.values), limit])
        rows = cursor.fetchall()
    return [(member, int(count)) for member, count, _ in rows], rows[0][2] if rows else 0


def skipped(selection: Selection, offset: int, *, oldest_first: bool) -> tuple[Selection, int] | None:
    """The selection without the days that an offset skips whole, and how many are to be skipped of the rest; None if
    that is all. One statement, none where the rollups do not know all conditions: then nothing is skipped."""
    if not is_rolled_up(selection):
        return selection, offset
    counted: Counter[int] = Counter()
    for row in tally(selection, by_category(selection), (FIRST_MS, LAST_MS), by_time=True):
        counted[row.at_ms] += row.memories
    bound = selection
    for at in sorted(counted, reverse=not oldest_first):
        if oldest_first:
            bound = replace(selection, since_ms=max(at, FIRST_MS if selection.since_ms is None else selection.since_ms))
        if offset < counted[at]:
            return bound, offset
        offset -= counted[at]
        if not oldest_first:
            bound = replace(selection, until_ms=at)
    return None


def within(selection: Selection, edges_ms: Sequence[int]) -> list[int]:
    """The edges as far as the selection's own times reach."""
    first = max(edges_ms[0], FIRST_MS if selection.since_ms is None else selection.since_ms)
    last = min(edges_ms[-1], LAST_MS if selection.until_ms is None else selection.until_ms)
    return [first, *(edge for edge in edges_ms if first < edge < last), last] if first < last else []


def row_conditions(selection: Selection) -> Sql:
    """The selection, but for its times, of `store_counted_memory`.

    Where a session is named its index is the one to use: the other conditions are written so that theirs are not.
    """
    owned = owner_conditions(selection)
    plain = ""
    if selection.session_id is not None:
        of_session = _all([_equal("session_id", selection.session_id), owned])
        owned = Sql(f"session_row IN (SELECT id FROM store_session WHERE {of_session.text})", of_session.values)
        plain = " || ''"
    return _all([
        owned,
        _equal(f"agent_id{plain}", selection.agent_id),
        _equal(f"memory_type{plain}", selection.memory_type),
        _equal(f"origin{plain}", selection.origin),
        _compared("importance >= %s", selection.importance_min),
        _compared("importance <= %s", selection.importance_max),
        _categories(selection, f"category{plain}"),
    ])  # fmt: skip


def owner_conditions(selection: Selection) -> Sql:
    """Whose they are, of any table that says so."""
    native = connection.features.has_native_uuid_field
    pk = selection.user_pk
    return _all([
        _equal("user_id", pk if native or pk is None else pk.hex),
        _equal("app_id", selection.app_id),
        _equal("project_id", selection.project_id),
    ])  # fmt: skip


def _part(selection: Selection, source: Source, piece: Piece, *, by_time: bool = False, by_member: bool = False) -> Sql:
    if not piece.span:
        return _rows(selection, source, piece, by_member=by_member)
    return _cells(selection, source, piece, by_time=by_time, by_member=by_member)


def _cells(selection: Selection, source: Source, piece: Piece, *, by_time: bool, by_member: bool) -> Sql:
    length = piece.span * HOUR_MS
    conditions = _all(
        [
            _equal("app_id", selection.app_id),
            _equal("project_id", selection.project_id),
            _equal("member", source.member),
            _categories(selection),
        ]
    )
    start = f"CAST(start AS bigint) * {length}" if by_time else str(piece.since_ms)
    text = f"""
        SELECT {start} AS at_ms, {"member" if by_member else "category"} AS name, sum(memories) AS memories,
            sum(low), sum(mid), sum(high), sum(weight)
        FROM store_hourcount WHERE slice = %s AND key = %s AND span = %s AND start >= %s AND start < %s
            AND {conditions.text}
        GROUP BY {"start, " if by_time else ""}{"member" if by_member else "category"}
    """
    bounds = [piece.since_ms // length, piece.until_ms // length]
    return Sql(text, [int(source.slice), source.key, piece.span, *bounds, *conditions.values])


def _rows(selection: Selection, source: Source, piece: Piece, *, by_member: bool) -> Sql:
    conditions = row_conditions(selection)
    name = source.column if by_member else "category"
    text = f"""
        SELECT {piece.since_ms} AS at_ms, {name} AS name, count(*) AS memories,
            sum(low), sum(mid), sum(high), sum(weight)
        FROM store_counted_memory WHERE created_at_ms >= %s AND created_at_ms < %s AND {conditions.text}
        GROUP BY {name}
    """
    return Sql(text, [piece.since_ms, piece.until_ms, *conditions.values])


def _categories(selection: Selection, name: str = "category") -> Sql:
    wanted = selection.wanted_categories()
    if wanted is None:
        return Sql("", [])
    return Sql(f"{name} IN ({slots(wanted) or 'NULL'})", list(wanted))


def _equal(name: str, value: object) -> Sql:
    return _compared(f"{name} = %s", value)


def _compared(text: str, value: object) -> Sql:
    return Sql("", []) if value is None else Sql(text, [value])


def _all(conditions: Sequence[Sql]) -> Sql:
    given = [condition for condition in conditions if condition.text]
    text = " AND ".join(condition.text for condition in given) or "1 = 1"
    return Sql(text, [value for condition in given for value in condition.values])
