"""The keyword index on PostgreSQL: a `tsvector` per memory behind a GIN index.

The position of a lexeme stores its count: one number per lexeme instead of one per occurrence. Real positions would end
at 16,383 in a long text.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper

from store.index.schema import WORD

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
    return [list(terms), list(terms), " | ".join(quoted(term) for term in terms)]


def vocabulary(beginnings: Sequence[str], others: Sequence[str]) -> tuple[str, list[Any]]:
    """Return a statement with its parameters: the prefixed terms with one of some beginnings, and those of `others`."""
    starts = " OR ".join(["starts_with(u.lexeme, %s)"] * len(beginnings))
    statement = f"""
        SELECT DISTINCT u.lexeme FROM store_keywords k CROSS JOIN LATERAL unnest(k.tokens) u
        WHERE k.tokens @@ (SELECT %s::tsquery) AND ({starts} OR u.lexeme = ANY(%s::text[]))"""
    wanted = [*(f"{quoted(one)}:*" for one in beginnings), *map(quoted, others)]
    return statement, [" | ".join(wanted), *beginnings, list(others)]


def add(cursor: CursorWrapper, prefix: str, rows: Sequence[tuple[int, str]]) -> None:
    """Index memories, given as row id and tokens (each repeated by its count); `prefix` is put before every token."""
    cursor.execute(_ADD, [[pk for pk, _ in rows], [_vector(prefix, tokens) for _, tokens in rows]])


def remove(cursor: CursorWrapper, _prefix: str, rows: Sequence[tuple[int, str]]) -> None:
    """Remove memories from the index."""
    cursor.execute("DELETE FROM store_keywords WHERE memory_id = ANY(%s)", [[pk for pk, _ in rows]])


def indexed(cursor: CursorWrapper) -> set[int]:
    """Return the row ids of all indexed memories."""
    cursor.execute("SELECT memory_id FROM store_keywords WHERE tokens <> ''::tsvector")
    return {row for (row,) in cursor.fetchall()}


def entries(cursor: CursorWrapper, prefix: str, pks: Sequence[int]) -> dict[int, dict[str, int]]:
    """Return the count of each token of the memories, without `prefix`, by row id; also of those without a token."""
    found: dict[int, dict[str, int]] = {}
    cursor.execute(
        "SELECT k.memory_id, u.lexeme, COALESCE(u.positions[1], 1) FROM store_keywords k "
        "LEFT JOIN LATERAL unnest(k.tokens) u ON starts_with(u.lexeme, %s) WHERE k.memory_id = ANY(%s)",
        [prefix, list(pks)],
    )
    for row, term, count in cursor.fetchall():
        of_row = found.setdefault(row, {})
        if term is not None:
            of_row[term.removeprefix(prefix)] = count
    return found


def clear() -> None:
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE store_keywords")


def counts_of(prefix: str, tokens: str) -> dict[str, int]:
    """Return the count of each token. A vector holds a mebibyte: the last of more different words are left out."""
    counted = Counter(tokens.split(" ") if tokens else ())
    most = sum(map(len, counted)) * _MAX_CHAR_BYTES + len(counted) * (len(prefix) + _POSITION_BYTES)
    if most <= _MAX_VECTOR_BYTES:
        return dict(counted)
    sizes = accumulate(len((prefix + token).encode()) + _POSITION_BYTES for token in counted)
    return {token: counted[token] for token, size in zip(counted, sizes, strict=True) if size <= _MAX_VECTOR_BYTES}


def merge(_cursor: CursorWrapper) -> bool:
    """Return False: the database merges its index itself."""
    return False


def _vector(prefix: str, tokens: str) -> str:
    """Return the tokens with their prefix and counts, and as many as there is room for as words of all users."""
    counted = counts_of(prefix, tokens)
    room = _MAX_VECTOR_BYTES - sum(len((prefix + token).encode()) + _POSITION_BYTES for token in counted)
    ends = accumulate(len((WORD + token).encode()) for token in counted)
    words = [quoted(WORD + token) for token, end in zip(counted, ends, strict=True) if end <= room]
    return " ".join([*(f"{quoted(prefix + token)}:{count}" for token, count in counted.items()), *words])


def quoted(token: str) -> str:
    return "'" + token.replace("\\", "\\\\").replace("'", "''") + "'"
