"""Search a user's memories.

1. REST (`memories/api/views.py`), tools and the panel call `search` with one `SearchCommand`.
2. `scope_requests` copies the command once per search scope, narrowed to the sessions of the scope.
3. `_query_engine` sends these requests to the engine in one call and reads the user's decisions about the hits. It
   repeats a request with a larger `top_k` while deleted hits leave too few.
   - The embedded engine calls `store/search/search.py`: plan, snapshot, candidates, ranking, rows. Only method
     `agentic` passes through `engines/embedded/agentic.py`.
   - `engines/everos/search.py` calls EverOS and adds the hits of our own table (`local_overlay.py`).
4. `merge_scopes` drops hits outside their request and keeps each memory once, with its best score.
5. `_apply_decisions` drops deleted hits and applies overrides to `text` and `raw`.
6. `limit_per_scope` keeps at most `top_k` hits per scope; `_strip_base64` removes file contents.
7. `attach` adds files, `surroundings` neighbours, and `memories/api/rendering.py` writes the answer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

from core import turns
from core.ids import parse_session_id
from core.json_data import without_base64
from engines.port import Engine
from engines.registry import get_engine
from memories import queries
from memories.queries import ActiveOverride, Decisions
from memories.services.attachments import attach
from memories.services.raw import reworded
from resources.queries import AttachmentRow, searchable_sessions
from store import filters
from store.neighbours import Surroundings, surroundings
from store.types import MAX_TOP_K, UNCOUNTED_TYPES, Hit, Method, Owner, SearchRequest, SearchResult

logger = logging.getLogger("memory_gateway.memories")

Scope = Literal["current_chat", "resources", "all_user_memory"]
SCOPES: tuple[Scope, ...] = get_args(Scope)  # the most specific first: it names the scope of a hit found in several
SESSIONLESS_TYPES = frozenset({"profile", "agent_skill"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchCommand(SearchRequest):
    """A search request with search scopes; `search` fills in `session_ids` for each of them.

    `top_k` applies per scope. `context` is the number of neighbours to return on each side of a hit.
    """

    scopes: frozenset[Scope]
    conversation_id: str | None = None
    include_profile: bool = True
    enable_llm_rerank: bool = True
    context: int = 0


class Found(NamedTuple):
    """A hit with its most specific scope, its files, the id of its override and, if requested, its neighbours."""

    hit: Hit
    scope: Scope
    attachments: tuple[AttachmentRow, ...] = ()
    override_id: str | None = None
    context: Surroundings | None = None


class ScopeReport(NamedTuple):
    """Statistics of one scope. `asked` is the requested `top_k`, 0 if the scope has no sessions; `sessions` None means
    all of the user's. `hidden` and `replaced` count hits that the user deleted or overrode. `exhausted`: deletions
    leave fewer than `top_k` hits and the engine returns no more in one call."""

    asked: int = 0
    sessions: int | None = 0
    found: int = 0
    hidden: int = 0
    replaced: int = 0
    degraded: str | None = None
    exhausted: bool = False
    ms: float = 0.0


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """`method` is the method used, which differs from the requested one where a scope is `degraded`."""

    results: tuple[Found, ...]
    method: Method
    scopes: dict[Scope, ScopeReport]


def search(owner: Owner, command: SearchCommand, *, engine: Engine | None = None) -> SearchAnswer:
    """Return the owner's best memories for a query, best first; hits without a score come last.

    At most `top_k` per scope, not counting profiles and unprocessed messages. Raises: `InvalidInput` for filters and a
    method that the engine lacks, and the engine's errors.
    """
    with turns.search():
        filters.parse(command.filters)  # also if no scope has sessions to search
        requests = scope_requests(owner, command)
        started = time.perf_counter()
        results, decisions = _query_engine(engine or get_engine(), owner, requests, command.top_k)
        took_ms = round((time.perf_counter() - started) * 1000, 2)
        merged = _apply_decisions(merge_scopes(owner, requests, results), decisions)
        found = _strip_base64(limit_per_scope(merged, command.top_k))
        files = attach(owner, [item.hit for item in found])
        neighbours = surroundings(owner, [item.hit.memory_id for item in found], command.context)
    return SearchAnswer(
        results=tuple(
            item._replace(attachments=files[item.hit.memory_id], context=neighbours.get(item.hit.memory_id))
            for item in found
        ),
        method=next((result.method for result in results.values()), command.method),
        scopes={
            scope: _report(requests[scope], results[scope], decisions, command.top_k, took_ms)
            if scope in requests
            else ScopeReport()
            for scope in SCOPES
            if scope in command.scopes
        },
    )


def scope_requests(owner: Owner, command: SearchCommand) -> dict[Scope, SearchRequest]:
    """Return one request per scope that has sessions to search; only the first requests the profile.

    A scope without sessions is left out: an empty list must never become an unfiltered search.
    """
    sessions: dict[Scope, tuple[str, ...] | None] = {}
    if "current_chat" in command.scopes and command.conversation_id is not None:
        sessions["current_chat"] = (f"chat:{command.conversation_id}",)
    if "resources" in command.scopes and (resources := searchable_sessions(owner)):
        sessions["resources"] = resources
    if "all_user_memory" in command.scopes:
        sessions["all_user_memory"] = None
    return {
        scope: replace(
            command, session_ids=session_ids, include_profile=command.include_profile and scope == next(iter(sessions))
        )
        for scope, session_ids in sessions.items()
    }


def _query_engine(
    engine: Engine, owner: Owner, requests: dict[Scope, SearchRequest], limit: int
) -> tuple[dict[Scope, SearchResult], Decisions]:
    """Return the engine's results and the user's decisions about their hits.

    Requests left with fewer than `limit` live hits are repeated with twice the `top_k` while the engine may have more;
    `requests` is updated.
    """
    results: dict[Scope, SearchResult] = {}
    decisions = Decisions(frozenset(), frozenset(), {})
    pending = requests
    while pending:
        results |= zip(pending, engine.search(owner, list(pending.values())), strict=True)
        decisions = _decisions(owner, [hit for result in results.values() for hit in result.hits])
        pending = {
            scope: replace(request, top_k=min(2 * request.top_k, MAX_TOP_K))
            for scope, request in requests.items()
            if _is_short(results[scope], decisions, limit)
            and max(request.top_k, results[scope].stopped_at or 0) < MAX_TOP_K
        }
        requests |= pending
    return results, decisions


def _is_short(result: SearchResult, decisions: Decisions, limit: int) -> bool:
    """Return True if fewer than `limit` live hits are left though the engine may have more."""
    if result.stopped_at is None:
        return False
    return len([hit for hit in decisions.live(result.hits) if hit.memory_type not in UNCOUNTED_TYPES]) < limit


def _decisions(owner: Owner, hits: Sequence[Hit]) -> Decisions:
    sessions = {hit.session_id for hit in hits if hit.session_id is not None}
    decisions = queries.decisions(owner, sorted({hit.memory_id for hit in hits}), sorted(sessions))
    # A digest of EverOS lists no source memories and keeps repeating those that the user deleted or edited.
    digests = {hit.memory_id for hit in hits if hit.memory_type in SESSIONLESS_TYPES and "upstream" in hit.legs}
    if digests and queries.has_hidden_or_edited_memories(owner):
        return decisions._replace(memories=decisions.memories | digests)
    return decisions


def merge_scopes(
    owner: Owner, requests: Mapping[Scope, SearchRequest], results: Mapping[Scope, SearchResult]
) -> list[Found]:
    """Return each memory once, under its most specific scope with its best score; the best first."""
    merged: dict[str, Found] = {}
    for scope, result in results.items():  # in the order of SCOPES
        for hit in _requested_hits(owner, requests[scope], result):
            known = merged.get(hit.memory_id)
            if known is None:
                merged[hit.memory_id] = Found(hit, scope)
            elif hit.sort_key < known.hit.sort_key:
                merged[hit.memory_id] = Found(hit, known.scope)
    return sorted(merged.values(), key=lambda found: found.hit.sort_key)


def _requested_hits(owner: Owner, request: SearchRequest, result: SearchResult) -> list[Hit]:
    """Drop hits of other sessions and other users: the engine is not trusted."""
    sessions = None if request.session_ids is None else frozenset(request.session_ids)
    users = {None, owner.user_id}
    hits = [
        hit
        for hit in result.hits
        if (sessions is None or hit.session_id in sessions or hit.memory_type in SESSIONLESS_TYPES)
        and parse_session_id(hit.session_id or "").user_id in users
    ]
    if len(hits) < len(result.hits):
        logger.error("the engine returned %d memories that were not asked for", len(result.hits) - len(hits))
    return hits


def _apply_decisions(found: list[Found], decisions: Decisions) -> list[Found]:
    """Drop deleted hits and apply overrides. An engine that has the decisions in its own table did both already."""
    if not any(decisions):
        return found
    return [
        _apply_override(item, decisions.overrides.get(item.hit.memory_id))
        for item in found
        if not decisions.hide(item.hit.memory_id, item.hit.session_id)
    ]


def _apply_override(found: Found, override: ActiveOverride | None) -> Found:
    if override is None:
        return found
    if found.hit.text == override.text:
        return found._replace(override_id=override.override_id)
    raw = reworded(found.hit.raw, override.original_text, override.text)
    return found._replace(hit=found.hit._replace(text=override.text, raw=raw), override_id=override.override_id)


def limit_per_scope(found: Iterable[Found], limit: int) -> list[Found]:
    kept: list[Found] = []
    left = dict.fromkeys(SCOPES, limit)
    for item in found:
        if item.hit.memory_type not in UNCOUNTED_TYPES:
            left[item.scope] -= 1
        if left[item.scope] >= 0 or item.hit.memory_type in UNCOUNTED_TYPES:
            kept.append(item)
    return kept


def _strip_base64(found: list[Found]) -> list[Found]:
    """Remove file contents that an engine may keep in its records."""
    records = [item.hit.raw for item in found]
    stripped = without_base64(records)
    if stripped is records:
        return found
    return [item._replace(hit=item.hit._replace(raw=raw)) for item, raw in zip(found, stripped, strict=True)]


def _report(
    request: SearchRequest, result: SearchResult, decisions: Decisions, limit: int, took_ms: float
) -> ScopeReport:
    return ScopeReport(
        asked=request.top_k,
        sessions=None if request.session_ids is None else len(request.session_ids),
        found=len(result.hits),
        hidden=len(result.hits) - len(decisions.live(result.hits)),
        replaced=len([hit for hit in result.hits if hit.memory_id in decisions.overrides]),
        degraded=result.degraded,
        exhausted=_is_short(result, decisions, limit),
        ms=took_ms,
    )
