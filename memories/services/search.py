"""Search a user's memories.

1. REST, tools and MCP call `search_log.logged_search`, the panel calls `search`, with one `SearchCommand`.
2. `scope_requests` copies the command per search scope, narrowed to the scope's sessions.
3. `_query_engine` sends all requests in one call, and again for more.
4. `merge_scopes` drops hits outside their request and keeps each memory once.
5. `search` drops deleted hits and applies overrides, unless the engine did.
6. `current` puts current statements first, `folding` folds copies and puts echoes last.
7. `limit_per_scope` keeps at most `top_k` hits per scope.
8. `attach` adds files, `context_windows` neighbors.
"""

import logging
import re
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import islice
from operator import attrgetter
from typing import Any, Final, NamedTuple

from core.ids import parse_session_id
from core.persistence.sql import search_lock_on_sqlite
from engines.registry import get_engine
from memories import queries
from memories.queries import ActiveOverride, Decisions
from memories.services import current
from memories.services.folding import fold
from memories.services.scoped_hits import SCOPES, Scope, ScopedHit, SearchCommand
from memories.services.zones import with_local_now
from resources.queries import AttachmentRow, attachments_of, searchable_sessions
from store import filters
from store.models import IS_LIVE, Memory, owned_by
from store.neighbors import context_windows
from store.port import Engine
from store.search.floor import MOST_PARTLY_KNOWN
from store.table import stored, visible
from store.types import MAX_TOP_K, UNCOUNTED_TYPES, Hit, Method, Owner, SearchRequest, SearchResult, StoredMemory

logger = logging.getLogger("memory_gateway.memories")

SESSIONLESS_TYPES = frozenset({"profile", "agent_skill"})


_NO_OPTIONS: Final = {
    "query", "scopes", "conversation_id", "session_ids", "read_from", "agent_id", "reader", "filters", "with_hidden",
    "began_at", "include_profile", "enable_llm_rerank", "context", "now", "as_of", "zone",
}  # fmt: skip
OPTIONS: Final = tuple(one.name for one in fields(SearchCommand) if one.name not in _NO_OPTIONS)
"""Names of the fields that the search lab offers and the search log keeps; the API has fields of these names."""


class ScopeReport(NamedTuple):
    """Statistics of one scope. `asked` is the requested `top_k`, 0 if the scope has no sessions.

    `sessions` None means all of the user's sessions. `hidden` and `replaced` count hits that the user deleted or
    overrode. `exhausted`: deletions leave fewer than `top_k` hits, and the engine cannot return more in one call.
    """

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
    """The results of a search. `method` is the method used; it may differ from the requested one (see `degraded`).

    `corrected` are the misspelled words of the query, with those that were searched instead.
    """

    results: tuple[ScopedHit, ...]
    method: Method
    scopes: dict[Scope, ScopeReport]
    corrected: dict[str, str] = field(default_factory=dict)


