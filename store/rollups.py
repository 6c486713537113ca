"""The rollups: counts of live memories by UTC day, of each user and all users, and by session.

Triggers update them in the transaction of every write: a row is subtracted before a change and added after. On
PostgreSQL no writer waits for another: changes are rows that `settle` adds up.

Ours, because counting rows is slow. Not chosen: materialized views, which read everything to refresh; counts of users
alone, which lists of all would sum up.

A message writes more rows (`python -m benchmarks.written`). SQLite migrations that rebuild `store_memory` or
`store_session` call `remove` before and `install` after.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from accounts.models import MemoryUser
from core.persistence import sql
from core.persistence.sql import rows, temporary_data_on_disk
from store.models import DayCount, Memory
from store.types import Owner

# The only view that reads `store_memory`, with the conditions of `store.table.visible`, and without incognito sessions:
# a session is incognito before it has a memory, and stays so. Importance is summed in
# millionths, because integers are subtracted without rounding errors.
_COUNTED_VIEW: Final = """
CREATE VIEW store_counted_memory AS
SELECT m.id AS memory_row, m.session_id AS session_row, m.user_id, {owner} AS owner, m.agent_id, m.category, m.app_id,
    m.project_id, m.origin, m.memory_type, m.importance, m.created_at_ms,
    (m.created_at_ms - ((m.created_at_ms % 86400000) + 86400000) % 86400000) / 86400000 AS day,
    CASE WHEN m.importance < 0.34 AND m.importance >= -1000 THEN 1 ELSE 0 END AS low,
    CASE WHEN m.importance >= 0.34 AND m.importance < 0.67 THEN 1 ELSE 0 END AS mid,
    CASE WHEN m.importance >= 0.67 AND m.importance <= 1000 THEN 1 ELSE 0 END AS high,
    CASE WHEN m.importance >= -1000 AND m.importance <= 1000 THEN {weight} ELSE 0 END AS weight
FROM store_memory m LEFT JOIN store_session s ON s.id = m.session_id
WHERE m.state = 'live' AND COALESCE(s.state, 'live') = 'live'"""
_NOT_INCOGNITO: Final = " AND s.incognito_until IS NULL"
DAY_MS: Final = 86_400_000
_DAY_CELL_VIEW: Final = """
CREATE VIEW store_day_cell AS
SELECT c.memory_row, c.session_row, CASE p.of_user WHEN {true} THEN c.owner ELSE '' END AS owner, c.day, c.agent_id,
    c.category, c.origin, c.app_id, c.project_id, c.low, c.mid, c.high, c.weight
FROM store_counted_memory c CROSS JOIN (SELECT {false} AS of_user UNION ALL SELECT {true}) p
"""
_SESSION_CELL_VIEW: Final = """
CREATE VIEW store_session_cell AS
SELECT c.memory_row, c.session_row, p.of_agent, CASE p.of_agent WHEN {true} THEN c.agent_id ELSE '' END AS agent_id,
    c.created_at_ms
FROM store_counted_memory c CROSS JOIN (SELECT {false} AS of_agent UNION ALL SELECT {true}) p
WHERE c.session_row IS NOT NULL
"""
_VENDOR_SQL: Final = {
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
DAY_KEY: Final = "owner, day, agent_id, category, origin, app_id, project_id"
_SESSION_KEY: Final = "session_row, of_agent, agent_id"
ADD_DAYS: Final = f"""
INSERT INTO store_daycount ({DAY_KEY}, delta, memories, low, mid, high, weight)
SELECT {DAY_KEY}, {{delta}}, {{sign}} * count(*), {{sign}} * sum(low), {{sign}} * sum(mid), {{sign}} * sum(high),
    {{sign}} * sum(weight)
FROM store_day_cell WHERE {{where}} GROUP BY {DAY_KEY}
"""
ADD_SESSIONS: Final = f"""
INSERT INTO store_sessioncount ({_SESSION_KEY}, memories, first_ms, last_ms)
SELECT {_SESSION_KEY}, {{sign}} * count(*), min(created_at_ms), max(created_at_ms)
FROM store_session_cell WHERE {{where}} GROUP BY {_SESSION_KEY}
"""
MERGE_DAYS: Final = f"""
ON CONFLICT ({DAY_KEY}, delta) DO UPDATE SET memories = store_daycount.memories + excluded.memories,
    low = store_daycount.low + excluded.low, mid = store_daycount.mid + excluded.mid,
    high = store_daycount.high + excluded.high, weight = store_daycount.weight + excluded.weight
