"""A scripted engine, which records the requests that it receives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from store.port import AddResult, FlushResult, Health
from store.types import Hit, Message, Owner, SearchRequest, SearchResult


def hit(memory_id: str, score: float | None = 0.5, **values: Any) -> Hit:
    """Return a hit, by default an episode of `chat:c1`."""
    fields: dict[str, Any] = {
        "memory_type": "episode",
        "session_id": "chat:c1",
        "text": f"text of {memory_id}",
        "created_at_ms": 1_781_172_177_000,
        "raw": {"id": memory_id},
    }
    return Hit(memory_id=memory_id, score=score, **{**fields, **values})


class ScriptedEngine:
    """An engine that returns the n-th list of hits for the n-th request of a search."""

    label = "scripted"

    def __init__(self, *answers: Sequence[Hit], degraded: str | None = None) -> None:
        self.answers = answers
        self.degraded = degraded
        self.received: list[SearchRequest] = []
        self.calls = 0

    def search(self, owner: Owner, requests: Sequence[SearchRequest]) -> list[SearchResult]:
        self.calls += 1
        self.received += requests
        return [
            SearchResult(tuple(hits), "keyword", self.degraded) for hits, _ in zip(self.answers, requests, strict=True)
        ]

    def add(self, owner: Owner, session_id: str, messages: Sequence[Message], **_: object) -> AddResult:
        raise NotImplementedError

    def describe(self, owner: Owner, session_id: str, message: Message) -> bool:
        return False

    def flush(self, owner: Owner, session_id: str) -> FlushResult:
        raise NotImplementedError

    def delete(self, owner: Owner, session_id: str) -> None:
        raise NotImplementedError

    def health(self, timeout_seconds: float) -> Health:
        raise NotImplementedError

    def capabilities(self) -> Mapping[str, bool]:
        return {}
