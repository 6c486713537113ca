"""Answers as plain data for orjson: no serializer on the hot path."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from memories.services.raw import without_base64
from memories.services.search import Found, SearchAnswer
from memory_gateway.core.ids import parse_session_id, resource_uri


def search_answer(answer: SearchAnswer, *, explain: bool) -> dict[str, Any]:
    """The body of `POST /memories/search`."""
    return {
        "results": [_result(found, explain) for found in answer.results],
        "meta": {
            "method": answer.method,
            "scopes": {scope: asdict(report) for scope, report in answer.scopes.items()},
        },
    }


def _result(found: Found, explain: bool) -> dict[str, Any]:
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
        "raw": without_base64(hit.raw),
    }
    return {**result, "explain": {"legs": dict(hit.legs)}} if explain else result


def _resource(session_id: str | None) -> tuple[str | None, str | None]:
    """The resource that a session was made for, and its public address."""
    name = parse_session_id(session_id or "")
    if name.kind != "resource" or name.user_id is None:
        return None, None
    return name.rest, resource_uri(name.user_id, name.rest)
