"""Search with ratings: by `agentic`, and by `hybrid` if a reranker is configured.

For `agentic` a language model splits the query into parts. The reranker rates the hits of all parts; without one, the
language model does.

The fused score of a memory is the mean of its best and its average score over the parts. With ratings, the score is
half of the fused score, as a share of the best one, plus half of the rating: an ordinary model orders worse than the
search. Hits that were not shown have the rating 0.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Annotated, Any, Final

from django.utils import timezone
from pydantic import AfterValidator, Field

from core import readable
from core.limits.concurrency import search_lock
from core.messages import Translatable as _
from core.messages import joined
from core.network import language_model
from core.network.language_model import RULE, ModelAnswer
from core.network.model_endpoint import EndpointError
from engines.embedded import reranker
from store.models import Memory
from store.search import retrieval as store_search
from store.types import UNCOUNTED_TYPES, Hit, Owner, SearchRequest, SearchResult

SPLIT_SECONDS: Final = 6.0
RATE_SECONDS: Final = 12.0
MAX_RATED: Final = 20
"""The most hits that a language model rates."""
MAX_RERANKED: Final = 50
"""The most hits that a reranker rates."""
_MAX_PARTS: Final = 4
"""The most parts of a query. The query itself is the first part."""
_MAX_PART_CHARS: Final = 300
_MAX_QUERY_CHARS: Final = 2000
_MAX_RATED_CHARS: Final = 600
_MAX_RATING: Final = 10.0
_FUSED_WEIGHT: Final = 0.5

_SPLIT_PROMPT: Final = (
    "You prepare a search in a person's memories: notes of what they said and of documents that they gave. You get a "
    f"question and today's date. Write 1 to {_MAX_PARTS - 1} short search queries, in the language of the question, "
    "that together find what answers it: in the words that such notes would use, each of one topic, a question about "
    "several things split up, names kept, 'yesterday' and the like as dates. "
    'The answer\'s form: {"queries": ["…"]}. '
) + RULE
_RATE_PROMPT: Final = (
    "You judge memories found for a question. The first line of the data is the question; each other one is a memory "
    "with its number. Give each memory a number from 0 (says nothing about the question) to 10 (answers it). "
    'The answer\'s form: {"ratings": [{"number": 1, "rating": 7}]}. '
) + RULE


class _Queries(ModelAnswer):
    queries: Annotated[list[str], Field(min_length=1, max_length=50)]


class _Rating(ModelAnswer):
    number: int
    rating: Annotated[
        float, Field(allow_inf_nan=False), AfterValidator(lambda value: min(max(value, 0.0), _MAX_RATING))
    ]


class _Ratings(ModelAnswer):
    ratings: Annotated[list[_Rating], Field(min_length=1, max_length=1000)]


@dataclass(slots=True)
class _Question:
    """A query of rated requests, its parts, and the ratings by memory id.

    `split_error` and `rating_error` are errors of the models, None if they succeeded.
    """

    query: str
    parts: list[str]
    split_error: str | None = None
    shown: dict[str, Hit] = field(default_factory=dict)
    ratings: dict[str, float] | None = None
    rating_error: str | None = None


def is_rated(request: SearchRequest) -> bool:
    """Return True if the configured models split the query or rate the hits of a request."""
    if request.method == "agentic":
        return language_model.is_set()
    return request.method == "hybrid" and request.enable_llm_rerank and reranker.is_set()


def search(owner: Owner, requests: Sequence[SearchRequest]) -> list[SearchResult]:
    """Answer all requests with one search of the store, in which `agentic` ones become `hybrid` parts.

    If a model fails, the result is that of `hybrid`, with the reason in `degraded`. Raises: the errors of the store
    search.
    """
    asked = dict.fromkeys((request.method, request.query) for request in requests if is_rated(request))
    questions = {
        (method, query): _split(query) if method == "agentic" else _Question(query, [query]) for method, query in asked
    }
    by_request = [questions.get((request.method, request.query)) if is_rated(request) else None for request in requests]
    parts = [list(_parts(request, question)) for request, question in zip(requests, by_request, strict=True)]
    results = iter(store_search.retrieve(owner, list(chain.from_iterable(parts))))
    answers = [list(islice(results, len(of_request))) for of_request in parts]
    fused: list[list[Hit]] = []
    for request, question, found in zip(requests, by_request, answers, strict=True):
        hits = _fuse(question.parts, found) if question and not question.split_error else []
        fused.append(hits)
        if question and request.enable_llm_rerank:
            counted = (hit for hit in hits if hit.memory_type not in UNCOUNTED_TYPES)
            question.shown |= {hit.memory_id: hit for hit in islice(counted, _most_rated())}
    _leave_out_incognito(questions.values())
    for question in questions.values():
        if question.shown:  # one call for the hits of all scopes
            _rate(question)
    return [_result(*args) for args in zip(requests, by_request, fused, answers, strict=True)]


def _leave_out_incognito(questions: Iterable[_Question]) -> None:
    """Show no model what is of an incognito session. One SQL statement, none without hits."""
    rows = {hit.row for question in questions for hit in question.shown.values() if hit.row is not None}
    found = (
        Memory.objects.filter(pk__in=rows, session__incognito_until__isnull=False) if rows else Memory.objects.none()
    )
    private = set(found.values_list("pk", flat=True))
    for question in questions if private else ():
        question.shown = {name: hit for name, hit in question.shown.items() if hit.row not in private}


def _most_rated() -> int:
    return MAX_RERANKED if reranker.is_set() else MAX_RATED


def _split(query: str) -> _Question:
    lines = [{"question": query[:_MAX_QUERY_CHARS], "today": timezone.now().date().isoformat()}]
    try:
        with search_lock.released():
            answer = language_model.client().ask(_SPLIT_PROMPT, lines, _Queries, SPLIT_SECONDS)
    except EndpointError as error:
        return _Question(query, [query], error.detail)
    rewritten = [" ".join(part.split())[:_MAX_PART_CHARS] for part in answer.queries]
    return _Question(query, list(dict.fromkeys([query, *filter(None, rewritten)]))[:_MAX_PARTS])


def _parts(request: SearchRequest, question: _Question | None) -> Iterable[SearchRequest]:
    if question is None:
        yield request
        return
    top_k = request.top_k if question.split_error else max(request.top_k, _most_rated())
    for place, query in enumerate(question.parts):
        has_profile = request.include_profile and place == 0
        yield replace(request, query=query, method="hybrid", top_k=top_k, include_profile=has_profile)


def _fuse(queries: Sequence[str], results: Sequence[SearchResult]) -> list[Hit]:
    """Return each memory once, best first, with its fused score; hits without a score are unchanged."""
    found: defaultdict[str, list[tuple[str, Hit]]] = defaultdict(list)
    for query, result in zip(queries, results, strict=True):
        for hit in result.hits:
            found[hit.memory_id].append((query, hit))
    fused = []
    for hits in found.values():
        best = max((hit for _query, hit in hits), key=lambda hit: hit.score or 0.0)
        if best.score is not None:
            mean = sum(hit.score or 0.0 for _query, hit in hits) / len(queries)
            by_query = [{"query": query, "score": hit.score} for query, hit in hits]
            relevance = max((hit.relevance for _query, hit in hits if hit.relevance is not None), default=None)
            best = _scored(best, (best.score + mean) / 2, {"queries": by_query} if len(queries) > 1 else {})
            best = best._replace(relevance=relevance)
        fused.append(best)
    return _sorted(fused)


def _rate(question: _Question) -> None:
    """Have a model rate the shown hits. Hits that its answer omits have no rating."""
    ids = list(question.shown)
    try:
        with search_lock.released():
            ratings = _ratings_of_reranker(question) if reranker.is_set() else _ratings_of_llm(question)
    except EndpointError as error:
        question.rating_error = error.detail
        return
    question.ratings = {ids[index]: rating for index, rating in ratings.items() if 0 <= index < len(ids)}


def _ratings_of_reranker(question: _Question) -> dict[int, float]:
    texts = [hit.text[:_MAX_RATED_CHARS] for hit in question.shown.values()]
    return reranker.client().rate(question.query[:_MAX_QUERY_CHARS], texts)


def _ratings_of_llm(question: _Question) -> dict[int, float]:
    lines: list[dict[str, Any]] = [{"question": question.query[:_MAX_QUERY_CHARS]}]
    for number, hit in enumerate(question.shown.values(), start=1):
        day = readable.moment(hit.created_at_ms).date().isoformat()
        lines.append({"number": number, "text": hit.text[:_MAX_RATED_CHARS], "day": day})
    answer = language_model.client().ask(_RATE_PROMPT, lines, _Ratings, RATE_SECONDS)
    return {one.number - 1: one.rating / _MAX_RATING for one in answer.ratings}


def _result(
    request: SearchRequest, question: _Question | None, hits: Sequence[Hit], results: Sequence[SearchResult]
) -> SearchResult:
    if question is None:
        return results[0]
    degraded = results[0].degraded
    if question.split_error:
        reason = _("%(said)s The search ran without it.", said=question.split_error)
        return replace(results[0], degraded=_join(reason, degraded))
    if request.enable_llm_rerank and question.rating_error:
        reason = _("%(said)s The results keep the order of the search.", said=question.rating_error)
        degraded = _join(reason, degraded)
    elif request.enable_llm_rerank and question.ratings is not None:
        best = max((hit.score or 0.0 for hit in question.shown.values()), default=0.0) or 1.0
        hits = _sorted(_blend(hit, question.ratings.get(hit.memory_id), best) for hit in hits)
    counted = [hit for hit in hits if hit.memory_type not in UNCOUNTED_TYPES][: request.top_k]
    pending = [hit for hit in hits if hit.memory_type == "unprocessed_message"][: request.top_k]
    profiles = [hit for hit in hits if hit.memory_type == "profile"]
    method = "agentic" if request.method == "agentic" else results[0].method
    found = (*_sorted([*counted, *pending]), *profiles)
    return SearchResult(found, method, degraded, corrected=results[0].corrected)


def _join(reason: str, degraded: str | None) -> str:
    return joined(" ", [reason, degraded]) if degraded else reason


def _blend(hit: Hit, rating: float | None, best: float) -> Hit:
    """Return a hit with its score and its rating in one score. `best` is the best score of the rated hits."""
    if hit.score is None:
        return hit
    legs = {} if rating is None else {"rerank": {"score": rating}}
    return _scored(hit, _FUSED_WEIGHT * min(hit.score / best, 1.0) + (1 - _FUSED_WEIGHT) * (rating or 0.0), legs)


def _scored(hit: Hit, score: float, legs: Mapping[str, Any]) -> Hit:
    raw = hit.raw | {"score": score} if "score" in hit.raw else hit.raw
    return hit._replace(score=score, raw=raw, legs={**hit.legs, **legs})


def _sorted(hits: Iterable[Hit]) -> list[Hit]:
    return sorted(hits, key=lambda hit: hit.sort_key)
