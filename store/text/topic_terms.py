"""An index of terms by their first letters: a place of a text is compared only with terms that may begin there.

A term is a regular expression of a few words, with `~` for any letters and `#` for a sum of money.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, Generic, TypeVar

_SUM: Final = (
    r"(?:[$€£¥] ?\d[\d,.]*k?|\d{1,3}(?:[,.]\d{3})+|\d{3,}|\d+k|(?:[a-z]+[ -]){0,2}(?:hundred|thousand|million|grand)"
    r"|(?:\d+|ten|fifteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?: \w+)? (?:dollars|bucks|pounds"
    r"|quid|euros?)"
    r"|\w*(?:hundert|tausend)\w*|\w+zig)(?! ?(?:am|pm|minutes|hours|days|weeks|years|miles|km|people|photos|times"
    r"|uhr|leute))"
)
"""A sum of money, by its size or currency: three digits, or ten dollars."""
_KEY: Final = 3
_LITERAL: Final = re.compile(r"(?:[a-z' \u4e00-\u9fff-](?![?*{])){1,3}")
_BEGINS: Final = re.compile(r"\\w(?:[+*]|\{\d,\})(?=\(\?:)")
_ENDS: Final = re.compile(r"\\w(?:[+*]|\{\d,\})(?P<rest>[a-z]{3,})(?:$| )")
_WORD: Final = re.compile(r"\w+")

T = TypeVar("T", bound=str)


def terms_of(written: str) -> Iterator[str]:
    """Yield the terms of a text that separates them by commas."""
    joined = re.sub(r"\|\s+", "|", " ".join(written.split()))
    yield from filter(None, map(str.strip, re.split(r",(?![\d.}])", joined)))


class _Group:
    """Terms of a topic that begin alike. Compiled when a text has the same letters."""

    def __init__(self) -> None:
        self.terms: list[str] = []
        self._pattern: re.Pattern[str] | None = None

    def is_at(self, text: str, place: int) -> bool:
        if self._pattern is None:
            self._pattern = re.compile(rf"(?:{'|'.join(self.terms)})")
        return self._pattern.match(text, place) is not None


class Terms(Generic[T]):
    """Terms of topics, found at places of a text."""

    def __init__(self, terms: Mapping[T, Iterable[str]], ending: str) -> None:
        """Take the terms of each topic, and the pattern of what may follow each."""
        self._of_first: dict[str, dict[T, _Group]] = defaultdict(dict)
        self._of_last: dict[str, dict[T, _Group]] = defaultdict(dict)
        self._others: dict[T, _Group] = {}
        for topic, all_of in terms.items():
            for term in all_of:
                for variant in _variants(term.replace("~", r"\w*").replace("#", _SUM)):
                    groups = self._groups_of(variant)
                    groups.setdefault(topic, _Group()).terms.append(variant + ending)

    def _groups_of(self, variant: str) -> dict[T, _Group]:
        if found := _LITERAL.match(variant):
            return self._of_first[found[0]]
        if found := _ENDS.match(variant):
            return self._of_last[found["rest"][-_KEY:]]
        return self._others

    def at(self, text: str, places: Iterable[int], topics: Collection[T]) -> Iterator[T]:
        """Yield the topics that have a term at one of the places."""
        of_first, of_last, others = self._of_first, self._of_last, self._others
        for place in places:
            start = text[place : place + _KEY]
            found = [of_first.get(start), of_first.get(start[:2]), of_first.get(start[:1]), others]
            if of_last and (word := _WORD.match(text, place)):
                found += [of_last.get(word[0][: len(word[0]) - ending][-_KEY:]) for ending in range(3)]
            for groups in filter(None, found):
                for topic, group in groups.items():
                    if topic in topics and group.is_at(text, place):
                        yield topic


def _variants(term: str) -> Iterator[str]:
    """Yield the alternatives of a term that begins with a group, as several terms."""
    if begins := _BEGINS.match(term):
        yield from (begins[0] + variant for variant in _variants(term[begins.end() :]))
        return
    if not term.startswith("(?:"):
        yield term
        return
    parts, depth, begin = [], 0, 3
    for place, sign in enumerate(term):
        if sign in "()" and term[place - 1 : place] != "\\":
            depth += 1 if sign == "(" else -1
        if (sign == "|" and depth == 1) or depth == 0:
            parts.append(term[begin:place])
            begin = place + 1
        if depth == 0:
            break
    rest = term[begin:]
    if rest[:1] and rest[0] in "*+{":
        yield term
        return
    if rest.startswith("?"):
        rest = rest[1:]
        parts = [*(part for part in parts if not part.startswith("\\w")), ""]  # a word before has another place
    for part in parts:
        yield from _variants(part + rest)
