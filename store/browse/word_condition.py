"""The condition of a selection that memories contain words. It searches all users: only the panel may use it.

The databases do not know how many memories contain a word: SQLite has no statistics of words, and those of PostgreSQL
are mostly about the words of single users. For frequent words it is faster to read the memories in their order and to
check each one; for others, to look the memories up and to sort them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import orjson
from django.db import connection
from django.db.models import BooleanField, F, Func, Q
from django.db.models.expressions import RawSQL
from django.db.models.sql.compiler import SQLCompiler

from core.persistence.sql import rows
from store.index import postgresql
from store.index.schema import WORD
from store.text import terms
from store.text.tokens import query_tokens, required_tokens

LISTED: Final = 10_000
"""Words of up to so many memories are looked up for a page of a list, whose rows are then sorted."""
COUNTED: Final = 50_000
"""Words of up to so many memories are looked up for a count, which sorts nothing and is exact."""
TOGETHER: Final = 10_000
"""So many of the newest memories are looked up together on SQLite where others are checked one by one."""
_HOLDING: Final = {
    "sqlite": "SELECT rowid FROM store_keywords WHERE store_keywords MATCH %s",
    "postgresql": "SELECT memory_id FROM store_keywords WHERE tokens @@ %s::tsquery",
}


def holding(tokens: Sequence[str]) -> RawSQL:
    """Return a subquery of the row ids of the memories that contain all these tokens."""
    return RawSQL(_HOLDING[connection.vendor], [_wanted(tokens)])  # noqa: S611 - the tokens are parameters


def come_first(tokens: Sequence[str]) -> bool:
    """Return True if a page should look these words up."""
    return bool(tokens) and are_in_few(tokens, LISTED)


def are_in_few(tokens: Sequence[str], at_most: int) -> bool:
    """Return True if at most `at_most` memories, including deleted ones, contain all these tokens."""
    counted = f"SELECT count(*) FROM ({_HOLDING[connection.vendor]} LIMIT {at_most + 1}) found"
    return bool(rows(counted, [_wanted(tokens)])[0][0] <= at_most)


def first_holding(tokens: Sequence[str], at_most: int) -> RawSQL:
    """Return a subquery of the row ids of at most so many of the memories that contain all these tokens."""
    limited = f"{_HOLDING[connection.vendor]} LIMIT {at_most}"
    return RawSQL(limited, [_wanted(tokens)])  # noqa: S611 - the tokens are parameters


def holding_any(lines: Iterable[Sequence[str]]) -> RawSQL:
    """Return a subquery of the row ids of the memories that contain all words of one of the lines."""
    syntax = _SYNTAX[connection.vendor]
    groups = [[syntax.term(WORD + token) for word in line for token in required_tokens(word)] for line in lines]
    wanted = syntax.either.join(f"({syntax.both.join(group)})" for group in groups)
    return RawSQL(_HOLDING[connection.vendor], [wanted])  # noqa: S611 - the tokens are parameters


def is_cheap_for_a_user() -> bool:
    """Return True if looking up even very many memories with words is faster than checking a user's, as on SQLite."""
    return connection.vendor == "sqlite"


def rows_with(tokens: Sequence[str], at_most: int) -> list[int]:
    """Return the row ids of at most `at_most` memories, including deleted ones, that contain all these tokens."""
    return [row for (row,) in rows(f"{_HOLDING[connection.vendor]} LIMIT {at_most}", [_wanted(tokens)])]


def condition(tokens: Sequence[str], *, comes_first: bool) -> Q | Func:
    """Return the condition that memories contain all these tokens, or that of their terms (`store.text.terms`)."""
    if connection.vendor == "sqlite":
        return Q(pk__in=holding(tokens)) if comes_first else _Holds(F("pk"), tokens=tokens)
    return _IsListed(F("pk"), tokens=tokens) if comes_first else Q(pk__in=holding(tokens))


def in_texts(words: Sequence[str]) -> Q:
    """Return the condition on texts for what the index does not know: where words and groups of digits are."""
    found = Q()
    for term in () if terms.ANY in words else words:
        if term.startswith(terms.PHRASE):
            found &= Q(text__icontains=term.removeprefix(terms.PHRASE))
        elif term.startswith(terms.DIGITS):
            found &= Q(text__regex=terms.pattern_of(term.removeprefix(terms.DIGITS)))
        elif term.startswith(terms.START) and terms.begins_sign(word := term.removeprefix(terms.START)):
            found &= Q(text__icontains=word)
    return found


