"""The tables of the keyword index, for which Django has no model: FTS5 on SQLite, tsvector with GIN on PostgreSQL.

The index holds the gateway's own tokens, each with a prefix for its user and scope, so a lookup reads one user's
postings; and once more as words, which `WORD` marks, for the lists of all users. There is no foreign key to the
memories: PostgreSQL's TRUNCATE, which Django uses, refuses a table that an unknown table refers to.

Earlier migrations call `install_words` and create the triggers: the words had a separate table.
"""

from functools import cache
from typing import Any, Final

WORD: Final = "="
"""The first character of the entries without prefix. A prefix has letters and digits."""
PREFIX_CHARS: Final = 12
_MARK: Final = "~"
"""Around the version in a prefix. No token begins with it."""
_UNMARKED_VERSION: Final = "3"
# Every character that a token may hold; only the space separates tokens.
CHARACTERS = "!\"\"#$%&''()*+,-./:;<=>?@[\\]^_`{|}~"

_TOKENIZER = f"columnsize=0, tokenize=\"ascii tokenchars '{CHARACTERS}'\""
_CREATE = {
    "sqlite": (
        f"CREATE VIRTUAL TABLE store_keywords USING fts5(tokens, content='', {_TOKENIZER})",
        "CREATE VIRTUAL TABLE store_keyword_postings USING fts5vocab('store_keywords', 'instance')",
    ),
    "postgresql": (
        "CREATE TABLE store_keywords (memory_id bigint PRIMARY KEY, tokens tsvector NOT NULL)",
        # Without fastupdate every search would scan the pending list of recent writes.
        "CREATE INDEX store_keywords_tokens ON store_keywords USING gin (tokens) WITH (fastupdate = off)",
    ),
}
_DROP = {
    "sqlite": ("DROP TABLE store_keyword_postings", "DROP TABLE store_keywords"),
    "postgresql": ("DROP TABLE store_keywords",),
}


@cache
def mark_of(version: str) -> str:
    """Return what a version of the tokenizer puts before its tokens, after the characters of the owner."""
    return "" if version == _UNMARKED_VERSION else f"{_MARK}{version}{_MARK}"


def without_mark(token: str) -> str:
    """Return a token without the mark of the version that wrote it."""
    return token.split(_MARK, 2)[2] if token.startswith(_MARK) else token


