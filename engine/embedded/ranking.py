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

With vectors a memory's score is the sum of

    keyword / best keyword  +  VECTOR * (cosine - least) / (best - least)
    + FUSED_NEIGHBOUR * the keyword part of the turns beside it  +  FUSED_SPEAKER when its speaker is named

over the most that it can reach, `1 + VECTOR + 2 * FUSED_NEIGHBOUR + FUSED_SPEAKER`. Best and least are those of all of
the user's memories; one without a vector lacks that part. Scores are fused and not ranks, which say too little of how
much better one is than the next; and the neighbours' cosines add nothing that their words did not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.embedded.pages import Facts
from engine.embedded.snapshot import Numbers, Postings, Reals, Snapshot
from engine.text.normalize import fold

K1 = 1.2
B = 0.4
NEIGHBOUR = 0.3
SPEAKER = 0.2
VECTOR = 0.8
FUSED_NEIGHBOUR = 0.4
FUSED_SPEAKER = 0.3
Flags = npt.NDArray[np.bool_]


class Score(NamedTuple):
    """A memory's score (0..1; None: it was not ranked), and what each leg of the method gave: score, rank, parts,
    matched terms."""

    total: float | None
    legs: dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Keywords:
    """One question's keyword evidence in all of a user's documents: it does not depend on the part that is asked.

    `totals` is the sum of `evidence`, `neighbours` and `speaker`, 0 for a document that holds no term.
    """

    terms: Sequence[str]
    postings: Postings
    evidence: Reals
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


def keywords(snapshot: Snapshot, terms: Sequence[str], postings: Postings, named: Flags) -> Keywords:
    """Weighs a question of these terms; `postings` speak of them by their places. `named`: who speaks is named."""
    facts = snapshot.facts
    evidence = _evidence(snapshot, len(terms), postings)
    neighbours, speaker = np.zeros(len(facts)), np.zeros(len(facts))
    held = np.flatnonzero((evidence > 0) & facts["is_turn"])
    neighbours[held] = NEIGHBOUR * beside(facts[held], evidence[held])
    speaker[held[named[held]]] = SPEAKER * evidence.max(initial=0.0)
    return Keywords(terms, postings, evidence, neighbours, speaker, evidence + neighbours + speaker)


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
    words = by_keyword.evidence / (by_keyword.evidence.max(initial=0.0) or 1.0)
    totals = words.copy()
    if (told := ~np.isnan(cosines)).any():
        least, most = np.nanmin(cosines), np.nanmax(cosines)
        totals[told] += VECTOR * (cosines[told] - least) / ((most - least) or 1.0)
    turns = np.flatnonzero(facts["is_turn"])
    totals[turns] += FUSED_NEIGHBOUR * beside(facts[turns], words[turns]) + FUSED_SPEAKER * named[turns]
    totals /= 1 + VECTOR + 2 * FUSED_NEIGHBOUR + FUSED_SPEAKER
    return Fused(by_keyword, cosines, totals)


def ranks(values: Reals, documents: Numbers) -> list[int]:
    """The place of some documents among all, 1 for the highest value."""
    places = np.searchsorted(np.sort(values), values[documents], side="right")
    return [len(values) - int(place) + 1 for place in places]


def beside(turns: Facts, values: Reals) -> Reals:
    """For each turn of a conversation, the sum of the values of the turns right before and after it."""
    places = (turns["session"] << 32) + turns["seq"]
    order = np.argsort(places, kind="stable")
    follows = np.diff(places[order]) == 1
    ordered, sums = values[order], np.zeros(len(values))
    sums[1:][follows] += ordered[:-1][follows]
    sums[:-1][follows] += ordered[1:][follows]
    found = np.empty(len(values))
    found[order] = sums
    return found


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


def _evidence(snapshot: Snapshot, term_count: int, postings: Postings) -> Reals:
    """The BM25 of every document, as a part of the most that a score can reach."""
    size = len(snapshot.facts)
    weights = _idf(snapshot.documents, np.bincount(postings.terms, minlength=term_count).tolist())
    most = (1 + 2 * NEIGHBOUR + SPEAKER) * (K1 + 1) * (sum(weights) or 1.0)
    average = max(snapshot.tokens, 1) / max(snapshot.documents, 1)
    lengths = snapshot.facts["length"][postings.documents]
    base = K1 * (1 - B + B * lengths / average)
    weight = np.array([weight / most for weight in weights])[postings.terms]
    # In the question's order: sums of floats depend on it, and databases give terms in orders of their own.
    parts: Reals = weight * postings.counts * (K1 + 1) / (postings.counts + base)
    return np.bincount(postings.documents, parts, size).astype(np.float64, copy=False)


def _idf(documents: int, holding: Iterable[int]) -> list[float]:
    """The weight of each term, by how many documents hold it."""
    return [math.log(1 + (max(documents - held, 0) + 0.5) / (held + 0.5)) for held in holding]
