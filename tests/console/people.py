"""Memories for tests without a browser."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import unescape
from typing import Any

from django.db import transaction
from django.test import Client

from core.times import to_ms
from store import browse, sessions, writes
from store.index.keyword import entry_of
from store.models import Memory
from store.types import Owner, StoredMemory

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def remember(owner: Owner, text: str = "Tea at four.", **fields: Any) -> StoredMemory:
    """Store a memory of an owner. `fields` override the default columns."""
    number = Memory.objects.count()
    values = {
        "memory_id": f"m-{number}",
        "memory_type": "episode",
        "category": "user_memory_fact",
        "sender_id": owner.user_id,
        "importance": 0.5,
        "created_at_ms": to_ms(NOON) - number * 60_000,
        **fields,
    }
    session_id = values.pop("session_id", "chat:c1")
    memory = Memory(text=text, **values)
    with transaction.atomic():
        memory.session = sessions.locked(owner, session_id)
        memory.seq = number
        writes.insert(owner, [memory], [entry_of(memory)])
    return browse.get(memory.pk)


def undo_address(client: Client) -> str:
    """Return the address of the undo button in the notice of the next page."""
    page = client.get("/admin/memory/list/").content.decode()
    found = re.search(r'action="(/admin/memory/undo/[^"]+)"', page)
    assert found
    return unescape(found[1])
