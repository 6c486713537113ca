"""Answer any number of search requests with two SQL statements; requests are ranked in memory between them.

Two more may look up what replaced the best statement, or what it replaced (`store.search.successors`).

A third statement looks up the embedding space if the vector of a query is not cached; another reads common terms that
were left out, if no other term of a query matches, or the terms of a query that was changed: a word corrected, or the
words of a time without memories looked up.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, Final

import numpy as np

from core.messages import MANAGE, joined
from core.messages import Translatable as _
from store import as_of, cover
from store.index import keyword
from store.search import (
    common_terms,
    floor,
    late_interaction,
    question,
    ranking,
    records,
    snapshot,
    spelling,
    successors,
)
from store.search.candidates import candidate_mask, sessions_of
from store.search.floor import Flags
from store.search.plan import SearchPlan, plan_for, space_for
from store.search.ranking import FusedScores, KeywordScores, QueryTerms, Score
from store.search.snapshot import Numbers, Postings, Reals, Snapshot, places_of
from store.text.expected import expected_tokens
from store.text.languages import FOREIGN
from store.text.statements import asked
from store.text.succession import asked_topics, asks_more_than_topics
from store.text.times import query_times
from store.text.tokens import query_readings, query_tokens, without_stop_words
from store.types import NOT_REPLACED, Hit, Owner, SearchRequest, SearchResult, labels_of
from store.vectors import spaces, vector_pages
from store.vectors.client import token_client
from store.vectors.spaces import Serving

INCOMPLETE: Final = _(
    "Another version wrote a part of the index, so memories may be missing until `%(manage)s rebuild` has run.",
    manage=MANAGE,
)
MAX_TERMS: Final = 2048
_FIRST_FILTERED: Final = 400
"""The best documents, whose tags and metadata are looked up before those of all others."""
Ranked = tuple[int, Score]
"""A memory's row id and its score."""
_Read = Callable[[list[str]], Snapshot]


def retrieve(owner: Owner, requests: Sequence[SearchRequest]) -> list[SearchResult]:
    """Return the best memories for each request: `top_k`, as many unprocessed messages, and the profile if requested.

    If one request is `with_hidden` or has an `as_of`, all have it. `radius` limits matches by vector, never by keyword.
    Raises: `InvalidInput` for a method without its endpoint, `EngineUnavailable` if the endpoint of `vector` fails.
    """
    space = space_for(requests)
    plans = [plan_for(request, space) for request in requests]
    try:
        ranker = _ranker(owner, requests, plans, space, with_expected=True)
    except snapshot.EmbeddingSpaceChanged:
        spaces.serving()  # updates the cached space
        return retrieve(owner, requests)
    if ranker is None:
        return [SearchResult((), plan.method, plan.degraded) for plan in plans]
    first = requests[0]
    best = [ranker.best(request, plan) for request, plan in zip(requests, plans, strict=True)]
    profiles = [ranker.profiles(request) for request in requests]
    rows = records.rows(
        owner,
        {pk for ranked in chain(best, profiles) for pk, _ in ranked},
        with_hidden=first.with_hidden,
        space=space.pk if space and any(plan.method == "vector" for plan in plans) else None,
        at=first.as_of,
    )
    results = []
    for request, plan, candidates, unranked in zip(requests, plans, best, profiles, strict=True):
        if plan.method == "vector":
            ranked = ranker.rescore(request, plan, candidates, rows)
        else:
            ranked = ranker.with_successor(request, candidates, rows)
        hits = tuple(hits_of(owner, [*ranked, *unranked], rows))
        results.append(
            SearchResult(
                hits,
                plan.method,
                ranker.degraded(plan),
                corrected=ranker.corrected(request, hits),
                is_partly_known=ranker.is_partly_known(request),
            )
        )
    return results


def rank(
    owner: Owner, requests: Sequence[SearchRequest], *, left_out: Collection[int] | None = None
) -> tuple[list[list[Ranked]], str | None]:
    """Return the best memories for each request by its own words, best first, and why some may be missing.

    `left_out` are kinds of memories (`store.cover`), by default those that are not shown. One SQL statement, rarely
    two.
    """
    plan = SearchPlan("keyword")
    ranker = _ranker(owner, requests, [plan] * len(requests), None, with_expected=False, left_out=left_out)
    if ranker is None:
        return [[] for _request in requests], None
    return [ranker.best(request, plan) for request in requests], ranker.degraded(plan)


