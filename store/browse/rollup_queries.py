"""Count the memories of a selection: from the rollups if they cover its conditions, else from the rows."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, NamedTuple

from django.db import connection

from core.persistence import sql
from store.browse import word_condition
from store.browse.selection import Selection
from store.rollups import DAY_MS

LAST_MS: Final = 11_520_000 * DAY_MS
FIRST_MS: Final = -LAST_MS
"""Earlier and later than any memory (thirty thousand years from 1970), and a boundary of days."""
ALL_TIME_MS: Final = (FIRST_MS, LAST_MS)
# SQLite limits a UNION to 500 parts.
_MAX_PARTS: Final = 200
_CELLS: Final = """
    SELECT * FROM (WITH piece (since, until, at_ms) AS (VALUES {pieces})
    SELECT {at_ms} AS at_ms, {names}, sum(memories) AS memories{sums}
    FROM piece CROSS JOIN {counts} GROUP BY {group}) cells
"""
_COUNTS: Final = {
    "sqlite": """
        store_daycount WHERE day >= piece.since AND day < piece.until AND {conditions}
    """,
    # OFFSET keeps the subquery apart: joined, PostgreSQL reads the counts of all users instead of an index by piece.
    "postgresql": """
        LATERAL (
            SELECT * FROM store_daycount WHERE day >= piece.since AND day < piece.until AND {conditions} OFFSET 0
        ) counts
    """,
}
_OWNERS: Final = {"sqlite": "id", "postgresql": "replace(CAST(id AS text), '-', '')"}
# Times are literals: if they came from a join, SQLite would build a temporary index for the statement.
_ROWS: Final = """
    SELECT {at_ms} AS at_ms, {names}, count(*) AS memories{sums}
    FROM store_counted_memory WHERE created_at_ms >= {since} AND created_at_ms < {until} AND {conditions}
    GROUP BY {group}
"""
_TOP: Final = """
    SELECT owner, sum(memories) AS number, count(*) OVER () FROM ({counts}) counts
    GROUP BY owner HAVING sum(memories) > 0 ORDER BY number DESC, owner LIMIT %s
