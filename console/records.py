"""A memory as plain JSON, for people who want to see or keep all of it."""

from __future__ import annotations

from typing import Any

from core.json_data import without_base64
from store.types import StoredMemory


def record_of(found: StoredMemory) -> dict[str, Any]:
    """The row as it is stored; file contents never are in it."""
    return {
        "id": found.memory_id,
        "user_id": found.owner.user_id,
        "app_id": found.owner.app_id,
        "project_id": found.owner.project_id,
        "session_id": found.session_id,
        "agent_id": found.agent_id,
        "sender_id": found.sender_id,
        "memory_type": found.memory_type,
        "category": found.category,
        "text": found.text,
        "importance": found.importance,
        "timestamp_ms": found.created_at_ms,
        "origin": found.origin,
        "batch_id": found.batch_id,
        "seq": found.seq,
        "chunk_index": found.chunk_index,
        "payload": without_base64(dict(found.payload)),
    }
