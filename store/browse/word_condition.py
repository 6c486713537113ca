"""The condition of a selection that memories contain words. It searches all users: only the panel may use it.

The databases do not know how many memories contain a word: SQLite has no statistics of words, and those of PostgreSQL
are mostly about the words of single users. For frequent words it is faster to read the memories in their order and to
check each one; for others, to look the memories up and to sort them.
"""

from collections.abc import Sequence
from typing import Any, Final

from django.db import connection
from django.db.models import BooleanField, F, Func, Q
from django.db.models.expressions import RawSQL
from django.db.models.sql.compiler import SQLCompiler

from core.persistence.sql import rows
from store.index import postgresql
from store.index.schema import WORD

LISTED: Final = 10_000
"""Words of up to so many memories are looked up for a page of a list, whose rows are then sorted."""
COUNTED: Final = 50_000
"""Words of up to so many memories are looked up for a count, which sorts nothing and is exact."""
_HOLDING: Final = {
    "sqlite": "SELECT rowid FROM store_keywords WHERE store_keywords MATCH %s",
    "postgresql": "SELECT memory_id FROM store_keywords WHERE tokens @@ %s::tsquery",
}


def holding(tokens: Sequence[str]) -> RawSQL:
    """Return a subquery of the row ids of the memories that contain all these tokens."""
    return RawSQL(_HOLDING[connection.vendor], [_wanted(tokens)])  # noqa: S611 # nosec B611 - the tokens are parameters


def come_first(tokens: Sequence[str]) -> bool:
    """Return True if a page should look these words up."""
    return bool(tokens) and are_in_few(tokens, LISTED)


def are_in_few(tokens: Sequence[str], at_most: int) -> bool:
    """Return True if at most `at_most` memories, including deleted ones, contain all these tokens."""
    counted = f"SELECT count(*) FROM ({_HOLDING[connection.vendor]} LIMIT {at_most + 1}) found"
    return bool(rows(counted, [_wanted(tokens)])[0][0] <= at_most)


def condition(tokens: Sequence[str], *, comes_first: bool) -> Q | Func:
    """Return the condition that memories contain all these tokens."""
    if connection.vendor == "sqlite":
        return Q(pk__in=holding(tokens)) if comes_first else _Holds(F("pk"), tokens=tokens)
    return _IsListed(F("pk"), tokens=tokens) if comes_first else Q(pk__in=holding(tokens))


def _wanted(tokens: Sequence[str]) -> str:
    """Return the query for all tokens in the database's syntax."""
    if connection.vendor == "sqlite":
        return " AND ".join('"' + f"{WORD}{token}".replace('"', '""') + '"' for token in tokens)
    return " & ".join(postgresql.quoted(f"{WORD}{token}") for token in tokens)


class _OfWords(Func):
    """A condition on the key of a memory with the tokens that it must contain."""

    output_field = BooleanField()
    condition: str

    def __init__(self, *expressions: Any, tokens: Sequence[str]) -> None:
        super().__init__(*expressions)
        self.tokens = tokens

    def as_sql(self, compiler: SQLCompiler, *_arguments: Any, **_context: Any) -> tuple[str, tuple[str | int, ...]]:
        key, values = compiler.compile(self.source_expressions[0])
        return self.condition.format(key=key), (*values, _wanted(self.tokens))


class _Holds(_OfWords):
    """True if the words of the memory with this key include all tokens (SQLite)."""

    condition = "EXISTS (SELECT 1 FROM store_keywords WHERE rowid = {key} AND store_keywords MATCH %s)"


class _IsListed(_OfWords):
    """True if the key is among those of the memories with these words, which are read first (PostgreSQL)."""

    condition = f"{{key}} = ANY (ARRAY ({_HOLDING['postgresql']}))"
