"""Which memories answer a question best: BM25 over the user's own numbers, and what stands around a hit.

Pure functions: the same numbers give the same order and the same scores whatever database they were read from.

A memory's evidence is its BM25 (Robertson and Zaragoza 2009, with Lucene's idf, which is never negative):

    bm25 = sum over the terms t of the question of  idf(t) * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length / average))
    idf(t) = ln(1 + (N - n(t) + 0.5) / (n(t) + 0.5))

To that comes AROUND of the sum of idf(t) over the terms that stand in the memory or, if it is a turn of a conversation,
within REACH turns of it: what is spoken of is named once and then called "it". A turn adds NEIGHBOUR of the evidence of
the turns right before and after it (a question and its answer stand beside each other), and SPEAKER of the best that a
memory has so far without its neighbours, when its speaker is named in the question. The score is that sum over the most
that any memory could reach: it lies between 0 and 1, grows with the part of the question that a memory covers, and is
the same in whatever part of the memories one asks. Time decides between equal scores only: the later comes first.

A turn without any term is found too when the one right before or after it holds TELLING words of the question: an
answer seldom says its question again. Who looks for one word or for a date finds only what holds it.

The constants were chosen on English conversations and Chinese passages. They are no narrow peak: AROUND from 0.2 to 0.5
and a REACH from 4 to 8 find nearly as much, in turns with and without the speaker's name and in single sentences.

With vectors a memory's score is the sum of

    own / best own  +  VECTOR * (cosine - least) / (best - least)
    + FUSED_NEIGHBOUR * evidence of the turns beside it / best own  +  FUSED_SPEAKER when its speaker is named

where a memory's own is its evidence and what AROUND adds; over the most that it can reach,
`1 + VECTOR + 2 * FUSED_NEIGHBOUR + FUSED_SPEAKER`. Best and least are those of all of the user's memories; one without
a vector lacks that part. Scores are fused and not ranks, which say too little of how much better one is than the next;
and the neighbours' cosines add nothing that their words did not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from store.index.pages import ORIGINS, Facts
from store.search.snapshot import Numbers, Postings, Reals, Snapshot
from store.text.normalize import fold

K1 = 1.2
B = 0.4
NEIGHBOUR = 0.3
SPEAKER = 0.2
AROUND = 0.3
REACH = 6
TELLING = 2
VECTOR = 0.8
FUSED_NEIGHBOUR = 0.4
FUSED_SPEAKER = 0.3
_STEPS = 2.0**40
_SAID = ORIGINS.index("embedded")
Flags = npt.NDArray[np.bool_]


class Score(NamedTuple):
    """A memory's score (0..1; None: it was not ranked), and what each leg of the method gave: score, rank, parts,
    matched terms."""

    total: float | None
    legs: dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Keywords:
    """One question's keyword evidence in all of a user's documents: it does not depend on the part that is asked.

    `totals` is the sum of `evidence`, `around`, `neighbours` and `speaker`, 0 for a document that was not found.
    """

    terms: Sequence[str]
    postings: Postings
    turns: Turns
    evidence: Reals
    around: Reals
    neighbours: Reals
    speaker: Reals
    totals: Reals

    def legs(self, documents: Numbers, ranks: Iterable[int]) -> list[dict[str, Any]]:
        """What there is to say of some documents: the parts of their scores and the terms that they hold."""
        matched = self._matched(documents)
        return [
            {
                "rank": rank,
                "score": float(self.totals[document]),
                "parts": {
                    "terms": float(self.evidence[document]),
                    "around": float(self.around[document]),
                    "neighbours": float(self.neighbours[document]),
                    "speaker": float(self.speaker[document]),
                },
                "matched": matched[document],
            }
            for document, rank in zip(documents.tolist(), ranks, strict=True)
        ]

    def _matched(self, documents: Numbers) -> dict[int, list[str]]:
        matched: dict[int, list[str]] = {document: [] for document in documents.tolist()}
        is_wanted = np.zeros(len(self.totals), np.bool_)
        is_wanted[documents] = True
        chosen = is_wanted[self.postings.documents]
        pairs = zip(self.postings.terms[chosen].tolist(), self.postings.documents[chosen].tolist(), strict=True)
        for term, document in pairs:
            matched[document].append(self.terms[term])
        return matched


class Turns:
    """Which turns of conversations stand near each other.

    All of them lie on one line, each as far from the one before it as in their session; those of two sessions, or
    farther apart than REACH, as far as nothing reaches. What is no turn lies apart from them, all in one place; so does
    what an operator or an agent wrote down: it stands beside others by chance, and maybe beside another agent's own.
    """

    def __init__(self, facts: Facts) -> None:
        self._are = facts["is_turn"] & (facts["origin"] == _SAID)
        places = np.where(self._are, (facts["session"] << 32) + facts["seq"], -1 << 32)
        order = places.argsort(kind="stable")
        ordered = places[order]
        ways = np.minimum(ordered[1:] - ordered[:-1], REACH + 1).cumsum()
        self._line = np.full(len(facts), REACH, np.int64)
        self._line[order[1:]] += ways
        self._size = 2 * (REACH + 1) + (int(ways[-1]) if len(ways) else 0)

    def beside(self, values: Reals) -> Reals:
        """For each turn the sum of the values of the turns right before and after it; 0 for what is no turn."""
        on_line = np.bincount(self._line, values, self._size).astype(np.float64, copy=False)
        found: Reals = on_line[self._line - 1] + on_line[self._line + 1]
        return found

    def are_beside(self, chosen: Flags) -> Flags:
        """Which turns stand right before or after one of these."""
        on_line = np.zeros(self._size, np.bool_)
        on_line[self._line[chosen]] = True
        return on_line[self._line - 1] | on_line[self._line + 1]

    def around(self, postings: Postings, weights: Reals) -> Reals:
        """The sum of the weights of the terms that stand in a document or, if it is a turn, within REACH turns of it.

        Each occurrence of a term reaches over a part of the line, as far as the one before it has not; a turn has the
        terms whose parts have begun and not ended where it lies.
        """
        # In whole steps, so that what was added goes away again without rest: equal sums have to stay equal.
        weight = (np.rint(weights * _STEPS) / _STEPS)[postings.terms]
        offsets = postings.terms * self._size
        keys = self._line[postings.documents] + offsets
        if (keys[1:] < keys[:-1]).any():
            keys.sort()
        begins, ends = keys - REACH, keys + (REACH + 1)
        np.maximum(begins[1:], ends[:-1], out=begins[1:])
        on_line = np.bincount(begins - offsets, weight, self._size) - np.bincount(ends - offsets, weight, self._size)
        alone = np.bincount(postings.documents, weight, len(self._line))
        return np.where(self._are, on_line.cumsum()[self._line], alone)


def keywords(snapshot: Snapshot, terms: Sequence[str], postings: Postings, named: Flags) -> Keywords:
    """Weighs a question of these terms; `postings` speak of them by their places. `named`: who speaks is named."""
    facts, turns = snapshot.facts, Turns(snapshot.facts)
    weights = _weights(snapshot, len(terms), postings)
    evidence = _evidence(snapshot, postings, weights)
    found = np.flatnonzero((evidence > 0) | turns.are_beside(_are_telling(terms, postings, len(facts))))
    around, neighbours, speaker = np.zeros((3, len(facts)))
    around[found] = AROUND * turns.around(postings, weights)[found]
    neighbours[found] = NEIGHBOUR * turns.beside(evidence)[found]
    own = evidence + around
    speaker[found[(named & facts["is_turn"])[found]]] = SPEAKER * own.max(initial=0.0)
    return Keywords(terms, postings, turns, evidence, around, neighbours, speaker, own + neighbours + speaker)


@dataclass(frozen=True, slots=True)
class Fused:
    """One question's keyword evidence and its cosines (NaN: no vector) in all of a user's documents, made one score."""

    keywords: Keywords
    cosines: Reals
    totals: Reals

    def legs(self, documents: Numbers) -> list[dict[str, dict[str, Any]]]:
        """What each leg gave to some documents, and how they rank in it."""
        by_keyword = self.keywords.legs(documents, ranks(self.keywords.totals, documents))
        cosines = np.nan_to_num(self.cosines, nan=0.0)
        by_vector = [
            {"rank": rank, "score": float(min(max(cosines[document], 0.0), 1.0))}
            for document, rank in zip(documents.tolist(), ranks(cosines, documents), strict=True)
        ]
        return [
            {name: leg for name, leg in (("keyword", keyword), ("vector", vector)) if leg["score"]}
            for keyword, vector in zip(by_keyword, by_vector, strict=True)
        ]


def fused(facts: Facts, by_keyword: Keywords, cosines: Reals, named: Flags) -> Fused:
    """`cosines` below a radius are to be NaN already."""
    own = by_keyword.evidence + by_keyword.around
    best_own = own.max(initial=0.0) or 1.0
    totals: Reals = own / best_own
    if (told := ~np.isnan(cosines)).any():
        least, most = np.nanmin(cosines), np.nanmax(cosines)
        totals[told] += VECTOR * (cosines[told] - least) / ((most - least) or 1.0)
    beside = by_keyword.turns.beside(by_keyword.evidence / best_own)
    totals += FUSED_NEIGHBOUR * beside + FUSED_SPEAKER * (named & facts["is_turn"])
    totals /= 1 + VECTOR + 2 * FUSED_NEIGHBOUR + FUSED_SPEAKER
    return Fused(by_keyword, cosines, totals)


def ranks(values: Reals, documents: Numbers) -> list[int]:
    """The place of some documents among all, 1 for the highest value."""
    places = np.searchsorted(np.sort(values), values[documents], side="right")
    return [len(values) - int(place) + 1 for place in places]


def best(facts: Facts, documents: Numbers, totals: Reals, limit: int) -> Numbers:
    """The `limit` best of some documents: by score, then the latest, then in the order of a text's passages."""
    if len(documents) > limit:
        values = totals[documents]
        documents = documents[values >= np.partition(values, -limit)[-limit]]
    rows = facts[documents]
    order = np.lexsort((rows["pk"], rows["seq"], -rows["at"], -totals[documents]))
    return documents[order[:limit]]


