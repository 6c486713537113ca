"""Ranking: BM25 with the statistics of one user and scope, boosts from neighboring turns, and fusion with vectors.

A score depends on the texts of this user alone, is the same on both databases, and names its parts.

Ours, because FTS5 weighs words by the texts of all users, tsvector has no BM25, and neither knows turns of a
conversation. Not chosen: a separate search engine, which no transaction includes; a reranker for every search, because
it is a model.

All matches of a user are in memory during a search. `python -m benchmarks retrieval` checks a changed weight.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from store.index.fact_pages import ORIGINS, Facts
from store.search.snapshot import Numbers, Postings, Reals, Snapshot
from store.text.normalize import fold

K1 = 1.2
B = 0.4
RELATED_WEIGHT = 0.2
PREVIOUS_WEIGHT = 0.3
NEXT_WEIGHT = 0.2
ANSWER_WEIGHT = 0.3
"""Added to PREVIOUS_WEIGHT for a turn after a question, which may be its answer."""
SPEAKER_WEIGHT = 0.2
WINDOW_WEIGHT = 0.3
WINDOW_TURNS = 6
MIN_MATCHED_WORDS = 2
VECTOR_WEIGHT = 0.8
FUSED_SPEAKER_WEIGHT = 0.4
_NEAR_VECTOR = 0.6
"""Neighbors count by the part of their similarity, scaled to 0..1, above this."""
_NEIGHBOR_WEIGHTS = PREVIOUS_WEIGHT + ANSWER_WEIGHT + NEXT_WEIGHT
QUESTION_SIGN = "c:?"
_ROUNDING = 2.0**40
_MESSAGE = ORIGINS["embedded"]
Flags = npt.NDArray[np.bool_]


class Score(NamedTuple):
    """A memory's score (0..1; None: not ranked), and for each leg its score, rank, parts and matched terms."""

    total: float | None
    legs: dict[str, dict[str, Any]]


class QueryTerms(NamedTuple):
    """The distinct tokens of a query, and those of words related to it (`store.text.related`).

    `looked_up` are all tokens to look up: the query's own, related ones, the sign that marks questions, and `readings`:
    tokens of other readings of its words, which count as the own token that each of them names.
    """

    own: Sequence[str]
    related: Sequence[str]
    looked_up: Sequence[str]
    readings: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def of(
        cls, own: Sequence[str], related: Sequence[str] = (), readings: Mapping[str, str] = MappingProxyType({})
    ) -> Self:
        return cls(own, related, tuple(dict.fromkeys((*own, *related, QUESTION_SIGN, *readings))), readings)


@dataclass(frozen=True, slots=True)
class KeywordScores:
    """The keyword scores of one query for all documents of a user, whichever of them a request covers.

    `evidence` is the score of the query's own terms plus `related`. `totals` is the sum of `evidence`,
    `context_window`, `neighbors` and `speaker`, 0 for a document without a match. `postings` are of `terms.looked_up`.
    """

    terms: QueryTerms
    postings: Postings
    turns: "ConversationTurns"
    evidence: Reals
    related: Reals
    context_window: Reals
    neighbors: Reals
    speaker: Reals
    totals: Reals

    def legs(self, documents: Numbers, ranks: Iterable[int]) -> list[dict[str, Any]]:
        """Return the parts of the scores of some documents, and the terms and related words found in them."""
        matched, related = self._matched(documents)
        return [
            {
                "rank": rank,
                "score": float(self.totals[document]),
                "parts": {
                    "terms": float(self.evidence[document] - self.related[document]),
                    "related": float(self.related[document]),
                    "context_window": float(self.context_window[document]),
                    "neighbors": float(self.neighbors[document]),
                    "speaker": float(self.speaker[document]),
                },
                "matched": matched[document],
                "related": related[document],
            }
            for document, rank in zip(documents.tolist(), ranks, strict=True)
        ]

    def _matched(self, documents: Numbers) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
        """Return by document the query's own terms and the related ones that it contains."""
        terms, own = self.terms.looked_up, len(self.terms.own)
        found: tuple[dict[int, list[str]], ...] = tuple({one: [] for one in documents.tolist()} for _ in range(2))
        is_wanted = np.zeros(len(self.totals), np.bool_)
        is_wanted[documents] = True
        chosen = is_wanted[self.postings.documents] & (self.postings.terms < own + len(self.terms.related))
        pairs = zip(self.postings.terms[chosen].tolist(), self.postings.documents[chosen].tolist(), strict=True)
        for term, document in pairs:
            found[term >= own][document].append(terms[term])
        return found[0], found[1]


class ConversationTurns:
    """The messages of conversations by position, to look up neighbors. Gaps separate sessions.

    `questions` masks the documents that contain a question.
    """

    def __init__(self, facts: Facts, questions: Flags) -> None:
        self._forward = np.where(questions, PREVIOUS_WEIGHT + ANSWER_WEIGHT, PREVIOUS_WEIGHT)
        self._is_turn = facts["is_turn"] & (facts["origin"] == _MESSAGE)
        places = np.where(self._is_turn, (facts["session"] << 32) + facts["seq"], -1 << 32)
        order = places.argsort(kind="stable")
        ordered = places[order]
        steps = np.minimum(ordered[1:] - ordered[:-1], WINDOW_TURNS + 1).cumsum()
        self._positions = np.full(len(facts), WINDOW_TURNS, np.int64)
        self._positions[order[1:]] += steps
        self._size = 2 * (WINDOW_TURNS + 1) + (int(steps[-1]) if len(steps) else 0)

    def neighbor_sums(self, values: Reals) -> Reals:
        """Return for each document the weighted values of the turns directly before and after it; 0 for passages.

        A turn after a question gets more of the question's value, because it may be the answer.
        """
        forward = np.bincount(self._positions, values * self._forward, self._size)
        backward = np.bincount(self._positions, values * NEXT_WEIGHT, self._size)
        found = forward[self._positions - 1] + backward[self._positions + 1]
        return found.astype(np.float64, copy=False)

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