"""


class Sql(NamedTuple):
    """A fragment of a statement and its parameters."""

    text: str
    values: list[Any]


class Tally(NamedTuple):
    """The counts of an agent, a category and an origin in the period that begins at `at_ms`: an edge, or a UTC day.

    `low`, `mid` and `high` count memories by importance, `weight` is the sum of importance in millionths.
    """

    at_ms: int
    category: str
    agent_id: str
    origin: str
    memories: int
    low: int
    mid: int
    high: int
    weight: int


def is_rolled_up(selection: Selection) -> bool:
    """Return True if the rollups cover all conditions."""
    others = (selection.session_id, selection.memory_type, selection.tag)
    bounds = (selection.importance_min, selection.importance_max)
    return not (selection.in_trash or selection.words or selection.is_shown or selection.mark) and all(
        condition is None for condition in (*others, *bounds)
    )


def tally(selection: Selection, edges_ms: Sequence[int], *, by_day: bool = False) -> list[Tally]:
    """Return the counts between consecutive edges, or of each UTC day. One SQL statement, more for many edges."""
    found: list[Tally] = []
    for counts in _counts(selection, clip_edges(selection, edges_ms), by_day=by_day):
        found += [Tally(*row[:4], *map(int, row[4:])) for row in sql.rows(*counts)]
    return found


def top_users(selection: Selection, edges_ms: Sequence[int], limit: int) -> tuple[list[tuple[str, int]], int]:
    """Return the users with most memories between the edges, and the number of users. One SQL statement."""
    rows: list[Any] = []
    for counts in _counts(selection, clip_edges(selection, [edges_ms[0], edges_ms[-1]]), by_owner=True):
        rows = sql.rows(_TOP.format(counts=counts.text), [*counts.values, limit])
    return [(owner, int(count)) for owner, count, _ in rows], rows[0][2] if rows else 0


def skip_days(selection: Selection, offset: int, *, oldest_first: bool) -> tuple[Selection, int] | None:
    """Return the selection without the days that an offset skips entirely, and the rows to skip of the rest.

    None if the offset skips all. One SQL statement; if the rollups do not cover all conditions, no statement, and the
    selection is returned as it is.
    """
    if not is_rolled_up(selection):
        return selection, offset
    counted: Counter[int] = Counter()
    for row in tally(selection, ALL_TIME_MS, by_day=True):
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


def clip_edges(selection: Selection, edges_ms: Sequence[int]) -> list[int]:
    """Return the edges, clipped to the times of the selection."""
    first = max(edges_ms[0], FIRST_MS if selection.since_ms is None else selection.since_ms)
    last = min(edges_ms[-1], LAST_MS if selection.until_ms is None else selection.until_ms)
    return [first, *(edge for edge in edges_ms if first < edge < last), last] if first < last else []


def row_conditions(selection: Selection) -> Sql:
    """Return the selection's conditions on `store_counted_memory`, except its times.

    If a session is named, the index of sessions must be used: other columns become expressions, which no index covers.
    """
    owned = owner_conditions(selection)
    no_index = ""
    if selection.session_id is not None:
        of_session = _all([_equal("session_id", selection.session_id), owned])
        owned = Sql(f"session_row IN (SELECT id FROM store_session WHERE {of_session.text})", of_session.values)
        no_index = " || ''"
    return _all([
        owned,
        _equal(f"agent_id{no_index}", selection.agent_id),
        _equal(f"memory_type{no_index}", selection.memory_type),
        _equal(f"origin{no_index}", selection.origin),
        _compared("importance >= %s", selection.importance_min),
        _compared("importance <= %s", selection.importance_max),
        _categories(selection, f"category{no_index}"),
        _words(selection),
    ])  # fmt: skip


def owner_conditions(selection: Selection) -> Sql:
    """Return the conditions on user and scope, for any table that has these columns."""
    native = connection.features.has_native_uuid_field
    pk = selection.user_pk
    return _all([
        _equal("user_id", pk if native or pk is None else pk.hex),
        _of_tenants(selection, "user_id", "id"),
        _equal("app_id", selection.app_id),
        _equal("project_id", selection.project_id),
    ])  # fmt: skip


def _counts(
    selection: Selection, edges_ms: Sequence[int], *, by_day: bool = False, by_owner: bool = False
) -> Iterator[Sql]:
    """Yield statements that count between edges: by the whole UTC days between them, and by the rows of the rest."""
    days, rest = [], []
    for since, until in pairwise(edges_ms):
        first, last = -(-since // DAY_MS), until // DAY_MS
        if first < last and is_rolled_up(selection):
            days.append(f"({first}, {last}, {since})")
            rest += [(since, first * DAY_MS, since), (last * DAY_MS, until, since)]
        else:
            rest.append((since, until, since))
    names, group, sums = "category, agent_id, origin", "1, 2, 3, 4", ", sum(low), sum(mid), sum(high), sum(weight)"
    if by_owner:  # an index of the counts has these columns
        names, group, sums = "owner", "2", ""
    parts = []
    if days:
        at_ms = str(edges_ms[0]) if by_owner else f"CAST(day AS bigint) * {DAY_MS}" if by_day else "piece.at_ms"
        conditions = _cell_conditions(selection, by_owner=by_owner)
        counts = _COUNTS[connection.vendor].format(conditions=conditions.text)
        text = _CELLS.format(at_ms=at_ms, names=names, sums=sums, pieces=", ".join(days), counts=counts, group=group)
        parts.append(Sql(text, conditions.values))
    conditions = row_conditions(selection)
    for since, until, at in rest:
        if since < until:
            text = _ROWS.format(
                at_ms=at, names=names, sums=sums, since=since, until=until, conditions=conditions.text, group=group
            )
            parts.append(Sql(text, conditions.values))
    for start in range(0, len(parts), _MAX_PARTS):
        some = parts[start : start + _MAX_PARTS]
        yield Sql(" UNION ALL ".join(part.text for part in some), [value for part in some for value in part.values])


def _cell_conditions(selection: Selection, *, by_owner: bool) -> Sql:
    owner = "" if selection.user_pk is None else selection.user_pk.hex
    is_of_users = not owner and (by_owner or selection.tenants is not None)
    return _all([
        Sql("owner <> ''", []) if is_of_users else _equal("owner", owner),
        _of_tenants(selection, "owner", _OWNERS[connection.vendor]),
        _equal("agent_id", selection.agent_id),
        _equal("app_id", selection.app_id),
        _equal("project_id", selection.project_id),
        _equal("origin", selection.origin),
        _categories(selection),
    ])  # fmt: skip


def _of_tenants(selection: Selection, column: str, key: str) -> Sql:
    """Return the condition that a column names a user of the selection's tenants; `key` is its form of their keys."""
    if selection.tenants is None:
        return Sql("", [])
    slots = sql.slots(selection.tenants)
    return Sql(
        f"{column} IN (SELECT {key} FROM accounts_memoryuser WHERE tenant IN ({slots}))", list(selection.tenants)
    )


def _categories(selection: Selection, name: str = "category") -> Sql:
    wanted = selection.wanted_categories()
    if wanted is None:
        return Sql("", [])
    return Sql(f"{name} IN ({sql.slots(wanted)})", list(wanted))


def _words(selection: Selection) -> Sql:
    if not selection.words:
        return Sql("", [])
    found = word_condition.holding(selection.words)
    return Sql(f"memory_row IN ({found.sql})", list(found.params))


def _equal(name: str, value: object) -> Sql:
    return _compared(f"{name} = %s", value)


def _compared(text: str, value: object) -> Sql:
    return Sql("", []) if value is None else Sql(text, [value])


def _all(conditions: Sequence[Sql]) -> Sql:
    given = [condition for condition in conditions if condition.text]
    text = " AND ".join(condition.text for condition in given) or "1 = 1"
    return Sql(text, [value for condition in given for value in condition.values])
