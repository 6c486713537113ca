"""Find the hits that a search leaves out because they are hidden, for operators who look for a missing memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from django.db.models import Q

from core import turns
from engines.port import Engine
from engines.registry import get_engine
from memories.queries import decisions
from memories.services import search
from memories.services.search import Found, Scope, SearchCommand
from store.models import Memory, owned_by
from store.table import stored, visible
from store.types import Hit, Owner, StoredMemory


@dataclass(frozen=True, slots=True)
class HiddenHit:
    """A hidden hit and the rank it would have among the results. `memory` is its row, None if EverOS alone holds it."""

    hit: Hit
    scope: Scope
    rank: int
    memory: StoredMemory | None


def find_hidden_hits(owner: Owner, command: SearchCommand, *, engine: Engine | None = None) -> list[HiddenHit]:
    """Search as if nothing were hidden and return the hidden hits, best first.

    `agentic` is searched as `hybrid`, to spare a second call of the language model. Raises: the errors of search.
    """
    with turns.search():
        ranked = _ranked(owner, command, engine or get_engine())
    hidden = _hidden(owner, ranked)
    return [
        HiddenHit(found.hit, found.scope, rank, hidden[found.hit.memory_id])
        for rank, found in enumerate(ranked, 1)
        if found.hit.memory_id in hidden
    ]


def _ranked(owner: Owner, command: SearchCommand, engine: Engine) -> list[Found]:
    method = "hybrid" if command.method == "agentic" else command.method
    command = replace(command, method=method, include_profile=False, with_hidden=True)
    requests = search.scope_requests(owner, command)
    results = dict(zip(requests, engine.search(owner, list(requests.values())), strict=True))
    merged = search.merge_scopes(owner, requests, results)
    return search.limit_per_scope((found for found in merged if found.hit.memory_type != "profile"), command.top_k)


def _hidden(owner: Owner, ranked: Iterable[Found]) -> dict[str, StoredMemory | None]:
    """Return the hidden memories among the found ones by memory id, or with a hidden session. Two statements."""
    sessions = {found.hit.memory_id: found.hit.session_id for found in ranked}
    named = sorted({session_id for session_id in sessions.values() if session_id is not None})
    decided = decisions(owner, sorted(sessions), named)
    deleted = [memory_id for memory_id, session_id in sessions.items() if decided.hide(memory_id, session_id)]
    is_hidden = Q(hidden_at__isnull=False) | Q(session__hidden_at__isnull=False)
    rows = visible(Memory.objects.filter(is_hidden, owned_by(owner), memory_id__in=list(sessions)))
    return dict.fromkeys(deleted) | {row.memory_id: stored(row) for row in rows}