def speakers_named(question: str, snapshot: Snapshot) -> Flags:
    """Of which documents the speaker is named in the question."""
    folded = fold(question)
    known = {name: names(folded, name) for name in set(snapshot.names)}
    is_named: Flags = np.array([known[name] for name in snapshot.names], np.bool_)[snapshot.facts["speaker"]]
    return is_named


def names(folded_question: str, speaker: str) -> bool:
    """Whether a question names a speaker: as a whole word, or anywhere where words have no spaces."""
    name = fold(speaker)
    if len(name) < 2 or name not in folded_question:
        return False
    return not name.isascii() or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded_question) is not None


def _are_telling(terms: Sequence[str], postings: Postings, size: int) -> Flags:
    """Which documents hold TELLING words of the question."""
    compounds = " ".join(term for term in terms if not (term.isalpha() or term.isdigit()))
    words = np.array([_share_of_a_word(term, compounds) for term in terms], np.float64)[postings.terms]
    return np.bincount(postings.documents, words, size) >= TELLING


def _share_of_a_word(term: str, compounds: str) -> float:
    """How much of a word a term is: dates, letters and parts of compounds are none of their own, and Chinese is written
    in pairs of characters of which a word has several."""
    if not (term.isalpha() or term.isdigit()):
        return 0.0 if ":" in term else 1.0
    if len(term) == 1 or term in compounds:
        return 0.0
    return 0.5 if len(term) == 2 and not term.isascii() else 1.0


