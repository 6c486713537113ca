"""Memories that somebody writes down: an operator in the panel, or an agent with its tool. No engine extracts them."""

from __future__ import annotations

import uuid
from typing import Literal

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from accounts.audit import Actor, record
from core.errors import Conflict, InvalidInput
from core.ids import check_name
from core.times import to_ms
from memories.services.owned import require_own_session
from store import browse, sessions, storage
from store.categories import CATEGORIES
from store.errors import database_errors
from store.index.keyword import entry_of
from store.models import Memory
from store.types import Owner, StoredMemory

MANUAL_SESSION = "manual_insert"
MAX_TEXT_CHARS = 8000


def add_by_hand(
    owner: Owner,
    *,
    category: str,
    text: str,
    agent_id: str = "",
    session_id: str = MANUAL_SESSION,
    importance: float = 1.0,
    origin: Literal["panel", "tool"],
    actor: Actor,
) -> StoredMemory:
    """Remembers the text as it stands, found at once whatever the engine.

    Errors: `InvalidInput` for an empty or too long text, an unknown category, an importance beyond 0..1; `NotFound`,
    `Conflict` and `EngineRefused` for the session, `EngineUnavailable`.
    """
    text = text.strip()
    _check(category, text, agent_id, importance)
    require_own_session(owner, session_id)
    memory = Memory(
        memory_id=str(uuid.uuid4()),
        agent_id=agent_id,
        memory_type=Memory.Type.EPISODE,
        category=category,
        sender_id=agent_id or owner.user_id,
        speaker=agent_id or owner.user_id,
        text=text,
        importance=importance,
        created_at_ms=to_ms(timezone.now()),
        origin=origin,
    )
    entry = entry_of(memory)
    with database_errors(), transaction.atomic():
        session = sessions.locked(owner, session_id)
        if session.hidden_at is not None:
            raise Conflict("This session is in the trash: restore it before adding to it.")
        last = session.memories.aggregate(last=Max("seq"))["last"]
        memory.session, memory.seq = session, 0 if last is None else last + 1
        storage.insert(owner, [memory], [entry])
        _record(owner, memory, actor)
    return browse.get(memory.pk)


def _check(category: str, text: str, agent_id: str, importance: float) -> None:
    if not text or "\x00" in text:
        raise InvalidInput.of_field("text", "must hold words, and no NUL characters")
    if len(text) > MAX_TEXT_CHARS:
        raise InvalidInput.of_field("text", f"must be at most {MAX_TEXT_CHARS} characters; upload more as a file")
    if category not in CATEGORIES:
        raise InvalidInput.of_field("category", f"must be one of {', '.join(CATEGORIES)}")
    if not 0 <= importance <= 1:
        raise InvalidInput.of_field("importance", "must be between 0 and 1")
    try:
        check_name(agent_id or "main")
    except ValueError as error:
        raise InvalidInput.of_field("agent_id", str(error)) from error


def _record(owner: Owner, memory: Memory, actor: Actor) -> None:
    record(
        actor,
        "memory.add",
        subject_type="memory",
        subject_id=memory.memory_id,
        user_id=owner.user_id,
        detail={"category": memory.category, "origin": memory.origin},
    )
