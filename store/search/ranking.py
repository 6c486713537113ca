"""Ranking: BM25 with the statistics of one user and scope, boosts from neighboring turns, and fusion with vectors."""

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
NEIGHBOR_WEIGHT = 0.3
SPEAKER_WEIGHT = 0.2
WINDOW_WEIGHT = 0.3
WINDOW_TURNS = 6
MIN_MATCHED_WORDS = 2
VECTOR_WEIGHT = 0.8
FUSED_NEIGHBOR_WEIGHT = 0.4
FUSED_SPEAKER_WEIGHT = 0.3
_ROUNDING = 2.0**40
_MESSAGE = ORIGINS.index("embedded")
Flags = npt.NDArray[np.bool_]


class Score(NamedTuple):
    """A memory's score (0..1; None: not ranked), and for each leg its score, rank, parts and matched terms."""

    total: float | None
    legs: dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class KeywordScores:
    """The keyword scores of one query for all documents of a user, whichever of them a request covers.

    `totals` is the sum of `evidence`, `context_window`, `neighbors` and `speaker`, 0 for a document without a match.
    """

    terms: Sequence[str]
    postings: Postings
    turns: "ConversationTurns"
    evidence: Reals
    context_window: Reals
    neighbors: Reals
    speaker: Reals
    totals: Reals

    def legs(self, documents: Numbers, ranks: Iterable[int]) -> list[dict[str, Any]]:
        """Return the parts of the scores of some documents, and their matched terms."""
        matched = self._matched(documents)
        return [
            {
                "rank": rank,
                "score": float(self.totals[document]),
                "parts": {
                    "terms": float(self.evidence[document]),
                    "context_window": float(self.context_window[document]),
                    "neighbors": float(self.neighbors[document]),
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


class ConversationTurns:
    """The messages of conversations by position, to look up neighbors. Gaps separate sessions."""

    def __init__(self, facts: Facts) -> None:
        self._is_turn = facts["is_turn"] & (facts["origin"] == _MESSAGE)
        places = np.where(self._is_turn, (facts["session"] << 32) + facts["seq"], -1 << 32)
        order = places.argsort(kind="stable")
        ordered = places[order]
        steps = np.minimum(ordered[1:] - ordered[:-1], WINDOW_TURNS + 1).cumsum()
        self._positions = np.full(len(facts), WINDOW_TURNS, np.int64)
        self._positions[order[1:]] += steps
        self._size = 2 * (WINDOW_TURNS + 1) + (int(steps[-1]) if len(steps) else 0)

    def neighbor_sums(self, values: Reals) -> Reals:
        """Return for each document the sum of the values of the turns directly before and after it; 0 for passages."""
        at_positions = np.bincount(self._positions, values, self._size).astype(np.float64, copy=False)
        found: Reals = at_positions[self._positions - 1] + at_positions[self._positions + 1]
        return found

    def neighbor_mask(self, chosen: Flags) -> Flags:
        """Return a mask of the turns directly before or after one of these."""
        at_positions = np.zeros(self._size, np.bool_)
        at_positions[self._positions[chosen]] = True
        return at_positions[self._positions - 1] | at_positions[self._positions + 1]

    def window_sums(self, postings: Postings, weights: Reals) -> Reals:
        """Return the sum of the weights of the terms in a document or, for a turn, within WINDOW_TURNS turns of it.

        Each occurrence of a term covers an interval of positions, which begins where that of the occurrence before it
        ended. Running sums over the ends of the intervals give the weight of the terms at each position.
        """
        # Rounded to binary fractions, so that additions and subtractions cancel exactly and equal sums stay equal.
        weight = (np.rint(weights * _ROUNDING) / _ROUNDING)[postings.terms]
        offsets = postings.terms * self._size
        keys = self._positions[postings.documents] + offsets
        if (keys[1:] < keys[:-1]).any():
            keys.sort()
        begins, ends = keys - WINDOW_TURNS, keys + (WINDOW_TURNS + 1)
        np.maximum(begins[1:], ends[:-1], out=begins[1:])
        at_positions = np.bincount(begins - offsets, weight, self._size) - np.bincount(
            ends - offsets, weight, self._size
        )
        alone = np.bincount(postings.documents, weight, len(self._positions))
        return np.where(self._is_turn, at_positions.cumsum()[self._positions], alone)


def score_keywords(snapshot: Snapshot, terms: Sequence[str], postings: Postings, named: Flags) -> KeywordScores:
    """Score a query. `postings` refer to positions in `terms`; `named` masks the documents of a speaker it names."""
    facts, turns = snapshot.facts, ConversationTurns(snapshot.facts)
    weights = _weights(snapshot, len(terms), postings)
    evidence = _evidence(snapshot, postings, weights)
    found = np.flatnonzero((evidence > 0) | turns.neighbor_mask(_match_enough_words(terms, postings, len(facts))))
    context_window, neighbors, speaker = np.zeros((3, len(facts)))
    context_window[found] = WINDOW_WEIGHT * turns.window_sums(postings, weights)[found]
    neighbors[found] = NEIGHBOR_WEIGHT * turns.neighbor_sums(evidence)[found]
    own = evidence + context_window
    speaker[found[(named & facts["is_turn"])[found]]] = SPEAKER_WEIGHT * own.max(initial=0.0)
    return KeywordScores(
        terms, postings, turns, evidence, context_window, neighbors, speaker, own + neighbors + speaker
    )


@dataclass(frozen=True, slots=True)
class FusedScores:
    """Keyword scores and cosines (NaN: no vector) of one query for all documents of a user, fused into `totals`."""

    keywords: KeywordScores
    cosines: Reals
    totals: Reals

    def legs(self, documents: Numbers) -> list[dict[str, dict[str, Any]]]:
        """Return the score and rank of some documents in each leg."""
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


def fuse(facts: Facts, by_keyword: KeywordScores, cosines: Reals, named: Flags) -> FusedScores:
    """Fuse keyword scores and cosines into one score; cosines below the radius are NaN."""
    own = by_keyword.evidence + by_keyword.context_window
    best_own = own.max(initial=0.0) or 1.0
    totals: Reals = own / best_own
    if (has_vector := ~np.isnan(cosines)).any():
        lowest, highest = np.nanmin(cosines), np.nanmax(cosines)
        totals[has_vector] += VECTOR_WEIGHT * (cosines[has_vector] - lowest) / ((highest - lowest) or 1.0)
    neighbors = by_keyword.turns.neighbor_sums(by_keyword.evidence / best_own)
    totals += FUSED_NEIGHBOR_WEIGHT * neighbors + FUSED_SPEAKER_WEIGHT * (named & facts["is_turn"])
    totals /= 1 + VECTOR_WEIGHT + 2 * FUSED_NEIGHBOR_WEIGHT + FUSED_SPEAKER_WEIGHT
    return FusedScores(by_keyword, cosines, totals)


def ranks(values: Reals, documents: Numbers) -> list[int]:
    """Return the ranks of some documents among all, 1 for the highest value."""
    places = np.searchsorted(np.sort(values), values[documents], side="right")
    return [len(values) - int(place) + 1 for place in places]


def best(facts: Facts, documents: Numbers, totals: Reals, limit: int) -> Numbers:
    """Return the `limit` best of some documents: by score, then newest first, then in the order of their session."""
    if len(documents) > limit:
        values = totals[documents]
        documents = documents[values >= np.partition(values, -limit)[-limit]]
    rows = facts[documents]
    order = np.lexsort((rows["pk"], rows["seq"], -rows["at"], -totals[documents]))
    return documents[order[:limit]]


def speakers_named(query: str, snapshot: Snapshot) -> Flags:
    """Return a mask of the documents whose speaker the query names."""
    folded = fold(query)
    known = {name: names(folded, name) for name in set(snapshot.names)}
    is_named: Flags = np.array([known[name] for name in snapshot.names], np.bool_)[snapshot.facts["speaker"]]
    return is_named


def names(folded_query: str, speaker: str) -> bool:
    """Return True if a query names a speaker: as a whole word, or anywhere in scripts without spaces."""
    name = fold(speaker)
    if len(name) < 2 or name not in folded_query:
        return False
    return not name.isascii() or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded_query) is not None


def _match_enough_words(terms: Sequence[str], postings: Postings, size: int) -> Flags:
    """Return a mask of the documents that contain MIN_MATCHED_WORDS words of the query."""
    compounds = " ".join(term for term in terms if not (term.isalpha() or term.isdigit()))
    words = np.array([_word_fraction(term, compounds) for term in terms], np.float64)[postings.terms]
    return np.bincount(postings.documents, words, size) >= MIN_MATCHED_WORDS


def _word_fraction(term: str, compounds: str) -> float:
    """Return the fraction of a word that a term counts as.

    Dates, single letters and parts of compounds do not count. A pair of Chinese characters counts half, because words
    are indexed as several pairs.
    """
    if not (term.isalpha() or term.isdigit()):
        return 0.0 if ":" in term else 1.0
    if len(term) == 1 or term in compounds:
        return 0.0
    return 0.5 if len(term) == 2 and not term.isascii() else 1.0


def _weights(snapshot: Snapshot, term_count: int, postings: Postings) -> Reals:
    """Return the weight of each term, scaled so that no score exceeds 1."""
    containing = np.bincount(postings.terms, minlength=term_count).tolist()  # documents with each term
    total = snapshot.documents
    weights = [math.log(1 + (max(total - count, 0) + 0.5) / (count + 0.5)) for count in containing]  # of BM25
    highest = (1 + SPEAKER_WEIGHT) * (K1 + 1 + WINDOW_WEIGHT) + 2 * NEIGHBOR_WEIGHT * (K1 + 1)
    return np.array(weights) / (highest * (sum(weights) or 1.0))


def _evidence(snapshot: Snapshot, postings: Postings, weights: Reals) -> Reals:
    """Return the BM25 score of every document."""
    average = max(snapshot.tokens, 1) / max(snapshot.documents, 1)
    lengths = snapshot.facts["length"][postings.documents]
    base = K1 * (1 - B + B * lengths / average)
    # Summed in the order of the query's terms: float sums depend on the order, and databases return terms in any.
    parts: Reals = weights[postings.terms] * postings.counts * (K1 + 1) / (postings.counts + base)
    return np.bincount(postings.documents, parts, len(snapshot.facts)).astype(np.float64, copy=False)
