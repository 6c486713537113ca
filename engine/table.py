"""The table of memories that both engines keep here: listed, hidden and reworded as their users decide."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import cast
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from engine.embedded import extraction_following, index
from engine.models import Memory, Session, owned_by
from engine.port import ListPage, ListRequest, MemoryType, Owner, Position, StoredMemory

# What an upstream was given is kept as a record: once flushed, the memories made of it speak for it.
_RECORD = Q(origin=Memory.Origin.UPSTREAM, memory_type=Memory.Type.UNPROCESSED_MESSAGE) & ~(
    Q(batch_id="") | Q(batch_id__startswith="sending:")
)


class MemoryTable:
    """The part of `engine.port.Engine` that is the same whatever engine stands behind."""

    def list(self, owner: Owner, request: ListRequest) -> ListPage:
        live = visible(Memory.objects.filter(owned_by(owner), hidden_at__isnull=True, session__hidden_at__isnull=True))
        live = live.filter(_conditions(request))
        rows = list(live.order_by("-created_at_ms", "-pk")[: request.limit + 1])
        page = rows[: request.limit]
        following = Position(page[-1].created_at_ms, page[-1].pk) if len(rows) > request.limit else None
        return ListPage(tuple(stored(row) for row in page), following)

    def find(
        self, user_pk: UUID, memory_id: str, *, app_id: str | None = None, project_id: str | None = None
    ) -> Sequence[StoredMemory]:
        scope = {"app_id": app_id, "project_id": project_id}
        given = {name: value for name, value in scope.items() if value is not None}
        rows = visible(Memory.objects.filter(user_id=user_pk, memory_id=memory_id, **given))
        return [stored(row) for row in rows.order_by("app_id", "project_id")]

    def hide(self, owner: Owner, memory_id: str, at: datetime | None) -> None:
        Memory.objects.filter(owned_by(owner), memory_id=memory_id).update(hidden_at=at)
        extraction_following.follow(owner, memory_id, at)

    def hide_session(self, owner: Owner, session_id: str, at: datetime | None) -> bool:
        live = Session.objects.filter(owned_by(owner), session_id=session_id, deleted_at__isnull=True)
        is_there = bool(live.update(hidden_at=at))
        extraction_following.forget_session(owner, session_id)
        return is_there

    def replace(self, owner: Owner, memory_id: str, *, text: str, category: str, importance: float | None) -> None:
        with transaction.atomic():
            memory = Memory.objects.select_for_update().get(owned_by(owner), memory_id=memory_id)
            if memory.is_indexed:
                index.remove(owner, {memory.pk: index.entry_of(memory)})
            has_new_words = text != memory.text
            memory.text, memory.category, memory.importance = text, category, importance
            memory.is_indexed, memory.token_count = _is_found_here(memory), 0
            if memory.is_indexed:
                entry = index.entry_of(memory)
                memory.token_count = entry.length
                index.add(owner, {memory: entry})
            memory.save(update_fields=["text", "category", "importance", "is_indexed", "token_count"])
            if has_new_words:
                extraction_following.read_again(owner, memory)
            extraction_following.reword(owner, memory_id)


def visible(memories: QuerySet[Memory]) -> QuerySet[Memory]:
    """Without records, and without what was deleted for good. The owner and the session come in the same statement."""
    return memories.filter(session__deleted_at__isnull=True).exclude(_RECORD).select_related("user", "session")


def _is_found_here(memory: Memory) -> bool:
    """Whether our keyword index finds a memory: an upstream finds its own words itself, but knows no others."""
    if memory.origin == Memory.Origin.UPSTREAM:
        return memory.memory_type == Memory.Type.EPISODE and memory.text != memory.payload.get("episode")
    return memory.is_indexed


def _conditions(request: ListRequest) -> Q:
    named = {
        "session__session_id": request.session_id,
        "memory_type": request.memory_type,
        "category": request.category,
        "agent_id": request.agent_id,
        "created_at_ms__gte": request.since_ms,
        "created_at_ms__lt": request.until_ms,
    }
    wanted = Q(**{name: value for name, value in named.items() if value is not None})
    if request.after is None:
        return wanted
    at, row = request.after
    return wanted & (Q(created_at_ms__lt=at) | Q(created_at_ms=at, pk__lt=row))


def stored(row: Memory) -> StoredMemory:
    """A row, read with its user and session, as services see it."""
    return StoredMemory(
        owner=Owner(row.user_id, row.user.user_id, row.app_id, row.project_id),
        row=row.pk,
        memory_id=row.memory_id,
        memory_type=cast("MemoryType", row.memory_type),
        session_id=row.session.session_id if row.session else None,
        category=row.category,
        sender_id=row.sender_id,
        agent_id=row.agent_id,
        text=row.text,
        importance=row.importance,
        created_at_ms=row.created_at_ms,
        hidden_at=row.hidden_at,
        is_session_hidden=row.session is not None and row.session.hidden_at is not None,
        origin=row.origin,
        batch_id=row.batch_id,
        seq=row.seq,
        chunk_index=row.chunk_index,
        payload=row.payload,
    )
