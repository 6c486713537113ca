"""The keyword index on PostgreSQL: a `tsvector` per memory behind a GIN index.

A lexeme's position is not where it stands but how often: one number per lexeme instead of one per occurrence, and the
count does not depend on the text's length (positions end at 16,383).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

# setweight and ts_filter leave only the lexemes that were asked for: a long document is not unpacked whole.
_FOUND = """
    SELECT k.memory_id, t.terms
    FROM engine_keywords k CROSS JOIN LATERAL (
        SELECT string_agg(substr(u.lexeme, {start}) || ' ' || u.positions[1], ' ') AS terms
        FROM unnest(ts_filter(setweight(k.tokens, 'A', %s::text[]), '{{a}}')) u
    ) t
    WHERE k.tokens @@ %s::tsquery
"""
_ADD = "INSERT INTO engine_keywords (memory_id, tokens) SELECT * FROM unnest(%s::bigint[], %s::text[]::tsvector[])"


def found(terms: Sequence[str], prefix_length: int) -> tuple[str, list[Any]]:
    """A subquery and its parameters: the memories that hold any of the terms, with their terms for `counts`."""
    return _FOUND.format(start=prefix_length + 1), [list(terms), " | ".join(_quoted(term) for term in terms)]


def counts(terms: str) -> Mapping[str, int]:
    """Terms and numbers in turn."""
    parts = terms.split(" ")
    return {term: int(count) for term, count in zip(parts[::2], parts[1::2], strict=True)}


def add(rows: Sequence[tuple[int, Mapping[str, int]]]) -> None:
    """Indexes memories: row id and how often each prefixed token stands in it."""
    with connection.cursor() as cursor:
        cursor.execute(_ADD, [[pk for pk, _ in rows], [_vector(held) for _, held in rows]])


def remove(rows: Sequence[tuple[int, Mapping[str, int]]]) -> None:
    """Takes memories out of the index."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM engine_keywords WHERE memory_id = ANY(%s)", [[pk for pk, _ in rows]])


def clear() -> None:
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE engine_keywords")


def _vector(held: Mapping[str, int]) -> str:
    return " ".join(f"{_quoted(token)}:{count}" for token, count in held.items())


def _quoted(token: str) -> str:
    return "'" + token.replace("\\", "\\\\").replace("'", "''") + "'"
