"""The keyword index on PostgreSQL: a `tsvector` per memory behind a GIN index.

The position of a lexeme stores its count: one number per lexeme instead of one per occurrence. Real positions would end
at 16,383 in a long text.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper

from core.persistence import sql

JSON_LIST = "SELECT jsonb_array_elements_text(%s::jsonb)"
"""A subquery of the texts in one parameter, a JSON list."""
# setweight and ts_filter keep only the requested lexemes, so a long document is not unpacked entirely. The planner does
# not see the query in a subquery. If it did, it would expect many rows for many rare lexemes, and scan the whole table.
POSTINGS = """
    SELECT array_position(%s::text[], u.lexeme) - 1 AS number,
        ltrim(string_agg(repeat(',' || k.memory_id, u.positions[1]), '' ORDER BY k.memory_id), ',') AS docs
    FROM store_keywords k CROSS JOIN LATERAL unnest(ts_filter(setweight(k.tokens, 'A', %s::text[]), '{a}')) u
    WHERE k.tokens @@ (SELECT %s::tsquery)
    GROUP BY u.lexeme
"""
"""The memories of each prefixed term, by its number in the list; each memory is repeated by the term's count."""
_MAX_VECTOR_BYTES = 2**20 - 1
_MAX_CHAR_BYTES = 4
_POSITION_BYTES = 5  # a number of positions, one position, and alignment
_ADD = "INSERT INTO store_keywords (memory_id, tokens) SELECT * FROM unnest(%s::bigint[], %s::text[]::tsvector[])"


def joined_ids(column: str) -> str:
    """Return the aggregate of a column of numbers as one text, separated by commas."""
    return f"string_agg({column}::text, ',')"


def postings_values(terms: Sequence[str]) -> list[Any]:
    """Return the parameters of `POSTINGS`."""
    return [list(terms), list(terms), " | ".join(_quoted(term) for term in terms)]


def add(cursor: CursorWrapper, prefix: str, rows: Sequence[tuple[int, str]]) -> None:
    """Index memories, given as row id and tokens (each repeated by its count); `prefix` is put before every token."""
    cursor.execute(_ADD, [[pk for pk, _ in rows], [_vector(prefix, tokens) for _, tokens in rows]])


def copy(cursor: CursorWrapper, rows: Iterable[tuple[str, int, str]]) -> None:
    """Index new memories of many owners, given as prefix, row id and tokens."""
    sql.copy(cursor, "store_keywords", ("memory_id", "tokens"), ((pk, _vector(prefix, of)) for prefix, pk, of in rows))


def remove(cursor: CursorWrapper, _prefix: str, rows: Sequence[tuple[int, str]]) -> None:
    """Remove memories from the index."""
    cursor.execute("DELETE FROM store_keywords WHERE memory_id = ANY(%s)", [[pk for pk, _ in rows]])


def clear() -> None:
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE store_keywords")


def _vector(prefix: str, tokens: str) -> str:
    """Return a `tsvector` as text. It holds a mebibyte: of more different words, the last ones are not indexed."""
    counted = Counter(tokens.split(" ") if tokens else ())
    lexemes = [prefix + token for token in counted]
    if sum(map(len, lexemes)) * _MAX_CHAR_BYTES + len(lexemes) * _POSITION_BYTES > _MAX_VECTOR_BYTES:
        sizes = accumulate(len(lexeme.encode()) + _POSITION_BYTES for lexeme in lexemes)
        lexemes = [lexeme for lexeme, size in zip(lexemes, sizes, strict=True) if size <= _MAX_VECTOR_BYTES]
    return " ".join(f"{_quoted(lexeme)}:{count}" for lexeme, count in zip(lexemes, counted.values(), strict=False))


def _quoted(token: str) -> str:
    return "'" + token.replace("\\", "\\\\").replace("'", "''") + "'"
