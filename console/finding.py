"""Words looked for across users: the engine searches one user's memories at a time, so it is asked for several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from console import queries
from memories.services.search import SearchCommand, search
from store.browse import Selection
from store.types import StoredMemory

MAX_SCOPES: Final = 20
TOP_K: Final = 100
MAX_HITS: Final = 500


@dataclass(frozen=True, slots=True)
class Answer:
    """The best memories first, with their scores. `scopes` of `all_scopes` were searched, the fullest first.
    `is_short`: there were more hits than were looked at, and too few of those pass the selection."""

    found: tuple[tuple[StoredMemory, float | None], ...]
    scopes: int
    all_scopes: int
    is_short: bool


def find(words: str, selection: Selection, users: Sequence[UUID], *, limit: int) -> Answer:
    """The selected memories that fit the words best; `users` the fullest first. Errors: those of search."""
    asked = queries.owners(users[:MAX_SCOPES], selection.app_id or "", selection.project_id or "")[:MAX_SCOPES]
    command = _command(words, selection)
    answers = [(owner, search(owner, command).results) for owner in asked]
    hits = [(owner, found.hit) for owner, results in answers for found in results]
    hits.sort(key=lambda pair: (pair[1].score is None, -(pair[1].score or 0.0), -pair[1].created_at_ms))
    best = hits[:MAX_HITS]
    rows = queries.stored_of((owner, hit.memory_id) for owner, hit in best)
    pairs = ((rows.get((owner, hit.memory_id)), hit.score) for owner, hit in best)
    fitting = [(memory, score) for memory, score in pairs if memory is not None and _is_selected(memory, selection)]
    has_more = any(len(results) >= TOP_K for _, results in answers) or len(hits) > MAX_HITS
    is_short = has_more and len(fitting) < min(limit, len(hits))
    return Answer(tuple(fitting[:limit]), len(asked), max(len(asked), len(users)), is_short)


def _command(words: str, selection: Selection) -> SearchCommand:
    """What of the selection the engine's own filters can say; the rest is looked at afterwards."""
    conditions: dict[str, Any] = {}
    if selection.session_id is not None:
        conditions["session_id"] = selection.session_id
    times = {"gte": selection.since_ms, "lt": selection.until_ms}
    if given := {name: value for name, value in times.items() if value is not None}:
        conditions["timestamp"] = given
    return SearchCommand(
        query=words,
        scopes=frozenset({"all_user_memory"}),
        top_k=TOP_K,
        include_profile=False,
        filters=conditions or None,
    )


def _is_selected(memory: StoredMemory, selection: Selection) -> bool:
    categories = selection.wanted_categories()
    low, high = selection.importance_min, selection.importance_max
    return (
        (categories is None or memory.category in categories)
        and selection.agent_id in {None, memory.agent_id}
        and selection.origin in {None, memory.origin}
        and (low is None or (memory.importance is not None and memory.importance >= low))
        and (high is None or (memory.importance is not None and memory.importance <= high))
    )
