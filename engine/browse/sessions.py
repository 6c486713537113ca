"""Which sessions have most memories within a time.

Most sessions are short: they lie within the time or without, and their rollup says all. Only those that an edge cuts,
or whose rollup is not settled yet, are counted by their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.db import connection

from engine.browse.ledger import is_rolled_up, owner_conditions, row_conditions, within
from engine.browse.selection import Selection
from engine.models import Session

# What a session's rollup says is not certain while there are changes that were not added to it.
_UNSETTLED: Final = "SELECT session_row FROM {counts} unsettled WHERE delta <> 0"
_INSIDE: Final = """
    FROM {counts} counts WHERE of_agent = %s AND agent_id = %s AND delta = 0
        AND first_ms >= %s AND last_ms < %s {settled}
"""
_MOST_INSIDE: Final = f"SELECT session_row, memories {_INSIDE} ORDER BY memories DESC, session_row DESC LIMIT %s"
_COUNT_INSIDE: Final = f"SELECT count(*) {_INSIDE}"
# The agent's condition is written so that no index serves it: that of the sessions does.
_CUT: Final = """
    SELECT session_row, count(*) FROM engine_counted_memory
    WHERE created_at_ms >= %s AND created_at_ms < %s AND (%s OR agent_id || '' = %s) AND session_row IN (
        SELECT session_row FROM {counts} counts WHERE of_agent = %s AND agent_id = %s AND delta = 0
            AND first_ms < %s AND last_ms >= %s AND (first_ms < %s OR last_ms >= %s)
        {unsettled}
    ) GROUP BY session_row
"""
_BY_ROWS: Final = """
    SELECT session_row, count(*) FROM engine_counted_memory
    WHERE created_at_ms >= %s AND created_at_ms < %s AND session_row IS NOT NULL AND {conditions} GROUP BY session_row
"""
# From the sessions of their owner to their counts, in that order.
_OWNED: Final = """(
    SELECT c.* FROM (SELECT id FROM engine_session WHERE {conditions}) s CROSS JOIN engine_sessioncount c
    WHERE c.session_row = s.id
)"""

Found = list[tuple[int, int]]
"""Sessions, by their rows, and how many memories each has."""


def top_sessions(selection: Selection, edges_ms: Sequence[int], limit: int) -> tuple[Found, int]:
    """The sessions with most memories between the edges, and how many there are with any."""
    edges = within(selection, [edges_ms[0], edges_ms[-1]])
    if not edges:
        return [], 0
    if not is_rolled_up(selection) or selection.wanted_categories() is not None:
        found = _by_rows(selection, edges)
        return _most(found, limit), len(found)
    inside, number = _inside(selection, edges, limit)
    cut = _cut(selection, edges)
    return _most(inside + cut, limit), number + len(cut)


def labelled(rows: Sequence[int]) -> dict[int, Session]:
    """The sessions with their users. One statement."""
    return Session.objects.select_related("user").in_bulk(rows)


def _inside(selection: Selection, edges: Sequence[int], limit: int) -> tuple[Found, int]:
    counts, owners = _counts(selection)
    settled = f"AND session_row NOT IN ({_UNSETTLED})".format(counts=counts) if _has_deltas() else ""
    values = [*owners, *_agent(selection), *edges, *(owners if settled else ())]
    most = _fetched(_MOST_INSIDE.format(counts=counts, settled=settled), [*values, limit])
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_INSIDE.format(counts=counts, settled=settled), values)
        return most, cursor.fetchone()[0]


def _cut(selection: Selection, edges: Sequence[int]) -> Found:
    counts, owners = _counts(selection)
    unsettled = f"UNION {_UNSETTLED}".format(counts=counts) if _has_deltas() else ""
    any_agent, (since, until) = selection.agent_id is None, edges
    values = [*edges, any_agent, selection.agent_id or "", *owners, *_agent(selection), until, since, since, until]
    return _fetched(_CUT.format(counts=counts, unsettled=unsettled), [*values, *(owners if unsettled else ())])


def _has_deltas() -> bool:
    """Where changes wait to be settled; elsewhere the rollups are always certain."""
    return connection.vendor == "postgresql"


def _by_rows(selection: Selection, edges: Sequence[int]) -> Found:
    conditions = row_conditions(selection)
    return _fetched(_BY_ROWS.format(conditions=conditions.text), [*edges, *conditions.values])


def _fetched(statement: str, values: Sequence[Any]) -> Found:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return [(row, int(count)) for row, count in cursor.fetchall()]


def _agent(selection: Selection) -> list[Any]:
    return [selection.agent_id is not None, selection.agent_id or ""]


def _counts(selection: Selection) -> tuple[str, list[Any]]:
    owned = owner_conditions(selection)
    return (_OWNED.format(conditions=owned.text), owned.values) if owned.values else ("engine_sessioncount", [])


def _most(found: Found, limit: int) -> Found:
    return sorted(found, key=lambda item: (-item[1], -item[0]))[:limit]
