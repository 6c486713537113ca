"""Conversation history of the OpenAI Agents SDK in a Memory Gateway. Needs `memory-gateway-client[openai-agents]`."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final, cast

from memory_gateway_client.models import Memory, Message

if TYPE_CHECKING:
    from agents.items import TResponseInputItem
    from agents.memory import SessionSettings

    from memory_gateway_client.client import AsyncClient

MAX_MESSAGES: Final = 500
"""The most messages that the gateway takes at once."""


class MemoryGatewaySession:
    """A session of the Agents SDK whose items are messages of the gateway's session `chat:{session_id}`.

    A text of the user is stored as it is. Other items are stored as their text and, on the last line, the rest of the
    item as JSON. All items come back as they were added, unless a person edited or deleted them.

    The gateway must use its embedded engine: EverOS rewrites texts, so the first `add_items` raises
    `NotImplementedError`. Deleted items stay in the user's trash. Other sessions of the user find the texts by
    `client.memories.search`.
    """

    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        client: AsyncClient,
        *,
        user_id: str,
        agent_id: str = "openai-agents",
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self._client = client
        self._gateway_id = f"chat:{session_id}"
        self._user_id = user_id
        self._agent_id = agent_id
        self._last_ms = 0
        self._is_checked = False

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items in their order; with a limit, the latest ones."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return [self._item(memory) for memory in reversed(await self._memories(limit))]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items, at rising times."""
        if items:
            await self._require_embedded_engine()
        for start in range(0, len(items), MAX_MESSAGES):
            messages = [self._message(dict(item)) for item in items[start : start + MAX_MESSAGES]]
            await self._client.sessions.add(self._gateway_id, messages)

    async def pop_item(self) -> TResponseInputItem | None:
        """Delete and return the latest item; None if there is none."""
        latest = await self._memories(1)
        for memory in latest:
            await self._client.memories.delete(memory.id, session_id=self._gateway_id)
        return self._item(latest[0]) if latest else None

    async def clear_session(self) -> None:
        """Delete all items, one by one: a deleted session would refuse new messages."""
        for memory in [one async for one in self._client.memories.list(session_id=self._gateway_id)]:
            await self._client.memories.delete(memory.id, session_id=self._gateway_id)

    async def flush(self) -> None:
        """Turn the messages into memories, at the end of a conversation. The items stay."""
        await self._client.sessions.flush(self._gateway_id)

    async def _memories(self, limit: int | None) -> list[Memory]:
        """Return the messages, newest first. What a model derived from one has its time and is listed before it."""
        by_time: dict[int, Memory] = {}
        size = 100 if limit is None else min(max(2 * limit, 1), 100)
        async for memory in self._client.memories.list(session_id=self._gateway_id, page_size=size):
            if memory.timestamp_ms not in by_time and limit is not None and len(by_time) >= limit:
                break
            by_time[memory.timestamp_ms] = memory
        return list(by_time.values())

    async def _require_embedded_engine(self) -> None:
        if not self._is_checked and (await self._client.health()).backend.base_url is not None:
            raise NotImplementedError("EverOS rewrites texts, so it cannot keep the items of a session.")
        self._is_checked = True

    def _message(self, item: dict[str, Any]) -> Message:
        self._last_ms = max(int(time.time() * 1000), self._last_ms + 1)
        content = item.get("content")
        if (
            item.keys() == {"role", "content"}
            and item["role"] == "user"
            and isinstance(content, str)
            and content.strip()
        ):
            return Message(sender_id=self._user_id, role="user", content=content, timestamp=self._last_ms)
        return Message(sender_id=self._agent_id, role="assistant", content=_packed(item), timestamp=self._last_ms)

    def _item(self, memory: Memory) -> TResponseInputItem:
        if memory.sender_id == self._user_id:
            return {"role": "user", "content": memory.text}
        try:
            return cast("TResponseInputItem", _unpacked(memory.text))
        except (ValueError, LookupError, TypeError):  # a person edited it
            return {"role": "assistant", "content": memory.text}


def _packed(item: dict[str, Any]) -> str:
    """Return the item's text and, on the last line, the rest of the item as JSON."""
    match item.get("content"):
        case str(text):
            rest = {name: value for name, value in item.items() if name != "content"}
        case [{"text": str(text), **part}]:
            rest = item | {"content": [part]}
        case _:
            return json.dumps(item, ensure_ascii=False)
    return f"{text}\n{json.dumps(rest, ensure_ascii=False)}"


def _unpacked(text: str) -> dict[str, Any]:
    text, has_text, line = text.rpartition("\n")
    item: dict[str, Any] = json.loads(line)
    if has_text and "content" in item:
        item["content"][0]["text"] = text
    elif has_text:
        item["content"] = text
    return item | {}  # a TypeError for JSON that is no object
