"""Responses as plain data for orjson: no serializer on the hot path."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple, get_args

import orjson

from accounts.profile_entries import ProfileEntry
from core import pagination
from core.ids import parse_session_id, resource_uri
from core.localization import localized
from core.readable import moment
from core.times import from_ms, isoformat, isoformat_or_none
from core.token_estimates import cut, estimated_tokens
from memories.models import Tombstone
from memories.queries import Event, override_ids
from memories.services.excerpts import MAX_CHARS, Budget, Excerpt, excerpt
from memories.services.scoped_hits import ScopedHit
from memories.services.search import SearchAnswer
from remote.queries import RemoteState
from store.admission import answer_of
from store.models import Memory, Session, State
from store.neighbors import Neighbor
from store.port import AddResult, FlushResult
from store.types import Hit, ListPage, Owner, Role, StoredMemory

_SIMILAR_CHARS: Final = 200
_ROLES: Final = get_args(Role)


class View(NamedTuple):
    """The parts of an answer that a request asks for."""

    query: str
    explain: bool = False
    with_context: bool = False
    with_raw: bool = True
    budget: Budget = Budget()
    user_id: str = ""


def search_answer(answer: SearchAnswer, view: View, entries: Iterable[ProfileEntry] = ()) -> dict[str, Any]:
    """Return the memories that were found, followed by entries of the profile."""
    results = [_result(found, view) for found in (*answer.results, *map(_entry, entries))]
    meta: dict[str, Any] = {
        "method": answer.method,
        "scopes": {scope: report._asdict() for scope, report in answer.scopes.items()},
        "corrected": answer.corrected,
    }
    if view.budget.max_tokens is None:
        return {"results": results, "meta": meta}
    shown = _within(results, view.query, view.budget.max_tokens)
    return {"results": shown, "meta": meta | {"left_out": len(results) - len(shown)}}


def _entry(entry: ProfileEntry) -> ScopedHit:
    return ScopedHit(
        Hit(
            memory_id=entry.id,
            memory_type="profile",
            session_id=None,
            text=entry.text,
            score=None,
            created_at_ms=entry.updated_at_ms,
            raw={"path": entry.path},
            relevance=entry.relevance,
        ),
        "all_user_memory",
    )


def _within(results: Sequence[dict[str, Any]], query: str, max_tokens: int) -> list[dict[str, Any]]:
    """Return the first results that fit; of a first one that is too long, the text is cut and the passage left out."""
    if results and _tokens_of(results[0]) > max_tokens:
        bare = results[0] | {"text": "", "passage": None}
        room = max_tokens - _tokens_of(bare)
        text = cut(excerpt(results[0]["text"], query, room).text, room) if room > 0 else ""
        if (escaped := _tokens_of(text)) > room > 0:
            text = cut(text, room * room // escaped)
        return [bare | {"text": text}] if text else []
    total = list(accumulate(map(_tokens_of, results)))
    return [result for result, tokens in zip(results, total, strict=True) if tokens <= max_tokens]


def _tokens_of(part: Mapping[str, Any] | str) -> int:
    """Return the estimated tokens of a result, or of a text, as JSON, without the engine's record."""
    return estimated_tokens(orjson.dumps(part if isinstance(part, str) else {**part, "raw": None}).decode())


def _result(found: ScopedHit, view: View) -> dict[str, Any]:
    hit, max_chars = found.hit, view.budget.max_chars
    part = excerpt(hit.text, view.query, max_chars or MAX_CHARS)
    is_whole = part.text == hit.text
    session = parse_session_id(hit.session_id or "")
    user_id = session.user_id if session.kind == "resource" else None
    result = {
        "id": hit.memory_id,
        "memory_type": hit.memory_type,
        "session_id": hit.session_id,
        "text": hit.text if max_chars is None else part.text,
        "score": hit.score,
        "relevance": None if hit.relevance is None else round(hit.relevance, 4),
        "sender_id": hit.sender_id,
        "sender_name": hit.sender_name or None,
        "role": hit.role if hit.role in _ROLES else None,
        "category": hit.category,
        "timestamp_ms": hit.created_at_ms,
        "created_at": isoformat(moment(hit.created_at_ms)),
        "superseded_by": found.superseded_by,
        "copies": [
            {"id": one.memory_id, "session_id": one.session_id, "created_at": isoformat(moment(one.created_at_ms))}
            for one in found.copies
        ],
        "source_scope": found.scope,
        "resource_id": None if user_id is None else session.rest,
        "resource_uri": None if user_id is None else resource_uri(view.user_id or user_id, session.rest),
        "attachments": [
            {"type": row.type, "name": row.name, "internal_uri": row.internal_uri} for row in found.attachments
        ],
        "place": _place(hit.raw, None if is_whole else part),
        "passage": None if is_whole or max_chars is not None else part.text,
        "raw": hit.raw if view.with_raw else {},
        **hit.labels,
    }
    if view.explain:
        links = [one._asdict() for one in found.links]
        result["explain"] = {"legs": dict(hit.legs), "override_id": found.override_id, "links": links}
    if view.with_context:
        before, after = found.context or ((), ())  # none without a session, or if the remote alone holds the memory
        result["context"] = {"before": [_neighbor(one) for one in before], "after": [_neighbor(one) for one in after]}
    return result


_PLACE_FIELDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "page": int,
    "heading": str,
    "box": list,
    "second": (int, float),
    "until_second": (int, float),
}


def _if(kind: type | tuple[type, ...], value: Any) -> Any:
    """Return a stored value if it is of the kind that the API promises, else None."""
    return value if isinstance(value, kind) else None


