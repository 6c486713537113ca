"""Searching with a language model: it splits the question, each part is searched, and it judges what was found.

A memory's score over the parts is half its best and half its mean, so that one which answers a single part well stands
beside one that touches all of them. Where the model judges, a quarter of a score is that and the rest its rating, 0 for
what it did not see. So all scores lie between 0 and 1, and say mostly what the model said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from django.utils import timezone

from core import turns
from core.model_endpoint import EndpointError
from core.times import from_ms
from engines.embedded.llm import client as llm
from engines.embedded.llm.questions import queries_of, ratings_of
from store.types import Hit, Owner, SearchRequest, SearchResult

REWRITE_SECONDS: Final = 6.0
JUDGE_SECONDS: Final = 12.0
JUDGED: Final = 20
"""So many of the best are shown to the model."""
_OWN_SHARE: Final = 0.25
_UNCOUNTED: Final = frozenset({"profile", "unprocessed_message"})
Answering = Callable[[Owner, Sequence[SearchRequest]], list[SearchResult]]


@dataclass(frozen=True, slots=True)
class _Split:
    """The parts of a question; `failed` says why there is but the question itself."""

    queries: list[str]
    failed: str | None = None


@dataclass(frozen=True, slots=True)
class _Judged:
    """Ratings by memory id; `failed` says why there are none."""

    ratings: Mapping[str, float]
    failed: str | None = None


def search(owner: Owner, requests: Sequence[SearchRequest], answer: Answering) -> list[SearchResult]:
    """Answers all requests with one call of `answer`, which knows every method but `agentic`.

    Where the model fails the question is answered as `hybrid` answers it, and `degraded` says so. Errors: `answer`'s.
    """
    if not llm.is_set() or not any(request.method == "agentic" for request in requests):
        return answer(owner, requests)
    splits = _splits(requests)
    asked = [list(_parts(request, splits)) for request in requests]
    results = iter(answer(owner, [part for parts in asked for part in parts]))
    answers = [list(islice(results, len(parts))) for parts in asked]
    fused = {
        number: _fused(splits[request.query].queries, answers[number])
        for number, request in enumerate(requests)
        if request.method == "agentic" and not splits[request.query].failed
    }
    judged = _judged(requests, fused)
    return [
        _result(request, splits, fused.get(number), judged, answers[number]) for number, request in enumerate(requests)
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


def _fused(queries: Sequence[str], results: Sequence[SearchResult]) -> list[Hit]:
    """Each memory once, the best first; what has no score stays as it is."""
    found: defaultdict[str, list[tuple[str, Hit]]] = defaultdict(list)
    for query, result in zip(queries, results, strict=True):
        for hit in result.hits:
            found[hit.memory_id].append((query, hit))
    return _sorted(_over_parts(told, len(queries)) for told in found.values())


def _over_parts(told: Sequence[tuple[str, Hit]], parts: int) -> Hit:
    best = max((hit for _, hit in told), key=lambda hit: hit.score or 0.0)
    if best.score is None:
        return best
    scores = [hit.score or 0.0 for _, hit in told]
    queries = [{"query": query, "score": hit.score} for query, hit in told]
    total = (max(scores) + sum(scores) / parts) / 2
    return _scored(best, total, {"queries": queries})


def _judged(requests: Sequence[SearchRequest], fused: Mapping[int, Sequence[Hit]]) -> dict[str, _Judged]:
    """What the model says of the best that each question found, in all parts of the memories together."""
    shown: defaultdict[str, dict[str, Hit]] = defaultdict(dict)
    for number, hits in fused.items():
        if requests[number].enable_llm_rerank:
            counted = (hit for hit in hits if hit.memory_type not in _UNCOUNTED)
            shown[requests[number].query] |= {hit.memory_id: hit for hit in islice(counted, JUDGED)}
    return {question: _judge(question, hits) for question, hits in shown.items() if hits}


def _judge(question: str, hits: Mapping[str, Hit]) -> _Judged:
    memories = [{"text": hit.text, "day": from_ms(hit.created_at_ms).date().isoformat()} for hit in hits.values()]
    try:
        with turns.searching.lent():
            ratings = ratings_of(llm.client(), question, memories, JUDGE_SECONDS)
    except EndpointError as error:
        return _Judged({}, error.detail)
    ids = list(hits)
    return _Judged({ids[place]: rating for place, rating in ratings.items()})


def _result(
    request: SearchRequest,
    splits: Mapping[str, _Split],
    fused: Sequence[Hit] | None,
    judged: Mapping[str, _Judged],
    results: Sequence[SearchResult],
) -> SearchResult:
    degraded = results[0].degraded
    if fused is None:
        failed = splits[request.query].failed if request.method == "agentic" else None
        return replace(results[0], degraded=_told(f"{failed} Searched without it." if failed else None, degraded))
    judgement = judged.get(request.query)
    if judgement is None or not request.enable_llm_rerank:
        return SearchResult(_cut(fused, request.top_k), "agentic", degraded)
    if judgement.failed:
        said = f"{judgement.failed} What was found is in the order in which it was found."
        return SearchResult(_cut(fused, request.top_k), "agentic", _told(said, degraded))
    hits = _sorted(_rated(hit, judgement.ratings.get(hit.memory_id)) for hit in fused)
    return SearchResult(_cut(hits, request.top_k), "agentic", degraded)


def _told(*sentences: str | None) -> str | None:
    return " ".join(filter(None, sentences)) or None


def _rated(hit: Hit, rating: float | None) -> Hit:
    if hit.score is None:
        return hit
    legs = {} if rating is None else {"rerank": {"score": rating}}
    return _scored(hit, _OWN_SHARE * hit.score + (1 - _OWN_SHARE) * (rating or 0.0), legs)


def _scored(hit: Hit, score: float, legs: Mapping[str, Any]) -> Hit:
    raw = hit.raw | {"score": score} if "score" in hit.raw else hit.raw
    return hit._replace(score=score, raw=raw, legs={**hit.legs, **legs})


def _sorted(hits: Iterable[Hit]) -> list[Hit]:
    return sorted(hits, key=lambda hit: (hit.score is None, -(hit.score or 0.0), -hit.created_at_ms, hit.memory_id))


def _cut(hits: Sequence[Hit], top_k: int) -> tuple[Hit, ...]:
    """`top_k` of the memories, and as many unprocessed messages."""
    counted = [hit for hit in hits if hit.memory_type not in _UNCOUNTED][:top_k]
    pending = [hit for hit in hits if hit.memory_type == "unprocessed_message"][:top_k]
    profiles = [hit for hit in hits if hit.memory_type == "profile"]
    return (*_sorted([*counted, *pending]), *profiles)
