"""Ranking: BM25 with the statistics of one user and scope, boosts from neighboring turns, and fusion with vectors.

A score depends on the texts of this user alone, is the same on both databases, and names its parts.

Ours, because FTS5 weighs words by the texts of all users, tsvector has no BM25, and neither knows turns of a
conversation. Not chosen: a separate search engine, which no transaction includes; a reranker for every search, because
it is a model.

All matches of a user are in memory during a search. `python -m benchmarks retrieval` checks a changed weight.
"""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np

from store.index.fact_pages import ORIGINS, Facts
from store.search.floor import LOW_RELEVANCE, MOST_COVERED, PARTLY_KNOWN, Flags, Judged, judge
from store.search.question import Asked
from store.search.snapshot import Numbers, Postings, Reals, Snapshot
from store.text.normalize import fold
from store.text.pronouns import CONTINUATION_SIGN
from store.text.tokens import query_tokens

K1 = 1.2
B = 0.4
LONG = 100
"""The least tokens of a long message."""
LONG_SHARE = 2
"""A long message has more than this many times the tokens of the user's middle one."""
PASSAGE_B = 0.75
"""Of passages of documents, whose length says more than that of a turn."""
RECENCY_WEIGHT = 0.05
"""The newest memory gains this share of its score, the oldest none: it decides between equals."""
CONTINUED_WEIGHT = 1.0
"""The share of the score of a turn that those after it gain which go on about it: "He is a glassblower."."""
EXPECTED_WEIGHT = 0.3
PREVIOUS_WEIGHT = 0.3
NEXT_WEIGHT = 0.2
ANSWER_WEIGHT = 0.3
"""Added to PREVIOUS_WEIGHT for a turn after a question, which may be its answer."""
SPEAKER_WEIGHT = 0.4
WINDOW_WEIGHT = 0.6
WINDOW_TURNS = 6


class Fusion(NamedTuple):
    """The weights of a fusion: of a similarity scaled to 0..1, and of a named speaker.

    Neighbors count by the part of their similarity above `near`.
    """

    leg: str
    similarity: float
    near: float
    speaker: float


BY_VECTORS = Fusion("vector", 0.8, 0.6, 0.4)
BY_TOKENS = Fusion("tokens", 1.5, 0.5, 0.7)
"""Chosen by leaving out one of three conversations at a time: R@10 +3.7, MRR +4.6 over keyword on the one left out."""
_NEIGHBOR_WEIGHTS = PREVIOUS_WEIGHT + ANSWER_WEIGHT + NEXT_WEIGHT
COVERING = 50
"""Of so many of the best memories, one must cover most of what is asked."""
SLOT_RELEVANCE = 0.9
"""The least relevance of a statement of the slot that the question asks for."""
QUESTION_SIGN = "c:?"
_MINUTE_MS = 60_000
_ROUNDING = 2.0**40
_MESSAGE = ORIGINS["embedded"]
_EXTRACTED = ORIGINS["extracted"]


class Score(NamedTuple):
    """A memory's score (0..1; None: not ranked), and for each leg its score, rank, parts and matched terms.

    `relevance` is the share of the question that it covers; None if it is not ranked.
    """

    total: float | None
    legs: dict[str, dict[str, Any]]
    relevance: float | None = None


