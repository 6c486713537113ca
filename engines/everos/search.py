"""One user's questions put to the upstream together: which calls they need, what of the answers is the user's, and what
our own index adds to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain

import orjson

from engines.everos import local_overlay
from engines.everos.client import wire
from engines.everos.client.filters import session_ids_in
from engines.everos.client.hits import Names, session_ids_of
from engines.everos.client.queries import Payload, payloads_of
from engines.everos.client.result_mapping import answer_of, found_by, is_full
from engines.everos.local_overlay import Own
from store.external import residue, sessions
from store.external.engine_ids import AgentNames
from store.types import Hit, Owner, SearchRequest, SearchResult

Ask = Callable[[Sequence[Payload]], list[wire.Records]]


def search(ask: Ask, owner: Owner, requests: Sequence[SearchRequest], batch_size: int) -> list[SearchResult]:
    """Answers the requests in their order; `ask` makes the calls. At most five SQL statements.

    Equal calls are made once, and the profile is asked for once.
    """
    own, is_filled = sessions.engine_ids(owner, _sessions_named_in(requests))
    asked = [list(payloads_of(owner, request, own, batch_size)) for request in requests]
    if any(request.include_profile for request in requests):
        _ask_for_profile(asked)
    bodies = [[orjson.dumps(payload) for payload in payloads] for payloads in asked]
    calls = dict(zip(chain.from_iterable(bodies), chain.from_iterable(asked), strict=True))
    answers = dict(zip(calls, ask(list(calls.values())), strict=True))
    found = [[answers[body] for body in of_request] for of_request in bodies]
    names = _names(owner, requests, own, found)
    hits = [
        found_by(request, records, owner, its_names)
        for request, records, its_names in zip(requests, found, names, strict=True)
    ]
    hits = _without_left(owner, hits)
    beside = Own([[] for _ in requests], frozenset())
    if is_filled:
        beside = local_overlay.look_up(owner, requests, {hit.memory_id for held in hits for hit in held})
    return [
        answer_of(request, [*_without(beside.reworded, held), *ours], _full_at(payloads, records))
        for request, held, ours, payloads, records in zip(requests, hits, beside.hits, asked, found, strict=True)
    ]


def _without_left(owner: Owner, hits: list[list[Hit]]) -> list[list[Hit]]:
    """Of an erased user of the same name the upstream has no session that would give it away, but it may have a
    profile. One statement, where something came that is of no session."""
    if not any(map(_is_of_no_session, chain.from_iterable(hits))) or not residue.holds_user(owner.user_id):
        return hits
    return [[hit for hit in held if not _is_of_no_session(hit)] for held in hits]


def _is_of_no_session(hit: Hit) -> bool:
    """Agents have names of their user's own there."""
    return hit.session_id is None and not hit.memory_type.startswith("agent_")


def _without(memory_ids: Collection[str], hits: Iterable[Hit]) -> Iterable[Hit]:
    return (hit for hit in hits if hit.memory_id not in memory_ids)


def _full_at(payloads: Sequence[Payload], answers: Sequence[wire.Records]) -> int | None:
    """The `top_k` of a request's calls, if one of them brought as many."""
    pairs = zip(payloads, answers, strict=True)
    return max((payload["top_k"] for payload, records in pairs if is_full(records, payload["top_k"])), default=None)


def _sessions_named_in(requests: Sequence[SearchRequest]) -> set[str]:
    return {
        session_id
        for request in requests
        for session_id in {*(request.session_ids or ()), *session_ids_in(request.filters or {})}
    }


def _ask_for_profile(asked: Sequence[Sequence[Payload]]) -> None:
    for payloads in asked:
        for payload in payloads:
            if "user_id" in payload:
                payload["include_profile"] = True
                return


def _names(
    owner: Owner, requests: Sequence[SearchRequest], own: Mapping[str, str], found: Sequence[Sequence[wire.Records]]
) -> list[Names]:
    """For each request the engine ids that may come, with the owner's names for them: the sessions that it asked for,
    or where it asked without sessions whichever of those that came are the owner's."""
    came = {
        engine_id
        for request, answers in zip(requests, found, strict=True)
        if _is_unscoped(request)
        for records in answers
        for engine_id in session_ids_of(records)
    }
    agents = AgentNames.of(owner.user_pk)
    live, given_up = sessions.session_ids(owner, came)
    return [
        Names(live, agents, given_up)
        if _is_unscoped(request)
        else Names({own[name]: name for name in request.session_ids or () if name in own}, agents)
        for request in requests
    ]


def _is_unscoped(request: SearchRequest) -> bool:
    return request.session_ids is None or request.agent_id is not None
