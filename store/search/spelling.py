"""Correct typing errors of a query: a word that no memory of the user holds becomes the single nearest known one.

One edit (a letter more, fewer, changed, or two exchanged), from eight letters on two. The first letter is right, except
exchanged with the second: "height" is no misspelled "weight". Names and numbers are not corrected.

Ours, because neither FTS5 nor tsvector lists the words of one user: the index is asked for those that begin alike.
"""

import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import Final, NamedTuple

from django.db import connection

from core.persistence import sql
from store.index import VENDORS
from store.text.normalize import fold
from store.text.tokens import query_tokens

LEAST_LETTERS: Final = 5
_LETTERS_FOR_TWO: Final = 8
MAX_WORDS: Final = 2
"""The most words of a query that are corrected."""
LEAST_SHARE: Final = 0.2
"""The share of what is asked that must be unknown, before the index is asked for other words."""
TOO_FAR: Final = 99
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_DETERMINER: Final = re.compile(r"\b(?:mein|dein|unser|ein|der|die|das|dem|den|des|kein)\w{0,2}\s+$")
_ENDINGS: Final = frozenset(
    {
        "able",
        "al",
        "ance",
        "ant",
        "ent",
        "ation",
        "ations",
        "ed",
        "ence",
        "er",
        "ers",
        "ful",
        "ible",
        "ies",
        "ing",
        "ings",
        "ion",
    }
    | {"ions", "ity", "ive", "ly", "ment", "ments", "ness", "or", "ors", "ous", "tion", "tions"}
)
_SORTED_ENDINGS: Final = frozenset("".join(sorted(ending)) for ending in _ENDINGS)
"""Endings that stems lack, each with its letters sorted: a misspelled ending is no part of the stem."""
_VOWELS: Final = frozenset("aeiouy")
_SECOND_LETTERS: Final = "aeioulrh"
_ROWS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm", "qaz", "wsx", "edc", "rfv", "tgb", "yhn", "ujm")
_ALIKE: Final = ("ck", "sz", "sc", "fv", "dt", "bp", "gj", "mn", "cz", "qk", "vw", "gk")
_MISTAKEN: Final = frozenset(frozenset(pair) for row in (*_ROWS, *_ALIKE) for pair in pairwise(row))
"""Letters next to each other on the keyboard, and those that sound alike."""


class Misspelled(NamedTuple):
    """A word of a query, as it is written, and its tokens, which no memory holds."""

    word: str
    tokens: tuple[str, ...]


def suspects(query: str, unknown: Set[str]) -> list[Misspelled]:
    """Return the words of a query that may be misspelled; `unknown` are the tokens that no memory of the user holds."""
    if not unknown:
        return []
    found = []
    for place, match in enumerate(_WORD.finditer(query)):
        word = fold(match[0])
        if len(word) < LEAST_LETTERS or not word.isalpha() or not word.isascii():
            continue
        is_capital = match[0][0].isupper() and not match[0].isupper()
        if is_capital and place and not _DETERMINER.search(query[: match.start()]):
            continue  # a name
        tokens = tuple(query_tokens(word))
        if tokens and unknown >= set(tokens):
            found.append(Misspelled(word, tokens))
    return found[:MAX_WORDS]


def nearest(prefix: str, words: Sequence[Misspelled]) -> dict[str, str]:
    """Return for each word its single nearest token in the index of `prefix`, if it has one. One SQL statement."""
    beginnings = [prefix + word.tokens[0][:2] for word in words]
    others = [prefix + other for word in words for other in _second_letter_edits(word.tokens[0])]
    statement, values = VENDORS[connection.vendor].vocabulary(beginnings, others)
    known = {row[0].removeprefix(prefix) for row in sql.rows(statement, values)}
    found = {}
    for word in words:
        most = 2 if len(word.word) >= _LETTERS_FOR_TWO else 1
        distances = {token: one for token in known if (one := _distance_of(word, token, most)) <= most}
        best = [token for token, one in distances.items() if one == min(distances.values())]
        if len(best) == 1:
            found[word.word] = best[0]
    return found


def _second_letter_edits(word: str) -> Iterator[str]:
    """Yield the likely words that differ in the second letter: most others begin with the same two letters."""
    first, second, rest = word[0], word[1:2], word[2:]
    yield first + rest
    yield second + first + rest
    yield first + rest[:1] + second + rest[1:]
    yield from (first + letter + second + rest for letter in _SECOND_LETTERS)
    yield from (first + letter + rest for letter in string.ascii_lowercase if _cost_of_change(letter, second) == 1)


def _distance_of(word: Misspelled, token: str, most: int) -> int:
    """Return the edits from a word to a token; `TOO_FAR` if more than `most`."""
    if not token.isalpha() or len(token) < LEAST_LETTERS - 1:
        return TOO_FAR
    ending = word.word.removeprefix(token)
    if ending != word.word and ending not in _ENDINGS and "".join(sorted(ending)) in _SORTED_ENDINGS:
        return 1
    if len(token) < LEAST_LETTERS < len(word.word):
        return TOO_FAR
    best = min(distance(written, token, most if min(len(written), len(token)) > 6 else 1) for written in word.tokens)
    if best == TOO_FAR and word.word[:4] == token[:4]:  # the stemmer removes no misspelled ending
        likely = (token + ending for ending in _ENDINGS if ending[-1] == word.word[-1])
        best = min((one for whole in likely if (one := distance(word.word, whole, most))), default=TOO_FAR)
    return best


def distance(one: str, other: str, most: int) -> int:
    """Return the edits between two words, exchanged neighbors counting one; `TOO_FAR` if more than `most`."""
    if abs(len(one) - len(other)) > most:
        return TOO_FAR
    before: list[int] = []
    previous = list(range(len(other) + 1))
    for row, left in enumerate(one, 1):
        current = [row]
        for column, right in enumerate(other, 1):
            changed = previous[column - 1] + _cost_of_change(left, right)
            cost = min(previous[column] + 1, current[-1] + 1, changed)
            if row > 1 and column > 1 and left == other[column - 2] and one[row - 2] == right:
                cost = min(cost, before[column - 2] + 1)
            current.append(cost)
        if min(current) > most:
            return TOO_FAR
        before, previous = previous, current
    return previous[-1] if previous[-1] <= most else TOO_FAR


def _cost_of_change(one: str, other: str) -> int:
    """Return 0 for equal letters, 1 for those that are mistaken for each other, else 2: "house" is no "horse"."""
    if one == other:
        return 0
    return 1 if {one, other} <= _VOWELS or {one, other} in _MISTAKEN else 2


def written_as(token: str, texts: Iterable[str]) -> str | None:
    """Return a word of some texts that has a token; None if none has."""
    for text in texts:
        for word in _WORD.findall(text):
            if fold(word)[:2] == token[:2] and token in query_tokens(word):
                return str(word)
    return None


def corrected_terms(own: Sequence[str], words: Sequence[Misspelled], nearest_to: Mapping[str, str]) -> list[str]:
    """Return the terms of a query with those of corrected words replaced."""
    replaced = {token: nearest_to[word.word] for word in words if word.word in nearest_to for token in word.tokens}
    return list(dict.fromkeys(replaced.get(term, term) for term in own))