class QueryTerms(NamedTuple):
    """The distinct tokens of a query, and those of words that its answer is likely to have (`store.text.expected`).

    `looked_up` are all tokens to look up: with the signs of questions and continuations, and `readings` of words,
    which count as the own token that each names. `window` are the tokens of the days that it means, the first among
    the own; `spans` are these days in Unix milliseconds. `common` own tokens never inform; `subjects`
    tell whom or what it asks about. `is_attribute`: it asks for one property. `corrected` replace misspelled words.
    Statements of the slots `answering` answer the whole question.
    """

    own: Sequence[str]
    expected: Sequence[str]
    looked_up: Sequence[str]
    readings: Mapping[str, str] = MappingProxyType({})
    window: Sequence[str] = ()
    common: frozenset[str] = frozenset()
    subjects: frozenset[str] = frozenset()
    is_attribute: bool = False
    corrected: Mapping[str, str] = MappingProxyType({})
    spans: tuple[tuple[int, int], ...] = ()
    answering: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        words: Sequence[str],
        expected: Sequence[str] = (),
        asked: Asked | None = None,
        window: Sequence[str] = (),
        readings: Mapping[str, str] = MappingProxyType({}),
    ) -> Self:
        """Return the terms of a query's words and days, with what the question says about them."""
        own = tuple(dict.fromkeys((*words, *window[:1])))
        named = frozenset(own)
        readings = {reading: token for reading, token in readings.items() if token in named and reading not in named}
        readings |= {day: window[0] for day in window[1:] if day not in named}
        looked_up = tuple(dict.fromkeys((*own, *expected, QUESTION_SIGN, CONTINUATION_SIGN, *readings)))
        if asked is None:
            return cls(own, expected, looked_up, readings, window)
        common, subjects = asked.common.intersection(own), asked.subjects.intersection(own)
        return cls(own, expected, looked_up, readings, window, common, subjects, asked.is_attribute)

    def with_literal(self, words: Iterable[str]) -> Self:
        """Return the terms with the words of the window, which find what says them but do not inform."""
        added = [word for word in dict.fromkeys(words) if word not in self.own]
        own = (*self.own, *added)
        looked_up = tuple(dict.fromkeys((*own, *self.looked_up)))
        readings = {reading: token for reading, token in self.readings.items() if reading not in added}
        return self._replace(own=own, looked_up=looked_up, readings=readings, common=self.common.union(added))

    @property
    def place_of_window(self) -> int:
        """Return the place of the window among the own terms; -1 without one."""
        return self.own.index(self.window[0]) if self.window else -1


