"""Questions to hits: two statements whatever the number of questions, everything between them in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from engine import filters
from engine.embedded import index, queries, ranking
from engine.embedded.ranking import Candidate, Question, Score
from engine.embedded.records import RECORD_TYPE, raw_of
from engine.port import Hit, MemoryType, Owner, SearchRequest, SearchResult
from engine.text.tokens import query_tokens
from memory_gateway.core.errors import InvalidInput
from memory_gateway.core.ids import parse_session_id

DEGRADED: Final = "No embedding endpoint is set (MEMORY_GATEWAY_EMBEDDING_BASE_URL): searched by keyword alone."
MAX_TERMS: Final = 2048
_NEEDS: Final[Mapping[str, str]] = {
    "vector": "MEMORY_GATEWAY_EMBEDDING_BASE_URL",
    "agentic": "MEMORY_GATEWAY_LLM_BASE_URL",
}
_UNPROCESSED: Final = "unprocessed_message"
Ranked = tuple[Candidate, Score]


@dataclass(frozen=True, slots=True)
class _Filterable:
    """A candidate as filters see it. What came from a resource has that as its parent, all else its session."""

    session_id: str | None
    parent_type: str | None
    parent_id: str | None
    timestamp: int
    sender_id: str
    type: str


def search(owner: Owner, requests: Sequence[SearchRequest]) -> list[SearchResult]:
    """The best memories for each request. At most `top_k` of them, and besides as many unprocessed messages.

    `radius` does not cut keyword evidence. Errors: `InvalidInput` for a method that needs an endpoint.
    """
    for request in requests:
        _check_method(request)
    best = rank(owner, requests)
    rows = queries.rows(owner, {candidate.pk for ranked in best for candidate, _ in ranked})
    return [
        SearchResult(
            hits=tuple(hits_of(owner, ranked, rows)),
            method="keyword",
            degraded=DEGRADED if request.method == "hybrid" else None,
        )
        for request, ranked in zip(requests, best, strict=True)
    ]


def rank(owner: Owner, requests: Sequence[SearchRequest], *, origins: Collection[str] = ()) -> list[list[Ranked]]:
    """The best candidates for each request by keyword, best first; `origins` as for `index.candidates`.

    At most one statement.
    """
    terms = {request.query: query_tokens(request.query)[:MAX_TERMS] for request in requests}
    wanted = list(dict.fromkeys(term for held in terms.values() for term in held))
    found, statistics = index.candidates(owner, wanted, origins=origins) if wanted else ([], ranking.Statistics(0, 0))
    questions = {query: ranking.ask(query, held, found, statistics, index.counts) for query, held in terms.items()}
    return [_best(request, questions[request.query], found) for request in requests]


def _check_method(request: SearchRequest) -> None:
    if setting := _NEEDS.get(request.method):
        raise InvalidInput.of_field("method", f"{request.method} needs the setting {setting}; use keyword or hybrid")


def _best(request: SearchRequest, question: Question, found: Iterable[Candidate]) -> list[Ranked]:
    memories: list[Candidate] = []
    pending: list[Candidate] = []
    for candidate in _admitted(request, found):
        (pending if candidate.memory_type == _UNPROCESSED else memories).append(candidate)
    best = question.best(memories, request.top_k) + question.best(pending, request.top_k)
    return sorted(best, key=lambda item: ranking.order(item[1].total, item[0]))


def _admitted(request: SearchRequest, found: Iterable[Candidate]) -> Iterable[Candidate]:
    """The candidates of the part that the request asks: its sessions, its agent, its filters."""
    if request.session_ids is not None:
        sessions = frozenset(request.session_ids)
        found = [candidate for candidate in found if candidate.session_id in sessions]
    if request.agent_id is not None:
        found = [candidate for candidate in found if candidate.agent_id == request.agent_id]
    if request.filters:
        condition = filters.parse(request.filters)
        found = [candidate for candidate in found if condition.matches(_filterable(candidate))]
    return found


def _filterable(candidate: Candidate) -> _Filterable:
    parent_type: str | None = "session" if candidate.session_id else None
    parent_id = candidate.session_id
    if candidate.session_id and (name := parse_session_id(candidate.session_id)).kind == "resource":
        parent_type, parent_id = "resource", name.rest
    return _Filterable(
        candidate.session_id,
        parent_type,
        parent_id,
        candidate.created_at_ms,
        candidate.sender_id,
        RECORD_TYPE,
    )


def hits_of(owner: Owner, ranked: Iterable[Ranked], rows: Mapping[int, queries.Row]) -> Iterable[Hit]:
    """Ranked candidates as hits; `rows` by row id. What is gone since the index was read is left out."""
    for rank, (candidate, score) in enumerate(ranked, start=1):
        if row := rows.get(candidate.pk):
            yield Hit(
                memory_id=row.memory_id,
                memory_type=cast("MemoryType", row.memory_type),
                session_id=row.session_id,
                text=row.text,
                score=score.total,
                created_at_ms=row.created_at_ms,
                raw=raw_of(owner, row, score.total),
                legs={"keyword": _leg(rank, score)},
            )


def _leg(rank: int, score: Score) -> dict[str, Any]:
    """The score's parts add up to it."""
    return {
        "rank": rank,
        "score": score.total,
        "parts": {"terms": score.terms, "neighbours": score.neighbours, "speaker": score.speaker},
        "matched": list(score.matched),
    }
