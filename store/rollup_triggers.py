"""The triggers that keep the rollups: in the same transaction as the rows, whoever writes those.

Views say which memories count and in which cells; triggers add and take away what the views show of a row before and
after a change. SQLite cannot remake a table that a view or a foreign trigger speaks of: a migration that remakes
`store_memory` or `store_session` calls `remove` before and `install` after.
"""

from __future__ import annotations

from typing import Any, Final

# The one view of both that speaks of `store_memory`: a record of what an upstream was given counts no more once it was
# flushed, as `store.table.visible` has it. Importance is added up in millionths, so that taking away is exact.
_COUNTED: Final = """
CREATE VIEW store_counted_memory AS
SELECT m.id AS memory_row, m.session_id AS session_row, m.user_id, {owner} AS owner, m.agent_id, m.category, m.app_id,
    m.project_id, m.origin, m.memory_type, m.importance, m.created_at_ms,
    (m.created_at_ms - ((m.created_at_ms % 3600000) + 3600000) % 3600000) / 3600000 AS hour,
    CASE WHEN m.importance < 0.34 AND m.importance >= -1000 THEN 1 ELSE 0 END AS low,
    CASE WHEN m.importance >= 0.34 AND m.importance < 0.67 THEN 1 ELSE 0 END AS mid,
    CASE WHEN m.importance >= 0.67 AND m.importance <= 1000 THEN 1 ELSE 0 END AS high,
    CASE WHEN m.importance >= -1000 AND m.importance <= 1000 THEN {weight} ELSE 0 END AS weight
FROM store_memory m LEFT JOIN store_session s ON s.id = m.session_id
WHERE m.hidden_at IS NULL AND s.hidden_at IS NULL AND s.deleted_at IS NULL AND NOT (
    m.origin = 'upstream' AND m.memory_type = 'unprocessed_message'
    AND m.batch_id <> '' AND substr(m.batch_id, 1, 8) <> 'sending:'
)
"""
# The ways of asking that `store.rollups` describes.
_HOUR_CELLS: Final = """
CREATE VIEW store_hour_cell AS
SELECT c.memory_row, c.session_row, p.slice,
    CASE p.keyed WHEN 'owner' THEN c.owner WHEN 'agent' THEN c.agent_id ELSE '' END AS key,
    p.span, (c.hour - ((c.hour % p.span) + p.span) % p.span) / p.span AS start,
    CASE p.broken WHEN 'owner' THEN c.owner WHEN 'agent' THEN c.agent_id WHEN 'origin' THEN c.origin ELSE '' END
        AS member,
    CASE p.by_category WHEN 1 THEN c.category ELSE '' END AS category,
    c.app_id, c.project_id, c.low, c.mid, c.high, c.weight
FROM store_counted_memory c CROSS JOIN (
    SELECT 0 AS slice, 1 AS span, '' AS keyed, '' AS broken, 1 AS by_category
    UNION ALL SELECT 0, 24, '', '', 1
    UNION ALL SELECT 0, 192, '', '', 1
    UNION ALL SELECT 1, 1, 'agent', '', 1
    UNION ALL SELECT 1, 24, 'agent', '', 1
    UNION ALL SELECT 1, 192, 'agent', '', 1
    UNION ALL SELECT 2, 1, 'owner', 'agent', 1
    UNION ALL SELECT 2, 24, 'owner', 'agent', 1
    UNION ALL SELECT 2, 192, 'owner', 'agent', 1
    UNION ALL SELECT 3, 1, '', 'agent', 0
    UNION ALL SELECT 3, 24, '', 'agent', 0
    UNION ALL SELECT 3, 768, '', 'agent', 0
    UNION ALL SELECT 4, 1, '', 'owner', 0
    UNION ALL SELECT 4, 24, '', 'owner', 0
    UNION ALL SELECT 4, 768, '', 'owner', 0
    UNION ALL SELECT 5, 1, 'agent', 'owner', 0
    UNION ALL SELECT 5, 24, 'agent', 'owner', 0
    UNION ALL SELECT 5, 768, 'agent', 'owner', 0
    UNION ALL SELECT 6, 768, '', 'origin', 0
    UNION ALL SELECT 6, 768, 'owner', 'origin', 0
) p
"""
_SESSION_CELLS: Final = """
CREATE VIEW store_session_cell AS
SELECT c.memory_row, c.session_row, p.of_agent, CASE p.of_agent WHEN {true} THEN c.agent_id ELSE '' END AS agent_id,
    c.created_at_ms
FROM store_counted_memory c CROSS JOIN (SELECT {false} AS of_agent UNION ALL SELECT {true}) p
WHERE c.session_row IS NOT NULL
"""
_WORDS: Final = {
    "sqlite": {
        "owner": "m.user_id",
        "weight": "CAST(round(m.importance * 1000000) AS integer)",
        "true": "1",
        "false": "0",
    },
    "postgresql": {
        "owner": "replace(CAST(m.user_id AS text), '-', '')",
        "weight": "CAST(round(m.importance * 1000000) AS bigint)",
        "true": "true",
        "false": "false",
    },
}
_HOUR_KEY: Final = "slice, key, span, start, member, category, app_id, project_id"
_SESSION_KEY: Final = "session_row, of_agent, agent_id"
ADD_HOURS: Final = f"""
INSERT INTO store_hourcount ({_HOUR_KEY}, delta, memories, low, mid, high, weight)
SELECT {_HOUR_KEY}, {{delta}}, {{sign}} * count(*), {{sign}} * sum(low), {{sign}} * sum(mid), {{sign}} * sum(high),
    {{sign}} * sum(weight)
FROM store_hour_cell WHERE {{where}} GROUP BY {_HOUR_KEY}
"""
ADD_SESSIONS: Final = f"""
INSERT INTO store_sessioncount ({_SESSION_KEY}, delta, memories, first_ms, last_ms)
SELECT {_SESSION_KEY}, {{delta}}, {{sign}} * count(*), min(created_at_ms), max(created_at_ms)
FROM store_session_cell WHERE {{where}} GROUP BY {_SESSION_KEY}
"""
# Of one memory each cell is one row: grouping them would take as long as adding them up.
_ADD_HOURS_OF_ONE: Final = f"""
INSERT INTO store_hourcount ({_HOUR_KEY}, delta, memories, low, mid, high, weight)
SELECT {_HOUR_KEY}, 0, {{sign}}, {{sign}} * low, {{sign}} * mid, {{sign}} * high, {{sign}} * weight
FROM store_hour_cell WHERE memory_row = {{row}}.id
"""
_ADD_SESSIONS_OF_ONE: Final = f"""
INSERT INTO store_sessioncount ({_SESSION_KEY}, delta, memories, first_ms, last_ms)
SELECT {_SESSION_KEY}, 0, {{sign}}, created_at_ms, created_at_ms FROM store_session_cell WHERE memory_row = {{row}}.id
"""
ONTO_HOURS: Final = f"""
ON CONFLICT ({_HOUR_KEY}, delta) DO UPDATE SET memories = store_hourcount.memories + excluded.memories,
    low = store_hourcount.low + excluded.low, mid = store_hourcount.mid + excluded.mid,
    high = store_hourcount.high + excluded.high, weight = store_hourcount.weight + excluded.weight
"""
ONTO_SESSIONS: Final = f"""
ON CONFLICT ({_SESSION_KEY}, delta) DO UPDATE SET memories = store_sessioncount.memories + excluded.memories,
    first_ms = {{least}}(store_sessioncount.first_ms, excluded.first_ms),
    last_ms = {{greatest}}(store_sessioncount.last_ms, excluded.last_ms)
"""
EMPTY_CELLS: Final = (
    "DELETE FROM store_hourcount WHERE memories = 0",
    "DELETE FROM store_sessioncount WHERE memories = 0",
)
# Where each change is added up at once, less than nothing is left of memories that went after their counts. SQLite
# finds them by an index whose condition reads the same.
_EMPTY_OR_LESS: Final = tuple(statement.replace("= 0", "<= 0") for statement in EMPTY_CELLS)
_WATCHED: Final = (
    "user_id", "app_id", "project_id", "session_id", "agent_id", "category", "importance", "created_at_ms", "hidden_at",
    "origin",
)  # fmt: skip
# These two tell which of an upstream's are records, and nothing of the others: a flush of ours changes no count.
_WATCHED_UPSTREAM: Final = ("memory_type", "batch_id")
_TABLE_TRIGGERS: Final = {
    "store_memory": ("insert", "before_update", "after_update", "delete"),
    "store_session": ("before_update", "after_update"),
}