@dataclass(frozen=True)
class KeywordScores:
    """The keyword scores of one query for all documents of a user, whichever of them a request covers.

    `evidence` is the score of the query's own terms plus `expected`. `totals` is the sum of `evidence`, `continued`,
    `context_window`, `neighbors`, `speaker`, `recency` and `time`, 0 for a document without a match. `passes` masks the
    documents above the floor. `postings` are of `terms.looked_up`.
    """

    terms: QueryTerms
    postings: Postings
    turns: "ConversationTurns"
    judged: Judged
    evidence: Reals
    expected: Reals
    continued: Reals
    context_window: Reals
    neighbors: Reals
    speaker: Reals
    recency: Reals
    time: Reals
    totals: Reals
    passes: Flags

    def legs(self, documents: Numbers, ranks: Iterable[int]) -> list[dict[str, Any]]:
        """Return the parts of the scores of some documents, and the terms and expected words found in them."""
        matched, expected = self._matched(documents)
        question = self.question()
        return [
            {
                "rank": rank,
                "score": float(self.totals[document]),
                "parts": {
                    "terms": float(self.evidence[document] - self.expected[document]),
                    "expected": float(self.expected[document]),
                    "continued": float(self.continued[document]),
                    "context_window": float(self.context_window[document]),
                    "neighbors": float(self.neighbors[document]),
                    "speaker": float(self.speaker[document]),
                    "recency": float(self.recency[document]),
                    "time": float(self.time[document]),
                },
                "matched": matched[document],
                "expected": expected[document],
                "question": question,
            }
            for document, rank in zip(documents.tolist(), ranks, strict=True)
        ]

    def question(self) -> dict[str, Any]:
        """Return which terms of the query inform, are common or are unknown to the user, and which were corrected."""
        told = list(zip(self.terms.own, self.judged.informs.tolist(), self.judged.is_known.tolist(), strict=True))
        return {
            "informative": [term for term, informs, is_known in told if informs and is_known],
            "common": [term for term, informs, _ in told if not informs],
            "unknown": [term for term, informs, is_known in told if informs and not is_known],
            "corrected": dict(self.terms.corrected),
            "window": list(self.terms.window),
        }

    def relevance(self, documents: Numbers) -> Reals:
        """Return the share of the question that each of some documents covers, with the turns in its window.

        All of them are of low relevance if none covers most of the question.
        """
        covered = self._covered(documents)
        is_low = self.is_partly_known or self._best_coverage < MOST_COVERED
        return np.minimum(covered, LOW_RELEVANCE) if is_low else covered

    def _covered(self, documents: Numbers) -> Reals:
        covered, own = np.zeros(len(documents)), self.postings.terms < len(self.terms.own)
        terms, holding = self.postings.terms[own], self.postings.documents[own]
        words = self.judged.words[terms]
        for word in np.flatnonzero(self.judged.shares).tolist():
            covered[self.turns.cover(documents, holding[words == word])] += self.judged.shares[word]
        slots = [place for place, term in enumerate(self.terms.own) if term in self.terms.answering]
        if slots:  # a statement of what is asked, whatever its words
            states = np.isin(documents, holding[np.isin(terms, slots)])
            covered[states] = np.maximum(covered[states], SLOT_RELEVANCE)
        return covered

    @property
    def is_partly_known(self) -> bool:
        """Return True if the question asks for a property, and much of it is unknown to the user."""
        return self.terms.is_attribute and self.judged.unknown_share >= PARTLY_KNOWN

    @cached_property
    def _best_coverage(self) -> float:
        """Return the largest share of the question that one of the best memories covers; 1 if nothing is asked."""
        if not self.judged.shares.any():
            return 1.0
        found = np.flatnonzero((self.totals > 0) & self.passes)
        best = found[np.argsort(-self.totals[found], kind="stable")[:COVERING]]
        return float(self._covered(best).max(initial=0.0))

    def _matched(self, documents: Numbers) -> tuple[Mapping[int, list[str]], Mapping[int, list[str]]]:
        """Return by document the query's own terms and the expected ones that it contains."""
        terms, own = self.terms.looked_up, len(self.terms.own)
        found = defaultdict[int, list[str]](list), defaultdict[int, list[str]](list)
        is_wanted = np.zeros(len(self.totals), np.bool_)
        is_wanted[documents] = True
        chosen = is_wanted[self.postings.documents] & (self.postings.terms < own + len(self.terms.expected))
        pairs = zip(self.postings.terms[chosen].tolist(), self.postings.documents[chosen].tolist(), strict=True)
        for term, document in pairs:
            found[term >= own][document].append(terms[term])
        return found


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

    def near(self, documents: Numbers, holders: Flags) -> Numbers:
        """Return the turns among some documents that have one of `holders` within WINDOW_TURNS turns."""
        documents = documents[self._is_turn[documents]]
        held = np.bincount(self._positions[holders & self._is_turn], minlength=self._size + WINDOW_TURNS + 1).cumsum()
        places = self._positions[documents]
        return documents[held[places + WINDOW_TURNS] > held[places - WINDOW_TURNS - 1]]

    def cover(self, documents: Numbers, holding: Numbers) -> Flags:
        """Return which of some documents are among those holding a word or, as turns, within WINDOW_TURNS of one."""
        places = np.sort(self._positions[holding[self._is_turn[holding]]])
        wanted = self._positions[documents]
        following = places.searchsorted(wanted - WINDOW_TURNS)
        is_near = np.append(places, self._size * 2)[following] <= wanted + WINDOW_TURNS
        is_held = np.zeros(len(self._positions), np.bool_)  # faster than isin
        is_held[holding] = True
        covered: Flags = (is_near & self._is_turn[documents]) | is_held[documents]
        return covered

    def continuations(self, continuing: Flags, postings: Postings) -> tuple[Numbers, Numbers]:
        """Return the postings whose turn one of the next two turns goes on about, and that turn for each.

        A turn gains no term that it has, and each term once.
        """
        at_positions = np.full(self._size + 2, -1, np.int64)
        chosen = np.flatnonzero(continuing & self._is_turn)
        at_positions[self._positions[chosen]] = chosen
        places = np.where(self._is_turn, self._positions, -3)[postings.documents]
        keys = [at_positions[places + distance] for distance in (1, 2)]
        sources = np.concatenate([np.flatnonzero(found >= 0) for found in keys])
        gaining = np.concatenate([found[found >= 0] for found in keys])
        pairs = postings.terms[sources] * len(continuing) + gaining
        _, first = np.unique(pairs, return_index=True)
        held = postings.terms * len(continuing) + postings.documents
        first = first[~np.isin(pairs[first], held)]
        return sources[first], gaining[first]

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