class _Syntax(NamedTuple):
    """The syntax of a database for queries of words."""

    term: Callable[[str], str]
    start: Callable[[str], str]
    both: str
    either: str


_SYNTAX: Final = {
    "sqlite": _Syntax(
        lambda token: '"' + token.replace('"', '""') + '"',
        lambda token: '"' + token.replace('"', '""') + '" *',
        " AND ",
        " OR ",
    ),
    "postgresql": _Syntax(postgresql.quoted, lambda token: f"{postgresql.quoted(token)}:*", " & ", " | "),
}


def _wanted(words: Sequence[str]) -> str:
    """Return the query for terms in the database's syntax."""
    syntax = _SYNTAX[connection.vendor]
    plain = [term for term in words if not term.startswith((terms.OF, terms.ANY))]
    joint = syntax.either if terms.ANY in words else syntax.both
    found = [joint.join(_term(term, WORD, syntax) for term in plain)] if plain else []
    for term in words:
        if term.startswith(terms.OF):
            prefix, *others = orjson.loads(term.removeprefix(terms.OF))
            found.append(syntax.both.join(_term(one, prefix, syntax) for one in others))
    return found[0] if len(found) == 1 else syntax.either.join(f"({one})" for one in found)


def _term(term: str, prefix: str, syntax: _Syntax) -> str:
    """Return the query for one term, among the tokens with this prefix."""

    def all_of(tokens: Sequence[str]) -> str:
        return f"({syntax.both.join(syntax.term(prefix + token) for token in tokens)})"

    if term.startswith(terms.PHRASE):
        return all_of(required_tokens(term.removeprefix(terms.PHRASE)))
    if term.startswith(terms.START):
        word = term.removeprefix(terms.START)
        return f"({syntax.either.join((syntax.start(prefix + word), all_of(query_tokens(word))))})"
    if term.startswith(terms.DIGITS):
        return f"({syntax.either.join(_number(one, prefix, syntax) for one in _divisions(term))})"
    return syntax.term(prefix + term)


def _divisions(term: str) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(terms.splits(term.removeprefix(terms.DIGITS))))


def _number(groups: tuple[str, ...], prefix: str, syntax: _Syntax) -> str:
    """Return the query for groups of digits; the last one may go on."""
    found = [
        f"({syntax.either.join(syntax.term(prefix + token) for token in terms.tokens_of_number(group))})"
        for group in groups[:-1]
    ]
    return f"({syntax.both.join([*found, syntax.start(prefix + groups[-1])])})"


class _OfWords(Func):
    """A condition on the key of a memory with the tokens that it must contain."""

    output_field = BooleanField()
    condition: str

    def __init__(self, *expressions: Any, tokens: Sequence[str]) -> None:
        super().__init__(*expressions)
        self.tokens = tokens

    def as_sql(self, compiler: SQLCompiler, *_arguments: Any, **_context: Any) -> tuple[str, tuple[str | int, ...]]:
        key, values = compiler.compile(self.source_expressions[0])
        wanted = [_wanted(self.tokens)] * self.condition.count("%s")
        newest = f"(SELECT max(id) - {TOGETHER} FROM store_memory)"
        return self.condition.format(key=key, newest=newest), (*values, *wanted)


class _Holds(_OfWords):
    """True if the words of the memory with this key include all tokens (SQLite).

    The newest memories, which fill most pages, are looked up together: to check one costs as much as hundreds of them.
    """

    condition = """
        CASE WHEN {key} > {newest}
            THEN {key} IN (SELECT rowid FROM store_keywords WHERE store_keywords MATCH %s AND rowid > {newest})
            ELSE EXISTS (SELECT 1 FROM store_keywords WHERE rowid = {key} AND store_keywords MATCH %s) END
    """


class _IsListed(_OfWords):
    """True if the key is among those of the memories with these words, which are read first (PostgreSQL)."""

    condition = f"{{key}} = ANY (ARRAY ({_HOLDING['postgresql']}))"
