"""The tables of the keyword index, for which Django has no model: FTS5 on SQLite, tsvector with GIN on PostgreSQL.

Both hold the gateway's own tokens, each with a prefix for its user and scope, so a lookup reads one user's postings.
There is no foreign key to the memories: Django empties tables with TRUNCATE, which PostgreSQL refuses for a table that
an unknown table refers to.
"""

from __future__ import annotations

from typing import Any

# Every character that a token may hold; only the space separates tokens.
CHARACTERS = "!\"\"#$%&''()*+,-./:;<=>?@[\\]^_`{|}~"

_FTS5_OPTIONS = f"content='', columnsize=0, tokenize=\"ascii tokenchars '{CHARACTERS}'\""
_CREATE = {
    "sqlite": (
        f"CREATE VIRTUAL TABLE store_keywords USING fts5(tokens, {_FTS5_OPTIONS})",
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


def install(schema_editor: Any) -> None:
    """Create the tables. Called by the initial migration."""
    for statement in _CREATE[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


def remove(schema_editor: Any) -> None:
    """Drop the tables."""
    for statement in _DROP[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)