def terms_of(request: SearchRequest, *, with_expected: bool) -> QueryTerms:
    """Return the terms of a query: its words, the days that it means, its slots, and words of its answer."""
    times = query_times(request.query, request.now or datetime.now(UTC))
    words = query_tokens(times.rest)
    slots, topics = asked(request.query), asked_topics(request.query)
    tokens = map(attrgetter("token"), (*slots, *topics))
    own = [*(without_stop_words(words) if times.tokens else words)[:MAX_TERMS], *tokens]
    expected = expected_tokens(request.query) if with_expected else ()
    readings = query_readings(times.rest)
    if times.tokens and not times.rest.strip():  # "tomorrow" alone may be a word, too
        readings |= dict.fromkeys(query_tokens(request.query), times.tokens[0])
    terms = QueryTerms.of(own, expected, question.asked(request.query), times.tokens, readings)
    answering = slots if asks_more_than_topics(request.query) else [*slots, *topics]
    return terms._replace(spans=times.spans, answering=frozenset(slot.token for slot in answering))


def hits_of(owner: Owner, ranked: Iterable[Ranked], rows: Mapping[int, records.Row]) -> Iterable[Hit]:
    """Yield ranked memories as hits; `rows` by row id. Memories deleted since the snapshot are left out."""
    for pk, score in ranked:
        if row := rows.get(pk):
            yield Hit(
                memory_id=row.memory_id,
                memory_type=row.memory_type,
                session_id=row.session_id,
                text=row.text,
                score=score.total,
                created_at_ms=row.created_at_ms,
                raw=records.raw_of(owner, row, score.total),
                legs=score.legs,
                relevance=score.relevance,
                origin=row.origin,
                role=str(row.payload.get("role") or ""),
                sender_id=row.sender_id,
                sender_name=str(row.payload.get("sender_name") or ""),
                category=row.category,
                agent_id=row.agent_id,
                is_passage=row.chunk_index is not None,
                is_imported="imported_from" in row.payload,
                is_kept=bool(row.payload.get(NOT_REPLACED)),
                labels=labels_of(row.payload),
                row=row.pk,
            )


def _ranker(
    owner: Owner,
    requests: Sequence[SearchRequest],
    plans: Sequence[SearchPlan],
    space: Serving | None,
    *,
    with_expected: bool,
    left_out: Collection[int] | None = None,
) -> "_Ranker | None":
    """Read the snapshot that the requests need; None if they have neither terms nor vectors.

    Common terms are left out, unless no other term of a query matches. Raises: `EmbeddingSpaceChanged`.
    """
    by_keyword = [request for request, plan in zip(requests, plans, strict=True) if plan.method != "vector"]
    terms = {request.query: terms_of(request, with_expected=with_expected) for request in by_keyword}
    if all(plan.vector is None for plan in plans):
        space = None
    if not any(one.own for one in terms.values()) and space is None:
        return None
    at = requests[0].as_of
    read: _Read = partial(
        snapshot.read,
        owner,
        prefix=keyword.prefix_of(owner),
        sessions=sessions_of(requests),
        space=space,
        with_hidden=at is not None or requests[0].with_hidden,
        left_out=left_out if at is None else cover.ALONE,
        read_from={one for request in requests for one in request.read_from},
    )
    ranked_by = _ranker_by_few_terms if at is None else _ranker_by_all_terms
    if at is not None:
        of_all, rows = read, as_of.rows_of(owner, at)
        read = lambda terms: of_all(terms).among(rows)  # noqa: E731
    ranker, is_complete = ranked_by(owner, terms, read)
    changed = _with_literal_times(terms, ranker)
    if with_expected:
        changed |= _corrected(keyword.prefix_of(owner), terms | changed, ranker)
    if changed:
        terms |= changed
        ranker, is_complete = ranked_by(owner, terms, read)
    if is_complete or not any(ranker.lacks_common(request) for request in requests if request.query in terms):
        return ranker
    all_terms = _all_terms(terms.values())
    return _Ranker(read(all_terms), terms, all_terms)


