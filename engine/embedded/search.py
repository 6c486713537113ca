"""Questions to hits: two statements whatever the number of questions, everything between them in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np

from engine import filters
from engine.embedded import index, queries, ranking, snapshot
from engine.embedded.pages import ORIGINS
from engine.embedded.ranking import Flags, Keywords, Score
from engine.embedded.records import RECORD_TYPE, raw_of
from engine.embedded.snapshot import Numbers, Postings, Snapshot
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
Ranked = tuple[int, Score]
"""A memory's row id and its score."""


@dataclass(frozen=True, slots=True)
class _Filterable:
    """A document as filters see it. What came from a resource has that as its parent, all else its session."""

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
    rows = queries.rows(owner, {pk for ranked in best for pk, _ in ranked})
    return [
        SearchResult(
            hits=tuple(hits_of(owner, ranked, rows)),
            method="keyword",
            degraded=DEGRADED if request.method == "hybrid" else None,
        )
        for request, ranked in zip(requests, best, strict=True)
    ]


def rank(owner: Owner, requests: Sequence[SearchRequest], *, origins: Collection[str] = ()) -> list[list[Ranked]]:
    """The best memories for each request by keyword, best first; of these origins alone where some are named.

    At most one statement.
    """
    terms = {request.query: query_tokens(request.query)[:MAX_TERMS] for request in requests}
    wanted = list(dict.fromkeys(term for held in terms.values() for term in held))
    if not wanted:
        return [[] for _ in requests]
    seen = snapshot.read(owner, wanted, index.prefix_of(owner), sessions=_sessions(requests))
    questions = {query: _keywords(seen, query, held, wanted) for query, held in terms.items()}
    return [_best(request, questions[request.query], seen, origins) for request in requests]


def _check_method(request: SearchRequest) -> None:
    if setting := _NEEDS.get(request.method):
        raise InvalidInput.of_field("method", f"{request.method} needs the setting {setting}; use keyword or hybrid")


def _sessions(requests: Iterable[SearchRequest]) -> list[str] | None:
    """The sessions that the requests speak of; None: all, because filters may speak of any."""
    if any(request.filters for request in requests):
        return None
    return list(dict.fromkeys(one for request in requests for one in request.session_ids or ()))


def _keywords(seen: Snapshot, query: str, terms: Sequence[str], wanted: Sequence[str]) -> Keywords:
    """`terms` are the question's own among those that were looked up."""
    postings = seen.postings
    if len(terms) < len(wanted):
        place = {term: number for number, term in enumerate(terms)}
        own = np.array([place.get(term, -1) for term in wanted])[postings.terms]
        order = np.flatnonzero(own >= 0)
        order = order[np.argsort(own[order], kind="stable")]
        postings = Postings(own[order], postings.documents[order], postings.counts[order])
    return ranking.keywords(seen, terms, postings, ranking.speakers_named(query, seen))


def _best(request: SearchRequest, question: Keywords, seen: Snapshot, origins: Collection[str]) -> list[Ranked]:
    documents = np.flatnonzero((question.totals > 0) & _admitted(request, seen, origins))
    pending = seen.pending[documents]
    chosen = np.concatenate([
        ranking.best(seen.facts, part, question.totals, request.top_k)
        for part in (documents[~pending], documents[pending])
    ])  # fmt: skip
    chosen = ranking.best(seen.facts, chosen, question.totals, len(chosen))
    legs = question.legs(chosen, range(1, len(chosen) + 1))
    pks, totals = seen.facts["pk"][chosen].tolist(), question.totals[chosen].tolist()
    return [(pk, Score(total, {"keyword": leg})) for pk, total, leg in zip(pks, totals, legs, strict=True)]


def _admitted(request: SearchRequest, seen: Snapshot, origins: Collection[str]) -> Flags:
    """The documents of the part that the request asks: its sessions, its agent, its filters."""
    facts = seen.facts
    admitted = np.ones(len(facts), np.bool_)
    if request.session_ids is not None:
        asked = [seen.sessions[name] for name in request.session_ids if name in seen.sessions]
        admitted &= np.isin(facts["session"], asked)
    if request.agent_id is not None:
        admitted &= np.array([name == request.agent_id for name in seen.names], np.bool_)[facts["agent"]]
    if origins:
        admitted &= np.isin(facts["origin"], [ORIGINS.index(origin) for origin in origins])
    if request.filters:
        admitted &= _passing(request.filters, seen, np.flatnonzero(admitted))
    return admitted


def _passing(tree: Mapping[str, Any], seen: Snapshot, documents: Numbers) -> Flags:
    condition = filters.parse(tree)
    sessions = {pk: name for name, pk in seen.sessions.items()}
    passing = np.zeros(len(seen.facts), np.bool_)
    rows = seen.facts[documents]
    columns = (documents.tolist(), rows["session"].tolist(), rows["at"].tolist(), rows["sender"].tolist())
    for document, session, at, sender in zip(*columns, strict=True):
        passing[document] = condition.matches(_filterable(sessions.get(session), at, seen.names[sender]))
    return passing


def _filterable(session_id: str | None, at: int, sender_id: str) -> _Filterable:
    parent_type: str | None = "session" if session_id else None
    parent_id = session_id
    if session_id and (name := parse_session_id(session_id)).kind == "resource":
        parent_type, parent_id = "resource", name.rest
    return _Filterable(session_id, parent_type, parent_id, at, sender_id, RECORD_TYPE)


def hits_of(owner: Owner, ranked: Iterable[Ranked], rows: Mapping[int, queries.Row]) -> Iterable[Hit]:
    """Ranked memories as hits; `rows` by row id. What is gone since the index was read is left out."""
    for pk, score in ranked:
        if row := rows.get(pk):
            yield Hit(
                memory_id=row.memory_id,
                memory_type=cast("MemoryType", row.memory_type),
                session_id=row.session_id,
                text=row.text,
                score=score.total,
                created_at_ms=row.created_at_ms,
                raw=raw_of(owner, row, score.total),
                legs=score.legs,
            )
