"""Select the memories that a request covers, by its sessions, agents and filters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.ids import parse_session_id
from store import filters
from store.index.pages import ORIGINS
from store.models import WRITTEN_DOWN
from store.search.ranking import Flags
from store.search.records import RECORD_TYPE
from store.search.snapshot import Numbers, Snapshot
from store.types import SearchRequest


@dataclass(frozen=True, slots=True)
class _Filterable:
    """A document as filters see it. Its parent is the resource it comes from, else its session."""

    session_id: str | None
    parent_type: str | None
    parent_id: str | None
    timestamp: int
    sender_id: str
    type: str


def sessions_of(requests: Iterable[SearchRequest]) -> list[str] | None:
    """Return the sessions that requests name, None for all: filters may name any session."""
    if any(request.filters for request in requests):
        return None
    return list(dict.fromkeys(one for request in requests for one in request.session_ids or ()))


def candidate_mask(request: SearchRequest, snapshot: Snapshot) -> Flags:
    """Return which documents the request covers."""
    facts = snapshot.facts
    mask = np.ones(len(facts), np.bool_)
    if request.session_ids is not None:
        sessions = [snapshot.sessions[name] for name in request.session_ids if name in snapshot.sessions]
        mask &= np.isin(facts["session"], sessions)
    if request.agent_id is not None:
        mask &= of_agents(snapshot, {request.agent_id})
    if request.reader is not None:
        mask &= ~is_written_down(snapshot) | of_agents(snapshot, {"", request.reader})
    if request.filters:
        mask &= _passing(request.filters, snapshot, np.flatnonzero(mask))
    return mask


def of_agents(snapshot: Snapshot, agent_ids: Collection[str]) -> Flags:
    agents = [place for place, name in enumerate(snapshot.names) if name in agent_ids]
    return np.isin(snapshot.facts["agent"], agents)


def is_written_down(snapshot: Snapshot) -> Flags:
    return np.isin(snapshot.facts["origin"], [ORIGINS.index(origin) for origin in WRITTEN_DOWN])


def _passing(tree: Mapping[str, Any], snapshot: Snapshot, documents: Numbers) -> Flags:
    condition = filters.parse(tree)
    sessions = {pk: name for name, pk in snapshot.sessions.items()}
    passing = np.zeros(len(snapshot.facts), np.bool_)
    rows = snapshot.facts[documents]
    columns = (documents.tolist(), rows["session"].tolist(), rows["at"].tolist(), rows["sender"].tolist())
    for document, session, at, sender in zip(*columns, strict=True):
        passing[document] = condition.matches(_filterable(sessions.get(session), at, snapshot.names[sender]))
    return passing


def _filterable(session_id: str | None, at: int, sender_id: str) -> _Filterable:
    parent_type: str | None = "session" if session_id else None
    parent_id = session_id
    if session_id and (name := parse_session_id(session_id)).kind == "resource":
        parent_type, parent_id = "resource", name.rest
    return _Filterable(session_id, parent_type, parent_id, at, sender_id, RECORD_TYPE)
