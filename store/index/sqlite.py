"""The keyword index on SQLite: contentless FTS5, whose postings are read as a table instead of by MATCH.

SQLite's own rank is not used, because it weighs words by the rows of all users.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson
from django.db import connection
from django.db.backends.utils import CursorWrapper

from store.index.schema import WORD, without_mark

JSON_LIST = "SELECT value FROM json_each(%s)"
"""A subquery of the texts in one parameter, a JSON list."""
# A subquery for each term: with IN and GROUP BY SQLite would sort all postings that it finds.
POSTINGS = """
    SELECT t.key AS number, (SELECT group_concat(doc) FROM store_keyword_postings WHERE term = t.value) AS docs
    FROM json_each(%s) t
"""
"""The memories of each prefixed term, by its number in the list; each memory is repeated by the term's count."""

_MERGED_PAGES = 1000
"""Of four kilobytes; a step takes up to 0.2 s, for which writers wait."""


def joined_ids(column: str) -> str:
    """Return the aggregate of a column of numbers as one text, separated by commas."""
    return f"group_concat({column})"


def postings_values(terms: Sequence[str]) -> list[Any]:
    """Return the parameters of `POSTINGS`."""
    return [orjson.dumps(terms).decode()]


def vocabulary(beginnings: Sequence[str], others: Sequence[str]) -> tuple[str, list[Any]]:
    """Return a statement with its parameters: the prefixed terms with one of some beginnings, and those of `others`."""
    ranges = "SELECT DISTINCT term FROM store_keyword_postings WHERE term >= %s AND term < %s UNION ALL " * len(
        beginnings
    )
    statement = f"""{ranges} SELECT t.value FROM json_each(%s) t
        WHERE EXISTS (SELECT 1 FROM store_keyword_postings WHERE term = t.value)"""
    bounds = [bound for one in beginnings for bound in (one, one + chr(0x10FFFF))]
    return statement, [*bounds, orjson.dumps(list(others)).decode()]


def add(cursor: CursorWrapper, prefix: str, rows: Sequence[tuple[int, str]]) -> None:
    """Index memories, given as row id and tokens (each repeated by its count); `prefix` is put before every token."""
    cursor.executemany("INSERT INTO store_keywords (rowid, tokens) VALUES (%s, %s)", _entries(prefix, rows))


def remove(cursor: CursorWrapper, prefix: str, rows: Sequence[tuple[int, str]]) -> None:
    """Remove memories from the index; the tokens must be those that they were indexed with.

    Without a prefix they are all that `entries` returned without one.
    """
    cursor.executemany(
        "INSERT INTO store_keywords (store_keywords, rowid, tokens) VALUES ('delete', %s, %s)",
        _entries(prefix, rows),
    )


def counts_of(_prefix: str, tokens: str) -> dict[str, int]:
    """Return the count of each token."""
    return dict(Counter(tokens.split(" ") if tokens else ()))


def indexed(cursor: CursorWrapper) -> set[int]:
    """Return the row ids of all indexed memories. Raises: `DatabaseError` for a damaged index."""
    cursor.execute("INSERT INTO store_keywords (store_keywords) VALUES ('integrity-check')")
    cursor.execute("SELECT DISTINCT doc FROM store_keyword_postings")
    return {row for (row,) in cursor.fetchall()}


def entries(cursor: CursorWrapper, prefix: str, pks: Sequence[int]) -> dict[int, dict[str, int]]:
    """Return the count of each token of the memories that begins with `prefix`, without it, by row id.

    All entries that begin with `prefix` are read: the index knows no tokens of a memory.
    """
    found: dict[int, dict[str, int]] = {}
    cursor.execute(
        "SELECT doc, term, count(*) FROM store_keyword_postings WHERE term >= %s AND term < %s "
        "AND doc IN (SELECT value FROM json_each(%s)) GROUP BY doc, term",
        [prefix, prefix + chr(0x10FFFF), orjson.dumps(list(pks)).decode()],
    )
    for row, term, count in cursor.fetchall():
        found.setdefault(row, {})[term.removeprefix(prefix)] = count
    return found


def clear() -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO store_keywords (store_keywords) VALUES ('delete-all')")


def merge(cursor: CursorWrapper) -> bool:
    """Merge some of the segments that each look-up reads; return True if there may be more."""
    before = connection.connection.total_changes
    cursor.execute("INSERT INTO store_keywords (store_keywords, rank) VALUES ('merge', %s)", [-_MERGED_PAGES])
    return bool(connection.connection.total_changes - before > 1)  # 1 for the command itself


def _entries(prefix: str, rows: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return the tokens with their prefix, and each token once as a word of all users."""
    if not prefix:
        return list(rows)
    return [
        (pk, f"{prefix}{tokens.replace(' ', f' {prefix}')} {_words(tokens)}" if tokens else "") for pk, tokens in rows
    ]


def _words(tokens: str) -> str:
    return " ".join(f"{WORD}{without_mark(token)}" for token in dict.fromkeys(tokens.split(" ")))
