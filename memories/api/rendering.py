"""Answers as plain data for orjson: no serializer on the hot path."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from core.ids import parse_session_id, resource_uri
from core.times import from_ms, isoformat
from engines.port import AddResult, FlushResult
from memories.models import Tombstone
from memories.queries import Event
from memories.services.search import Found, SearchAnswer
from store.models import Session
from store.neighbours import Neighbour, Surroundings
from store.types import StoredMemory


def search_answer(answer: SearchAnswer, *, explain: bool, context: int) -> dict[str, Any]:
    """The body of `POST /memories/search`."""
    return {
        "results": [_result(found, explain, bool(context)) for found in answer.results],
        "meta": {
            "method": answer.method,
            "scopes": {scope: report._asdict() for scope, report in answer.scopes.items()},
        },
    }


def _result(found: Found, explain: bool, with_context: bool) -> dict[str, Any]:
    hit = found.hit
    resource_id, uri = _resource(hit.session_id)
    result = {
        "id": hit.memory_id,
        "memory_type": hit.memory_type,
        "session_id": hit.session_id,
        "text": hit.text,
        "score": hit.score,
        "source_scope": found.scope,
        "resource_id": resource_id,
        "resource_uri": uri,
        "attachments": [
            {"type": row.type, "name": row.name, "internal_uri": row.internal_uri} for row in found.attachments
        ],
        "raw": hit.raw,
    }
    if explain:
        result["explain"] = {"legs": dict(hit.legs), "override_id": found.override_id}
    if with_context:
        result["context"] = _context(found.context)
    return result


def _context(context: Surroundings | None) -> dict[str, Any]:
    """Nothing where the memory has no session, or no copy of it is here."""
    before, after = context or ((), ())
    return {"before": [_neighbour(one) for one in before], "after": [_neighbour(one) for one in after]}


def _neighbour(neighbour: Neighbour) -> dict[str, Any]:
    return {
        "id": neighbour.memory_id,
        "sender_id": neighbour.sender_id,
        "text": neighbour.text,
        "timestamp_ms": neighbour.created_at_ms,
    }


def _resource(session_id: str | None) -> tuple[str | None, str | None]:
    """The resource that a session was made for, and its public address."""
    name = parse_session_id(session_id or "")
    if name.kind != "resource" or name.user_id is None:
        return None, None
    return name.rest, resource_uri(name.user_id, name.rest)


def added(session_id: str, result: AddResult) -> dict[str, Any]:
    data = {"status": result.status, "message_count": result.message_count}
    return {"session_id": session_id, "backend": {"request_id": result.request_id, "data": data}}


def flushed(session_id: str, result: FlushResult) -> dict[str, Any]:
    at = result.searchable_at_ms
    data = {
        "status": result.status,
        "memory_count": result.memory_count,
        "searchable_at": None if at is None else isoformat(from_ms(at)),
    }
    return {"session_id": session_id, "backend": {"request_id": result.request_id, "data": data}}


def memory(stored: StoredMemory, override_ids: Mapping[str, str]) -> dict[str, Any]:
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
        "agent_id": stored.agent_id,
        "timestamp_ms": stored.created_at_ms,
        "override_id": override_ids.get(stored.memory_id),
        "deleted_at": _moment(stored.hidden_at),
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
    }


def session(found: Session, counted: Mapping[str, int]) -> dict[str, Any]:
    return {
        "session_id": found.session_id,
        "kind": found.kind,
        "memories": counted.get("memories", 0),
        "pending": counted.get("pending", 0),
        "created_at": isoformat(found.created_at),
        "flushed_at": _moment(found.flushed_at),
        "searchable_at": _moment(found.searchable_at),
        "deleted_at": _moment(found.hidden_at),
    }


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else isoformat(moment)
