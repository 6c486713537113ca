"""A client with the methods of mem0's `Memory` and `MemoryClient`: a program changes one import.

The gateway does what mem0's model and vector store do: `infer`, `rerank`, `prompt` and configurations change nothing.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from typing import Any, Final, Self
from urllib.parse import quote, unquote

import httpx2

from memory_gateway_client import models
from memory_gateway_client.calls import NEVER
from memory_gateway_client.client import TIMEOUT, Client
from memory_gateway_client.errors import NotFound

_LABELS: Final = ("agent_id", "run_id")
_OPERATORS: Final = {"eq", "in", "gt", "gte", "lt", "lte"}
_EVENTS: Final = {"created": "ADD", "updated": "UPDATE", "unchanged": "NONE"}


class Memory:
    """Memories of users, in the application `mem0`. Ids of memories begin with their user.

    `host` is the gateway (else `MEMORY_GATEWAY_BASE_URL`). Each `user_id` is a user of it: `keys` has their API keys;
    others are created with the provisioning token `api_key` (else `MEMORY_GATEWAY_PROVISIONING_TOKEN`), if it asks for
    one. Raises: ValueError for calls without `user_id` or for several users, and for filters that the gateway lacks.
    """

    def __init__(
        self, api_key: str | None = None, host: str | None = None, *, keys: Mapping[str, str] | None = None
    ) -> None:
        self._host = host or os.environ.get("MEMORY_GATEWAY_BASE_URL") or "http://127.0.0.1:8010"
        self._token = api_key or os.environ.get("MEMORY_GATEWAY_PROVISIONING_TOKEN") or None
        self._http = httpx2.Client(timeout=TIMEOUT)
        self._clients = {user: self._client(key) for user, key in (keys or {}).items()}

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Return a client with the settings of the part `memory_gateway`."""
        return cls(**config_dict.get("memory_gateway", {}))

    def add(
        self,
        messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: str | date | None = None,
        **_others: Any,
    ) -> dict[str, Any]:
        """Store a text as a fact, or messages as a conversation. Returns the memories as mem0 does."""
        user, client = _required(user_id), self._of(_required(user_id))
        labels = {name: value for name, value in (("agent_id", agent_id), ("run_id", run_id)) if value}
        given: dict[str, Any] = {"metadata": {**(metadata or {}), **labels}, "expires_at": _end_of(expiration_date)}
        if isinstance(messages, str):
            stored = client.memories.store(messages, **given)
            if stored.memory is None:  # the person does not want it remembered
                return {"results": []}
            return {"results": [self._result(user, stored.memory) | {"event": _EVENTS[stored.action]}]}
        listed = [messages] if isinstance(messages, Mapping) else messages
        start = int(datetime.now(UTC).timestamp() * 1000)
        conversation = [
            given | {"role": one["role"], "content": one.get("content"), "timestamp": at}
            for at, one in enumerate(listed, start)
            if one["role"] != "system"
        ]
        session = f"chat:{run_id or 'mem0'}"
        client.sessions.add(session, conversation)
        client.sessions.flush(session)
        found = client.memories.list(session_id=session, since_ms=start, until_ms=start + len(listed))
        return {"results": [self._result(user, one) | {"event": "ADD"} for one in reversed(list(found))]}

    def search(
        self, query: str, *, filters: Mapping[str, Any] | None = None, threshold: float | None = None, **named: Any
    ) -> dict[str, Any]:
        """Search the memories of the user that `filters` names. `threshold` is a relevance from 0 to 1."""
        user, conditions, size = _read(filters, named)
        memories = self._of(user).memories
        found = memories.search(query, filters=conditions or None, top_k=size, min_relevance=threshold).results
        scores = [hit.score if hit.relevance is None else hit.relevance for hit in found]
        return {"results": [self._result(user, hit) | {"score": at} for hit, at in zip(found, scores, strict=True)]}

    def get_all(self, *, filters: Mapping[str, Any] | None = None, page: int = 1, **named: Any) -> dict[str, Any]:
        """Return memories of the user that `filters` names, newest first: `top_k` or `page_size` of them."""
        user, conditions, size = _read(filters, named)
        listed = islice(self._listed(user, conditions), (page - 1) * size, page * size)
        return {"results": [self._result(user, one) for one in listed]}

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return a memory; None for one that does not exist or was deleted."""
        user, known = _place(memory_id)
        with suppress(NotFound):
            memory = self._of(user).memories.get(known).memory
            return None if memory.deleted_at else self._result(user, memory)
        return None

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = ...,
    ) -> dict[str, str]:
        """Replace the text, add metadata, or set the last day; `expiration_date=None`: no last day."""
        user, known = _place(memory_id)
        expires_at = None if expiration_date is ... else _end_of(expiration_date) or NEVER
        if text is None and metadata is None and expires_at is None:
            raise ValueError("Give text, metadata or expiration_date.")
        memories, added = self._of(user).memories, None
        if metadata is not None:
            kept = memories.get(known).memory.metadata or {}
            added = kept | {name: value for name, value in metadata.items() if name not in {*_LABELS, "user_id"}}
        memories.update(known, text, metadata=added, expires_at=expires_at)
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str, **_others: Any) -> dict[str, str]:
        """Move a memory to the trash."""
        user, known = _place(memory_id)
        self._of(user).memories.delete(known)
        return {"message": "Memory deleted successfully!"}

    def delete_all(self, **named: Any) -> dict[str, str]:
        """Move the memories of a `user_id`, and an `agent_id` or `run_id`, to the trash."""
        user, conditions, _ = _read(None, named)
        for memory in list(self._listed(user, conditions)):
            self._of(user).memories.delete(memory.id)
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return the changes of a memory, oldest first."""
        user, known = _place(memory_id)
        detail = self._of(user).memories.get(known)
        texts = [one.text for one in detail.history if one.action == "original"]
        text = texts[0] if texts else detail.memory.text
        created = _time_of(detail.memory)
        changes: list[tuple[str, str | None, str | None, str]] = [("ADD", None, text, created)]
        for event in detail.history:
            if event.action == "delete":
                changes.append(("DELETE", text, None, event.at.isoformat()))
            elif event.action == "restore":
                changes.append(("ADD", None, text, event.at.isoformat()))
            elif event.action != "original" and event.text not in {None, text}:
                changes.append(("UPDATE", text, event.text, event.at.isoformat()))
                text = event.text
        names, same = (
            ("event", "old_memory", "new_memory", "updated_at"),
            {"memory_id": memory_id, "created_at": created},
        )
        return [same | dict(zip(names, change, strict=True)) | {"is_deleted": not change[2]} for change in changes]

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _client(self, key: str | None) -> Client:
        return Client(self._host, key, app_id="mem0", http=self._http)

    def _of(self, user: str) -> Client:
        if user not in self._clients:
            key = self._client(None).users.create(user, provisioning_token=self._token).user_key
            self._clients[user] = self._client(key)
        return self._clients[user]

    def _listed(self, user: str, conditions: Mapping[str, Any]) -> Iterator[models.Memory]:
        return self._of(user).memories.list(filters=json.dumps(conditions) if conditions else None)

    def _result(self, user: str, memory: models.Memory | models.SearchResult) -> dict[str, Any]:
        metadata = dict(memory.metadata or {})
        labels = {name: metadata.pop(name) for name in _LABELS if name in metadata}
        return labels | {
            "id": f"{quote(user, safe='')}/{memory.id}",
            "memory": memory.text,
            "user_id": user,
            "role": memory.role,
            "metadata": metadata or None,
            "created_at": _time_of(memory),
            "updated_at": None,
        }


