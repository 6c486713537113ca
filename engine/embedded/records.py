"""Memories as EverOS writes them, so that a client reads both engines alike."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from engine.embedded.queries import Row
from engine.port import Owner

RECORD_TYPE = "Conversation"
"""What `filters.type` speaks of: EverOS says it of every episode, whether told in a chat or read in a file."""
_OF_DOCUMENTS = ("filename", "title", "page", "heading", "position", "mime_type", "resource_id")


def raw_of(owner: Owner, row: Row, score: float) -> dict[str, Any]:
    """EverOS's record of an episode or of an unprocessed message; passages of documents say where they stand too."""
    shared = {
        "id": row.memory_id,
        "app_id": owner.app_id,
        "project_id": owner.project_id,
        "session_id": row.session_id,
        "timestamp": _timestamp(row.created_at_ms),
    }
    if row.chunk_index is not None:
        shared |= {name: row.payload.get(name) for name in _OF_DOCUMENTS}
    if row.memory_type == "unprocessed_message":
        return shared | _message(row)
    return shared | _episode(owner, row, score)


def _episode(owner: Owner, row: Row, score: float) -> dict[str, Any]:
    return {
        "user_id": owner.user_id,
        "sender_ids": [row.sender_id] if row.sender_id else [],
        # Nothing shorter than the text: no model has told it in other words.
        "summary": row.text,
        "subject": _subject(row),
        "episode": row.text,
        "type": RECORD_TYPE,
        "category": row.category,
        "score": score,
        "atomic_facts": [],
    }


def _message(row: Row) -> dict[str, Any]:
    return {
        "sender_id": row.sender_id,
        "sender_name": None,
        "role": row.payload.get("role", "user"),
        "content": row.text,
        "tool_calls": None,
        "tool_call_id": None,
    }


def _subject(row: Row) -> str:
    """A document's name; of a turn, who said it and on which day."""
    if row.chunk_index is not None:
        return str(row.payload.get("filename") or row.payload.get("title") or "")
    return ", ".join(part for part in (row.speaker, _timestamp(row.created_at_ms)[:10]) if part)


def _timestamp(created_at_ms: int) -> str:
    moment = datetime.fromtimestamp(created_at_ms / 1000, tz=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
