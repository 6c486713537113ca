"""A stand-in for EverOS, by the rules measured on EverOS 1.5.1.

Message ids are made of session, timestamp and position; every `sender_id` of role user gets an episode; anybody who
names a session reads its raw buffer; filters know five fields. `delete` and `delete_by_ids` follow the release notes of
1.6, which could not be tried.
"""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

_SENDER = re.compile(r"[a-zA-Z0-9_.@+-]{1,128}")
_ITEM_KEYS = {"type", "text", "uri", "base64", "ext", "name", "extras"}
_FILTER_FIELDS = {"session_id", "parent_type", "parent_id", "timestamp", "sender_id"}
_LISTS = ("episodes", "profiles", "agent_cases", "agent_skills", "unprocessed_messages")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "gte": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "lte": lambda a, b: a <= b,
    "in": lambda a, b: a in b,
}


class Refused(Exception):
    """A call that EverOS would not take."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class Store:
    """Its memories by (app, project)."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.buffers: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
        self.episodes: list[dict[str, Any]] = []
        self.profiles: list[dict[str, Any]] = []
        self.agent_cases: list[dict[str, Any]] = []
        self.agent_skills: list[dict[str, Any]] = []
        self.busy: set[str] = set()
        self.dropped = 0
        self.loses_next_flush = False
        self.counter = 0

    def add(self, body: dict[str, Any]) -> dict[str, Any]:
        session_id, messages = body["session_id"], body["messages"]
        if not 1 <= len(session_id) <= 128 or not 1 <= len(messages) <= 500:
            raise Refused(422, "INVALID_INPUT", "length")
        for message in messages:
            _check_message(message)
        with self.lock:
            buffer = self.buffers[_place(body)]
            for index, message in enumerate(messages):
                message_id = f"m_{session_id}_{message['timestamp']}_{index:03d}"
                self.dropped += message_id in buffer
                buffer.setdefault(message_id, message)
        return {"message_count": len(messages), "status": "accumulated"}

    def flush(self, body: dict[str, Any]) -> dict[str, Any]:
        return self.extract(body, self.take(body))

    def take(self, body: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """The buffer of a session, which is empty from then on."""
        with self.lock:
            return self.buffers.pop(_place(body), {})

    def extract(self, body: dict[str, Any], messages: dict[str, dict[str, Any]]) -> dict[str, Any]:
        with self.lock:
            if not messages:
                return {"status": "no_extraction"}
            if self.loses_next_flush:
                self.loses_next_flush = False
                raise Refused(500, "INTERNAL_ERROR", "Internal server error")
            said = list(messages.values())
            for sender_id in sorted({message["sender_id"] for message in said if message["role"] == "user"}):
                self.episodes.append(self._episode(body, sender_id, said))
            for agent_id in sorted({message["sender_id"] for message in said if message["role"] == "assistant"}):
                self.agent_cases.append(self._case(body, agent_id, said))
        return {"status": "extracted"}

    def search(self, body: dict[str, Any]) -> dict[str, Any]:
        filters = body.get("filters")
        if "agent_id" in body and filters:
            raise Refused(500, "INTERNAL_ERROR", "Internal server error")
        words = set(_words(body["query"]))
        scored = [
            {**item, "score": round(len(words & set(_words(json.dumps(item, ensure_ascii=False)))) / len(words), 3)}
            for item in [*self._rows("episodes", body), *self._rows("agent_cases", body)]
        ]
        best = sorted((item for item in scored if item["score"]), key=lambda item: -item["score"])
        limit = 100 if body.get("top_k", -1) == -1 else body["top_k"]
        return {
            "episodes": [{**item, "atomic_facts": []} for item in best if "user_id" in item][:limit],
            "profiles": list(self._rows("profiles", {**body, "filters": None})) if body.get("include_profile") else [],
            "agent_cases": [item for item in best if "agent_id" in item][:limit],
            "agent_skills": list(self._rows("agent_skills", body)),
            "unprocessed_messages": self._pending(body, filters or {}),
        }

    def get(self, body: dict[str, Any]) -> dict[str, Any]:
        name = {"episode": "episodes", "agent_case": "agent_cases"}.get(body["memory_type"], body["memory_type"] + "s")
        rows = list(self._rows(name, body))
        size, page = body.get("page_size", 20), body.get("page", 1)
        found = rows[(page - 1) * size : page * size]
        return {**{key: [] for key in _LISTS[:4]}, name: found, "total_count": len(rows), "count": len(found)}

    def delete(self, body: dict[str, Any]) -> dict[str, Any]:
        """Delete what a user or agent has, in one session if given. Nothing of a session that is being memorized."""
        filters = {key: body[key] for key in ("user_id", "agent_id", "session_id") if key in body}
        if not filters or {"user_id", "agent_id"} <= filters.keys():
            raise Refused(422, "INVALID_INPUT", "one owner, a session, or both")
        with self.lock:
            if self.busy & ({body["session_id"]} if "session_id" in body else self.busy):
                raise Refused(503, "SESSION_BUSY", "the session is being memorized")
            count = sum(self._remove(name, {**filters, **_scope(body)}) for name in _LISTS[:4])
            return {"filters": list(filters), "count": count + self._remove_messages(filters, body)}

    def delete_by_ids(self, body: dict[str, Any]) -> dict[str, Any]:
        ids = body["memory_ids"]
        if body["memory_type"] != "episode" or not 1 <= len(ids) <= 50:
            raise Refused(422, "INVALID_INPUT", "1 to 50 ids of episodes")
        owner = {"user_id": body["user_id"]} if "user_id" in body else {}
        with self.lock:
            return {"deleted": sum(self._remove("episodes", {"id": one, **owner, **_scope(body)}) for one in set(ids))}

    def _remove(self, name: str, wanted: Mapping[str, Any]) -> int:
        rows = getattr(self, name)
        kept = [row for row in rows if any(row.get(key) != value for key, value in wanted.items())]
        setattr(self, name, kept)
        return len(rows) - len(kept)

    def _remove_messages(self, filters: Mapping[str, Any], body: Mapping[str, Any]) -> int:
        count = 0
        owner = filters.get("user_id", filters.get("agent_id"))
        for place, messages in self.buffers.items():
            if place[:2] == tuple(_scope(body).values()) and filters.get("session_id", place[2]) == place[2]:
                kept = {key: one for key, one in messages.items() if owner not in {None, one["sender_id"]}}
                count += len(messages) - len(kept)
                messages.clear()
                messages.update(kept)
        return count

    def _rows(self, name: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        owner = {key: body[key] for key in ("user_id", "agent_id") if key in body}
        scope = _scope(body)
        for row in getattr(self, name):
            if all(row.get(key) == value for key, value in {**owner, **scope}.items()) and _matches(
                row, body.get("filters") or {}
            ):
                yield row

    def _pending(self, body: dict[str, Any], filters: dict[str, Any]) -> list[dict[str, Any]]:
        """As in EverOS: only for a plain session id at the top, and without asking whose session it is."""
        if not isinstance(filters.get("session_id"), str):
            return []
        place = _place({**body, "session_id": filters["session_id"]})
        return [
            {
                "id": message_id,
                "app_id": place[0],
                "project_id": place[1],
                "session_id": place[2],
                "sender_id": message["sender_id"],
                "sender_name": message.get("sender_name"),
                "role": message["role"],
                "content": message["content"],
                "timestamp": _iso(message["timestamp"]),
            }
            for message_id, message in self.buffers.get(place, {}).items()
        ]

    def _episode(self, body: dict[str, Any], user_id: str, said: list[dict[str, Any]]) -> dict[str, Any]:
        text = " ".join(f"{message['sender_id']} said: {_text(message['content'])}" for message in said)
        self.counter += 1
        return {
            "id": f"{user_id}_ep_20261120_{self.counter:08d}",
            "user_id": user_id,
            "app_id": body.get("app_id", "default"),
            "project_id": body.get("project_id", "default"),
            "session_id": body["session_id"].strip(),  # as EverOS reads it back
            "timestamp": _iso(max(message["timestamp"] for message in said)),
            "sender_ids": [user_id],
            "summary": text[:200],
            "subject": text[:90],
            "episode": text,
            "type": "Conversation",
        }

    def _case(self, body: dict[str, Any], agent_id: str, said: list[dict[str, Any]]) -> dict[str, Any]:
        self.counter += 1
        return {
            "id": f"{agent_id}_ac_20261120_{self.counter:08d}",
            "agent_id": agent_id,
            "app_id": body.get("app_id", "default"),
            "project_id": body.get("project_id", "default"),
            "session_id": body["session_id"].strip(),  # as EverOS reads it back
            "task_intent": _text(said[0]["content"])[:200],
            "approach": "1. stub step",
            "quality_score": 0.9,
            "key_insight": None,
            "timestamp": _iso(said[0]["timestamp"]),
        }


def _place(body: Mapping[str, Any]) -> tuple[str, str, str]:
    return body.get("app_id", "default"), body.get("project_id", "default"), body["session_id"]


def _scope(body: Mapping[str, Any]) -> dict[str, str]:
    return {"app_id": body.get("app_id", "default"), "project_id": body.get("project_id", "default")}


def _iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat().replace("+00:00", "Z")


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+|[\u4e00-\u9fff]", text.lower())


def _text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(
        item.get("text") or f"[{item['type'].upper()}: {item.get('name', '')}] {len(item.get('base64') or '')} chars"
        for item in content
    )


def _check_message(message: dict[str, Any]) -> None:
    if not _SENDER.fullmatch(message["sender_id"]) or message["role"] not in {"user", "assistant", "tool"}:
        raise Refused(422, "INVALID_INPUT", "sender or role")
    if type(message["timestamp"]) is not int or message["timestamp"] <= 0:
        raise Refused(422, "INVALID_INPUT", "timestamp")
    if message["role"] == "tool" and not message.get("tool_call_id"):
        raise Refused(422, "INVALID_INPUT", "tool_call_id is required when role is 'tool'")
    for item in message["content"] if isinstance(message["content"], list) else []:
        if set(item) - _ITEM_KEYS:
            raise Refused(422, "INVALID_INPUT", "Input should be a valid string: messages.0.content.str")
        if item["type"] != "text" and not (item.get("uri") or (item.get("base64") and item.get("ext"))):
            raise Refused(415, "UNSUPPORTED_FORMAT", "no data or no ext")


def _matches(row: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    return all(_matches_one(row, key, value) for key, value in node.items())


def _matches_one(row: Mapping[str, Any], key: str, value: Any) -> bool:
    if key == "AND":
        return all(_matches(row, part) for part in value)
    if key == "OR":
        return any(_matches(row, part) for part in value)
    if key not in _FILTER_FIELDS:
        raise Refused(422, "INVALID_INPUT", f"unsupported filter field: {key!r}")
    conditions = value if isinstance(value, Mapping) else {"eq": value}
    if conditions.get("in") == []:
        raise Refused(422, "INVALID_INPUT", "empty in")
    mine = _comparable(key, row.get("sender_ids", [None])[0] if key == "sender_id" else row.get(key))
    return all(_OPERATORS[name](mine, _comparable(key, operand)) for name, operand in conditions.items())


def _comparable(key: str, value: Any) -> Any:
    """Times as milliseconds."""
    if key != "timestamp" or not isinstance(value, str):
        return value
    return datetime.fromisoformat(value).timestamp() * 1000
