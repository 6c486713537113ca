"""The sessions with most memories in a period.

Most sessions are short and entirely inside or outside the period: their rollup suffices. Only the sessions that an edge
of the period cuts are counted by their rows.
"""

from collections.abc import Sequence
from typing import Any, Final

from core.persistence import sql
from store.browse.rollup_queries import clip_edges, is_rolled_up, owner_conditions, row_conditions
from store.browse.selection import Selection
from store.models import Session

_OF_AGENT: Final = "FROM {counts} counts WHERE of_agent = %s AND agent_id = %s AND +memories > 0"
_TOP_OF_ALL_TIME: Final = f"SELECT session_row, memories {_OF_AGENT} ORDER BY memories DESC, session_row DESC LIMIT %s"
# The index by number of memories is faster for many sessions, the index by last time for few. The unary plus keeps the
# database from using the other one.
_TOP_OF_MANY: Final = f"""
    SELECT session_row, memories {_OF_AGENT} AND +first_ms >= %s AND +last_ms >= %s AND +last_ms < %s
    ORDER BY memories DESC, session_row DESC LIMIT %s
"""
_TOP_OF_FEW: Final = f"""
    SELECT session_row, memories {_OF_AGENT} AND first_ms >= %s AND last_ms >= %s AND last_ms < %s
    ORDER BY +memories DESC, session_row DESC LIMIT %s
"""
_MAX_FEW: Final = 2_000
_COUNT_INSIDE: Final = f"SELECT count(*) {_OF_AGENT} AND first_ms >= %s AND last_ms >= %s AND last_ms < %s"
# The expression on agent_id keeps the database from the index of agents: the index of sessions is faster.
_CUT_BY_EDGES: Final = f"""
    SELECT session_row, count(*) FROM store_counted_memory
    WHERE created_at_ms >= %s AND created_at_ms < %s AND (%s OR agent_id || '' = %s) AND session_row IN (
        SELECT session_row {_OF_AGENT} AND first_ms < %s AND last_ms >= %s AND last_ms < %s
        UNION SELECT session_row {_OF_AGENT} AND first_ms < %s AND last_ms >= %s
    ) GROUP BY session_row
"""
_BY_ROWS: Final = """
    SELECT session_row, count(*) FROM store_counted_memory
    WHERE created_at_ms >= %s AND created_at_ms < %s AND session_row IS NOT NULL AND {conditions} GROUP BY session_row
"""
# CROSS JOIN fixes the order: first a user's sessions, which are few; for a scope alone, first the counts.
_OF_USER: Final = """(
    SELECT c.* FROM (SELECT id FROM store_session WHERE {conditions}) s CROSS JOIN store_sessioncount c
    WHERE c.session_row = s.id
)"""
_OF_SCOPE: Final = """(
    SELECT c.* FROM store_sessioncount c CROSS JOIN store_session s WHERE s.id = c.session_row AND {conditions}
)"""

SessionCounts = list[tuple[int, int]]
"""The row ids of sessions, and how many memories each has."""


def top_sessions(selection: Selection, edges_ms: Sequence[int], limit: int) -> tuple[SessionCounts, int]:
    """Return the sessions with most memories between the edges, and the number of sessions with any."""
    edges = clip_edges(selection, [edges_ms[0], edges_ms[-1]])
    if not edges:
        return [], 0
    is_counted = selection.origin is None and selection.wanted_categories() is None
    if not (is_rolled_up(selection) and is_counted):
        conditions = row_conditions(selection)
        found = sql.rows(_BY_ROWS.format(conditions=conditions.text), [*edges, *conditions.values])
        return _top(found, limit), len(found)
    since, until = edges
    counts, parameters = _counts(selection)
    inside_times = [since, since, until]
    ((number,),) = sql.rows(_COUNT_INSIDE.format(counts=counts), [*parameters, *inside_times])
    statement = _TOP_OF_FEW if number <= _MAX_FEW else _TOP_OF_MANY
    inside_counts = sql.rows(statement.format(counts=counts), [*parameters, *inside_times, limit])
    row_agent = [selection.agent_id is None, selection.agent_id or ""]
    ends = [*parameters, *inside_times, *parameters, until, until]
    cut_counts = sql.rows(_CUT_BY_EDGES.format(counts=counts), [*edges, *row_agent, *ends])
    return _top(inside_counts + cut_counts, limit), number + len(cut_counts)


def sessions_of_all_time(selection: Selection, limit: int) -> SessionCounts:
    """Return the sessions with most memories of all time, of a user, an agent or a scope."""
    counts, parameters = _counts(selection)
    return sql.rows(_TOP_OF_ALL_TIME.format(counts=counts), [*parameters, limit])


def labeled(rows: Sequence[int]) -> dict[int, tuple[str, str]]:
    """Return the ids of sessions and of their users, by row id. One SQL statement."""
    named = Session.objects.filter(pk__in=rows).order_by().values_list("pk", "session_id", "user__user_id")
    return {row: (session_id, user_id) for row, session_id, user_id in named}


def _counts(selection: Selection) -> tuple[str, list[Any]]:
    """Return the table of the selection's counts, and the parameters of it and of `_OF_AGENT`."""
    agent = [selection.agent_id is not None, selection.agent_id or ""]
    owned = owner_conditions(selection)
    if not owned.values:
        return "store_sessioncount", agent
    of = _OF_SCOPE if selection.user_pk is None else _OF_USER
    return of.format(conditions=owned.text), [*owned.values, *agent]


def _top(found: SessionCounts, limit: int) -> SessionCounts:
    return sorted(found, key=lambda item: (-item[1], -item[0]))[:limit]
