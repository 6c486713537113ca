"""Answer the search requests of one user: build the calls to EverOS, map the answers, add the hits of our own index."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import orjson

from engines.everos import local_overlay
from engines.everos.client import wire
from engines.everos.client.filters import session_ids_in
from engines.everos.client.hits import Names, session_ids_of
from engines.everos.client.queries import Payload, payloads_of
from engines.everos.client.result_mapping import build_result, collect_hits, is_full
from engines.everos.local_overlay import LocalHits
from store.external import residue, sessions
from store.external.engine_ids import AgentNames
from store.types import Hit, Owner, SearchRequest, SearchResult

Ask = Callable[[Sequence[Payload]], list[wire.Records]]


def search(ask: Ask, owner: Owner, requests: Sequence[SearchRequest], batch_size: int) -> list[SearchResult]:
    """Answer the requests in order; `ask` makes the calls. At most five SQL statements.

    Equal calls are made once, and the profile is requested once.
    """
    engine_ids, is_filled = sessions.engine_ids(owner, _sessions_named_in(requests))
    payloads = [list(payloads_of(owner, request, engine_ids, batch_size)) for request in requests]
    if any(request.include_profile for request in requests):
        _request_profile(payloads)
    bodies = [[orjson.dumps(payload) for payload in of_request] for of_request in payloads]
    calls = dict(zip(chain.from_iterable(bodies), chain.from_iterable(payloads), strict=True))
    answers = dict(zip(calls, ask(list(calls.values())), strict=True))
    records = [[answers[body] for body in of_request] for of_request in bodies]
    names = _names(owner, requests, engine_ids, records)
    hits = _without_erased_user(
        owner,
        [
            collect_hits(request, of_request, owner, its_names)
            for request, of_request, its_names in zip(requests, records, names, strict=True)
        ],
    )
    local = LocalHits([[] for _ in requests], frozenset())
    if is_filled:
        local = local_overlay.look_up(owner, requests, {hit.memory_id for of_request in hits for hit in of_request})
    results = []
    for number, request in enumerate(requests):
        remote = [hit for hit in hits[number] if hit.memory_id not in local.overridden]
        full_at = _full_at(payloads[number], records[number])
        results.append(build_result(request, [*remote, *local.hits[number]], full_at))
    return results


def _without_erased_user(owner: Owner, hits: list[list[Hit]]) -> list[list[Hit]]:
    """Drop sessionless hits of an erased user of the same name: EverOS cannot delete their profile.

    One statement if there are sessionless hits.
    """
    if not any(map(_is_of_no_session, chain.from_iterable(hits))) or not residue.holds_user(owner.user_id):
        return hits
    return [[hit for hit in of_request if not _is_of_no_session(hit)] for of_request in hits]


def _is_of_no_session(hit: Hit) -> bool:
    """Return True for profiles; the names of agents in EverOS are unique to their user."""
    return hit.session_id is None and not hit.memory_type.startswith("agent_")


def _full_at(payloads: Sequence[Payload], answers: Sequence[wire.Records]) -> int | None:
    """Return the `top_k` of a request's calls if one of them returned as many."""
    pairs = zip(payloads, answers, strict=True)
    return max((payload["top_k"] for payload, records in pairs if is_full(records, payload["top_k"])), default=None)


def _sessions_named_in(requests: Sequence[SearchRequest]) -> set[str]:
    return {
        session_id
        for request in requests
        for session_id in {*(request.session_ids or ()), *session_ids_in(request.filters or {})}
    }


def _request_profile(calls: Sequence[Sequence[Payload]]) -> None:
    for payloads in calls:
        for payload in payloads:
            if "user_id" in payload:
                payload["include_profile"] = True
                return


def _names(
    owner: Owner, requests: Sequence[SearchRequest], own: Mapping[str, str], found: Sequence[Sequence[wire.Records]]
) -> list[Names]:
    """Return for each request the engine ids it may return, with the owner's session ids: the requested sessions or,
    for a request without sessions, the owner's among those that EverOS returned."""
    returned = {
        engine_id
        for request, answers in zip(requests, found, strict=True)
        if _is_unscoped(request)
        for records in answers
        for engine_id in session_ids_of(records)
    }
    agents = AgentNames.of(owner.user_pk)
    live, given_up = sessions.session_ids(owner, returned)
    return [
        Names(live, agents, given_up)
        if _is_unscoped(request)
        else Names({own[name]: name for name in request.session_ids or () if name in own}, agents)
        for request in requests
    ]


def _is_unscoped(request: SearchRequest) -> bool:
    return request.session_ids is None or request.agent_id is not None
