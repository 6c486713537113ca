"""Memories that operators write in the panel and agents write with their tool. No engine extracts them."""

import uuid
from collections.abc import Sequence
from typing import Literal

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from accounts.audit import Actor, record
from core.errors import Conflict, InvalidInput
from core.events import publish
from core.ids import check_name
from core.messages import Translatable as _
from core.persistence.checked_rows import check_row
from core.persistence.database_errors import database_errors
from core.times import to_ms
from memories.services.hygiene import own_text
from memories.services.lookup import require_own_session
from memories.services.zones import offset_of, zone_of_user
from store import browse, sessions, writes
from store.categories import CATEGORIES
from store.cover import is_attached
from store.derived_memories import queue_comparison
from store.index.keyword import entry_of
from store.models import Memory, State
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
    """Store a text as a memory. Searches find it at once, under any engine.

    With a language model, the embedded engine compares it with older ones later, and supersedes those that it replaces.

    Raises: `InvalidInput` for an empty or too long text, an unknown category or an importance outside 0..1;
    `NotFound`, `Conflict` and `EngineRefused` for the session; `EngineUnavailable`.
    """
    text = own_text(text).strip()
    _check(category, text, agent_id, importance)
    require_own_session(owner, session_id)
    now_ms = to_ms(timezone.now())
    memory = Memory(
        memory_id=str(uuid.uuid4()),
        agent_id=agent_id,
        memory_type=Memory.Type.EPISODE,
        category=category,
        sender_id=agent_id or owner.user_id,
        speaker=agent_id or owner.user_id,
        text=text,
        importance=importance,
        created_at_ms=now_ms,
        origin=origin,
        payload=offset_of(zone_of_user(owner.user_pk), now_ms),
    )
    check_row(memory)
    entry = entry_of(memory)
    with database_errors(), transaction.atomic():
        session = sessions.locked(owner, session_id)
        if session.state == State.TRASHED:
            raise Conflict(_("This session is in the trash. Restore it before adding messages."))
        last = session.memories.aggregate(last=Max("seq"))["last"]
        memory.session, memory.seq = session, 0 if last is None else last + 1
        writes.insert(owner, [memory], [entry])
        if not is_attached():
            queue_comparison(memory)
        record(
            actor,
            "memory.add",
            memory.memory_id,
            user_id=owner.user_id,
            detail={"category": category, "origin": origin},
        )
        publish("memory.added", owner.user_pk, **owner.scope, memory_ids=[memory.memory_id])
    return browse.get(memory.pk)


def add_imported(owner: Owner, memories: Sequence[Memory], *, session_id: str) -> None:
    """Save new memories of another store in a session, with their times. Call inside a transaction.

    Raises: `Conflict` if the session is in the trash, `EngineRefused` if it is deleted.
    """
    if not memories:
        return
    require_own_session(owner, session_id)
    session = sessions.locked(owner, session_id)
    if session.state == State.TRASHED:
        raise Conflict(_("This session is in the trash. Restore it before adding messages."))
    last = session.memories.aggregate(last=Max("seq"))["last"]
    for seq, memory in enumerate(memories, start=0 if last is None else last + 1):
        memory.session, memory.seq = session, seq
    writes.insert(owner, memories)
    publish("memory.added", owner.user_pk, **owner.scope, memory_ids=[memory.memory_id for memory in memories])


def _check(category: str, text: str, agent_id: str, importance: float) -> None:
    if not text:
        raise InvalidInput.of_field("text", _("must not be empty"))
    if len(text) > MAX_TEXT_CHARS:
        raise InvalidInput.of_field(
            "text", _("must be at most %(number)s characters; upload longer texts as files", number=MAX_TEXT_CHARS)
        )
    if category not in CATEGORIES:
        raise InvalidInput.of_field("category", _("must be one of %(choices)s", choices=", ".join(CATEGORIES)))
    if not 0 <= importance <= 1:
        raise InvalidInput.of_field("importance", _("must be between 0 and 1"))
    try:
        check_name(agent_id or "main")
    except ValueError as error:
        raise InvalidInput.of_field("agent_id", error.args[0]) from error