MemoryClient = Memory


def _time_of(memory: models.Memory | models.SearchResult) -> str:
    return datetime.fromtimestamp(memory.timestamp_ms / 1000, tz=UTC).isoformat()


def _required(user_id: object) -> str:
    if not isinstance(user_id, str) or not user_id:
        raise ValueError("Give one user_id: the gateway keeps memories by user.")
    return user_id


def _place(memory_id: str) -> tuple[str, str]:
    user, has_user, known = memory_id.partition("/")
    return _required(unquote(user) if has_user else None), known


def _end_of(day: str | date | None) -> datetime | None:
    """Return the end of the last day, in UTC; the time itself for one."""
    if day is None or isinstance(day, datetime):
        return day
    last = date.fromisoformat(day) if isinstance(day, str) else day
    return datetime.combine(last, time(), UTC) + timedelta(days=1)


def _read(filters: Mapping[str, Any] | None, named: Mapping[str, Any]) -> tuple[str, dict[str, Any], int]:
    """Return the user, the conditions as filters of the gateway, and the number of results."""
    users: set[Any] = set()
    given = {name: named[name] for name in ("user_id", *_LABELS) if named.get(name) is not None}
    conditions = _translated({**(filters or {}), **given}, users, is_sure=True)
    if len(users) > 1:
        raise ValueError(f"Ask for one user at a time, not for {len(users)}.")
    size = next((named[name] for name in ("page_size", "limit", "top_k") if named.get(name)), 20)
    return _required(next(iter(users), None)), conditions, size


def _translated(filters: Mapping[str, Any], users: set[Any], *, is_sure: bool) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for name, value in filters.items():
        if name == "user_id" and is_sure:
            users.add(value)
        elif name == "user_id":
            raise ValueError("Give user_id by itself or in AND.")
        elif name in {"AND", "OR", "NOT"}:
            nodes = [_translated(one, users, is_sure=is_sure and name == "AND") for one in value]
            found = [one for one in nodes if one]
            parts += found if name == "AND" or not found else [{name: found}]
        else:
            parts += _conditions(name, value)
    return parts[0] if len(parts) == 1 else {"AND": parts} if parts else {}


def _conditions(name: str, value: Any) -> Iterator[dict[str, Any]]:
    field = name if name == "created_at" else f"metadata.{name}"
    for operator, operand in value.items() if isinstance(value, Mapping) else [("eq", value)]:
        if operand == "*":
            yield {field: {"exists": True}}
        elif operator in {"ne", "nin"}:
            yield {"NOT": {field: {"eq" if operator == "ne" else "in": operand}}}
        elif operator in _OPERATORS:
            yield {field: {operator: operand}}
        else:
            raise ValueError(f"The gateway has no filter {operator!r}: use {', '.join(sorted(_OPERATORS))}, ne or nin.")
