"""Rows in which messages for EverOS were kept before they had separate memories and outbox entries.

Upgrades and imports of older archives turn such a row into an entry and the memories that the embedded engine would
have made of its texts. The ids are computed as they were then; this module does not change with the engine.
"""

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final, NamedTuple

import orjson

Row = dict[str, Any]
STATES: Final = ("unconfirmed", "buffered", "flushed")
STAGED: Final = "\x1fmoving:"
"""The start of the ids of sessions that a move has not shown yet, whose messages are memories of another session."""
_NAMESPACE: Final = uuid.UUID("6d0a3b1e-5d0f-4f0e-9f43-6f3c0d5e7a11")
_SPEAKER: Final = re.compile(r"([^\W\d_][\w .'’-]{0,40}?)\s?(?::\s|：)(?=\s*\S)")
_ENVELOPE: Final = ("sender_name", "tool_calls", "tool_call_id", "is_participant")
_MAX_SPEAKER_WORDS: Final = 4
_MAX_SPEAKER_CHARS: Final = 64


class Converted(NamedTuple):
    """The columns of an outbox entry and of memories, which replace a row. Neither has a user, scope and session."""

    entry: Row
    memories: list[Row]


def is_journal_row(row: Mapping[str, Any]) -> bool:
    """Return True for a row that `convert` replaces. Others of that state are kept as they are."""
    is_one = row.get("origin") == "upstream" and row.get("delivery_state") in STATES
    return is_one and isinstance(row.get("memory_id"), str) and isinstance(row.get("created_at_ms"), int)


def convert(user_pk: uuid.UUID, scope: Sequence[str], session_id: str, row: Mapping[str, Any]) -> Converted:
    """Return what replaces a row. `scope` is app and project; `row` has the columns of a memory.

    A text keeps the time and the category of its row. Of files, only the names are memories until they are flushed.
    """
    payload = row.get("payload")
    message = payload.get("message") if isinstance(payload, Mapping) else None
    message = dict(message) if isinstance(message, Mapping) else {}
    is_flushed = row["delivery_state"] == "flushed"
    memories = []
    if not session_id.startswith(STAGED) and (message or row.get("text")):
        names = [str(user_pk), *scope, session_id]
        memories = list(_memories(names, row, message, is_flushed=is_flushed))
    batch_id = row.get("batch_id") or ""
    entry = {
        "message_id": row["memory_id"],
        "memory_ids": [memory["memory_id"] for memory in memories],
        "category": row.get("category") or "",
        "agent_id": row.get("agent_id") or "",
        "message": message,
        "time_ms": row["created_at_ms"],
        "span_ms": row.get("chunk_index") or 1,
        "state": row["delivery_state"],
        "call_id": batch_id if row["delivery_state"] == "unconfirmed" else "",
        "flush_id": batch_id if is_flushed else "",
        "sent_at": row.get("sent_at"),
    }
    return Converted(entry, memories)


def _memories(names: list[str], row: Mapping[str, Any], message: Row, *, is_flushed: bool) -> Iterator[Row]:
    sender = str(message.get("sender_id") or row.get("sender_id") or "")
    names = [*names, sender, str(message.get("role") or "user"), str(message.get("timestamp_ms"))]
    calls = message.get("tool_calls")
    calls = calls if isinstance(calls, list) else []
    if calls or message.get("tool_call_id"):
        names.append(_json([calls, message.get("tool_call_id")]))
    envelope = {"role": message.get("role") or "user"}
    envelope |= {name: message[name] for name in _ENVELOPE if message.get(name)}

    def memory(memory_id: str, text: str) -> Row:
        return {
            "memory_id": memory_id,
            "memory_type": "episode" if is_flushed else "unprocessed_message",
            "category": row.get("category") or "",
            "sender_id": row.get("sender_id") or "",
            "agent_id": row.get("agent_id") or "",
            "speaker": _speaker(text, str(message.get("sender_name") or sender)),
            "text": text,
            "batch_id": (row.get("batch_id") or "") if is_flushed else "",
            "seq": row.get("seq") or 0,
            "payload": envelope,
            "created_at_ms": row["created_at_ms"],
            "origin": "embedded",
            "is_covered": is_flushed,
            "is_replaced": is_flushed,  # until its sources are known
            "hidden_at": row.get("hidden_at"),
        }

    content = message.get("content")
    items = [item for item in content if isinstance(item, Mapping)] if isinstance(content, list) else []
    texts = [str(item["text"]) for item in items if item.get("text") is not None]
    text = "\n".join(texts) if items else str(row["text"])
    if text.strip():
        yield memory(str(uuid.uuid5(_identity(names, text), "0")), text)
    for item in items:
        if item.get("text") is None and not is_flushed and not _extras(item).get("resource_id"):
            name = str(item.get("name") or item.get("uri") or item.get("type") or "")
            yield memory(str(uuid.uuid5(_identity(names, _identity_of_item(item)), "description")), name)


def _identity(names: list[str], content: str | list[Any]) -> uuid.UUID:
    return uuid.uuid5(_NAMESPACE, _json([*names, content]))


def _json(value: list[Any]) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # half characters, which no request can bring
        return json.dumps(value)


def _identity_of_item(item: Mapping[str, Any]) -> list[Any]:
    names = [item.get("name"), None, *([item["uri"]] if item.get("uri") else [])]
    if item.get("file"):
        names.append(PurePath(str(item["file"])).parent.name)  # the digest of its content
    return names


def _extras(item: Mapping[str, Any]) -> Mapping[str, Any]:
    extras = item.get("extras")
    return extras if isinstance(extras, Mapping) else {}


def _speaker(text: str, name: str) -> str:
    match = _SPEAKER.match(text)
    is_named = match is not None and len(match[1].split()) <= _MAX_SPEAKER_WORDS
    return match[1] if match and is_named else name[:_MAX_SPEAKER_CHARS]