"""
# Updated in place on PostgreSQL too: a writer to a session holds the lock of its row anyway.
_MERGE_SESSIONS: Final = f"""
ON CONFLICT ({_SESSION_KEY}) DO UPDATE SET memories = store_sessioncount.memories + excluded.memories,
    first_ms = {{least}}(store_sessioncount.first_ms, excluded.first_ms),
    last_ms = {{greatest}}(store_sessioncount.last_ms, excluded.last_ms)
"""
# Counts become negative if memories are deleted after their counts. SQLite uses a partial index only if the condition
# is written the same.
_DROP_EMPTY: Final = (
    "DELETE FROM store_daycount WHERE memories <= 0; DELETE FROM store_sessioncount WHERE memories <= 0"
)
_COUNTED_COLUMNS: Final = (
    "user_id", "app_id", "project_id", "session_id", "agent_id", "category", "importance", "created_at_ms", "state",
    "origin",
)  # fmt: skip
_VISIBILITY_CHANGED: Final = "(OLD.state = 'live') <> (NEW.state = 'live')"
_TABLE_TRIGGERS: Final = {
    "store_memory": ("insert", "before_update", "after_update", "delete"),
    "store_session": ("before_update", "after_update"),
}


def install(schema_editor: Any) -> None:
    """Create the views and triggers. Memories written before must be counted with `store.rollups.recount`.

    Earlier migrations call it before the table of counts exists.
    """
    if _has_table(schema_editor.connection):
        remove(schema_editor)
        with schema_editor.connection.cursor() as cursor:
            columns = schema_editor.connection.introspection.get_table_description(cursor, "store_session")
        knows_incognito = any(column.name == "incognito_until" for column in columns)
        for statement in statements(schema_editor.connection.vendor, knows_incognito=knows_incognito):
            schema_editor.execute(statement, params=None)


def write_counted_view(schema_editor: Any, *, knows_incognito: bool) -> None:
    """Count memories of incognito sessions no longer, or again. Users who have one must be counted with `mend`."""
    vendor = schema_editor.connection.vendor
    [view, *_others] = statements(vendor, knows_incognito=knows_incognito)
    if vendor == "sqlite":
        schema_editor.execute("DROP VIEW store_counted_memory", params=None)
    else:
        view = view.replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1)
    schema_editor.execute(view, params=None)


def statements(vendor: str, *, knows_incognito: bool = True) -> list[str]:
    """Return the SQL of the views and triggers. Sessions of early migrations do not know whether they are incognito."""
    counted = _COUNTED_VIEW + (_NOT_INCOGNITO if knows_incognito else "")
    views = [view.format(**_VENDOR_SQL[vendor]) for view in (counted, _DAY_CELL_VIEW, _SESSION_CELL_VIEW)]
    return [*views, *(_sqlite() if vendor == "sqlite" else _postgresql())]


def remove(schema_editor: Any) -> None:
    is_sqlite = schema_editor.connection.vendor == "sqlite"
    for table, names in _TABLE_TRIGGERS.items():
        for name in names:
            on = "" if is_sqlite else f" ON {table}"
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {table}_count_{name}{on}", params=None)
    if not is_sqlite:
        for function in ("store_count_added", "store_count_row", "store_count_session"):
            schema_editor.execute(f"DROP FUNCTION IF EXISTS {function}()", params=None)
        schema_editor.execute("DROP SEQUENCE IF EXISTS store_delta", params=None)
    for view in ("store_session_cell", "store_hour_cell", "store_day_cell", "store_counted_memory"):
        schema_editor.execute(f"DROP VIEW IF EXISTS {view}", params=None)


def _has_table(database: Any) -> bool:
    return "store_daycount" in database.introspection.table_names()


def _changed(differs: str) -> str:
    """Return the condition under which a change may move a memory to other cells."""
    return " OR ".join(f"OLD.{name} {differs} NEW.{name}" for name in _COUNTED_COLUMNS)


def _sqlite() -> list[str]:
    update = f"UPDATE OF {', '.join(_COUNTED_COLUMNS)} ON store_memory WHEN {_changed('IS NOT')}"
    hide = f"UPDATE OF state ON store_session WHEN {_VISIBILITY_CHANGED}"

    def trigger(name: str, event: str, where: str) -> str:
        is_subtracting = event.startswith("BEFORE")
        sign = -1 if is_subtracting else 1
        days = ADD_DAYS.format(delta=0, sign=sign, where=where) + MERGE_DAYS
        sessions = ADD_SESSIONS.format(sign=sign, where=where) + _MERGE_SESSIONS.format(least="min", greatest="max")
        steps = [days, sessions, _DROP_EMPTY] if is_subtracting else [days, sessions]
        return f"CREATE TRIGGER {name} {event} BEGIN {'; '.join(steps)}; END"

    return [
        trigger("store_memory_count_insert", "AFTER INSERT ON store_memory", "memory_row = NEW.id"),
        trigger("store_memory_count_before_update", f"BEFORE {update}", "memory_row = OLD.id"),
        trigger("store_memory_count_after_update", f"AFTER {update}", "memory_row = NEW.id"),
        trigger("store_memory_count_delete", "BEFORE DELETE ON store_memory", "memory_row = OLD.id"),
        trigger("store_session_count_before_update", f"BEFORE {hide}", "session_row = OLD.id"),
        trigger("store_session_count_after_update", f"AFTER {hide}", "session_row = NEW.id"),
    ]


def _postgresql() -> list[str]:
    def function(name: str, before: str, after: str) -> str:
        """Return a trigger function. `before` and `after` select the rows to subtract and to add."""

        def add(where: str, sign: int) -> str:
            days = ADD_DAYS.format(delta="number", sign=sign, where=where)
            sessions = ADD_SESSIONS.format(sign=sign, where=where)
            return f"{days}; {sessions} {_MERGE_SESSIONS.format(least='least', greatest='greatest')};"

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

    changed = _changed("IS DISTINCT FROM")
    update, hide = f"UPDATE OF {', '.join(_COUNTED_COLUMNS)}", "UPDATE OF state"
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
        row("store_session", "before_update", f"BEFORE {hide}", "store_count_session", _VISIBILITY_CHANGED),
        row("store_session", "after_update", f"AFTER {hide}", "store_count_session", _VISIBILITY_CHANGED),
    ]


def _other(held: str, fresh: str) -> str:
    """Return a statement that counts the rows that are in one of two queries only."""
    one = f"SELECT * FROM ({held}) AS held EXCEPT SELECT * FROM ({fresh}) AS fresh"
    other = f"SELECT * FROM ({fresh}) AS fresh EXCEPT SELECT * FROM ({held}) AS held"
    return f"SELECT count(*) FROM (SELECT * FROM ({one}) AS a UNION ALL SELECT * FROM ({other}) AS b) AS other"


_SUMS: Final = ("memories", "low", "mid", "high", "weight")
_ADDED_UP: Final = ", ".join(f"sum({name})" for name in _SUMS)
_DAY_KEY_OF_ALL: Final = DAY_KEY.replace("owner", "'' AS owner", 1)
_KEY_BESIDES_OWNER: Final = DAY_KEY.removeprefix("owner, ")
_OTHER_DAYS_OF_ALL: Final = _other(
    f"SELECT {DAY_KEY}, {_ADDED_UP} FROM store_daycount WHERE owner = '' GROUP BY {DAY_KEY} HAVING sum(memories) <> 0",
    f"SELECT {_DAY_KEY_OF_ALL}, {_ADDED_UP} FROM store_daycount WHERE owner <> '' GROUP BY {_KEY_BESIDES_OWNER} "
    "HAVING sum(memories) <> 0",
)
_OF_USER: Final = "(SELECT id FROM {} WHERE user_id = %s)"
_OTHER_DAYS: Final = _other(
    f"SELECT {DAY_KEY}, {_ADDED_UP} FROM store_daycount WHERE owner = %s GROUP BY {DAY_KEY} HAVING sum(memories) <> 0",
    f"SELECT {DAY_KEY}, {_ADDED_UP.replace('sum(memories)', 'count(*)')} FROM store_day_cell "
    f"WHERE owner <> '' AND memory_row IN {_OF_USER.format('store_memory')} GROUP BY {DAY_KEY}",
)
_OTHER_SESSIONS: Final = _other(
    f"SELECT {_SESSION_KEY}, memories FROM store_sessioncount "
    f"WHERE memories <> 0 AND session_row IN {_OF_USER.format('store_session')}",
    f"SELECT {_SESSION_KEY}, count(*) FROM store_session_cell "
    f"WHERE session_row IN {_OF_USER.format('store_session')} GROUP BY {_SESSION_KEY}",
)
Report = Callable[[str, int, int], None]
"""A callback for progress: `report(step, done, total)`."""
_SETTLE: Final = (
    f"""
    WITH fresh AS (DELETE FROM store_daycount WHERE delta <> 0 RETURNING *)
    INSERT INTO store_daycount ({DAY_KEY}, delta, memories, low, mid, high, weight)
    SELECT {DAY_KEY}, 0, sum(memories), sum(low), sum(mid), sum(high), sum(weight) FROM fresh GROUP BY {DAY_KEY}
    {MERGE_DAYS}""",
    "DELETE FROM store_daycount WHERE memories = 0",
    # Rows that a writer has locked may be in use again; the next run deletes them if not.
    """
    DELETE FROM store_sessioncount WHERE id IN (
        SELECT id FROM store_sessioncount WHERE memories <= 0 FOR UPDATE SKIP LOCKED
    )""",
)
# Advisory locks: two processes that settle at once would wait for each other's rows.
_TRY_LOCK: Final = "SELECT pg_try_advisory_xact_lock(7201960)"
_WAIT_FOR_LOCK: Final = "SELECT pg_advisory_xact_lock(7201960) IS NOT NULL"


def has_pending() -> bool:
    """Return True if there are changes to add to the counts on PostgreSQL."""
    return connection.vendor == "postgresql" and DayCount.objects.exclude(delta=0).exists()


def settle(*, is_final: bool = False) -> bool:
    """Add pending changes to the counts on PostgreSQL; return True if there were any. Writers do not wait.

    If another process is doing so, leave the changes to it. With `is_final`, wait for it and then add up the rest.
    """
    if not has_pending():
        return False
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_WAIT_FOR_LOCK if is_final else _TRY_LOCK)
        if cursor.fetchone()[0]:
            for statement in _SETTLE:
                cursor.execute(statement)
    return True


def differences(owners: Sequence[Owner]) -> Iterator[str]:
    """Compare the counts of some owners' users with their memories, and the totals of all; yield the differences."""
    [(memories, of_sessions)] = rows("SELECT count(*), count(session_row) FROM store_counted_memory", [])
    [(counted,)] = rows("SELECT COALESCE(sum(memories), 0) FROM store_daycount WHERE owner <> ''", [])
    if counted != memories:
        yield f"the counts of each user hold {counted:,} memories instead of {memories:,}"
    [(wrong,)] = rows(_OTHER_DAYS_OF_ALL, [])
    if wrong:
        yield f"{wrong:,} counts of all users differ from those of each user"
    [(counted,)] = rows("SELECT COALESCE(sum(memories), 0) FROM store_sessioncount WHERE NOT of_agent", [])
    if counted != of_sessions:
        yield f"the counts of sessions hold {counted:,} memories instead of {of_sessions:,}"
    for user_pk in sorted({owner.user_pk for owner in owners}):
        key = sql.uuid_value(user_pk)
        for name, statement, values in (
            ("days", _OTHER_DAYS, [user_pk.hex, key, key, user_pk.hex]),
            ("sessions", _OTHER_SESSIONS, [key] * 4),
        ):
            [(wrong,)] = rows(statement, values)
            if wrong:
                yield f"{wrong:,} counts of {name} of {user_pk} are wrong"


