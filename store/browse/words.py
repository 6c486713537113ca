"""The condition of a selection that memories contain words. It searches all users: only the panel may use it.

SQLite has no statistics of words. For frequent words it is faster to read the memories in their order and to check each
one; for others, to look the memories up and to sort them.
"""

from collections.abc import Sequence
from typing import Any, Final

from django.db import connection
from django.db.models import BooleanField, F, Func, Q
from django.db.models.expressions import RawSQL
from django.db.models.sql.compiler import SQLCompiler

from core.persistence.sql import rows

LISTED: Final = 10_000
"""Words of up to so many memories are looked up for a page of a list, whose rows are then sorted."""
COUNTED: Final = 50_000
"""Words of up to so many memories are looked up for a count, which sorts nothing and is exact."""
_HOLDING: Final = {
    "sqlite": "SELECT rowid FROM store_words WHERE store_words MATCH %s",
    "postgresql": "SELECT memory_id FROM store_words WHERE tokens @> %s::text[]",
}


def holding(tokens: Sequence[str]) -> RawSQL:
    """Return a subquery of the row ids of the memories that contain all these tokens."""
    return RawSQL(_HOLDING[connection.vendor], [_wanted(tokens)])  # noqa: S611 # nosec B611 - the tokens are parameters


def come_first(tokens: Sequence[str]) -> bool:
    """Return True if a page should look these words up; PostgreSQL decides by its statistics."""
    return bool(tokens) and connection.vendor == "sqlite" and are_in_few(tokens, LISTED)


def are_in_few(tokens: Sequence[str], at_most: int) -> bool:
    """Return True if at most `at_most` memories, including deleted ones, contain all these tokens."""
    counted = f"SELECT count(*) FROM ({_HOLDING[connection.vendor]} LIMIT {at_most + 1}) found"
    return bool(rows(counted, [_wanted(tokens)])[0][0] <= at_most)


def condition(tokens: Sequence[str], *, comes_first: bool) -> Q | Func:
    """Return the condition that memories contain all these tokens."""
    if comes_first or connection.vendor != "sqlite":
        return Q(pk__in=holding(tokens))
    return _Holds(F("pk"), tokens=tokens)


def _wanted(tokens: Sequence[str]) -> str | list[str]:
    if connection.vendor == "sqlite":
        return " AND ".join('"' + token.replace('"', '""') + '"' for token in tokens)
    return list(tokens)


class _Holds(Func):
    """True if the words of the memory with this key include all tokens."""

    output_field = BooleanField()

    def __init__(self, *expressions: Any, tokens: Sequence[str]) -> None:
        super().__init__(*expressions)
        self.tokens = tokens

    def as_sql(self, compiler: SQLCompiler, *_arguments: Any, **_context: Any) -> tuple[str, tuple[str | int, ...]]:
        key, values = compiler.compile(self.source_expressions[0])
        held = " AND ".join(["instr(' ' || tokens || ' ', %s) > 0"] * len(self.tokens))
        text = f"EXISTS (SELECT 1 FROM store_words WHERE rowid = {key} AND {held})"
        return text, (*values, *(f" {token} " for token in self.tokens))
