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

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
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


class Place(NamedTuple):
    """Where in which conversation something was said."""

    session_pk: int
    seq: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory as far as ranking and filters need it. `terms`: how often each term that was looked up stands in it."""

    terms: Mapping[str, int]
    pk: int
    session_pk: int | None
    session_id: str | None
    seq: int
    chunk_index: int | None
    speaker: str
    sender_id: str
    agent_id: str
    memory_type: str
    created_at_ms: int
    length: int

    @property
    def place(self) -> Place | None:
        """None for what is not a turn of a conversation."""
        return None if self.session_pk is None or self.chunk_index is not None else Place(self.session_pk, self.seq)


@dataclass(frozen=True, slots=True)
class Score:
    """A memory's score (0..1) and the parts that it is the sum of, with the terms of the question that it holds."""

    total: float
    terms: float
    neighbours: float
    speaker: float
    matched: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One question's numbers over all of a user's candidates: they do not depend on the part that is asked."""

    text: str
    terms: Sequence[str]
    evidence: Mapping[int, float]
    around: Mapping[Place, float]
    best: float
    most: float

    def score(self, candidate: Candidate) -> Score:
        place = candidate.place
        terms = self.evidence.get(candidate.pk, 0.0) / self.most
        neighbours = self.around.get(place, 0.0) / self.most if place else 0.0
        speaker = SPEAKER * self.best / self.most if place and names(self.text, candidate.speaker) else 0.0
        matched = tuple(term for term in self.terms if term in candidate.terms)
        return Score(terms + neighbours + speaker, terms, neighbours, speaker, matched)


def ask(text: str, terms: Sequence[str], candidates: Sequence[Candidate], statistics: Statistics) -> Question:
    """Weighs a question: `terms` are its tokens, `candidates` all live memories that hold one of them."""
    idf = _idf(terms, candidates, statistics.documents)
    average = max(statistics.tokens, 1) / max(statistics.documents, 1)
    evidence: dict[int, float] = {}
    around: defaultdict[Place, float] = defaultdict(float)
    for candidate in candidates:
        value = _bm25(candidate, idf, average)
        if value and (place := candidate.place):
            around[Place(place.session_pk, place.seq - 1)] += NEIGHBOUR * value
            around[Place(place.session_pk, place.seq + 1)] += NEIGHBOUR * value
        evidence[candidate.pk] = value
    most = (1 + 2 * NEIGHBOUR + SPEAKER) * (K1 + 1) * sum(idf.values())
    return Question(fold(text), terms, evidence, around, max(evidence.values(), default=0.0), most or 1.0)


def order(scored: tuple[Candidate, Score]) -> tuple[float, int, int, int]:
    """The sorting key: the best score, then the latest time, then the order of a document's passages."""
    candidate, score = scored
    return -score.total, -candidate.created_at_ms, candidate.seq, candidate.pk


def _idf(terms: Sequence[str], candidates: Iterable[Candidate], documents: int) -> dict[str, float]:
    holding: defaultdict[str, int] = defaultdict(int)
    for candidate in candidates:
        for term in candidate.terms:
            holding[term] += 1
    return {term: math.log(1 + (max(documents - holding[term], 0) + 0.5) / (holding[term] + 0.5)) for term in terms}


def _bm25(candidate: Candidate, idf: Mapping[str, float], average: float) -> float:
    base = K1 * (1 - B + B * candidate.length / average)
    held = candidate.terms
    # In the question's order: sums of floats depend on it, and databases give terms in orders of their own.
    return sum(weight * held[term] * (K1 + 1) / (held[term] + base) for term, weight in idf.items() if term in held)


def names(folded_question: str, speaker: str) -> bool:
    """Whether a question names a speaker: as a whole word, or anywhere where words have no spaces."""
    name = fold(speaker)
    if len(name) < 2 or name not in folded_question:
        return False
    return not name.isascii() or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded_question) is not None
