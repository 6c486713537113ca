"""Build the calls to EverOS for a search request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from engines.everos.client.filters import for_upstream, needs_us
from store.external.engine_ids import AgentNames
from store.types import MAX_TOP_K, Owner, SearchRequest

Payload = dict[str, Any]


def payloads_of(
    owner: Owner, request: SearchRequest, sessions: Mapping[str, str], batch_size: int
) -> Iterator[Payload]:
    """Yield the bodies of a request's calls; `sessions` are the caller's, session id → engine id.

    Sessions unknown to EverOS are left out; without any there is no call. An agent's memories take one call without
    filters, which EverOS answers with 500.
    """
    caller = for_upstream(request.filters or {}, sessions)
    if request.agent_id is not None:
        if request.session_ids is None or any(session_id in sessions for session_id in request.session_ids):
            yield _payload(owner, request, {})
        return
    if request.session_ids is None:
        yield _payload(owner, request, {"AND": [caller]} if caller else {})
        return
    engine_ids = [sessions[session_id] for session_id in request.session_ids if session_id in sessions]
    for batch in _batches(engine_ids, batch_size):
        yield _payload(owner, request, _scope_of(batch, caller))


def _scope_of(engine_ids: Sequence[str], caller: Payload) -> Payload:
    """Put the session condition at the top level: only there does EverOS return the unprocessed messages of a single
    session, and the caller's filters cannot widen it."""
    if len(engine_ids) == 1:
        return {"session_id": engine_ids[0], **({"AND": [caller]} if caller else {})}
    scope = {"session_id": {"in": list(engine_ids)}}
    return {"AND": [caller, scope]} if caller else scope


def _payload(owner: Owner, request: SearchRequest, filters: Payload) -> Payload:
    payload: Payload = {
        **_whose(owner, request.agent_id),
        "app_id": owner.app_id,
        "project_id": owner.project_id,
        "query": request.query,
        "method": request.method,
        "top_k": MAX_TOP_K if _is_filtered_here(request) else request.top_k,
        "enable_llm_rerank": request.enable_llm_rerank,
    }
    if request.radius is not None:
        payload["radius"] = request.radius
    if filters:
        payload["filters"] = filters
    return payload


def _batches(items: Sequence[str], size: int) -> Iterator[list[str]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _is_filtered_here(request: SearchRequest) -> bool:
    """Return True if we drop hits that EverOS counts."""
    filters = request.filters or {}
    return needs_us(filters) or (request.agent_id is not None and bool(filters or request.session_ids))


def _whose(owner: Owner, agent_id: str | None) -> Payload:
    if agent_id is None:
        return {"user_id": owner.user_id}
    return {"agent_id": AgentNames.of(owner.user_pk).engine_id(agent_id)}
