"""The keyword index, which Django has no model for: FTS5 on SQLite, tsvector and GIN on PostgreSQL.

Both hold our own tokens, each behind the prefix of its user and scope, so that a lookup reads that user's postings alone.
No foreign key to the memories: Django empties tables by TRUNCATE, which PostgreSQL refuses for a table that is referred
to from one that Django does not know.
"""

from typing import Any

from django.db import migrations

# Every sign that a token may hold; only the space between tokens separates.
TOKEN_CHARS = "!\"\"#$%&''()*+,-./:;<=>?@[\\]^_`{|}~"

STATEMENTS = {
    "sqlite": (
        "CREATE VIRTUAL TABLE engine_keywords USING fts5("
        f"tokens, content='', columnsize=0, tokenize=\"ascii tokenchars '{TOKEN_CHARS}'\")",
        "CREATE VIRTUAL TABLE engine_keyword_postings USING fts5vocab('engine_keywords', 'instance')",
    ),
    "postgresql": (
        "CREATE TABLE engine_keywords (memory_id bigint PRIMARY KEY, tokens tsvector NOT NULL)",
        # Without a pending list: otherwise every search would walk what others have just written.
        "CREATE INDEX engine_keywords_tokens ON engine_keywords USING gin (tokens) WITH (fastupdate = off)",
    ),
}
REVERSE = {
    "sqlite": ("DROP TABLE engine_keyword_postings", "DROP TABLE engine_keywords"),
    "postgresql": ("DROP TABLE engine_keywords",),
}


def create(apps: Any, schema_editor: Any) -> None:
    for statement in STATEMENTS[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


def drop(apps: Any, schema_editor: Any) -> None:
    for statement in REVERSE[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    dependencies = [("engine", "0001_initial")]
    operations = [migrations.RunPython(create, drop)]
