"""Build the calls to EverOS for a search request, with the part of its filters that EverOS can apply."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from core.times import as_ms, from_ms
from remote.engine_ids import AgentNames
from store.types import MAX_TOP_K, Owner, SearchRequest

_LOCAL_FIELDS = frozenset({"type"})
Payload = dict[str, Any]
Tree = Mapping[str, Any]


def payloads_of(
    owner: Owner, request: SearchRequest, sessions: Mapping[str, str], batch_size: int
) -> Iterator[Payload]:
    """Yield the payloads of a request's calls. `sessions` maps the user's session ids to engine ids.

    Sessions unknown to EverOS are left out; if none remains, there is no call. An agent's memories take one call
    without filters, because EverOS answers a filtered one with 500.
    """
    if request.agent_id is not None:
        if request.session_ids is None or any(session_id in sessions for session_id in request.session_ids):
            yield _payload(owner, request, {})
        return
    filters = _for_everos(request.filters or {}, sessions)
    if request.session_ids is None:
        yield _payload(owner, request, {"AND": [filters]} if filters else {})
        return
    engine_ids = [sessions[session_id] for session_id in request.session_ids if session_id in sessions]
    for start in range(0, len(engine_ids), batch_size):
        batch = engine_ids[start : start + batch_size]
        if len(batch) == 1:
            # EverOS returns the unprocessed messages of a session only if the filter names it at the top level.
            yield _payload(owner, request, {"session_id": batch[0], **({"AND": [filters]} if filters else {})})
        else:
            scope = {"session_id": {"in": batch}}
            yield _payload(owner, request, {"AND": [filters, scope]} if filters else scope)


def session_ids_in(tree: Tree) -> set[str]:
    """Return every session id in the filters."""
    found: set[str] = set()
    for key, value in tree.items():
        if key in {"AND", "OR"}:
            found.update(*(session_ids_in(part) for part in value))
        elif key == "session_id":
            operands = value.values() if isinstance(value, Mapping) else [value]
            for operand in operands:
                found.update(operand if isinstance(operand, list | tuple) else [operand])
    return found


def needs_gateway(tree: Tree) -> bool:
    """Return True if EverOS cannot apply all of the filters."""
    return any(
        key in _LOCAL_FIELDS or (key in {"AND", "OR"} and any(needs_gateway(part) for part in value))
        for key, value in tree.items()
    )


def _payload(owner: Owner, request: SearchRequest, filters: Payload) -> Payload:
    payload: Payload = {
        **owner.scope,
        "query": request.query,
        "method": request.method,
        "top_k": request.top_k,
        "enable_llm_rerank": request.enable_llm_rerank,
    }
    is_filtered_here = needs_gateway(request.filters or {})
    if request.agent_id is None:
        payload["user_id"] = owner.remote_name
    else:
        payload["agent_id"] = AgentNames(owner.user_pk).engine_id(request.agent_id)
        is_filtered_here = bool(request.filters or request.session_ids)
    if is_filtered_here:  # more hits, because the gateway drops some of them
        payload["top_k"] = MAX_TOP_K
    if request.radius is not None:
        payload["radius"] = request.radius
    if filters:
        payload["filters"] = filters
    return payload


def _for_everos(tree: Tree, sessions: Mapping[str, str]) -> dict[str, Any]:
    """Return the part of the filters that EverOS can apply, with engine session ids.

    It never excludes a match: an OR with a branch that EverOS cannot apply is left out.
    """
    translated: dict[str, Any] = {}
    for key, value in tree.items():
        if key in {"AND", "OR"}:
            parts = [_for_everos(part, sessions) for part in value]
            if key == "AND" or all(parts):
                translated[key] = [part for part in parts if part]
        elif key == "session_id":
            translated[key] = _mapped(value, lambda session_id: sessions.get(session_id, session_id))
        elif key == "timestamp":
            translated[key] = _mapped(value, _as_iso)
        elif key not in _LOCAL_FIELDS:
            translated[key] = value
    return {key: value for key, value in translated.items() if value != []}


def _mapped(value: Any, translate: Callable[[Any], str]) -> Any:
    """Translate each operand of a condition."""
    if isinstance(value, Mapping):
        return {operator: _mapped(operand, translate) for operator, operand in value.items()}
    if isinstance(value, list | tuple):
        return [translate(item) for item in value]
    return translate(value)


def _as_iso(value: Any) -> str:
    """Return the time as ISO 8601 with its zone.

    EverOS reads milliseconds before September 2001 as seconds, and text without a zone as local time.
    """
    moment = datetime.fromisoformat(value) if isinstance(value, str) else from_ms(as_ms(int(value)))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()
