"""What a search leaves out because it is hidden: for operators who ask why a memory is missing."""

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
class LeftOut:
    """A hit that is hidden, and the place that it would have among the results. `memory` is its row, if the engine's
    memory was ever copied here."""

    hit: Hit
    scope: Scope
    rank: int
    memory: StoredMemory | None


def left_out(owner: Owner, command: SearchCommand, *, engine: Engine | None = None) -> list[LeftOut]:
    """The hidden ones among the hits that there would be if nothing were hidden, best first.

    It searches again, so it is not for those who wait. `agentic` is asked as `hybrid`: the model is not asked twice.
    Errors: those of search.
    """
    with turns.search():
        ranked = _ranked(owner, command, engine or get_engine())
    hidden = _hidden(owner, ranked)
    return [
        LeftOut(found.hit, found.scope, rank, hidden[found.hit.memory_id])
        for rank, found in enumerate(ranked, 1)
        if found.hit.memory_id in hidden
    ]


def _ranked(owner: Owner, command: SearchCommand, engine: Engine) -> list[Found]:
    method = "hybrid" if command.method == "agentic" else command.method
    requests = search.requests_of(owner, replace(command, method=method, include_profile=False))
    asked = {scope: replace(request, with_hidden=True) for scope, request in requests.items()}
    results = dict(zip(asked, engine.search(owner, list(asked.values())), strict=True))
    merged = search.merge(owner, asked, results)
    return search.cut((found for found in merged if found.hit.memory_type != "profile"), command.limit)


def _hidden(owner: Owner, ranked: Iterable[Found]) -> dict[str, StoredMemory | None]:
    """Which of the found memories are hidden, by themselves or with their session, by memory id. Two statements."""
    sessions = {found.hit.memory_id: found.hit.session_id for found in ranked}
    named = sorted({session_id for session_id in sessions.values() if session_id is not None})
    decided = decisions(owner, sorted(sessions), named)
    deleted = [memory_id for memory_id, session_id in sessions.items() if decided.hide(memory_id, session_id)]
    is_hidden = Q(hidden_at__isnull=False) | Q(session__hidden_at__isnull=False)
    rows = visible(Memory.objects.filter(is_hidden, owned_by(owner), memory_id__in=list(sessions)))
    return dict.fromkeys(deleted) | {row.memory_id: stored(row) for row in rows}
