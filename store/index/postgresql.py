"""The keyword index on PostgreSQL: a `tsvector` per memory behind a GIN index.

A lexeme's position is not where it stands but how often: one number per lexeme instead of one per occurrence, and the
count does not depend on the text's length (positions end at 16,383).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper

ANY_OF = "SELECT jsonb_array_elements_text(%s::jsonb)"
"""A list of texts given as one parameter: JSON."""
# setweight and ts_filter leave only the lexemes that were asked for: a long document is not unpacked whole.
FOUND = """
    SELECT array_position(%s::text[], u.lexeme) - 1 AS number,
        ltrim(string_agg(repeat(',' || k.memory_id, u.positions[1]), '' ORDER BY k.memory_id), ',') AS docs
    FROM store_keywords k CROSS JOIN LATERAL unnest(ts_filter(setweight(k.tokens, 'A', %s::text[]), '{a}')) u
    WHERE k.tokens @@ %s::tsquery
    GROUP BY u.lexeme
"""
"""For each of the prefixed terms, by its number in the list: the memories that hold it, each as often as it does."""
_ADD = "INSERT INTO store_keywords (memory_id, tokens) SELECT * FROM unnest(%s::bigint[], %s::text[]::tsvector[])"


def joined(column: str) -> str:
    """An aggregate: numbers as one text with commas between them."""
    return f"string_agg({column}::text, ',')"


def of_terms(terms: Sequence[str]) -> list[Any]:
    """The parameters of `FOUND`."""
    return [list(terms), list(terms), " | ".join(_quoted(term) for term in terms)]


def add(cursor: CursorWrapper, prefix: str, rows: Sequence[tuple[int, str]]) -> None:
    """Indexes memories: row id and tokens, each as often as it counts; `prefix` comes in front of every token."""
    cursor.execute(_ADD, [[pk for pk, _ in rows], [_vector(prefix, tokens) for _, tokens in rows]])


def remove(cursor: CursorWrapper, _prefix: str, rows: Sequence[tuple[int, str]]) -> None:
    """Takes memories out of the index."""
    cursor.execute("DELETE FROM store_keywords WHERE memory_id = ANY(%s)", [[pk for pk, _ in rows]])


def clear() -> None:
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE store_keywords")


def _vector(prefix: str, tokens: str) -> str:
    counted = Counter(tokens.split(" ") if tokens else ())
    return " ".join(f"{_quoted(prefix + token)}:{count}" for token, count in counted.items())


def _quoted(token: str) -> str:
    return "'" + token.replace("\\", "\\\\").replace("'", "''") + "'"