_FRESH_DAYS: Final = f"""
    SELECT {DAY_KEY}, 1 AS memories, low, mid, high, weight FROM store_day_cell
    WHERE owner <> '' AND memory_row IN {_OF_USER.format("store_memory")}
"""
_FRESH_DAYS_OF_ALL: Final = f"""
    SELECT {_DAY_KEY_OF_ALL}, {", ".join(_SUMS)} FROM store_daycount WHERE owner <> ''
"""
# A count gets the difference of two sums of one moment, which is right beside any writer.
_MEND_DAYS: Final = f"""
    INSERT INTO store_daycount ({DAY_KEY}, delta, {", ".join(_SUMS)})
    SELECT {DAY_KEY}, {{delta}}, {_ADDED_UP} FROM (
        {{fresh}} UNION ALL
        SELECT {DAY_KEY}, {", ".join(f"-{name}" for name in _SUMS)} FROM store_daycount WHERE owner = %s
    ) AS counted
    GROUP BY {DAY_KEY} HAVING {" OR ".join(f"sum({name}) <> 0" for name in _SUMS)}
    {MERGE_DAYS}
"""
_MEND_SESSIONS: Final = f"""
    INSERT INTO store_sessioncount ({_SESSION_KEY}, memories, first_ms, last_ms)
    SELECT {_SESSION_KEY}, sum(memories), min(first_ms), max(last_ms) FROM (
        SELECT {_SESSION_KEY}, 1 AS memories, created_at_ms AS first_ms, created_at_ms AS last_ms
        FROM store_session_cell WHERE session_row IN {_OF_USER.format("store_session")} UNION ALL
        SELECT {_SESSION_KEY}, -memories, first_ms, last_ms FROM store_sessioncount
        WHERE session_row IN {_OF_USER.format("store_session")}
    ) AS counted
    GROUP BY {_SESSION_KEY} HAVING sum(memories) <> 0
    {_MERGE_SESSIONS}
"""
_DROP_ORPHANED: Final = (
    # With NOT IN, PostgreSQL would read all users and sessions again for each count if they are many.
    """
    DELETE FROM store_daycount
    WHERE owner <> '' AND NOT EXISTS (SELECT 1 FROM accounts_memoryuser WHERE {user} = owner)
    """,
    "DELETE FROM store_sessioncount WHERE NOT EXISTS (SELECT 1 FROM store_session WHERE id = session_row)",
)
_OF_VENDOR: Final = {
    "sqlite": {"delta": "0", "least": "min", "greatest": "max", "user": "id"},
    "postgresql": {
        "delta": "(SELECT nextval('store_delta'))",
        "least": "least",
        "greatest": "greatest",
        "user": "replace(CAST(id AS text), '-', '')",
    },
}


