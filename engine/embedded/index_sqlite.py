"""The keyword index on SQLite: FTS5 without content; its postings are read as a table, never by a search expression.

SQLite's own rank is not used: it weighs words by the rows of all users.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

_FOUND = """
    SELECT doc AS memory_id, group_concat(substr(term, {start}), ' ') AS terms
    FROM engine_keyword_postings WHERE term IN ({slots}) GROUP BY doc
"""


def found(terms: Sequence[str], prefix_length: int) -> tuple[str, list[Any]]:
    """A subquery and its parameters: the memories that hold any of the terms, with their terms for `counts`."""
    return _FOUND.format(start=prefix_length + 1, slots=", ".join(["%s"] * len(terms))), list(terms)


def counts(terms: str) -> Mapping[str, int]:
    """A term stands in the list as often as in the memory."""
    return Counter(terms.split(" "))


def add(rows: Sequence[tuple[int, Mapping[str, int]]]) -> None:
    """Indexes memories: row id and how often each prefixed token stands in it."""
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO engine_keywords (rowid, tokens) VALUES (%s, %s)", [(pk, _text(held)) for pk, held in rows]
        )


def remove(rows: Sequence[tuple[int, Mapping[str, int]]]) -> None:
    """Takes memories out of the index: the tokens must be the very ones that they were indexed with."""
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO engine_keywords (engine_keywords, rowid, tokens) VALUES ('delete', %s, %s)",
            [(pk, _text(held)) for pk, held in rows],
        )


def clear() -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO engine_keywords (engine_keywords) VALUES ('delete-all')")


def _text(held: Mapping[str, int]) -> str:
    return " ".join(" ".join([token] * count) for token, count in held.items())
