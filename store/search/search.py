"""Questions to hits: two statements whatever the number of questions, everything between them in memory.

With vectors it is one more for the space that they lie in, where the endpoint has to be asked about a question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np

from store.index import keyword
from store.search import queries, ranking, snapshot
from store.search.candidates import admitted, sessions_of
from store.search.plan import Way, space_for, way_of
from store.search.ranking import Fused, Keywords, Score
from store.search.records import raw_of
from store.search.snapshot import Numbers, Postings, Reals, Snapshot
from store.text.tokens import query_tokens
from store.types import Hit, Owner, SearchRequest, SearchResult
from store.vectors import pages, spaces
from store.vectors.spaces import Serving

MAX_TERMS: Final = 2048
Ranked = tuple[int, Score]
"""A memory's row id and its score."""


def search(owner: Owner, requests: Sequence[SearchRequest]) -> list[SearchResult]:
    """The best memories for each request. At most `top_k` of them, and besides as many unprocessed messages, and the
    user's profile where it is asked for. One request `with_hidden` makes all of them so.

    `radius` cuts what the vectors found, never keyword evidence. Errors: `InvalidInput` for a method that needs an
    endpoint, `EngineUnavailable` where the endpoint of `vector` fails.
    """
    space = space_for(list(requests))
    ways = [way_of(request, space) for request in requests]
    try:
        questions = _questions(owner, requests, ways, space)
    except snapshot.OtherSpace:
        spaces.serving()  # which is then the last one seen
        return search(owner, requests)
    if questions is None:
        return [SearchResult((), way.method, way.degraded) for way in ways]
    best = [questions.best(request, way) for request, way in zip(requests, ways, strict=True)]
    profiles = [questions.profiles(request) for request in requests]
    rows = queries.rows(
        owner,
        {pk for ranked in chain(best, profiles) for pk, _ in ranked},
        with_hidden=any(request.with_hidden for request in requests),
        space=space.pk if space and any(way.method == "vector" for way in ways) else None,
    )
    return [
        SearchResult(
            tuple(hits_of(owner, [*questions.nearest(request, way, ranked, rows), *unranked], rows)),
            way.method,
            way.degraded,
        )
        for request, way, ranked, unranked in zip(requests, ways, best, profiles, strict=True)
    ]


def rank(owner: Owner, requests: Sequence[SearchRequest]) -> list[list[Ranked]]:
    """The best memories for each request by keyword, best first.

    At most one statement.
    """
    way = Way("keyword")
    questions = _questions(owner, requests, [way] * len(requests), None)
    return [questions.best(request, way) if questions else [] for request in requests]


def hits_of(owner: Owner, ranked: Iterable[Ranked], rows: Mapping[int, queries.Row]) -> Iterable[Hit]:
    """Ranked memories as hits; `rows` by row id. What is gone since the index was read is left out."""
    for pk, score in ranked:
        if row := rows.get(pk):
            yield Hit(
                memory_id=row.memory_id,
                memory_type=row.memory_type,
                session_id=row.session_id,
                text=row.text,
                score=score.total,
                created_at_ms=row.created_at_ms,
                raw=raw_of(owner, row, score.total),
                legs=score.legs,
            )


def _questions(
    owner: Owner,
    requests: Sequence[SearchRequest],
    ways: Sequence[Way],
    space: Serving | None,
) -> _Questions | None:
    """The questions of some requests, with all that ranks their answers; None where nothing is asked.

    Errors: `OtherSpace`.
    """
    by_words = [request.query for request, way in zip(requests, ways, strict=True) if way.method != "vector"]
    terms = {query: query_tokens(query)[:MAX_TERMS] for query in dict.fromkeys(by_words)}
    wanted = list(dict.fromkeys(term for held in terms.values() for term in held))
    used = space if any(way.vector is not None for way in ways) else None
    if not wanted and used is None:
        return None
    with_hidden = any(request.with_hidden for request in requests)
    seen = snapshot.read(
        owner, wanted, keyword.prefix_of(owner), sessions=sessions_of(requests), space=used, with_hidden=with_hidden
    )
    return _Questions(seen, terms, wanted)