def search(owner: Owner, command: SearchCommand, *, engine: Engine | None = None) -> SearchAnswer:
    """Return the owner's best memories for a query, best first; hits without a score come last.

    At most `top_k` per scope, not counting profiles and unprocessed messages. Raises: `InvalidInput` for filters and a
    method that the engine lacks, and the engine's errors.
    """
    command = with_local_now(command, owner.user_pk)
    with search_lock_on_sqlite():
        if command.filters:
            filters.parse(command.filters)  # refuses wrong filters even if no scope has sessions
        requests = scope_requests(owner, command)
        started = time.perf_counter()
        results, decisions = _query_engine(engine or get_engine(), owner, requests, command)
        took_ms = round((time.perf_counter() - started) * 1000, 2)
        merged = merge_scopes(owner, requests, results)
        if any(decisions):
            live = [item for item in merged if not decisions.is_deleted(item.hit.memory_id, item.hit.session_id)]
            overrides = decisions.overrides
            merged = [_apply_override(item, overrides.get(item.hit.memory_id), command.as_of) for item in live]
        merged = current.put_current_first(merged, command)
        if command.fold:
            merged = fold(merged, command.query)
        found = current.leave_out_replaced(limit_per_scope(merged, command.top_k), command)
        if results and all(result.is_partly_known for result in results.values()):
            found = _limit_all(found, MOST_PARTLY_KNOWN)
        files = attach(owner, [item.hit for item in found])
        neighbors = (
            context_windows(owner, [item.hit.memory_id for item in found], command.context, at=command.as_of)
            if command.context
            else {}
        )
    reports = {scope: ScopeReport() for scope in SCOPES if scope in command.scopes}
    for scope, result in results.items():
        sessions = requests[scope].session_ids
        reports[scope] = ScopeReport(
            asked=requests[scope].top_k,
            sessions=None if sessions is None else len(sessions),
            found=len(result.hits),
            hidden=sum(decisions.is_deleted(hit.memory_id, hit.session_id) for hit in result.hits),
            replaced=sum(hit.memory_id in decisions.overrides for hit in result.hits),
            degraded=result.degraded,
            exhausted=_is_short(result, decisions, command.top_k),
            ms=took_ms,
        )
    return SearchAnswer(
        results=tuple(
            item._replace(attachments=files[item.hit.memory_id], context=neighbors.get(item.hit.memory_id))
            for item in found
        ),
        method=next((result.method for result in results.values()), command.method),
        scopes=reports,
        corrected={word: one for result in results.values() for word, one in result.corrected.items()},
    )


def scope_requests(owner: Owner, command: SearchCommand) -> dict[Scope, SearchRequest]:
    """Return one request per scope that has sessions to search; only the first requests the profile.

    A scope without sessions is omitted: an empty list must never become an unfiltered search.
    """
    began_at, conversation = time.monotonic(), command.conversation_id
    read_from = () if conversation is None else (f"chat:{conversation}", conversation)
    sessions: dict[Scope, tuple[str, ...] | None] = {}
    if "current_chat" in command.scopes and command.conversation_id is not None:
        sessions["current_chat"] = (f"chat:{command.conversation_id}",)
    if "resources" in command.scopes and (resources := searchable_sessions(owner)):
        sessions["resources"] = resources
    if "all_user_memory" in command.scopes:
        sessions["all_user_memory"] = None
    return {
        scope: replace(
            command,
            session_ids=session_ids,
            read_from=read_from,
            include_profile=command.include_profile and command.as_of is None and scope == next(iter(sessions)),
            began_at=began_at,
        )
        for scope, session_ids in sessions.items()
    }


def _query_engine(
    engine: Engine, owner: Owner, requests: dict[Scope, SearchRequest], command: SearchCommand
) -> tuple[dict[Scope, SearchResult], Decisions]:
    """Return the engine's results and the user's decisions about their hits.

    Requests with fewer than `top_k` live hits are repeated with twice the `top_k` while the engine may have more. So
    are those of the embedded engine if folding moves any hit, and while it leaves too few; calls of a remote cost too
    much for that. `requests` is updated, but for these.
    """
    limit = command.top_k
    with_spare = command.fold and engine.label == "embedded"
    if with_spare:
        requests = dict(requests)
    results: dict[Scope, SearchResult] = {}
    decisions = Decisions(frozenset(), frozenset(), {})
    pending = requests
    while pending:
        answers = dict(zip(pending, engine.search(owner, list(pending.values())), strict=True))
        if results and all(answer.degraded and not results[scope].degraded for scope, answer in answers.items()):
            break  # the remote stopped answering: keep what it found before
        results |= answers
        decisions = _decisions(owner, [hit for result in results.values() for hit in result.hits], command.as_of)
        pending = {
            scope: replace(request, top_k=min(2 * request.top_k, MAX_TOP_K))
            for scope, request in requests.items()
            if (
                _is_short(results[scope], decisions, limit)
                or (with_spare and _lacks_spare(results[scope], request, command))
            )
            and max(request.top_k, results[scope].stopped_at or 0) < MAX_TOP_K
        }
        requests |= pending
    return results, decisions


