"""Fixtures and helpers of the store's tests: an engine, messages and searches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from documents.mime_types import ContentType
from engines.embedded.engine import EmbeddedEngine
from store.types import ContentItem, Hit, Message, Owner, Role, SearchRequest

NOON_MS = 1_780_000_000_000


@pytest.fixture
def engine() -> EmbeddedEngine:
    return EmbeddedEngine()


def text_message(text: str, *, by: str = "alice", role: Role = "user", at: int = NOON_MS) -> Message:
    return Message(by, role, at, (ContentItem("text", text),))


def file_message(
    path: Path,
    *,
    by: str = "alice",
    at: int = NOON_MS,
    kind: ContentType = "doc",
    mime_type: str = "text/plain",
    **extras: Any,
) -> Message:
    """Return a message with a file; `extras` are the fields that ingestion adds."""
    item = ContentItem(kind, file=path, name=path.name, mime_type=mime_type, extras={"source": "upload", **extras})
    return Message(by, "user", at, (item,))


def search(engine: EmbeddedEngine, owner: Owner, query: str, **request: Any) -> list[Hit]:
    [result] = engine.search(owner, [SearchRequest(query, **{"method": "keyword", "top_k": 100} | request)])
    return list(result.hits)


def texts(hits: list[Hit]) -> list[str]:
    return [hit.text for hit in hits]


def remember(engine: EmbeddedEngine, owner: Owner, *turns: str, session: str = "chat:c1") -> None:
    """Add and flush turns of a chat, a minute apart."""
    messages = [text_message(text, by=owner.user_id, at=NOON_MS + 60_000 * n) for n, text in enumerate(turns)]
    engine.add(owner, session, messages)
    engine.flush(owner, session)