def install(schema_editor: Any) -> None:
    """Create the tables. Called by the initial migration."""
    for statement in _CREATE[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


def remove(schema_editor: Any) -> None:
    """Drop the tables."""
    for statement in _DROP[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


_WORDS: Final = {
    # With its content, so that a trigger can remove an entry by its row.
    "sqlite": f"CREATE VIRTUAL TABLE store_words USING fts5(tokens, detail=none, {_TOKENIZER})",
    "postgresql": "CREATE TABLE store_words (memory_id bigint PRIMARY KEY, tokens text[] NOT NULL)",
}
# Few pages search words, so writes may use the pending list. It is short, because the write that fills it empties it.
_WORDS_INDEX: Final = (
    "CREATE INDEX store_words_tokens ON store_words USING gin (tokens) WITH (gin_pending_list_limit = 256)"
)
_IS_QUEUED: Final = "NOT NEW.is_indexed AND NEW.state <> 'purged'"
_IS_REWORDED: Final = """
    NOT NEW.is_indexed AND (OLD.is_indexed OR OLD.text <> NEW.text OR OLD.created_at_ms <> NEW.created_at_ms
    OR (OLD.state = 'purged') <> (NEW.state = 'purged'))
"""
_REMOVE_WORDS: Final = """
    DELETE FROM store_words WHERE {key} = OLD.id;
    DELETE FROM store_words_pending WHERE memory_id = OLD.id;
"""
_QUEUE: Final = f"INSERT INTO store_words_pending SELECT NEW.id WHERE {_IS_QUEUED};"
_TRIGGERS: Final = {
    "insert": ("INSERT", _IS_QUEUED),
    "update": ("UPDATE OF text, created_at_ms, is_indexed, state", _IS_REWORDED),
    "indexed": ("UPDATE OF is_indexed", "NEW.is_indexed AND NOT OLD.is_indexed"),
    "delete": ("DELETE", ""),
}


def install_words(schema_editor: Any) -> None:
    """Create the word index and the triggers that maintain it. The caller queues existing memories."""
    vendor = schema_editor.connection.vendor
    pending = "CREATE TABLE store_words_pending (memory_id bigint PRIMARY KEY)"
    for statement in (_WORDS[vendor], pending, *(() if vendor == "sqlite" else (_WORDS_INDEX,))):
        schema_editor.execute(statement, params=None)
    install_word_triggers(schema_editor)


def install_word_triggers(schema_editor: Any) -> None:
    """Create the triggers, except before the migration that adds what they read."""
    if has_states(schema_editor):
        remove_word_triggers(schema_editor)
        for statement in word_triggers(schema_editor.connection.vendor):
            schema_editor.execute(statement, params=None)


def word_triggers(vendor: str) -> list[str]:
    """Return the SQL of the triggers."""
    return _sqlite() if vendor == "sqlite" else _postgresql()


def has_states(schema_editor: Any) -> bool:
    """Return True if memories and sessions have a state."""
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        columns = connection.introspection.get_table_description(cursor, "store_session")
    return any(column.name == "state" for column in columns)


def remove_word_triggers(schema_editor: Any) -> None:
    is_sqlite = schema_editor.connection.vendor == "sqlite"
    on = "" if is_sqlite else " ON store_memory"
    for name in _TRIGGERS:
        schema_editor.execute(f"DROP TRIGGER IF EXISTS store_memory_words_{name}{on}")
    for name in () if is_sqlite else _TRIGGERS:
        schema_editor.execute(f"DROP FUNCTION IF EXISTS store_words_{name}()")


def remove_words(schema_editor: Any) -> None:
    remove_word_triggers(schema_editor)
    for table in ("store_words", "store_words_pending"):
        schema_editor.execute(f"DROP TABLE {table}")


def _steps(name: str, key: str) -> str:
    if name == "insert":
        return _QUEUE
    if name == "indexed":
        return "DELETE FROM store_words_pending WHERE memory_id = NEW.id;"
    return _REMOVE_WORDS.format(key=key) + (_QUEUE if name == "update" else "")


def _sqlite() -> list[str]:
    return [
        f"CREATE TRIGGER store_memory_words_{name} AFTER {event} ON store_memory "
        f"{f'WHEN {condition}' if condition else ''} BEGIN {_steps(name, 'rowid')} END"
        for name, (event, condition) in _TRIGGERS.items()
    ]


def _postgresql() -> list[str]:
    statements = []
    for name, (event, condition) in _TRIGGERS.items():
        function, when = f"store_words_{name}()", f"WHEN ({condition})" if condition else ""
        body = f"BEGIN {_steps(name, 'memory_id')} RETURN NULL; END"
        trigger = f"CREATE TRIGGER store_memory_words_{name} AFTER {event} ON store_memory FOR EACH ROW {when}"
        statements += [
            f"CREATE FUNCTION {function} RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$",
            f"{trigger} EXECUTE FUNCTION {function}",
        ]
    return statements


_LACKING: Final = """
    SELECT id FROM store_memory WHERE is_indexed AND id NOT IN (SELECT rowid FROM store_words)
"""
_MAX_UNITED: Final = 10_000
"""A text of more different words is not found in lists of all users until it is indexed again."""
_UNITE: Final = {
    "sqlite": (
        f"""
        INSERT INTO store_keywords (rowid, tokens)
        SELECT w.rowid, '{WORD}' || replace(w.tokens, ' ', ' {WORD}') FROM store_words w
        JOIN store_memory m ON m.id = w.rowid WHERE m.is_indexed AND w.tokens <> ''
        """,
        # Those that were waiting. Without any, the index is not read.
        f"""
        INSERT INTO store_keywords (rowid, tokens)
        SELECT doc, group_concat('{WORD}' || substr(term, {PREFIX_CHARS + 1}), ' ') FROM (
            SELECT DISTINCT doc, term FROM store_keyword_postings
            WHERE EXISTS ({_LACKING}) AND term NOT LIKE '{WORD}%' AND doc IN ({_LACKING})
        ) GROUP BY doc
        """,
        "INSERT INTO store_keywords (store_keywords) VALUES ('optimize')",
    ),
    # A new table, because an update of each row would write each entry of the old index once more.
    "postgresql": (
        "CREATE TABLE store_keywords_united (memory_id bigint PRIMARY KEY, tokens tsvector NOT NULL)",
        f"""
        INSERT INTO store_keywords_united SELECT memory_id, CASE WHEN length(tokens) > {_MAX_UNITED} THEN tokens
            ELSE tokens || array_to_tsvector(ARRAY(
                SELECT '{WORD}' || substr(lexeme, {PREFIX_CHARS + 1}) FROM unnest(tsvector_to_array(tokens)) AS lexeme
            )) END
        FROM store_keywords
        """,
        "DROP TABLE store_keywords",
        "ALTER TABLE store_keywords_united RENAME TO store_keywords",
        "ALTER INDEX store_keywords_united_pkey RENAME TO store_keywords_pkey",
        _CREATE["postgresql"][1],
    ),
}


def unite_words(schema_editor: Any) -> None:
    """Move the words into the keyword index, and remove their tables and triggers."""
    remove_word_triggers(schema_editor)
    for statement in _UNITE[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)
    for table in ("store_words", "store_words_pending"):
        schema_editor.execute(f"DROP TABLE {table}", params=None)


def part_words(schema_editor: Any) -> None:
    """Undo `unite_words`: create the tables of the words, empty."""
    install_words(schema_editor)