def score_keywords(
    snapshot: Snapshot,
    terms: QueryTerms,
    postings: Postings,
    named: Flags,
    *,
    unread: Collection[str] = (),
) -> KeywordScores:
    """Score a query. `postings` refer to positions in `terms.looked_up`; `named` masks documents of speakers it names.

    `unread` are common terms whose postings were left out. Of the expected terms in a document only the best counts.
    """
    facts, count = snapshot.facts, len(terms.own)
    own = _of_terms(postings, 0, count)
    turns = ConversationTurns(facts, _having(postings, terms, QUESTION_SIGN, len(facts)))
    containing = np.bincount(postings.terms, minlength=len(terms.looked_up)).tolist()  # documents with each term
    common = terms.common.union(unread, _name_terms(snapshot, named))
    judged = judge(terms.own, containing[:count], common, memories=len(facts), total=snapshot.documents)
    weights = _weights(snapshot, terms, containing)
    # Summed in the order of the query's terms: float sums depend on the order, and databases return terms in any.
    scores = _bm25(snapshot, own, weights)
    evidence = np.bincount(own.documents, scores, len(facts)).astype(np.float64, copy=False)
    expected = np.zeros(len(facts))
    if terms.expected:
        expected = _best(snapshot, _of_terms(postings, count, count + len(terms.expected)), weights)
        evidence += expected
    told = judged.informs if judged.has_content else np.ones(count, np.bool_)
    holders = np.zeros(len(facts), np.bool_)
    holders[own.documents[told[own.terms]]] = True
    continued, is_named = np.zeros(len(facts)), named & facts["is_turn"]
    subjects = told & np.array([term in terms.subjects for term in terms.own], np.bool_)
    continuing = _having(postings, terms, CONTINUATION_SIGN, len(facts))
    if continuing.any() and len(informing := np.flatnonzero(subjects[own.terms])):
        informed = Postings(own.terms[informing], own.documents[informing], own.counts[informing])
        sources, gaining = turns.continuations(continuing, informed)
        continued += CONTINUED_WEIGHT * np.bincount(gaining, scores[informing][sources], len(facts))
    is_found = (evidence > 0) | (continued > 0)
    passes = holders | (continued > 0)
    near = turns.near(np.flatnonzero((is_found | is_named) & ~passes), holders)
    is_found[near], passes[near] = True, True
    found = np.flatnonzero(is_found)
    context_window, neighbors, speaker, recency = np.zeros((4, len(facts)))
    context_window[found] = WINDOW_WEIGHT * turns.window_sums(own, weights)[found]
    neighbors[found] = turns.neighbor_sums(evidence + continued)[found]
    matched = evidence + context_window
    speaker[found[is_named[found]]] = SPEAKER_WEIGHT * matched.max(initial=0.0)
    totals = matched + continued + neighbors + speaker
    recency[found] = RECENCY_WEIGHT * totals[found] * _recency(facts, found)
    totals += recency
    time = np.zeros(len(facts))
    if not judged.is_answerable:
        passes = np.zeros(len(facts), np.bool_)
    elif not judged.has_content:
        passes = is_found
    if terms.window:
        within, is_all = _within_window(terms, judged, own, len(facts))
        # All that it asks for, newest first; or first, as good as the best besides its own score.
        time[within] = totals.max(initial=0.0) + (totals.max(initial=0.0) - totals[within] if is_all else 0.0)
        totals += time
        passes = within if is_all else passes
    return KeywordScores(
        terms, postings, turns, judged, evidence, expected, continued, context_window, neighbors, speaker, recency,
        time, totals, passes,
    )  # fmt: skip


def _within_window(terms: QueryTerms, judged: Judged, own: Postings, size: int) -> tuple[Flags, bool]:
    """Return a mask of the documents of a query's days with one of its informative words, and False.

    If it has no other word that informs: a mask of all documents of these days, and True. `own` are the postings of the
    query's own terms.
    """
    place = terms.place_of_window
    within = np.zeros(size, np.bool_)
    within[_of_terms(own, place, place + 1).documents] = True
    rest = judged.informs & (np.arange(len(terms.own)) != place)
    if rest.any():
        within &= np.bincount(own.documents, rest[own.terms], size) > 0
    return within, not rest.any()