def _ranker_by_all_terms(_owner: Owner, terms: Mapping[str, QueryTerms], read: _Read) -> "tuple[_Ranker, bool]":
    """Read the snapshot of a former time, in which other terms may be common than now."""
    all_terms = _all_terms(terms.values())
    return _Ranker(read(all_terms), terms, all_terms), True


def _ranker_by_few_terms(owner: Owner, terms: Mapping[str, QueryTerms], read: _Read) -> "tuple[_Ranker, bool]":
    """Read the snapshot without the terms that are known to be common, and leave out those that it shows to be.

    Return True with it if no term was left out.
    """
    prefix, all_terms = keyword.prefix_of(owner), _all_terms(terms.values())
    known = common_terms.known(prefix, all_terms, terms.values())
    wanted = [term for term in all_terms if term not in known]
    found = read(wanted)
    if known and not common_terms.are_common(known.values(), found):
        known, wanted = {}, all_terms
        found = read(wanted)
    common = common_terms.keep(prefix, wanted, found, terms.values())
    unread = {*known, *(wanted[number] for number in common)}
    return _Ranker(found.without(common) if common else found, terms, wanted, unread), not unread


def _with_literal_times(terms: Mapping[str, QueryTerms], ranker: "_Ranker") -> dict[str, QueryTerms]:
    """Return the terms of the queries for a time without memories, with the words that name it.

    A memory may say "4 years ago" itself.
    """
    return {
        query: own.with_literal(query_tokens(query))
        for query, own in terms.items()
        if own.window and not ranker.has_window(query)
    }


def _corrected(prefix: str, terms: Mapping[str, QueryTerms], ranker: "_Ranker") -> dict[str, QueryTerms]:
    """Return the terms of the queries that have a misspelled word. One SQL statement for each that may have."""
    corrected = {}
    for query, own in terms.items():
        if words := spelling.suspects(query, ranker.unknown(query, spelling.LEAST_SHARE)):
            nearest = spelling.nearest(prefix, words)
            tokens = spelling.corrected_terms(own.own, words, nearest)
            if nearest:
                found = QueryTerms.of(tokens, own.expected, question.asked(query), own.window, own.readings)
                corrected[query] = found._replace(
                    common=found.common | own.common.intersection(found.own),
                    subjects=own.subjects | set(nearest.values()),
                    corrected=nearest,
                    spans=own.spans,
                )
    return corrected


def _all_terms(queries: Iterable[QueryTerms]) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(map(attrgetter("looked_up"), queries))))