def install(schema_editor: Any) -> None:
    """Makes the views and the triggers; what was written before them has to be counted (`store.rollups.recount`)."""
    vendor = schema_editor.connection.vendor
    views = [view.format(**_WORDS[vendor]) for view in (_COUNTED, _HOUR_CELLS, _SESSION_CELLS)]
    for statement in [*views, *(_sqlite() if vendor == "sqlite" else _postgresql())]:
        schema_editor.execute(statement, params=None)


def remove(schema_editor: Any) -> None:
    is_sqlite = schema_editor.connection.vendor == "sqlite"
    for table, names in _TABLE_TRIGGERS.items():
        for name in names:
            on = "" if is_sqlite else f" ON {table}"
            schema_editor.execute(f"DROP TRIGGER {table}_count_{name}{on}", params=None)
    if not is_sqlite:
        for function in ("store_count_added", "store_count_row", "store_count_session"):
            schema_editor.execute(f"DROP FUNCTION {function}()", params=None)
        schema_editor.execute("DROP SEQUENCE store_delta", params=None)
    for view in ("store_session_cell", "store_hour_cell", "store_counted_memory"):
        schema_editor.execute(f"DROP VIEW {view}", params=None)


def _changed(differs: str) -> str:
    """Whether a memory may count otherwise than before."""
    always, upstream = (
        " OR ".join(f"OLD.{name} {differs} NEW.{name}" for name in names) for names in (_WATCHED, _WATCHED_UPSTREAM)
    )
    return f"{always} OR (NEW.origin = 'upstream' AND ({upstream}))"