def _having(postings: Postings, terms: QueryTerms, sign: str, size: int) -> Flags:
    """Return a mask of the documents that have a sign."""
    found, place = np.zeros(size, np.bool_), terms.looked_up.index(sign)
    found[_of_terms(postings, place, place + 1).documents] = True
    return found


def _name_terms(snapshot: Snapshot, named: Flags) -> set[str]:
    """Return the tokens of the names of the speakers that a query names."""
    speakers = np.flatnonzero(np.bincount(snapshot.facts["speaker"][named])).tolist()
    return set(chain.from_iterable(_tokens_of_name(snapshot.names[speaker]) for speaker in speakers))


@lru_cache(maxsize=1024)
def _tokens_of_name(name: str) -> tuple[str, ...]:
    return tuple(query_tokens(name))


def _recency(facts: Facts, documents: Numbers) -> Reals:
    """Return the share of the user's memories that each document is as new as or newer than; 0 for passages.

    Those of one minute are equally new.
    """
    minutes = facts["at"] // _MINUTE_MS
    is_sorted = (minutes[1:] >= minutes[:-1]).all()
    ordered = minutes if is_sorted else np.sort(minutes, kind="stable")
    ranks = ordered.searchsorted(minutes[documents], side="right") / max(len(facts), 1)
    shares: Reals = np.where(passages_of(facts)[documents], 0.0, ranks)
    return shares


def passages_of(facts: Facts) -> Flags:
    """Return a mask of the passages of documents."""
    passages: Flags = ~facts["is_turn"] & (facts["origin"] != _EXTRACTED)
    return passages


def with_term(postings: Postings, term: int, documents: Numbers) -> Postings:
    """Return postings with a term once in some documents, which lack it."""
    if not len(documents):
        return postings
    terms = np.concatenate([postings.terms, np.full(len(documents), term)])
    found = np.concatenate([postings.documents, documents])
    order = np.lexsort((found, terms))
    counts = np.concatenate([postings.counts, np.ones(len(documents))])
    return Postings(terms[order], found[order], counts[order])


def _of_terms(postings: Postings, first: int, end: int) -> Postings:
    """Return the postings of the terms from `first` to before `end`."""
    part = slice(*np.searchsorted(postings.terms, [first, end]))
    return Postings(postings.terms[part], postings.documents[part], postings.counts[part])


@dataclass(frozen=True, slots=True)
class FusedScores:
    """Keyword scores and cosines (NaN: no vector) of one query for all documents of a user, fused into `totals`.

    `leg` names the cosines in explanations: of whole texts ("vector") or of their tokens ("tokens").
    """

    keywords: KeywordScores
    cosines: Reals
    totals: Reals
    leg: str

    def legs(self, documents: Numbers) -> list[dict[str, dict[str, Any]]]:
        """Return the score and rank of some documents in each leg."""
        by_keyword = self.keywords.legs(documents, ranks(self.keywords.totals, documents))
        cosines = np.nan_to_num(self.cosines, nan=0.0)
        by_vector = [
            {"rank": rank, "score": float(min(max(cosines[document], 0.0), 1.0))}
            for document, rank in zip(documents.tolist(), ranks(cosines, documents), strict=True)
        ]
        return [
            {name: leg for name, leg in (("keyword", keyword), (self.leg, vector)) if leg["score"]}
            for keyword, vector in zip(by_keyword, by_vector, strict=True)
        ]


