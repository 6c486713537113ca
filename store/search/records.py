"""Memories as EverOS writes them, so that a client reads both engines alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from store.search.queries import Row
from store.types import Owner

RECORD_TYPE = "Conversation"
"""What `filters.type` speaks of: EverOS says it of every episode, whether told in a chat or read in a file."""
_OF_MADE = ("sources", "supersedes")
_OF_DOCUMENTS = ("filename", "title", "page", "heading", "position", "mime_type", "resource_id")


def raw_of(owner: Owner, row: Row, score: float | None) -> dict[str, Any]:
    """EverOS's record of a memory; passages of documents say where they stand too, what a model made what it is of."""
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
    for name in _OF_MADE:
        if name in row.payload:
            shared[name] = row.payload[name]
    return shared | _KINDS.get(row.memory_type, _episode)(owner, row, score)


def _episode(owner: Owner, row: Row, score: float | None) -> dict[str, Any]:
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


def _case(_: Owner, row: Row, score: float | None) -> dict[str, Any]:
    task_intent, *approach = row.text.split("\n", 1)
    return {
        "agent_id": row.payload.get("agent_id"),
        "task_intent": task_intent,
        "approach": "".join(approach),
        "quality_score": row.payload.get("quality_score"),
        "key_insight": _unless_reworded(row, "key_insight", None),
        "score": score,
    }


def _skill(_: Owner, row: Row, score: float | None) -> dict[str, Any]:
    return {
        "agent_id": row.payload.get("agent_id"),
        "name": row.payload.get("name"),
        "description": _unless_reworded(row, "description", ""),
        "content": row.text,
        "confidence": None,
        "maturity_score": None,
        "source_case_ids": [],
        "score": score,
    }


def _profile(owner: Owner, row: Row, score: float | None) -> dict[str, Any]:
    return {
        "user_id": owner.user_id,
        "profile_data": {
            "summary": row.text,
            "explicit_info": _unless_reworded(row, "explicit_info", []),
            "implicit_traits": _unless_reworded(row, "implicit_traits", []),
            "profile_timestamp_ms": row.created_at_ms,
        },
        "score": score,
    }


def _unless_reworded(row: Row, name: str, otherwise: Any) -> Any:
    """A part of what a model wrote: it would say again what its user corrected."""
    return row.payload.get(name, otherwise) if row.text == row.payload.get("said") else otherwise


_KINDS: Final[Mapping[str, Callable[[Owner, Row, float | None], dict[str, Any]]]] = {
    "agent_case": _case,
    "agent_skill": _skill,
    "profile": _profile,
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
    day = _timestamp(row.created_at_ms)[:10]
    return f"{row.speaker}, {day}" if row.speaker else day


@lru_cache(maxsize=1024)
def _timestamp(created_at_ms: int) -> str:
    moment = datetime.fromtimestamp(created_at_ms / 1000, tz=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