def _sqlite() -> list[str]:
    changed = _changed("IS NOT")
    columns = ", ".join((*_WATCHED, *_WATCHED_UPSTREAM))
    moved = "(OLD.hidden_at IS NULL AND OLD.deleted_at IS NULL) <> (NEW.hidden_at IS NULL AND NEW.deleted_at IS NULL)"
    onto_sessions = ONTO_SESSIONS.format(least="min", greatest="max")

    def trigger(name: str, event: str, sign: int, add_hours: str, add_sessions: str) -> str:
        steps = [add_hours + ONTO_HOURS, add_sessions + onto_sessions, *(_EMPTY_OR_LESS if sign < 0 else ())]
        return f"CREATE TRIGGER {name} {event} BEGIN {'; '.join(steps)}; END"

    def of_memory(name: str, event: str, sign: int, row: str) -> str:
        steps = (statement.format(sign=sign, row=row) for statement in (_ADD_HOURS_OF_ONE, _ADD_SESSIONS_OF_ONE))
        return trigger(f"store_memory_count_{name}", event, sign, *steps)

    def of_session(name: str, event: str, sign: int, row: str) -> str:
        values = {"delta": 0, "sign": sign, "where": f"session_row = {row}.id"}
        steps = (statement.format(**values) for statement in (ADD_HOURS, ADD_SESSIONS))
        return trigger(f"store_session_count_{name}", event, sign, *steps)

    update = f"UPDATE OF {columns} ON store_memory WHEN {changed}"
    session = f"UPDATE OF hidden_at, deleted_at ON store_session WHEN {moved}"
    return [
        of_memory("insert", "AFTER INSERT ON store_memory", 1, "NEW"),
        of_memory("before_update", f"BEFORE {update}", -1, "OLD"),
        of_memory("after_update", f"AFTER {update}", 1, "NEW"),
        of_memory("delete", "BEFORE DELETE ON store_memory", -1, "OLD"),
        of_session("before_update", f"BEFORE {session}", -1, "OLD"),
        of_session("after_update", f"AFTER {session}", 1, "NEW"),
    ]


def _postgresql() -> list[str]:
    changed = _changed("IS DISTINCT FROM")
    moved = "(OLD.hidden_at IS NULL AND OLD.deleted_at IS NULL) <> (NEW.hidden_at IS NULL AND NEW.deleted_at IS NULL)"

    def function(name: str, before: str, after: str) -> str:
        """`before` and `after` say which rows count as they were, and as they are."""

        def add(where: str, sign: int) -> str:
            values = {"delta": "number", "sign": str(sign), "where": where}
            return f"{ADD_HOURS.format(**values)}; {ADD_SESSIONS.format(**values)};"

        return f"""
            CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
            DECLARE number bigint := nextval('store_delta');
            BEGIN
                IF TG_WHEN = 'BEFORE' THEN {add(before, -1)}
                ELSE {add(after, 1)}
                END IF;
                IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
                RETURN NEW;
            END $$
        """

    def row(table: str, name: str, event: str, call: str, condition: str = "") -> str:
        when = f"WHEN ({condition})" if condition else ""
        return f"CREATE TRIGGER {table}_count_{name} {event} ON {table} FOR EACH ROW {when} EXECUTE FUNCTION {call}()"

    update = f"UPDATE OF {', '.join((*_WATCHED, *_WATCHED_UPSTREAM))}"
    inserted = row("store_memory", "insert", "AFTER INSERT", "store_count_added")
    return [
        "CREATE SEQUENCE store_delta",
        function("store_count_added", "false", "memory_row = ANY (ARRAY (SELECT id FROM added))"),
        function("store_count_row", "memory_row = OLD.id", "memory_row = NEW.id"),
        function("store_count_session", "session_row = OLD.id", "session_row = NEW.id"),
        inserted.replace("FOR EACH ROW", "REFERENCING NEW TABLE AS added FOR EACH STATEMENT"),
        row("store_memory", "before_update", f"BEFORE {update}", "store_count_row", changed),
        row("store_memory", "after_update", f"AFTER {update}", "store_count_row", changed),
        row("store_memory", "delete", "BEFORE DELETE", "store_count_row"),
        row("store_session", "before_update", "BEFORE UPDATE OF hidden_at, deleted_at", "store_count_session", moved),
        row("store_session", "after_update", "AFTER UPDATE OF hidden_at, deleted_at", "store_count_session", moved),
    ]