def fuse(
    facts: Facts, by_keyword: KeywordScores, cosines: Reals, named: Flags, weights: Fusion = BY_VECTORS
) -> FusedScores:
    """Fuse keyword scores and cosines into one score; cosines below the radius are NaN."""
    own = by_keyword.evidence + by_keyword.context_window
    # An expected word keeps its fraction of the weight where no word of the query's own is found.
    best_own = (
        max((own - by_keyword.expected).max(initial=0.0), by_keyword.expected.max(initial=0.0) / EXPECTED_WEIGHT) or 1.0
    )
    totals: Reals = own / best_own
    near = np.zeros(len(facts))
    if (has_vector := ~np.isnan(cosines)).any():
        lowest, highest = np.nanmin(cosines), np.nanmax(cosines)
        similarities = (cosines[has_vector] - lowest) / ((highest - lowest) or 1.0)
        totals[has_vector] += weights.similarity * similarities
        near[has_vector] = np.maximum(similarities - weights.near, 0.0)
    totals += by_keyword.turns.neighbor_sums(by_keyword.evidence / best_own + near)
    totals += weights.speaker * (named & facts["is_turn"])
    neighbors = _NEIGHBOR_WEIGHTS * (1 + EXPECTED_WEIGHT + 1 - weights.near)
    totals /= 1 + EXPECTED_WEIGHT + weights.similarity + neighbors + weights.speaker
    return FusedScores(by_keyword, cosines, totals, weights.leg)


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
    is_named: Flags = np.array([*map(known.get, snapshot.names)], np.bool_)[snapshot.facts["speaker"]]
    return is_named


def names(folded_query: str, speaker: str) -> bool:
    """Return True if a query names a speaker: as a whole word, or anywhere in scripts without spaces."""
    name = fold(speaker)
    if len(name) < 2 or name not in folded_query:
        return False
    return not name.isascii() or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded_query) is not None


def _weights(snapshot: Snapshot, terms: QueryTerms, containing: Sequence[int]) -> Reals:
    """Return the weight of each term, scaled so that no score exceeds 1; 0 for the signs of turns.

    `containing` are the numbers of documents with each term.
    """
    own, total = len(terms.own), snapshot.documents
    weights = np.array([math.log(1 + (max(total - one, 0) + 0.5) / (one + 0.5)) for one in containing])  # of BM25
    weights[own:] *= EXPECTED_WEIGHT
    weights[own + len(terms.expected) :] = 0.0
    highest = (1 + SPEAKER_WEIGHT) * (K1 + 1 + WINDOW_WEIGHT) + _NEIGHBOR_WEIGHTS * (K1 + 1)
    highest *= (1 + RECENCY_WEIGHT) * (2 if terms.window else 1)
    scaled: Reals = weights / (highest * (weights[:own].sum() + weights[own:].max(initial=0.0) or 1.0))
    return scaled


def _best(snapshot: Snapshot, postings: Postings, weights: Reals) -> Reals:
    """Return the BM25 score of the best term in every document."""
    found = np.zeros(len(snapshot.facts))
    np.maximum.at(found, postings.documents, _bm25(snapshot, postings, weights))
    return found


def _bm25(snapshot: Snapshot, postings: Postings, weights: Reals) -> Reals:
    """Return the BM25 score of each posting. Passages are compared with passages, other memories with each other."""
    facts, average = snapshot.facts, max(snapshot.tokens, 1) / max(snapshot.documents, 1)
    counted, counts = _typical_parts(facts, postings)
    lengths = counted[postings.documents]
    if facts["is_turn"].all():
        average = counted.mean() if counts is not postings.counts else average
        base = K1 * (1 - B + B * lengths / average)
    else:
        passages = passages_of(facts)
        averages = [counted[kind].mean() if kind.any() else average for kind in (~passages, passages)]
        is_passage = passages[postings.documents]
        share = np.where(is_passage, PASSAGE_B, B)
        base = K1 * (1 - share + share * lengths / np.maximum(np.where(is_passage, *averages[::-1]), 1))
    scores: Reals = weights[postings.terms] * counts * (K1 + 1) / (counts + base)
    return scores


def _typical_parts(facts: Facts, postings: Postings) -> tuple[Numbers, Reals]:
    """Return the lengths of documents and the counts of postings, those of a long message as of a part of it.

    A fact in its middle is found, and a log that holds all words far apart, each many times, is not first.
    """
    lengths: Numbers = facts["length"]
    if lengths.max(initial=0) <= LONG:
        return lengths, postings.counts
    most = max(LONG, LONG_SHARE * int(np.median(lengths)))
    counted = np.where(passages_of(facts), lengths, np.minimum(lengths, most))
    share = counted[postings.documents] / np.maximum(lengths[postings.documents], 1)
    return counted, np.maximum(postings.counts * share, 1)