def _place(raw: Mapping[str, Any], part: Excerpt | None) -> dict[str, Any] | None:
    """Return where a passage stands in its file, or a part in a long text; None for other memories."""
    place = {name: _if(kind, raw.get(name)) for name, kind in _PLACE_FIELDS.items()}
    place |= {"start": part and part.start, "end": part and part.end}
    return place if any(value is not None for value in place.values()) else None


def _neighbor(neighbor: Neighbor) -> dict[str, Any]:
    return {
        "id": neighbor.memory_id,
        "sender_id": neighbor.sender_id,
        "text": neighbor.text,
        "timestamp_ms": neighbor.created_at_ms,
    }


def added(session_id: str, result: AddResult, unknown_zone: str | None = None) -> dict[str, Any]:
    data = {"status": result.status, "message_count": result.message_count}
    answer: dict[str, Any] = {
        "session_id": session_id,
        "backend": {"request_id": result.request_id, "data": data},
        "stored": result.stored,
        "skipped": [{"index": one.message, "id": one.memory_id} for one in result.skipped],
    }
    answer |= answer_of(result.refused, is_paused=result.is_paused)
    if result.redacted:
        answer["redacted"] = dict(result.redacted)
    if result.expiry_days:
        answer["expiry_days"] = dict(result.expiry_days)
    if result.thoughts:
        answer["thoughts"] = result.thoughts
    warnings = [{"field": one.field, "message": localized(one.message)} for one in result.warnings]
    if unknown_zone:
        warnings.append({"field": "timezone", "message": localized(unknown_zone)})
    if warnings:
        answer["warnings"] = warnings
    return answer


def flushed(session_id: str, result: FlushResult) -> dict[str, Any]:
    at = result.searchable_at_ms
    data = {
        "status": result.status,
        "memory_count": result.memory_count,
        "searchable_at": None if at is None else isoformat(from_ms(at)),
    }
    answer: dict[str, Any] = {"session_id": session_id, "backend": {"request_id": result.request_id, "data": data}}
    if result.degraded:
        answer["degraded"] = localized(result.degraded)
    if result.is_paused:
        answer |= {"stored": 0, "paused": True}
    return answer


def copies(memory_ids: Sequence[str]) -> dict[str, Any]:
    return {"copies": list(memory_ids), "copies_count": len(memory_ids)}


def memory(stored: StoredMemory, overrides: Mapping[str, str], *, with_labels: bool = True) -> dict[str, Any]:
    envelope = stored.envelope
    return {
        "id": stored.memory_id,
        "memory_type": stored.memory_type,
        "session_id": stored.session_id,
        "app_id": stored.owner.app_id,
        "project_id": stored.owner.project_id,
        "text": stored.text,
        "category": stored.category,
        "importance": stored.importance,
        "sender_id": stored.sender_id,
        "sender_name": _if(str, envelope.get("sender_name")),
        "role": role if (role := envelope.get("role")) in _ROLES else None,
        "tool_calls": _if(list, envelope.get("tool_calls")) or None,
        "tool_call_id": _if(str, envelope.get("tool_call_id")),
        "agent_id": stored.agent_id,
        "timestamp_ms": stored.created_at_ms,
        "override_id": overrides.get(stored.memory_id),
        "deleted_at": isoformat_or_none(stored.state_since),
        **(stored.labels if with_labels else {}),
        **({"expires_at": isoformat(stored.expires_at)} if stored.expires_at else {}),
        "state": stored.state,
    }


def similar(memories: Iterable[Memory]) -> list[dict[str, Any]]:
    return [
        {
            "id": one.memory_id,
            "text": one.text[:_SIMILAR_CHARS],
            "created_at": isoformat(moment(one.created_at_ms)),
        }
        for one in memories
    ]


def memory_page(owner: Owner, page: ListPage) -> dict[str, Any]:
    """Return a page of memories with their overrides. One statement."""
    overrides = override_ids(owner, [stored.memory_id for stored in page.memories])
    return {
        "memories": [memory(stored, overrides) for stored in page.memories],
        "next_cursor": None if page.following is None else pagination.encode(*page.following),
    }


def event(item: Event) -> dict[str, Any]:
    return {"at": isoformat(item.at), "action": item.action, "by": item.by, **item.values}


def trash_item(tombstone: Tombstone) -> dict[str, Any]:
    row = tombstone.row
    return {
        "tombstone_id": tombstone.tombstone_id,
        "kind": "memory" if tombstone.memory_id else "session",
        "memory_id": tombstone.memory_id or None,
        "session_id": tombstone.session_id or None,
        "memory_type": row.memory_type if row else None,
        "text": row.text if row else None,
        "reason": tombstone.reason,
        "deleted_at": isoformat(tombstone.created_at),
        "state": (State.EXPIRED if tombstone.is_expiry else State.TRASHED).value,
        **({"expires_at": isoformat(row.expires_at)} if row and row.expires_at else {}),
    }


def session(found: Session, counted: Mapping[str, int], remote: RemoteState) -> dict[str, Any]:
    return {
        "session_id": found.session_id,
        "kind": found.kind,
        "memories": counted.get("memories", 0),
        "pending": counted.get("pending", 0),
        "created_at": isoformat(found.created_at),
        "flushed_at": isoformat_or_none(found.flushed_at),
        "searchable_at": isoformat_or_none(found.searchable_at),
        "deleted_at": isoformat_or_none(found.state_since),
        **({"expires_at": isoformat(found.expires_at)} if found.expires_at else {}),
        "state": found.state,
        "remote": remote.as_json(),
    }