def score_keywords(snapshot: Snapshot, terms: QueryTerms, postings: Postings, named: Flags) -> KeywordScores:
    """Score a query. `postings` refer to positions in `terms.looked_up`; `named` masks documents of speakers it names.

    Of the related terms in a document only the best counts.
    """
    facts = snapshot.facts
    own = _of_terms(postings, 0, len(terms.own))
    questions = np.zeros(len(facts), np.bool_)
    sign = terms.looked_up.index(QUESTION_SIGN)
    questions[_of_terms(postings, sign, sign + 1).documents] = True
    turns, weights = ConversationTurns(facts, questions), _weights(snapshot, terms, postings)
    # Summed in the order of the query's terms: float sums depend on the order, and databases return terms in any.
    evidence = np.bincount(own.documents, _bm25(snapshot, own, weights), len(facts)).astype(np.float64, copy=False)
    related = _best(snapshot, _of_terms(postings, len(terms.own), len(terms.own) + len(terms.related)), weights)
    evidence += related
    found = np.flatnonzero((evidence > 0) | turns.neighbor_mask(_match_enough_words(terms.own, own, len(facts))))
    context_window, neighbors, speaker = np.zeros((3, len(facts)))
    context_window[found] = WINDOW_WEIGHT * turns.window_sums(own, weights)[found]
    neighbors[found] = turns.neighbor_sums(evidence)[found]
    matched = evidence + context_window
    speaker[found[(named & facts["is_turn"])[found]]] = SPEAKER_WEIGHT * matched.max(initial=0.0)
    totals = matched + neighbors + speaker
    return KeywordScores(terms, postings, turns, evidence, related, context_window, neighbors, speaker, totals)


def _of_terms(postings: Postings, first: int, end: int) -> Postings:
    """Return the postings of the terms from `first` to before `end`."""
    part = slice(*np.searchsorted(postings.terms, [first, end]))
    return Postings(postings.terms[part], postings.documents[part], postings.counts[part])


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
    # A related word keeps its fraction of the weight where no word of the query's own is found.
    best_own = (
        max((own - by_keyword.related).max(initial=0.0), by_keyword.related.max(initial=0.0) / RELATED_WEIGHT) or 1.0
    )
    totals: Reals = own / best_own
    near = np.zeros(len(facts))
    if (has_vector := ~np.isnan(cosines)).any():
        lowest, highest = np.nanmin(cosines), np.nanmax(cosines)
        similarities = (cosines[has_vector] - lowest) / ((highest - lowest) or 1.0)
        totals[has_vector] += VECTOR_WEIGHT * similarities
        near[has_vector] = np.maximum(similarities - _NEAR_VECTOR, 0.0)
    totals += by_keyword.turns.neighbor_sums(by_keyword.evidence / best_own + near)
    totals += FUSED_SPEAKER_WEIGHT * (named & facts["is_turn"])
    neighbors = _NEIGHBOR_WEIGHTS * (1 + RELATED_WEIGHT + 1 - _NEAR_VECTOR)
    totals /= 1 + RELATED_WEIGHT + VECTOR_WEIGHT + neighbors + FUSED_SPEAKER_WEIGHT
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


def _weights(snapshot: Snapshot, terms: QueryTerms, postings: Postings) -> Reals:
    """Return the weight of each term, scaled so that no score exceeds 1; 0 for the sign of questions."""
    looked_up, own = terms.looked_up, len(terms.own)
    containing = np.bincount(postings.terms, minlength=len(looked_up)).tolist()  # documents with each term
    total = snapshot.documents
    weights = np.array([math.log(1 + (max(total - one, 0) + 0.5) / (one + 0.5)) for one in containing])  # of BM25
    weights[own:] *= RELATED_WEIGHT
    weights[own + len(terms.related) :] = 0.0
    highest = (1 + SPEAKER_WEIGHT) * (K1 + 1 + WINDOW_WEIGHT) + _NEIGHBOR_WEIGHTS * (K1 + 1)
    scaled: Reals = weights / (highest * (weights[:own].sum() + weights[own:].max(initial=0.0) or 1.0))
    return scaled


def _best(snapshot: Snapshot, postings: Postings, weights: Reals) -> Reals:
    """Return the BM25 score of the best term in every document."""
    found = np.zeros(len(snapshot.facts))
    np.maximum.at(found, postings.documents, _bm25(snapshot, postings, weights))
    return found


def _bm25(snapshot: Snapshot, postings: Postings, weights: Reals) -> Reals:
    """Return the BM25 score of each posting."""
    average = max(snapshot.tokens, 1) / max(snapshot.documents, 1)
    lengths = snapshot.facts["length"][postings.documents]
    base = K1 * (1 - B + B * lengths / average)
    scores: Reals = weights[postings.terms] * postings.counts * (K1 + 1) / (postings.counts + base)
    return scores
