"""Finding memories: the scopes are asked together, merged, and answered with the files they speak of."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

from accounts.principal import Principal
from core import turns
from core.ids import parse_session_id
from core.json_data import without_base64
from engines.port import Engine
from engines.registry import get_engine
from memories.queries import ActiveOverride, Decisions, decisions, has_hidden_or_edited_memories
from memories.services.attachments import attach
from memories.services.owned import owner_of
from memories.services.raw import reworded
from resources.queries import AttachmentRow, searchable_sessions
from store import filters
from store.neighbours import Surroundings, surroundings
from store.types import MAX_TOP_K, Hit, Method, Owner, SearchRequest, SearchResult

logger = logging.getLogger("memory_gateway.memories")

Scope = Literal["current_chat", "resources", "all_user_memory"]
SCOPES: tuple[Scope, ...] = get_args(Scope)  # the most specific first: a hit of two scopes is said to come from it
DEFAULT_TOP_K = 20
UNCOUNTED_TYPES = frozenset({"profile", "unprocessed_message"})
SESSIONLESS_TYPES = frozenset({"profile", "agent_skill"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchCommand:
    """One question. `top_k` is 1–100 per scope, or -1 for `DEFAULT_TOP_K`; `filters` is a checked filter tree.

    `context` asks for so many memories before and after each hit in its session.
    `reader` is the agent that asks: what was written down for another one is left out.
    """

    query: str
    scopes: frozenset[Scope]
    conversation_id: str | None = None
    agent_id: str | None = None
    reader: str | None = None
    method: Method = "hybrid"
    top_k: int = 8
    radius: float | None = None
    include_profile: bool = True
    enable_llm_rerank: bool = True
    context: int = 0
    filters: Mapping[str, Any] | None = None
    app_id: str = "default"
    project_id: str = "default"

    @property
    def limit(self) -> int:
        return DEFAULT_TOP_K if self.top_k == -1 else self.top_k


class Found(NamedTuple):
    """A hit, the most specific scope that it came from, the files it speaks of, the correction that it carries.

    `context` is what stands beside it, where that was asked for.
    """

    hit: Hit
    scope: Scope
    attachments: tuple[AttachmentRow, ...] = ()
    override_id: str | None = None
    context: Surroundings | None = None


@dataclass(frozen=True, slots=True)
class ScopeReport:
    """What became of one scope: how many hits were asked for (0: it had nothing to ask) and found, how many sessions
    it covered (None: all), what was hidden or replaced by the user's own decisions, and the milliseconds it took.
    `exhausted`: so much was left out that there are too few, and the engine gives no more at once."""

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
    """`method` is what was really done, which differs from the question where a scope is `degraded`."""

    results: tuple[Found, ...]
    method: Method
    scopes: dict[Scope, ScopeReport]


def search(principal: Principal, command: SearchCommand, *, engine: Engine | None = None) -> SearchAnswer:
    """The caller's best memories for a question, best first; hits without a score come last.

    At most `limit` per scope, profiles and unprocessed messages not counted. Errors: `InvalidInput` for filters and
    where the engine lacks what the method needs, and the engine's own.
    """
    return search_of(owner_of(principal, command.app_id, command.project_id), command, engine=engine)


def search_of(owner: Owner, command: SearchCommand, *, engine: Engine | None = None) -> SearchAnswer:
    """The same for an owner, whose scope goes before the command's."""
    with turns.search():
        return _search(owner, command, engine or get_engine())


def _search(owner: Owner, command: SearchCommand, engine: Engine) -> SearchAnswer:
    filters.parse(command.filters)  # also where no scope has anything to ask
    asked = requests_of(owner, command)
    started = time.perf_counter()
    results, decided = _ask(engine, owner, asked, command.limit)
    took_ms = round((time.perf_counter() - started) * 1000, 2)
    found = _bare(cut(_decided(merge(owner, asked, results), decided), command.limit))
    files = attach(owner, [item.hit for item in found])
    beside = surroundings(owner, [item.hit.memory_id for item in found], command.context)
    return SearchAnswer(
        results=tuple(
            Found(item.hit, item.scope, files[item.hit.memory_id], item.override_id, beside.get(item.hit.memory_id))
            for item in found
        ),
        method=next((result.method for result in results.values()), command.method),
        scopes={
            scope: _report(asked[scope], results[scope], decided, command.limit, took_ms)
            if scope in asked
            else ScopeReport()
            for scope in SCOPES
            if scope in command.scopes
        },
    )


