"""Which memories answer a question best: BM25 over the user's own numbers, and what stands around a hit.

Pure functions: the same numbers give the same order and the same scores whatever database they were read from.

A memory's evidence is its BM25 (Robertson and Zaragoza 2009, with Lucene's idf, which is never negative):

    bm25 = sum over the terms t of the question of  idf(t) * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length / average))
    idf(t) = ln(1 + (N - n(t) + 0.5) / (n(t) + 0.5))

A turn of a conversation adds NEIGHBOUR of the evidence of the turns right before and after it (a question and its
answer stand beside each other), and SPEAKER of the best evidence when its speaker is named in the question. The score
is that sum over the most that any memory could reach, `(1 + 2 * NEIGHBOUR + SPEAKER) * (K1 + 1) * sum of idf(t)`: it
lies between 0 and 1, grows with the part of the question that a memory covers, and is the same in whatever part of the
memories one asks. Time decides between equal scores only: the later memory comes first. The constants were chosen on
English conversations and Chinese passages; the neighbours of a hit come only if they hold a term themselves.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.text.normalize import fold

K1 = 1.2
B = 0.4
NEIGHBOUR = 0.3
SPEAKER = 0.2


class Statistics(NamedTuple):
    """How many memories and tokens one user's part of the index holds."""

    documents: int
    tokens: int


class Candidate(NamedTuple):
    """A memory as far as ranking and filters need it: there may be tens of thousands, so it is a plain tuple.

    `terms` names the terms that were looked up and stand in it, in a writing that the index's `counts` reads. `place`
    is a number for a turn of a conversation, one more for the next turn, and None for what is no turn.
    """

    terms: str
    pk: int
    length: int
    place: int | None
    speaker: str
    memory_type: str
    session_id: str | None
    created_at_ms: int
    seq: int
    chunk_index: int | None
    sender_id: str
    agent_id: str


class Score(NamedTuple):
    """A memory's score (0..1), the parts that it is the sum of, and the terms of the question that it holds."""

    total: float
    terms: float
    neighbours: float
    speaker: float
    matched: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One question's numbers over all of a user's candidates: they do not depend on the part that is asked."""

    terms: Sequence[str]
    counts: Callable[[str], Mapping[str, int]]
    evidence: Mapping[int, float]
    said: Mapping[int, float]
    named: frozenset[str]
    bonus: float
    """What being said by who is named adds."""

    def best(self, candidates: Iterable[Candidate], limit: int) -> list[tuple[Candidate, Score]]:
        """The `limit` best of the candidates that hold a term of this question, best first."""
        totals = list(self._totals(candidates))
        enough = min(heapq.nlargest(limit, (value for value, _ in totals)), default=0.0)
        best = sorted((order(value, candidate), candidate) for value, candidate in totals if value >= enough)
        return [(candidate, self._score(candidate)) for _, candidate in best[:limit]]

    def _totals(self, candidates: Iterable[Candidate]) -> Iterator[tuple[float, Candidate]]:
        evidence, said, named, bonus = self.evidence, self.said, self.named, self.bonus
        for candidate in candidates:
            value = evidence.get(candidate.pk)
            if value is None:
                continue
            place = candidate.place
            if place is not None:
                value += NEIGHBOUR * (said.get(place - 1, 0.0) + said.get(place + 1, 0.0))
                value += bonus if candidate.speaker in named else 0.0
            yield value, candidate

    def _score(self, candidate: Candidate) -> Score:
        """The same sum, in the same order, with its parts."""
        place, terms = candidate.place, self.evidence[candidate.pk]
        neighbours = speaker = 0.0
        if place is not None:
            neighbours = NEIGHBOUR * (self.said.get(place - 1, 0.0) + self.said.get(place + 1, 0.0))
            speaker = self.bonus if candidate.speaker in self.named else 0.0
        held = self.counts(candidate.terms)
        matched = tuple(term for term in self.terms if term in held)
        return Score(terms + neighbours + speaker, terms, neighbours, speaker, matched)


def ask(
    text: str,
    terms: Sequence[str],
    candidates: Sequence[Candidate],
    statistics: Statistics,
    counts: Callable[[str], Mapping[str, int]],
) -> Question:
    """Weighs a question: `terms` are its tokens, `candidates` all live memories that may hold one of them."""
    holders = Counter(candidate.terms for candidate in candidates)
    written = {writing: counts(writing) for writing in holders}
    idf = _idf(terms, holders, written, statistics.documents)
    most = (1 + 2 * NEIGHBOUR + SPEAKER) * (K1 + 1) * (sum(idf.values()) or 1.0)
    average = max(statistics.tokens, 1) / max(statistics.documents, 1)
    evidence = _evidence(candidates, written, {term: weight / most for term, weight in idf.items()}, average)
    said = {one.place: evidence[one.pk] for one in candidates if one.place is not None and one.pk in evidence}
    folded = fold(text)
    named = frozenset(speaker for speaker in {candidate.speaker for candidate in candidates} if names(folded, speaker))
    return Question(terms, counts, evidence, said, named, SPEAKER * max(evidence.values(), default=0.0))


def names(folded_question: str, speaker: str) -> bool:
    """Whether a question names a speaker: as a whole word, or anywhere where words have no spaces."""
    name = fold(speaker)
    if len(name) < 2 or name not in folded_question:
        return False
    return not name.isascii() or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded_question) is not None


def order(total: float, candidate: Candidate) -> tuple[float, int, int, int]:
    """A sorting key: the best score, then the latest time, then the order of a document's passages."""
    return -total, -candidate.created_at_ms, candidate.seq, candidate.pk


def _idf(
    terms: Sequence[str], holders: Mapping[str, int], written: Mapping[str, Mapping[str, int]], documents: int
) -> dict[str, float]:
    """`holders`: how many candidates have each writing of terms."""
    holding: Counter[str] = Counter()
    for writing, count in holders.items():
        for term in written[writing]:
            holding[term] += count
    return {term: math.log(1 + (max(documents - holding[term], 0) + 0.5) / (holding[term] + 0.5)) for term in terms}


def _evidence(
    candidates: Iterable[Candidate],
    written: Mapping[str, Mapping[str, int]],
    weights: Mapping[str, float],
    average: float,
) -> dict[int, float]:
    """The BM25 of each candidate that holds a term. Few writings and lengths differ: each pair is worked out once."""
    known: dict[tuple[str, int], float] = {}
    found: dict[int, float] = {}
    for candidate in candidates:
        key = candidate.terms, candidate.length
        value = known.get(key)
        if value is None:
            value = known[key] = _bm25(written[candidate.terms], candidate.length, weights, average)
        if value:
            found[candidate.pk] = value
    return found


def _bm25(held: Mapping[str, int], length: int, weights: Mapping[str, float], average: float) -> float:
    base = K1 * (1 - B + B * length / average)
    # In the question's order: sums of floats depend on it, and databases give terms in orders of their own.
    return sum(weight * held[term] * (K1 + 1) / (held[term] + base) for term, weight in weights.items() if term in held)
