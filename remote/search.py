"""Answer the search requests of one user: build the calls to EverOS, map the answers, add the hits of the local index.

The local index contains what EverOS lacks: overrides, memories written by operators and tools, and memories of the
embedded engine that are not moved yet. EverOS finds an overridden memory by its original text; these hits are dropped.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

import orjson

from remote import sessions
from remote.client import wire
from remote.client.hits import Names, build_result, collect_hits
from remote.client.queries import Payload, payloads_of, session_ids_in
from remote.engine_ids import AgentNames
from store import cover
from store.search import records
from store.search.search import MAX_TERMS, hits_of, rank
from store.text.tokens import query_tokens
from store.types import Hit, Owner, SearchRequest, SearchResult

Ask = Callable[[Sequence[Payload]], list[wire.Records]]


def search(ask: Ask, owner: Owner, requests: Sequence[SearchRequest], batch_size: int) -> list[SearchResult]:
    """Answer the requests in order; `ask` makes the calls. At most five SQL statements.

    Equal calls are made once, and the profile is requested once.
    """
    named = {
        session_id
        for request in requests
        for session_id in (*(request.session_ids or ()), *session_ids_in(request.filters or {}))
    }
    engine_ids, is_filled = sessions.engine_ids(owner, named)
    payloads = [list(payloads_of(owner, request, engine_ids, batch_size)) for request in requests]
    of_users = (payload for payload in chain.from_iterable(payloads) if "user_id" in payload)
    if any(request.include_profile for request in requests) and (first := next(of_users, None)):
        first["include_profile"] = True
    bodies = [[orjson.dumps(payload) for payload in of_request] for of_request in payloads]
    calls = dict(zip(chain.from_iterable(bodies), chain.from_iterable(payloads), strict=True))
    answers = dict(zip(calls, ask(list(calls.values())), strict=True))
    records = [[answers[body] for body in of_request] for of_request in bodies]
    names = _names(owner, requests, engine_ids, records)
    hits = [
        collect_hits(request, of_request, owner, its_names)
        for request, of_request, its_names in zip(requests, records, names, strict=True)
    ]
    # EverOS cannot delete the profile of an erased user, and a new user may have the same id.
    if any(map(_is_without_session, chain.from_iterable(hits))) and sessions.is_erased_user(owner.user_id):
        hits = [[hit for hit in of_request if not _is_without_session(hit)] for of_request in hits]
    if is_filled:
        hits = _with_local_hits(owner, requests, hits)
    return [
        build_result(request, found, _full_at(of_request, its_records))
        for request, found, of_request, its_records in zip(requests, hits, payloads, records, strict=True)
    ]


def _is_without_session(hit: Hit) -> bool:
    """Return True for profiles. Agents' memories are safe: agent ids in EverOS contain the user's key."""
    return hit.session_id is None and not hit.memory_type.startswith("agent_")


def _full_at(payloads: Sequence[Payload], answers: Sequence[wire.Records]) -> int | None:
    """Return the `top_k` of a request's calls if one of them returned as many hits, else None: there may be more."""
    full = [
        payload["top_k"]
        for payload, records in zip(payloads, answers, strict=True)
        if max(len(records.episodes), len(records.agent_cases), len(records.agent_skills)) >= payload["top_k"]
    ]
    return max(full, default=None)


def _names(
    owner: Owner, requests: Sequence[SearchRequest], own: Mapping[str, str], found: Sequence[Sequence[wire.Records]]
) -> list[Names]:
    """Return for each request the engine ids that it may return, with the owner's session ids.

    These are the requested sessions or, for a request without sessions, the owner's sessions among the returned ones.
    """
    returned = {
        record.session_id
        for request, answers in zip(requests, found, strict=True)
        if _is_unscoped(request)
        for records in answers
        for record, _sent in records.all()
        if record.session_id
    }
    agents = AgentNames(owner.user_pk)
    live, deleted = sessions.session_ids(owner, returned)
    return [
        Names(live, agents, deleted)
        if _is_unscoped(request)
        else Names({own[name]: name for name in request.session_ids or () if name in own}, agents)
        for request in requests
    ]


def _is_unscoped(request: SearchRequest) -> bool:
    return request.session_ids is None or request.agent_id is not None


def _with_local_hits(owner: Owner, requests: Sequence[SearchRequest], hits: Sequence[Sequence[Hit]]) -> list[list[Hit]]:
    """Add the hits of the local index, and drop EverOS's hits of overridden memories. At most two SQL statements."""
    ranked = rank(owner, requests, left_out=cover.left_out(remote_ranks=True))
    pks = {pk for of_request in ranked for pk, _score in of_request}
    everos_ids = {hit.memory_id for of_request in hits for hit in of_request}
    with_hidden = any(request.with_hidden for request in requests)
    rows = records.rows_and_overridden(owner, pks, everos_ids, with_hidden=with_hidden)
    overridden = {row.memory_id for row in rows.values()}
    return [
        [
            *(hit for hit in found if hit.memory_id not in overridden),
            *_scored(request.query, hits_of(owner, best, rows)),
        ]
        for request, found, best in zip(requests, hits, ranked, strict=True)
    ]


def _scored(query: str, hits: Iterable[Hit]) -> Iterator[Hit]:
    """Score local hits by the fraction of the query's terms that they contain, similar to EverOS's scores of 0 to 1.

    The local score would be about 0.25 for a hit with each term once. The two scales still differ.
    """
    terms = len(query_tokens(query)[:MAX_TERMS])
    for hit in hits:
        share = len(hit.legs["keyword"]["matched"]) / terms
        yield hit._replace(score=share, raw={**hit.raw, "score": share})