def requests_of(owner: Owner, command: SearchCommand) -> dict[Scope, SearchRequest]:
    """One request for each scope that has something to ask; the profile is asked for once."""
    sessions = _sessions(owner, command)
    return {
        scope: SearchRequest(
            query=command.query,
            method=command.method,
            top_k=command.limit,
            session_ids=session_ids,
            agent_id=command.agent_id,
            reader=command.reader,
            radius=command.radius,
            include_profile=command.include_profile and position == 0,
            enable_llm_rerank=command.enable_llm_rerank,
            filters=command.filters,
        )
        for position, (scope, session_ids) in enumerate(sessions.items())
    }


def _sessions(owner: Owner, command: SearchCommand) -> dict[Scope, tuple[str, ...] | None]:
    """The sessions of each scope, None for all of the user's. A scope without any is left out: an empty list must
    never become an unfiltered search."""
    sessions: dict[Scope, tuple[str, ...] | None] = {}
    if "current_chat" in command.scopes and command.conversation_id is not None:
        sessions["current_chat"] = (f"chat:{command.conversation_id}",)
    if "resources" in command.scopes:
        resources = searchable_sessions(owner)
        if resources:
            sessions["resources"] = resources
    if "all_user_memory" in command.scopes:
        sessions["all_user_memory"] = None
    return sessions


def _ask(
    engine: Engine, owner: Owner, asked: dict[Scope, SearchRequest], limit: int
) -> tuple[dict[Scope, SearchResult], Decisions]:
    """The answers to the requests, and what the user decided about them.

    Where so much of an answer is deleted that fewer than `limit` are left, and the engine may have more, it is asked
    again for twice as many; `asked` is brought up to date.
    """
    results: dict[Scope, SearchResult] = {}
    decided = Decisions(frozenset(), frozenset(), {})
    wanted = dict(asked)
    while wanted:
        results |= zip(wanted, engine.search(owner, list(wanted.values())), strict=True)
        decided = _decisions(owner, (hit for result in results.values() for hit in result.hits))
        wanted = {
            scope: replace(request, top_k=min(2 * request.top_k, MAX_TOP_K))
            for scope, request in asked.items()
            if _is_short(results[scope], decided, limit) and _can_grow(request, results[scope])
        }
        asked |= wanted
    return results, decided


def _is_short(result: SearchResult, decided: Decisions, limit: int) -> bool:
    """Whether fewer than `limit` hits are left though the engine may have more."""
    if result.stopped_at is None:
        return False
    return len([hit for hit in decided.live(result.hits) if hit.memory_type not in UNCOUNTED_TYPES]) < limit


def _can_grow(request: SearchRequest, result: SearchResult) -> bool:
    return max(request.top_k, result.stopped_at or 0) < MAX_TOP_K


def merge(owner: Owner, asked: Mapping[Scope, SearchRequest], results: Mapping[Scope, SearchResult]) -> list[Found]:
    """Each memory once, under its most specific scope with its best score; the best first."""
    merged: dict[str, Found] = {}
    for scope, result in results.items():  # in the order of SCOPES
        for hit in _own_hits(owner, asked[scope], result):
            known = merged.get(hit.memory_id)
            if known is None:
                merged[hit.memory_id] = Found(hit, scope)
            elif _rank(hit) < _rank(known.hit):
                merged[hit.memory_id] = Found(hit, known.scope)
    return sorted(merged.values(), key=lambda found: _rank(found.hit))