def mend(user_pks: Iterable[UUID] | None = None) -> Iterator[int]:
    """Correct the counts that differ from the rows, user by user, yielding the number of memories of each.

    By default those of all users.

    Writers wait for one statement at most. May be stopped and begun again.
    """
    of_vendor = _OF_VENDOR[connection.vendor]
    if user_pks is None:
        user_pks = MemoryUser.objects.order_by("pk").values_list("pk", flat=True)
    for user_pk in user_pks:
        key = sql.uuid_value(user_pk)
        with connection.cursor() as cursor:
            cursor.execute(_MEND_DAYS.format(fresh=_FRESH_DAYS, **of_vendor), [key, user_pk.hex])
            cursor.execute(_MEND_SESSIONS.format(**of_vendor), [key, key])
        yield Memory.objects.filter(user=user_pk).count()
    with temporary_data_on_disk(), connection.cursor() as cursor:
        for statement in _DROP_ORPHANED:
            cursor.execute(statement.format(**of_vendor))
        cursor.execute(_MEND_DAYS.format(fresh=_FRESH_DAYS_OF_ALL, **of_vendor), [""])
        for statement in _DROP_EMPTY.split(";") if connection.vendor == "sqlite" else ():
            cursor.execute(statement)


def recount(*, report: Report = lambda *_: None) -> None:
    """Rebuild the rollups from all rows. Writers wait meanwhile. Migrations call it, one of them before they exist."""
    if not _has_table(connection):
        return
    steps = (
        "DELETE FROM store_daycount",
        "DELETE FROM store_sessioncount",
        ADD_DAYS.format(delta=0, sign=1, where="true"),
        ADD_SESSIONS.format(sign=1, where="true"),
    )
    with temporary_data_on_disk(), transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("LOCK TABLE store_memory, store_session IN SHARE MODE")
        for done, statement in enumerate(steps):
            report("Recounting", done, len(steps))
            cursor.execute(statement)
    report("Recounting", len(steps), len(steps))