def _merged(postings: Postings, is_foreign: Flags) -> Postings:
    """Return postings with one for each term and document, with the sum of the counts of its readings.

    `is_foreign` masks stems of other languages, which say nothing more of a word whose own stem is found.
    """
    order = np.lexsort((postings.documents, postings.terms))
    terms, documents, counts = postings.terms[order], postings.documents[order], postings.counts[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (terms[1:] != terms[:-1]) | (documents[1:] != documents[:-1])
    starts = np.flatnonzero(is_first)
    if len(starts) == len(order):
        return Postings(terms, documents, counts)
    own = np.add.reduceat(np.where(is_foreign[order], 0, counts), starts)
    return Postings(terms[starts], documents[starts], np.maximum(own, np.maximum.reduceat(counts, starts)))


class _Ranker:
    """Ranks one snapshot for several requests. Scores that depend only on the query are computed once per query."""

    def __init__(
        self,
        snapshot: Snapshot,
        terms: Mapping[str, QueryTerms],
        all_terms: list[str],
        unread: Collection[str] = (),
    ) -> None:
        """`unread` are common terms whose postings were left out."""
        self._snapshot, self._all_terms, self._unread = snapshot, all_terms, unread
        self._named = {query: ranking.speakers_named(query, snapshot) for query in terms}
        self._keywords = {query: self._keywords_of(query, own) for query, own in terms.items()}
        self._cosines: dict[str, Reals] = {}

    def best(self, request: SearchRequest, plan: SearchPlan) -> list[Ranked]:
        """Return the best memories, best first; for `vector`, the candidates that `rescore` ranks."""
        if plan.method == "vector":
            return self._vector_candidates(request, plan, candidate_mask(request, self._snapshot))
        keywords, limit = self._keywords[request.query], request.top_k
        if plan.method == "hybrid":
            documents = np.flatnonzero(candidate_mask(request, self._snapshot))
            if (fused := self._fused(request, plan, keywords, documents)) is not None:
                return self._hybrid(request, fused, documents)
        documents = self._above_floor(request, keywords, np.flatnonzero(keywords.totals > 0))
        parts = [self._covered(request, part, keywords.totals, limit) for part in self._split_pending(documents)]
        chosen = self._select(np.concatenate(parts), keywords.totals, limit)
        legs = keywords.legs(chosen, range(1, len(chosen) + 1))
        return self._scored(chosen, keywords.totals, [{"keyword": leg} for leg in legs], keywords.relevance(chosen))

    def _covered(self, request: SearchRequest, documents: Numbers, totals: Reals, limit: int) -> Numbers:
        """Return those of the documents that a request covers; only the best if these are enough, for filters."""
        if request.filters and len(documents) > _FIRST_FILTERED:
            first = ranking.best(self._snapshot.facts, documents, totals, _FIRST_FILTERED)
            covered = first[candidate_mask(request, self._snapshot, first)[first]]
            if len(covered) >= limit:
                return covered
        return documents[candidate_mask(request, self._snapshot, documents)[documents]]

    def _above_floor(self, request: SearchRequest, keywords: KeywordScores, documents: Numbers) -> Numbers:
        """Return the documents that the floor of a request lets pass."""
        if request.min_relevance == 0:
            return documents
        documents = documents[keywords.passes[documents]]
        if request.min_relevance is None:
            return documents
        return documents[keywords.relevance(documents) >= request.min_relevance]

    def degraded(self, plan: SearchPlan) -> str | None:
        """Return why the results differ from those of the requested method, or may be incomplete."""
        lacks_entries = self._snapshot.lacks_entries and plan.method != "vector"
        if not (lacks_entries or self._snapshot.lacks_vectors):
            return plan.degraded
        return joined(" ", filter(None, [plan.degraded, INCOMPLETE]))

    def lacks_common(self, request: SearchRequest) -> bool:
        """Return True if memories that hold only terms that were not read may be results of a request.

        Below the floor they are, if no other term of the query is in a memory that the request covers.
        """
        keywords = self._keywords[request.query]
        if request.min_relevance != 0 and keywords.judged.has_content:
            return False
        documents = np.flatnonzero(keywords.evidence > keywords.expected)
        return not candidate_mask(request, self._snapshot, documents)[documents].any()

    def has_window(self, query: str) -> bool:
        """Return True if a memory of the user is of the time that a query means."""
        keywords = self._keywords[query]
        return bool(keywords.judged.is_known[keywords.terms.place_of_window])

    def unknown(self, query: str, least_share: float = 0.0) -> set[str]:
        """Return the terms of a query that inform and that no memory holds, if they are a share of what is asked.

        None for a user without memories.
        """
        keywords = self._keywords[query]
        if not len(self._snapshot.facts) or keywords.judged.unknown_share < least_share:
            return set()
        is_unknown = keywords.judged.informs & ~keywords.judged.is_known
        return {term for term, one in zip(keywords.terms.own, is_unknown.tolist(), strict=True) if one}

    def corrected(self, request: SearchRequest, hits: Sequence[Hit]) -> dict[str, str]:
        """Return the misspelled words of a query and the words of its hits that were searched instead.

        No word that only other memories hold: these may be hidden, or those of another agent.
        """
        if (keywords := self._keywords.get(request.query)) is None or not keywords.terms.corrected:
            return {}
        unknown = self.unknown(request.query)
        found = {word: one for word, one in keywords.terms.corrected.items() if one not in unknown}
        written = {word: spelling.written_as(token, (hit.text for hit in hits)) for word, token in found.items()}
        return {word: one for word, one in written.items() if one is not None}

    def is_partly_known(self, request: SearchRequest) -> bool:
        """Return True if the floor of a request is on, and the user knows only a part of what is asked for."""
        keywords = self._keywords.get(request.query)
        return keywords is not None and request.min_relevance is None and keywords.is_partly_known

    def profiles(self, request: SearchRequest) -> list[Ranked]:
        """Return the user's profiles if requested; they have no score."""
        if not request.include_profile or request.agent_id is not None:
            return []
        return [(pk, Score(None, {})) for pk in self._snapshot.profiles]

    def with_successor(
        self, request: SearchRequest, ranked: list[Ranked], rows: dict[int, records.Row]
    ) -> list[Ranked]:
        """Return ranked memories with what replaced the best statement, or what it replaced; add it to `rows`.

        A question for a time is answered by what is of that time.
        """
        if request.as_of is not None or floor.names_time(self._keywords[request.query].terms.own):
            return ranked
        if (known := successors.known(request, ranked, rows)) is None:
            return ranked
        found = successors.other(request, known, self._snapshot)
        if found is None or any(pk == found[1].pk for pk, _score in ranked):
            return ranked
        place, row = found
        rows[row.pk] = row
        legs = self._keywords[request.query].legs(np.array([place]), [len(ranked) + 1])
        after = next(n for n, (pk, _score) in enumerate(ranked, start=1) if pk == known.row.pk)
        with_it = [*ranked[:after], (row.pk, known.score._replace(legs={"keyword": legs[0]})), *ranked[after:]]
        return with_it[: max(request.top_k, len(ranked))]

    def rescore(
        self, request: SearchRequest, plan: SearchPlan, ranked: list[Ranked], rows: Mapping[int, records.Row]
    ) -> list[Ranked]:
        """Rank the candidates of `vector` by the exact vectors in `rows`."""
        if plan.vector is None or not ranked:
            return ranked
        near = places_of(self._snapshot.pks, np.array([pk for pk, _ in ranked], np.int64))
        vectors = [row.vector if (row := rows.get(pk)) else None for pk, _ in ranked]
        cosines = np.zeros(len(self._snapshot.facts))
        cosines[near] = vector_pages.exact(vectors, [score.total for _, score in ranked], plan.vector).clip(0.0, 1.0)
        relevance = floor.calibrated(self._with_exact(request, plan, near, cosines))
        near = near[(cosines[near] > 0) & (relevance[near] >= (request.min_relevance or 0.0))]
        chosen = self._select(near, cosines, request.top_k)
        legs = [{"vector": {"rank": rank, "score": one}} for rank, one in enumerate(cosines[chosen].tolist(), start=1)]
        return self._scored(chosen, cosines, legs, relevance[chosen])

    def _with_exact(self, request: SearchRequest, plan: SearchPlan, near: Numbers, exact: Reals) -> Reals:
        """Return the cosines of all documents, the exact ones of some."""
        cosines = self._similarities(request, plan).copy()
        cosines[near] = exact[near]
        return cosines

    def _vector_candidates(self, request: SearchRequest, plan: SearchPlan, mask: Flags) -> list[Ranked]:
        """Return the documents that may be among the best by exact vector, judged by their quantized vectors."""
        cosines, margin = self._similarities(request, plan), vector_pages.margin(self._snapshot)
        documents = np.flatnonzero(mask & (cosines > -margin))
        parts = self._split_pending(documents)
        near = np.concatenate([self._nearest_by_codes(part, cosines, request.top_k, margin) for part in parts])
        return self._scored(near, cosines, [{}] * len(near))

    def _nearest_by_codes(self, documents: Numbers, cosines: Reals, limit: int, margin: float) -> Numbers:
        if len(documents) > limit:
            values = cosines[documents]
            documents = documents[values >= np.partition(values, -limit)[-limit] - margin]
        count = max(limit, vector_pages.RESCORED)
        return documents if len(documents) <= count else ranking.best(self._snapshot.facts, documents, cosines, count)

    def _fused(
        self, request: SearchRequest, plan: SearchPlan, keywords: KeywordScores, documents: Numbers
    ) -> FusedScores | None:
        """Return the fused scores of a query; None if a local model knows too little of it, or of the memories."""
        facts, named = self._snapshot.facts, self._named[request.query]
        if token_client() is None:
            return ranking.fuse(facts, keywords, self._similarities(request, plan), named)
        if plan.tokens is None:
            return None
        query = request.query, plan.tokens, plan.model
        near = late_interaction.similarities(self._snapshot, keywords, documents, query, self._unread)
        if near is None:
            return None
        near = near if request.radius is None else np.where(near >= request.radius, near, np.nan)
        return ranking.fuse(facts, keywords, near, named, ranking.BY_TOKENS)

    def _hybrid(self, request: SearchRequest, fused: FusedScores, documents: Numbers) -> list[Ranked]:
        keywords, cosines = fused.keywords, fused.cosines
        documents = documents[(keywords.totals[documents] > 0) | (cosines[documents] > 0)]
        # Similarities of tokens are high for all memories: they order, and say nothing of the relevance.
        near = np.nan_to_num(floor.calibrated(cosines)) if fused.leg == "vector" else np.zeros(len(cosines))
        if request.min_relevance != 0:
            passes = ((keywords.totals > 0) & keywords.passes) | (near >= floor.RELATED)
            documents = documents[passes[documents]]
        if request.min_relevance:
            relevance = np.maximum(keywords.relevance(documents), near[documents])
            documents = documents[relevance >= request.min_relevance]
        chosen = self._select(documents, fused.totals, request.top_k)
        relevance = np.maximum(keywords.relevance(chosen), near[chosen])
        return self._scored(chosen, fused.totals, fused.legs(chosen), relevance)

    def _similarities(self, request: SearchRequest, plan: SearchPlan) -> Reals:
        """Return the cosines of a query with all documents, NaN for those without a vector or below the radius."""
        if plan.vector is None:
            return np.full(len(self._snapshot.facts), np.nan)
        if request.query not in self._cosines:
            self._cosines[request.query] = vector_pages.similarities(self._snapshot, plan.vector)
        cosines = self._cosines[request.query]
        return cosines if request.radius is None else np.where(cosines >= request.radius, cosines, np.nan)

    def _keywords_of(self, query: str, terms: QueryTerms) -> KeywordScores:
        """Score one query with the postings of its terms."""
        postings = self._snapshot.postings
        if list(terms.looked_up) != self._all_terms or terms.readings:
            numbers = {term: number for number, term in enumerate(terms.looked_up)}
            numbers |= {reading: numbers[token] for reading, token in terms.readings.items()}
            own_terms = np.array([numbers.get(term, -1) for term in self._all_terms])[postings.terms]
            order = np.flatnonzero(own_terms >= 0)
            order = order[np.argsort(own_terms[order], kind="stable")]
            postings = Postings(own_terms[order], postings.documents[order], postings.counts[order])
            if terms.readings:
                is_foreign = np.array([term.startswith(FOREIGN) for term in self._all_terms], np.bool_)
                postings = _merged(postings, is_foreign[self._snapshot.postings.terms][order])
        if terms.spans:
            postings = self._with_spans(postings, terms)
        return ranking.score_keywords(self._snapshot, terms, postings, self._named[query], unread=self._unread)

    def _with_spans(self, postings: Postings, terms: QueryTerms) -> Postings:
        """Return postings with the memories that are of the query's days in the zone of the asker."""
        facts, place = self._snapshot.facts, terms.place_of_window
        within = np.zeros(len(facts), np.bool_)
        for first, end in terms.spans:
            within |= (facts["at"] >= first) & (facts["at"] < end)
        within &= ~ranking.passages_of(facts)
        within[postings.documents[postings.terms == place]] = False
        return ranking.with_term(postings, place, np.flatnonzero(within))

    def _select(self, documents: Numbers, totals: Reals, limit: int) -> Numbers:
        """Return the best memories and the best unprocessed messages, sorted together."""
        chosen = [ranking.best(self._snapshot.facts, part, totals, limit) for part in self._split_pending(documents)]
        if len(chosen) == 1:
            return chosen[0]
        return ranking.best(self._snapshot.facts, np.concatenate(chosen), totals, 2 * limit)

    def _split_pending(self, documents: Numbers) -> list[Numbers]:
        """Split documents into memories and unprocessed messages, which have separate limits."""
        pending = self._snapshot.pending[documents]
        return [documents[~pending], documents[pending]] if pending.any() else [documents]

    def _scored(
        self,
        chosen: Numbers,
        totals: Reals,
        legs: Iterable[dict[str, Any]],
        relevance: Reals | None = None,
    ) -> list[Ranked]:
        told = [None] * len(chosen) if relevance is None else relevance.tolist()
        rows = zip(self._snapshot.pks[chosen].tolist(), totals[chosen].tolist(), legs, told, strict=True)
        return [(pk, Score(total, leg, one)) for pk, total, leg, one in rows]