def _own_hits(owner: Owner, request: SearchRequest, result: SearchResult) -> list[Hit]:
    """An engine is not believed: what lies outside the sessions that were asked for is dropped."""
    sessions = None if request.session_ids is None else frozenset(request.session_ids)
    own = [hit for hit in result.hits if _is_in(hit, sessions) and _is_of(owner, hit)]
    if len(own) < len(result.hits):
        logger.error("the engine returned %d memories that were not asked for", len(result.hits) - len(own))
    return own


def _is_in(hit: Hit, session_ids: frozenset[str] | None) -> bool:
    return session_ids is None or hit.session_id in session_ids or hit.memory_type in SESSIONLESS_TYPES


def _is_of(owner: Owner, hit: Hit) -> bool:
    named = parse_session_id(hit.session_id or "").user_id
    return named is None or named == owner.user_id


def _rank(hit: Hit) -> tuple[bool, float, int, str]:
    """Sorts the best first, the unscored last, the newer before the older."""
    return hit.score is None, -(hit.score or 0.0), -hit.created_at_ms, hit.memory_id


def _decisions(owner: Owner, found: Iterable[Hit]) -> Decisions:
    hits = list(found)
    sessions = {hit.session_id for hit in hits if hit.session_id is not None}
    decided = decisions(owner, sorted({hit.memory_id for hit in hits}), sorted(sessions))
    digests = {hit.memory_id for hit in hits if _is_upstream_digest(hit)}
    if digests and has_hidden_or_edited_memories(owner):
        return decided._replace(memories=decided.memories | digests)
    return decided


def _is_upstream_digest(hit: Hit) -> bool:
    """Whether an upstream made it of memories that it does not name. What was deleted or corrected among these it goes
    on telling, and nothing makes it write it anew."""
    return hit.memory_type in SESSIONLESS_TYPES and "upstream" in hit.legs


def _decided(found: Iterable[Found], decided: Decisions) -> list[Found]:
    """Without what the user deleted, and with the user's words in the place of the engine's, in `raw` too.

    An engine that has the decisions in its own table returns nothing deleted and the new words already.
    """
    if not any(decided):
        return list(found)
    live = [item for item in found if not decided.hide(item.hit.memory_id, item.hit.session_id)]
    return [_corrected(item, decided.overrides.get(item.hit.memory_id)) for item in live]


def _corrected(found: Found, override: ActiveOverride | None) -> Found:
    if override is None:
        return found
    if found.hit.text == override.text:
        return found._replace(override_id=override.override_id)
    raw = reworded(found.hit.raw, override.original_text, override.text)
    return found._replace(hit=found.hit._replace(text=override.text, raw=raw), override_id=override.override_id)


def cut(found: Iterable[Found], limit: int) -> list[Found]:
    kept: list[Found] = []
    left = dict.fromkeys(SCOPES, limit)
    for item in found:
        if item.hit.memory_type not in UNCOUNTED_TYPES:
            left[item.scope] -= 1
        if left[item.scope] >= 0 or item.hit.memory_type in UNCOUNTED_TYPES:
            kept.append(item)
    return kept


def _bare(found: list[Found]) -> list[Found]:
    """Without the file contents that an engine may keep in its records."""
    records = [item.hit.raw for item in found]
    bare = without_base64(records)
    if bare is records:
        return found
    return [item._replace(hit=item.hit._replace(raw=raw)) for item, raw in zip(found, bare, strict=True)]


def _report(
    request: SearchRequest, result: SearchResult, decided: Decisions, limit: int, took_ms: float
) -> ScopeReport:
    return ScopeReport(
        asked=request.top_k,
        sessions=None if request.session_ids is None else len(request.session_ids),
        found=len(result.hits),
        hidden=len(result.hits) - len(decided.live(result.hits)),
        replaced=len([hit for hit in result.hits if hit.memory_id in decided.overrides]),
        degraded=result.degraded,
        exhausted=_is_short(result, decided, limit),
        ms=took_ms,
    )
