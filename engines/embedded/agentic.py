"""Search by method `agentic`: a language model splits the query into parts and rates the hits of all parts.

A memory's score over the parts is half its best and half its mean, so that a full answer to one part ranks with a
partial answer to all. With ratings, the score is a quarter of that plus three quarters of the rating, 0 for hits that
the model was not shown. All scores are between 0 and 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Final

from django.utils import timezone

from core import turns
from core.model_endpoint import EndpointError
from core.times import from_ms
from engines.embedded.llm import client as llm
from engines.embedded.llm.questions import queries_of, ratings_of
from store.search import search as store_search
from store.types import UNCOUNTED_TYPES, Hit, Owner, SearchRequest, SearchResult

REWRITE_SECONDS: Final = 6.0
JUDGE_SECONDS: Final = 12.0
JUDGED: Final = 20
"""The number of best hits that the model rates."""
_OWN_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True)
class _Split:
    """The parts of a query; `failed` is the model's error, the query is then its only part."""

    queries: list[str]
    failed: str | None = None


@dataclass(frozen=True, slots=True)
class _Rated:
    """Ratings by memory id; `failed` is the model's error."""

    ratings: Mapping[str, float]
    failed: str | None = None


def search(owner: Owner, requests: Sequence[SearchRequest]) -> list[SearchResult]:
    """Answer all requests with one search of the store, in which `agentic` ones become `hybrid` parts.

    If the model fails, the result is that of `hybrid` and `degraded` says so. Raises: the errors of the store search.
    """
    splits = _splits(requests)
    parts = [list(_parts(request, splits)) for request in requests]
    results = iter(store_search.search(owner, list(chain.from_iterable(parts))))
    answers = [list(islice(results, len(of_request))) for of_request in parts]
    fused = {
        number: _fuse(splits[request.query].queries, answers[number])
        for number, request in enumerate(requests)
        if request.method == "agentic" and not splits[request.query].failed
    }
    rated = _rate(requests, fused)
    return [
        _result(request, splits, fused.get(number), rated, answers[number]) for number, request in enumerate(requests)
    ]


def _splits(requests: Iterable[SearchRequest]) -> dict[str, _Split]:
    return {query: _split(query) for query in dict.fromkeys(one.query for one in requests if one.method == "agentic")}


def _split(question: str) -> _Split:
    try:
        with turns.searching.lent():
            return _Split(queries_of(llm.client(), question, timezone.now().date(), REWRITE_SECONDS))
    except EndpointError as error:
        return _Split([question], error.detail)


def _parts(request: SearchRequest, splits: Mapping[str, _Split]) -> Iterable[SearchRequest]:
    if request.method != "agentic":
        yield request
        return
    split = splits[request.query]
    wanted = request.top_k if split.failed else max(request.top_k, JUDGED)
    for place, query in enumerate(split.queries):
        has_profile = request.include_profile and place == 0
        yield replace(request, query=query, method="hybrid", top_k=wanted, include_profile=has_profile)


def _fuse(queries: Sequence[str], results: Sequence[SearchResult]) -> list[Hit]:
    """Return each memory once, the best first; hits without a score stay as they are."""
    found: defaultdict[str, list[tuple[str, Hit]]] = defaultdict(list)
    for query, result in zip(queries, results, strict=True):
        for hit in result.hits:
            found[hit.memory_id].append((query, hit))
    return _sorted(_fuse_hits(hits, len(queries)) for hits in found.values())


def _fuse_hits(hits: Sequence[tuple[str, Hit]], parts: int) -> Hit:
    best = max((hit for _, hit in hits), key=lambda hit: hit.score or 0.0)
    if best.score is None:
        return best
    scores = [hit.score or 0.0 for _, hit in hits]
    queries = [{"query": query, "score": hit.score} for query, hit in hits]
    total = (max(scores) + sum(scores) / parts) / 2
    return _scored(best, total, {"queries": queries})


def _rate(requests: Sequence[SearchRequest], fused: Mapping[int, Sequence[Hit]]) -> dict[str, _Rated]:
    """Rate the best hits of each query, those of all scopes in one call."""
    shown: defaultdict[str, dict[str, Hit]] = defaultdict(dict)
    for number, hits in fused.items():
        if requests[number].enable_llm_rerank:
            counted = (hit for hit in hits if hit.memory_type not in UNCOUNTED_TYPES)
            shown[requests[number].query] |= {hit.memory_id: hit for hit in islice(counted, JUDGED)}
    return {question: _ask_for_ratings(question, hits) for question, hits in shown.items() if hits}


def _ask_for_ratings(question: str, hits: Mapping[str, Hit]) -> _Rated:
    memories = [{"text": hit.text, "day": from_ms(hit.created_at_ms).date().isoformat()} for hit in hits.values()]
    try:
        with turns.searching.lent():
            ratings = ratings_of(llm.client(), question, memories, JUDGE_SECONDS)
    except EndpointError as error:
        return _Rated({}, error.detail)
    ids = list(hits)
    return _Rated({ids[place]: rating for place, rating in ratings.items()})


def _result(
    request: SearchRequest,
    splits: Mapping[str, _Split],
    fused: Sequence[Hit] | None,
    rated: Mapping[str, _Rated],
    results: Sequence[SearchResult],
) -> SearchResult:
    degraded = results[0].degraded
    if fused is None:
        failed = splits[request.query].failed if request.method == "agentic" else None
        return replace(results[0], degraded=_join(f"{failed} Searched without it." if failed else None, degraded))
    rating = rated.get(request.query)
    if rating is None or not request.enable_llm_rerank:
        return SearchResult(_cut(fused, request.top_k), "agentic", degraded)
    if rating.failed:
        reason = f"{rating.failed} What was found is in the order in which it was found."
        return SearchResult(_cut(fused, request.top_k), "agentic", _join(reason, degraded))
    hits = _sorted(_blend(hit, rating.ratings.get(hit.memory_id)) for hit in fused)
    return SearchResult(_cut(hits, request.top_k), "agentic", degraded)


def _join(*sentences: str | None) -> str | None:
    return " ".join(filter(None, sentences)) or None


def _blend(hit: Hit, rating: float | None) -> Hit:
    if hit.score is None:
        return hit
    legs = {} if rating is None else {"rerank": {"score": rating}}
    return _scored(hit, _OWN_SHARE * hit.score + (1 - _OWN_SHARE) * (rating or 0.0), legs)


def _scored(hit: Hit, score: float, legs: Mapping[str, Any]) -> Hit:
    raw = hit.raw | {"score": score} if "score" in hit.raw else hit.raw
    return hit._replace(score=score, raw=raw, legs={**hit.legs, **legs})


def _sorted(hits: Iterable[Hit]) -> list[Hit]:
    return sorted(hits, key=lambda hit: hit.sort_key)


def _cut(hits: Sequence[Hit], top_k: int) -> tuple[Hit, ...]:
    """Keep `top_k` memories, as many unprocessed messages and all profiles."""
    counted = [hit for hit in hits if hit.memory_type not in UNCOUNTED_TYPES][:top_k]
    pending = [hit for hit in hits if hit.memory_type == "unprocessed_message"][:top_k]
    profiles = [hit for hit in hits if hit.memory_type == "profile"]
    return (*_sorted([*counted, *pending]), *profiles)
