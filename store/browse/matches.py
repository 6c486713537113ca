"""The memories that hold words of an operator's search, ranked; over all users."""

from collections import defaultdict
from collections.abc import Sequence
from math import log
from typing import Final, NamedTuple

from django.db.models import BooleanField, Case, Q, Value, When

from store.browse import word_condition
from store.browse.selection import Selection, rows_of
from store.models import Memory
from store.text import terms

MAX_RANKED: Final = word_condition.LISTED
"""Words of more memories are not ranked: all of these would have to be read."""
_SATURATION: Final = 1.2
_LENGTH_WEIGHT: Final = 0.75


class Match(NamedTuple):
    row: int
    category: str
    importance: float | None
    created_at_ms: int
    score: float


def matches(selection: Selection, query: str) -> list[Match] | None:
    """Return the selected memories that hold its words, best first; None if more than `MAX_RANKED` hold them.

    Memories with the query as it is written come first, then those with more and rarer words in less text (BM25, each
    word counted once), then newer ones. One SQL statement, and one for each word if not all have to be there.
    """
    if not word_condition.are_in_few(selection.words, MAX_RANKED):
        return None
    written = Case(When(Q(text__icontains=query.strip()), then=Value(True)), default=False, output_field=BooleanField())
    names = ("pk", "category", "importance", "created_at_ms", "token_count", "is_written")
    rows = list(rows_of(selection, begins_with_words=True).annotate(is_written=written).values_list(*names))
    weights = _weights(selection.words)
    average = sum(row[4] for row in rows) / (len(rows) or 1) or 1
    found = [
        (is_written, Match(row, category, importance, at, weights[row] / _length(count, average)))
        for row, category, importance, at, count, is_written in rows
    ]
    found.sort(key=lambda pair: (pair[0], pair[1].score, pair[1].created_at_ms, pair[1].row), reverse=True)
    return [match for _, match in found]


def _weights(words: Sequence[str]) -> defaultdict[int, float]:
    """Return the sum of the weights of the words of each memory, 1 where all memories hold the same."""
    if terms.ANY not in words:
        return defaultdict(lambda: 1.0)
    total = Memory.objects.order_by("-pk").values_list("pk", flat=True).first() or 1  # about as many as there are
    found: defaultdict[int, float] = defaultdict(float)
    for term in words:
        if term != terms.ANY:
            rows = word_condition.rows_with([term], MAX_RANKED)
            for row in rows:
                found[row] += log(1 + total / len(rows))
    return found


def _length(tokens: int, average: float) -> float:
    return 1 + _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * tokens / average)
