"""Which sessions have most memories within a time.

Most sessions are short: they lie within the time or without, and their rollup says all. Only those that an edge cuts,
or whose rollup is not settled yet, are counted by their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.db import connection

from store.browse.ledger import Sql, is_rolled_up, owner_conditions, row_conditions, within
from store.browse.selection import Selection
from store.browse.spans import FIRST_MS, LAST_MS
from store.models import Session

# What a session's rollup says is not certain while there are changes that were not added to it.
_UNSETTLED: Final = "SELECT session_row FROM {counts} unsettled WHERE delta <> 0"
_SETTLED: Final = "FROM {counts} counts WHERE of_agent = %s AND agent_id = %s AND delta = 0"
# Through the index of those with most: the signs keep a database from the one of their ends.
_MOST_INSIDE: Final = f"""
    SELECT session_row, memories {_SETTLED} AND +first_ms >= %s AND +last_ms < %s {{settled}}
    ORDER BY memories DESC, session_row DESC LIMIT %s
"""
_MOST_EVER: Final = (
    f"SELECT session_row, memories {_SETTLED} {{settled}} ORDER BY memories DESC, session_row DESC LIMIT %s"
)
_COUNT_INSIDE: Final = f"SELECT count(*) {_SETTLED} AND first_ms >= %s AND last_ms >= %s AND last_ms < %s {{settled}}"
_CUT_BY_EDGES: Final = f"""
    SELECT session_row {_SETTLED} AND first_ms < %s AND last_ms >= %s AND last_ms < %s
    UNION SELECT session_row {_SETTLED} AND first_ms < %s AND last_ms >= %s
"""
# The agent's condition is written so that no index serves it: that of the sessions does.
_OF_SESSIONS: Final = """
    SELECT session_row, count(*) FROM store_counted_memory
    WHERE created_at_ms >= %s AND created_at_ms < %s AND (%s OR agent_id || '' = %s) AND session_row IN ({sessions})
    GROUP BY session_row
"""
_BY_ROWS: Final = """
    SELECT session_row, count(*) FROM store_counted_memory
    WHERE created_at_ms >= %s AND created_at_ms < %s AND session_row IS NOT NULL AND {conditions} GROUP BY session_row
"""
# From a user's sessions, which are few, to their counts; where only a scope is named, the other way round.
_OF_USER: Final = """(
    SELECT c.* FROM (SELECT id FROM store_session WHERE {conditions}) s CROSS JOIN store_sessioncount c
    WHERE c.session_row = s.id
)"""
_OF_SCOPE: Final = """(
    SELECT c.* FROM store_sessioncount c CROSS JOIN store_session s WHERE s.id = c.session_row AND {conditions}
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
    since, until = edges
    cut = _of_sessions(selection, edges, _cut_by(selection, since, until))
    inside = _asked(selection, _MOST_INSIDE, [since, until])
    most = _fetched(inside.text, [*inside.values, limit])
    ((number,),) = _fetched(*_asked(selection, _COUNT_INSIDE, [since, since, until]))
    return _most(most + cut, limit), number + len(cut)


def sessions_ever(selection: Selection, limit: int) -> Found:
    """The sessions with most memories at any time, of a user, an agent or a scope: no edge cuts any."""
    ever = _asked(selection, _MOST_EVER, [])
    most = _fetched(ever.text, [*ever.values, limit])
    unsettled = _of_sessions(selection, (FIRST_MS, LAST_MS), _unsettled(selection)) if _has_deltas() else []
    return _most(most + unsettled, limit)


def labelled(rows: Sequence[int]) -> dict[int, tuple[str, str]]:
    """The names of sessions and of whose they are. One statement."""
    named = Session.objects.filter(pk__in=rows).order_by().values_list("pk", "session_id", "user__user_id")
    return {row: (session_id, user_id) for row, session_id, user_id in named}


def _asked(selection: Selection, statement: str, values: Sequence[Any]) -> Sql:
    """A statement about settled sessions: of whose, and of which agent, with its own values after those."""
    counts, owners = _counts(selection)
    settled = ""
    given = [*owners, *_agent(selection), *values]
    if _has_deltas():
        unsettled = _unsettled(selection)
        settled, given = f"AND session_row NOT IN ({unsettled.text})", [*given, *unsettled.values]
    return Sql(statement.format(counts=counts, settled=settled), given)


def _cut_by(selection: Selection, since: int, until: int) -> Sql:
    """Sessions that began before an edge and went on after it, and those that are not settled."""
    counts, owners = _counts(selection)
    whose = [*owners, *_agent(selection)]
    cut = Sql(_CUT_BY_EDGES.format(counts=counts), [*whose, since, since, until, *whose, until, until])
    if not _has_deltas():
        return cut
    unsettled = _unsettled(selection)
    return Sql(f"{cut.text} UNION {unsettled.text}", [*cut.values, *unsettled.values])


def _unsettled(selection: Selection) -> Sql:
    counts, owners = _counts(selection)
    return Sql(_UNSETTLED.format(counts=counts), owners)


def _of_sessions(selection: Selection, edges: Sequence[int], sessions: Sql) -> Found:
    any_agent = selection.agent_id is None
    values = [*edges, any_agent, selection.agent_id or "", *sessions.values]
    return _fetched(_OF_SESSIONS.format(sessions=sessions.text), values)


def _has_deltas() -> bool:
    """Where changes wait to be settled; elsewhere the rollups are always certain."""
    return connection.vendor == "postgresql"


def _by_rows(selection: Selection, edges: Sequence[int]) -> Found:
    conditions = row_conditions(selection)
    return _fetched(_BY_ROWS.format(conditions=conditions.text), [*edges, *conditions.values])


def _fetched(statement: str, values: Sequence[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def _agent(selection: Selection) -> list[Any]:
    return [selection.agent_id is not None, selection.agent_id or ""]


def _counts(selection: Selection) -> tuple[str, list[Any]]:
    owned = owner_conditions(selection)
    if not owned.values:
        return "store_sessioncount", []
    return (_OF_SCOPE if selection.user_pk is None else _OF_USER).format(conditions=owned.text), owned.values


def _most(found: Found, limit: int) -> Found:
    return sorted(found, key=lambda item: (-item[1], -item[0]))[:limit]
