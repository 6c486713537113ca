"""The keyword index on SQLite: FTS5 without content; its postings are read as a table, never by a search expression.

SQLite's own rank is not used: it weighs words by the rows of all users.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from django.db import connection
from django.db.backends.utils import CursorWrapper

from core.sql import run_many

ANY_OF = "SELECT value FROM json_each(%s)"
"""A list of texts given as one parameter: JSON."""
# A subquery for each term, and no IN: SQLite would sort all that it finds to group it again.
FOUND = """
    SELECT t.key AS number, (SELECT group_concat(doc) FROM store_keyword_postings WHERE term = t.value) AS docs
    FROM json_each(%s) t
"""
"""For each of the prefixed terms, by its number in the list: the memories that hold it, each as often as it does."""


def joined(column: str) -> str:
    """An aggregate: numbers as one text with commas between them."""
    return f"group_concat({column})"


def of_terms(terms: Sequence[str]) -> list[Any]:
    """The parameters of `FOUND`."""
    return [orjson.dumps(terms).decode()]


def add(cursor: CursorWrapper, prefix: str, rows: Sequence[tuple[int, str]]) -> None:
    """Indexes memories: row id and tokens, each as often as it counts; `prefix` comes in front of every token."""
    run_many(cursor, "INSERT INTO store_keywords (rowid, tokens) VALUES (%s, %s)", _prefixed(prefix, rows))


def remove(cursor: CursorWrapper, prefix: str, rows: Sequence[tuple[int, str]]) -> None:
    """Takes memories out of the index: the tokens must be the very ones that they were indexed with."""
    run_many(
        cursor,
        "INSERT INTO store_keywords (store_keywords, rowid, tokens) VALUES ('delete', %s, %s)",
        _prefixed(prefix, rows),
    )


def clear() -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO store_keywords (store_keywords) VALUES ('delete-all')")


def _prefixed(prefix: str, rows: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    return [(pk, prefix + tokens.replace(" ", f" {prefix}") if tokens else "") for pk, tokens in rows]