def _is_short(result: SearchResult, decisions: Decisions, limit: int) -> bool:
    """Return True if fewer than `limit` hits are live and the engine may have more."""
    if result.stopped_at is None:
        return False
    live = [hit for hit in result.hits if not decisions.is_deleted(hit.memory_id, hit.session_id)]
    return sum(hit.memory_type not in UNCOUNTED_TYPES for hit in live) < limit


def _lacks_spare(result: SearchResult, request: SearchRequest, command: SearchCommand) -> bool:
    """Return True if folding leaves too few of as many hits as the engine was asked for, or moves some of the first."""
    counted = [ScopedHit(hit, "all_user_memory") for hit in result.hits if hit.memory_type not in UNCOUNTED_TYPES]
    if len(counted) < request.top_k:
        return False
    folded = fold(counted, command.query)
    return len(folded) < command.top_k or (request.top_k == command.top_k and folded != counted)


def _decisions(owner: Owner, hits: Sequence[Hit], at: datetime | None) -> Decisions:
    sessions = {hit.session_id for hit in hits if hit.session_id is not None}
    decisions = queries.decisions(owner, sorted({hit.memory_id for hit in hits}), sorted(sessions))
    if at is not None:  # what is superseded now may have been current then: the store has left out the rest
        return decisions._replace(memories=frozenset())
    # Digests of the remote list no source memories, and may repeat the text of deleted or edited ones.
    digests = {hit.memory_id for hit in hits if hit.memory_type in SESSIONLESS_TYPES and hit.is_of_remote}
    if digests and queries.has_hidden_or_edited_memories(owner):
        return decisions._replace(memories=decisions.memories | digests)
    return decisions


def merge_scopes(
    owner: Owner, requests: Mapping[Scope, SearchRequest], results: Mapping[Scope, SearchResult]
) -> list[ScopedHit]:
    """Return each memory once, with its most specific scope and its best score; the best first.

    Hits of other sessions and other users are dropped, because the engine is not trusted.
    """
    merged: dict[str, ScopedHit] = {}
    users = {None, owner.session_name}
    for scope, result in results.items():  # in the order of SCOPES
        sessions = requests[scope].session_ids
        for hit in result.hits:
            is_requested = sessions is None or hit.session_id in sessions or hit.memory_type in SESSIONLESS_TYPES
            if not is_requested or parse_session_id(hit.session_id or "").user_id not in users:
                logger.error("Dropped a result of the engine from another session or user")
                continue
            known = merged.get(hit.memory_id)
            if known is None:
                merged[hit.memory_id] = ScopedHit(hit, scope)
            elif hit.sort_key < known.hit.sort_key:
                merged[hit.memory_id] = ScopedHit(hit, known.scope)
    return sorted(merged.values(), key=attrgetter("hit.sort_key"))


def _apply_override(found: ScopedHit, override: ActiveOverride | None, at: datetime | None) -> ScopedHit:
    if override is None:
        return found
    if found.hit.text == override.text:
        return found._replace(override_id=override.override_id)
    if at is not None:  # the store has applied what was said until then
        return found
    raw = _replaced(found.hit.raw, override.original_text, override.text)
    return found._replace(hit=found.hit._replace(text=override.text, raw=raw), override_id=override.override_id)


def _replaced(value: Any, old: str, new: str) -> Any:
    """Return plain data with `old` replaced by `new` in all texts."""
    if isinstance(value, str):
        return value.replace(old, new) if old else value
    if isinstance(value, Mapping):
        return {key: _replaced(item, old, new) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(item, old, new) for item in value]
    return value


def limit_per_scope(found: Iterable[ScopedHit], limit: int) -> list[ScopedHit]:
    """Return the first `limit` hits of each scope, and all hits of uncounted types."""
    limited: list[ScopedHit] = []
    remaining = dict.fromkeys(SCOPES, limit)
    for item in found:
        if item.hit.memory_type not in UNCOUNTED_TYPES:
            remaining[item.scope] -= 1
        if remaining[item.scope] >= 0 or item.hit.memory_type in UNCOUNTED_TYPES:
            limited.append(item)
    return limited


