"""Split the words of an operator's search into terms, each written as one text.

A term is a token of the keyword index, or begins with a kind that no token begins with:

- `~start:deliv`: a word that begins like this;
- `~phrase:green tea`: words next to each other;
- `~digits:5550`: a number that begins with these digits, also with separators (`555-0123`);
- `~of:["PREFIX", …]`: terms in memories of the user with this prefix in the index;
- `~any`: one term is enough.
"""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import orjson

from core.patterns import lazy_pattern
from store.text.normalize import UNSPACED, fold
from store.text.tokens import query_tokens, required_tokens, tokenize

START: Final = "~start:"
PHRASE: Final = "~phrase:"
DIGITS: Final = "~digits:"
OF: Final = "~of:"
ANY: Final = "~any"
_QUOTED = lazy_pattern(r'"([^"]+)"|“([^”]+)”|„([^“”]+)[“”]|«([^»]+)»|「([^」]+)」|『([^』]+)』')
_STARRED = lazy_pattern(rf"(?<!\S)([^\W_{UNSPACED}]+)\*(?!\S)")
_WORD = lazy_pattern(rf"[^\W_{UNSPACED}]+|[{UNSPACED}]+")
# A number of four digits or more with separators, or of three or more without, at the beginning of a word.
_NUMBER = lazy_pattern(r"(?<!\S)[+(]*(?:\d+[-.()/]+(?=\d))+\d+(?!\S)|(?<!\S)\+?\d{3,}(?!\S)")
_DATE = lazy_pattern(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}")
_SEPARATORS: Final = r"[-. ()/]{0,2}"
_SIGNS: Final = ("slot:", "said-", "mo:", "md:", "m:", "y:", "d:", "w:", "s:", "c:")
"""Prefixes of tokens that are no words of a text: signs, times and stop words."""
_MAX_DIGITS: Final = 19
"""Longer numbers are no telephone or card numbers."""


def terms(text: str) -> tuple[str, ...]:
    """Return the terms that a memory must all hold. Quoted words are a phrase, `word*` is the beginning of a word."""
    phrases = [next(filter(None, match.groups())).strip() for match in _QUOTED.finditer(text)]
    rest = _QUOTED.sub(" ", text)
    starts = [fold(word) for word in _STARRED.findall(rest)]
    found = list(required_tokens(_STARRED.sub(" ", rest)))
    found += [f"{START}{word}" for word in starts]
    found += [f"{PHRASE}{phrase}" for phrase in phrases if required_tokens(phrase)]
    return tuple(dict.fromkeys(found))


def beginnings(text: str) -> tuple[str, ...]:
    """Return terms for words and numbers that begin like those of a text. Words without letters are left out."""
    rest = re.sub(r'["“”„«»「」『』*]', " ", text)
    numbers = [one[0] for one in _NUMBER.finditer(rest) if not _DATE.fullmatch(one[0])]
    digits = [re.sub(r"\D", "", number) for number in numbers]
    rest = _NUMBER.sub(lambda match: match[0] if _DATE.fullmatch(match[0]) else " ", rest)
    found = [f"{DIGITS}{one}" for one in digits if len(one) <= _MAX_DIGITS]
    kept = set(query_tokens(text))
    for word in _WORD.findall(fold(rest)):
        tokens = query_tokens(word)
        if re.match(f"[{UNSPACED}]", word):
            found += tokens
        elif begins_sign(word):
            found += required_tokens(word)
        elif not kept.isdisjoint(tokens):  # else a stop word
            found.append(f"{START}{word}")
    return tuple(dict.fromkeys(found))


def begins_sign(word: str) -> bool:
    """Return True if tokens that are no words begin like this."""
    return any(sign.startswith(word) for sign in _SIGNS)


def of_user(terms: Collection[str], prefixes: Collection[str], named: Collection[str]) -> tuple[str, ...]:
    """Return the terms with those for memories of a user, whom the terms `named` name. Nothing if they are all."""
    rest = [term for term in terms if term not in named]
    if not rest:
        return tuple(terms)
    return (*terms, *among(prefixes, rest))


def among(prefixes: Collection[str], tokens: Collection[str]) -> tuple[str, ...]:
    """Return terms for memories with all these tokens, of the users and scopes with these prefixes in the index."""
    return tuple(f"{OF}{orjson.dumps([prefix, *tokens]).decode()}" for prefix in prefixes)


def written(terms: Collection[str]) -> str:
    """Return the terms as an operator would write them."""
    forms = {START: "{}*", PHRASE: "“{}”", DIGITS: "{}…"}
    found = []
    for term in terms:
        kind = next((kind for kind in forms if term.startswith(kind)), "")
        if not term.startswith((OF, ANY)):
            found.append(forms[kind].format(term.removeprefix(kind)) if kind else term)
    return (" | " if ANY in terms else " ").join(found)


def splits(digits: str) -> Iterator[tuple[str, ...]]:
    """Yield how a telephone or card number may be divided: up to four groups of two to four digits."""
    yield (digits,)
    yield from _divided(digits, 4, is_first=True)


def _divided(digits: str, groups: int, *, is_first: bool = False) -> Iterator[tuple[str, ...]]:
    for size in range(1 if is_first else 2, 5):
        head, tail = digits[:size], digits[size:]
        if not tail or groups < 2:
            return
        if len(tail) <= (6 if groups == 2 else 4):
            yield (head, tail)
        for rest in _divided(tail, groups - 1):
            yield (head, *rest)


def pattern_of(digits: str) -> str:
    """Return a regular expression for a number with these digits first, for databases and Python."""
    return _SEPARATORS.join(digits)


class Wanted(NamedTuple):
    """Parts of terms by which pieces of a text are recognized."""

    tokens: frozenset[str]
    starts: tuple[str, ...]
    numbers: "re.Pattern[str] | None"

    def is_in(self, tokens: Collection[str]) -> bool:
        """Return True if one of the tokens of a piece is wanted."""
        if not self.tokens.isdisjoint(tokens):
            return True
        return bool(self.starts) and any(token.startswith(self.starts) for token in tokens)


@lru_cache(maxsize=512)
def wanted(terms: tuple[str, ...]) -> Wanted:
    """Return how to recognize terms in a text."""
    tokens: set[str] = set()
    starts: list[str] = []
    numbers: list[str] = []
    for term in terms:
        if term.startswith(START):
            word = term.removeprefix(START)
            starts.append(word)
            tokens |= set(query_tokens(word))
        elif term.startswith(DIGITS):
            numbers.append(pattern_of(term.removeprefix(DIGITS)))
        elif term.startswith(PHRASE):
            tokens |= set(required_tokens(term.removeprefix(PHRASE)))
        elif not term.startswith((OF, ANY)):
            tokens.add(term)
    return Wanted(frozenset(tokens), tuple(starts), re.compile("|".join(numbers)) if numbers else None)


def tokens_of_number(part: str) -> list[str]:
    """Return the tokens of a group of digits."""
    return [token for token in dict.fromkeys(tokenize(part)) if not token.startswith("said-")]
