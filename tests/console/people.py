"""Memories for tests that need no browser."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import unescape
from typing import Any

from django.db import transaction
from django.test import Client

from engine import browse
from engine.embedded import sessions, storage
from engine.embedded.index import entry_of
from engine.models import Memory
from engine.port import Owner, StoredMemory
from memory_gateway.core.times import to_ms

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def remember(owner: Owner, text: str = "Tea at four.", **fields: Any) -> StoredMemory:
    """One memory of an owner; its time and kind may be given."""
    number = Memory.objects.count()
    given = {
        "memory_id": f"m-{number}",
        "memory_type": "episode",
        "category": "user_memory_fact",
        "sender_id": owner.user_id,
        "importance": 0.5,
        "created_at_ms": to_ms(NOON) - number * 60_000,
        **fields,
    }
    session_id = given.pop("session_id", "chat:c1")
    memory = Memory(text=text, **given)
    with transaction.atomic():
        memory.session = sessions.locked(owner, session_id)
        memory.seq = number
        storage.insert(owner, [memory], [entry_of(memory)])
    return browse.get(memory.pk)


def undo_address(client: Client) -> str:
    """Return where the notice of the page just drawn posts to undo what was done."""
    page = client.get("/admin/memory/list/").content.decode()
    found = re.search(r'action="(/admin/memory/undo/[^"]+)"', page)
    assert found
    return unescape(found[1])