def _weights(snapshot: Snapshot, term_count: int, postings: Postings) -> Reals:
    """The weight of each term, as a part of the most that a score can reach."""
    weights = _idf(snapshot.documents, np.bincount(postings.terms, minlength=term_count).tolist())
    most = (1 + SPEAKER) * (K1 + 1 + AROUND) + 2 * NEIGHBOUR * (K1 + 1)
    return np.array(weights) / (most * (sum(weights) or 1.0))


def _evidence(snapshot: Snapshot, postings: Postings, weights: Reals) -> Reals:
    """The BM25 of every document."""
    average = max(snapshot.tokens, 1) / max(snapshot.documents, 1)
    lengths = snapshot.facts["length"][postings.documents]
    base = K1 * (1 - B + B * lengths / average)
    # In the question's order: sums of floats depend on it, and databases give terms in orders of their own.
    parts: Reals = weights[postings.terms] * postings.counts * (K1 + 1) / (postings.counts + base)
    return np.bincount(postings.documents, parts, len(snapshot.facts)).astype(np.float64, copy=False)


def _idf(documents: int, holding: Iterable[int]) -> list[float]:
    """The weight of each term, by how many documents hold it."""
    return [math.log(1 + (max(documents - held, 0) + 0.5) / (held + 0.5)) for held in holding]
