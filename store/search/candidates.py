"""The part of a user's memories that a request asks: its sessions, its agents, its filters."""

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
    """A document as filters see it. What came from a resource has that as its parent, all else its session."""

    session_id: str | None
    parent_type: str | None
    parent_id: str | None
    timestamp: int
    sender_id: str
    type: str


def sessions_of(requests: Iterable[SearchRequest]) -> list[str] | None:
    """The sessions that requests speak of; None: all, because filters may speak of any."""
    if any(request.filters for request in requests):
        return None
    return list(dict.fromkeys(one for request in requests for one in request.session_ids or ()))


def admitted(request: SearchRequest, seen: Snapshot) -> Flags:
    """Which documents belong to the part."""
    facts = seen.facts
    found = np.ones(len(facts), np.bool_)
    if request.session_ids is not None:
        asked = [seen.sessions[name] for name in request.session_ids if name in seen.sessions]
        found &= np.isin(facts["session"], asked)
    if request.agent_id is not None:
        found &= of_agents(seen, {request.agent_id})
    if request.reader is not None:
        found &= ~is_written_down(seen) | of_agents(seen, {"", request.reader})
    if request.filters:
        found &= _passing(request.filters, seen, np.flatnonzero(found))
    return found


def of_agents(seen: Snapshot, agent_ids: Collection[str]) -> Flags:
    agents = [place for place, name in enumerate(seen.names) if name in agent_ids]
    return np.isin(seen.facts["agent"], agents)


def is_written_down(seen: Snapshot) -> Flags:
    return np.isin(seen.facts["origin"], [ORIGINS.index(origin) for origin in WRITTEN_DOWN])


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