class _Questions:
    """The questions of one call over one snapshot: what the same question is worth is worked out once."""

    def __init__(self, seen: Snapshot, terms: Mapping[str, Sequence[str]], wanted: Sequence[str]) -> None:
        self._seen, self._wanted = seen, wanted
        self._named = {query: ranking.speakers_named(query, seen) for query in terms}
        self._keywords = {query: self._keywords_of(query, held) for query, held in terms.items()}
        self._cosines: dict[str, Reals] = {}

    def best(self, request: SearchRequest, way: Way) -> list[Ranked]:
        """The best for a request, best first; by `vector` those among which `nearest` finds the best."""
        if way.method == "vector":
            return self._near(request, way)
        documents = np.flatnonzero(admitted(request, self._seen))
        if way.method == "hybrid":
            return self._by_both(request, way, documents)
        by_keyword = self._keywords[request.query]
        chosen = self._chosen(documents[by_keyword.totals[documents] > 0], by_keyword.totals, request.top_k)
        legs = by_keyword.legs(chosen, range(1, len(chosen) + 1))
        return self._scored(chosen, by_keyword.totals, [{"keyword": leg} for leg in legs])

    def profiles(self, request: SearchRequest) -> list[Ranked]:
        """The user's, where they are asked for; nothing ranks them."""
        if not request.include_profile or request.agent_id is not None:
            return []
        return [(pk, Score(None, {})) for pk in self._seen.profiles]

    def nearest(
        self, request: SearchRequest, way: Way, ranked: list[Ranked], rows: Mapping[int, queries.Row]
    ) -> list[Ranked]:
        """The best by the exact vectors in `rows` of what was ranked by codes; what was not stays as it is."""
        if way.method != "vector" or way.vector is None or not ranked:
            return ranked
        near = self._seen.places_of(np.array([pk for pk, _ in ranked], np.int64))
        held = [row.vector if (row := rows.get(pk)) else None for pk, _ in ranked]
        cosines = np.zeros(len(self._seen.facts))
        cosines[near] = pages.exact(held, [score.total for _, score in ranked], way.vector).clip(0.0, 1.0)
        chosen = self._chosen(near[cosines[near] > 0], cosines, request.top_k)
        legs = [{"vector": {"rank": rank, "score": one}} for rank, one in enumerate(cosines[chosen].tolist(), start=1)]
        return self._scored(chosen, cosines, legs)

    def _near(self, request: SearchRequest, way: Way) -> list[Ranked]:
        """What may be among the best by its exact vector."""
        cosines, margin = self._similar(request, way), pages.margin(self._seen)
        documents = np.flatnonzero(admitted(request, self._seen) & (cosines > -margin))
        parts = self._parts(documents)
        near = np.concatenate([self._nearest_by_codes(part, cosines, request.top_k, margin) for part in parts])
        return self._scored(near, cosines, [{}] * len(near))

    def _nearest_by_codes(self, documents: Numbers, cosines: Reals, limit: int, margin: float) -> Numbers:
        """Those of some documents among which the best by their exact vectors are."""
        if len(documents) > limit:
            values = cosines[documents]
            documents = documents[values >= np.partition(values, -limit)[-limit] - margin]
        most = max(limit, pages.RESCORED)
        return documents if len(documents) <= most else ranking.best(self._seen.facts, documents, cosines, most)

    def _by_both(self, request: SearchRequest, way: Way, documents: Numbers) -> list[Ranked]:
        fused: Fused = ranking.fused(
            self._seen.facts,
            self._keywords[request.query],
            self._similar(request, way),
            self._named[request.query],
        )
        is_found = (fused.keywords.totals[documents] > 0) | (fused.cosines[documents] > 0)
        chosen = self._chosen(documents[is_found], fused.totals, request.top_k)
        return self._scored(chosen, fused.totals, fused.legs(chosen))

    def _similar(self, request: SearchRequest, way: Way) -> Reals:
        """The cosines of a question with all documents, NaN for those without a vector and those below the radius."""
        if way.vector is None:
            return np.full(len(self._seen.facts), np.nan)
        if request.query not in self._cosines:
            self._cosines[request.query] = pages.similarities(self._seen, way.vector)
        cosines = self._cosines[request.query]
        return cosines if request.radius is None else np.where(cosines >= request.radius, cosines, np.nan)

    def _keywords_of(self, query: str, terms: Sequence[str]) -> Keywords:
        """`terms` are the question's own among those that were looked up."""
        postings = self._seen.postings
        if len(terms) < len(self._wanted):
            place = {term: number for number, term in enumerate(terms)}
            own = np.array([place.get(term, -1) for term in self._wanted])[postings.terms]
            order = np.flatnonzero(own >= 0)
            order = order[np.argsort(own[order], kind="stable")]
            postings = Postings(own[order], postings.documents[order], postings.counts[order])
        return ranking.keywords(self._seen, terms, postings, self._named[query])

    def _chosen(self, documents: Numbers, totals: Reals, limit: int) -> Numbers:
        """The best of the memories and the best of the unprocessed messages, together in order."""
        chosen = [ranking.best(self._seen.facts, part, totals, limit) for part in self._parts(documents)]
        if len(chosen) == 1:
            return chosen[0]
        return ranking.best(self._seen.facts, np.concatenate(chosen), totals, 2 * limit)

    def _parts(self, documents: Numbers) -> list[Numbers]:
        """The memories and, where there are any, the unprocessed messages: each have a limit of their own."""
        pending = self._seen.pending[documents]
        return [documents[~pending], documents[pending]] if pending.any() else [documents]

    def _scored(self, chosen: Numbers, totals: Reals, legs: Iterable[dict[str, Any]]) -> list[Ranked]:
        rows = zip(self._seen.pks[chosen].tolist(), totals[chosen].tolist(), legs, strict=True)
        return [(pk, Score(total, leg)) for pk, total, leg in rows]