def _limit_all(found: Sequence[ScopedHit], limit: int) -> list[ScopedHit]:
    """Return the first `limit` hits of all scopes together, and all hits of uncounted types."""
    counted = islice((item for item in found if item.hit.memory_type not in UNCOUNTED_TYPES), limit)
    chosen = {item.hit.memory_id for item in counted}
    return [item for item in found if item.hit.memory_id in chosen or item.hit.memory_type in UNCOUNTED_TYPES]


@dataclass(frozen=True, slots=True)
class HiddenHit:
    """A hidden hit and its rank if nothing were hidden. `memory` is its row, None if only the remote holds it."""

    hit: Hit
    scope: Scope
    rank: int
    memory: StoredMemory | None


def find_hidden_hits(owner: Owner, command: SearchCommand, *, engine: Engine | None = None) -> list[HiddenHit]:
    """Search as if nothing were hidden and return the hidden hits, best first.

    `agentic` is replaced by `hybrid`, to avoid a second call of the language model. Raises: the errors of search.
    """
    method = "hybrid" if command.method == "agentic" else command.method
    command = replace(command, method=method, include_profile=False, with_hidden=True)
    command = with_local_now(command, owner.user_pk)
    with search_lock_on_sqlite():
        requests = scope_requests(owner, command)
        results = (engine or get_engine()).search(owner, list(requests.values()))
    merged = merge_scopes(owner, requests, dict(zip(requests, results, strict=True)))
    ranked = limit_per_scope((item for item in merged if item.hit.memory_type != "profile"), command.top_k)
    sessions = {item.hit.memory_id: item.hit.session_id for item in ranked}
    named = sorted({session_id for session_id in sessions.values() if session_id is not None})
    decided = queries.decisions(owner, sorted(sessions), named)
    rows = visible(Memory.objects.filter(~IS_LIVE, owned_by(owner), memory_id__in=list(sessions)))
    memories = {row.memory_id: stored(row) for row in rows}
    return [
        HiddenHit(item.hit, item.scope, rank, memories.get(item.hit.memory_id))
        for rank, item in enumerate(ranked, 1)
        if item.hit.memory_id in memories or decided.is_deleted(item.hit.memory_id, item.hit.session_id)
    ]


def attach(owner: Owner, hits: Sequence[Hit]) -> dict[str, tuple[AttachmentRow, ...]]:
    """Return the files of each hit by memory id. One SQL statement.

    A file belongs to a hit of its session if a string of `raw` contains its full name, or if the session is that of the
    resource.
    """
    sessions = sorted({hit.session_id for hit in hits if hit.session_id is not None})
    rows = attachments_of(owner, sessions) if sessions else {}
    return {hit.memory_id: _files_of(hit, rows.get(hit.session_id or "", ())) for hit in hits}


def _files_of(hit: Hit, candidates: Sequence[AttachmentRow]) -> tuple[AttachmentRow, ...]:
    resource_id = parse_session_id(hit.session_id or "").rest if candidates else ""
    if all(row.resource_id == resource_id for row in candidates):
        return tuple(candidates)
    texts = [_folded(text) for text in _strings(hit.raw)]
    return tuple(
        row
        for row in candidates
        if row.resource_id == resource_id or any(_contains(text, _folded(row.name)) for text in texts)
    )


def _strings(value: Any) -> Iterator[str]:
    """Yield every string value at any depth, without keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def _contains(text: str, name: str) -> bool:
    """Return True if the text contains the file name as a whole: `data.pdf` and `a.pdf.zip` do not contain `a.pdf`.

    Only ASCII characters continue a name: Chinese text has no spaces. A full stop after the name may end a sentence.
    """
    if not name or name not in text:
        return False
    return re.search(rf"(?<![A-Za-z0-9_.-]){re.escape(name)}(?![A-Za-z0-9_]|[.-][A-Za-z0-9])", text) is not None


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()
