"""The table of memories that both engines keep here: listed, hidden and reworded as their users decide."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from datetime import datetime
from typing import cast
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from store import derived_memories
from store.index import keyword
from store.models import Memory, Session, owned_by
from store.types import ListPage, ListRequest, MemoryType, Owner, Position, StoredMemory, Wording

# What an upstream was given is kept as a record: once flushed, the memories made of it speak for it.
_RECORD = Q(origin=Memory.Origin.UPSTREAM, memory_type=Memory.Type.UNPROCESSED_MESSAGE) & ~(
    Q(batch_id="") | Q(batch_id__startswith="sending:")
)


class MemoryTable:
    """The part of `engines.port.Engine` that is the same whatever engine stands behind."""

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
        rows = visible(Memory.objects.filter(user_id=user_pk, memory_id=memory_id))
        if app_id is not None:
            rows = rows.filter(app_id=app_id)
        if project_id is not None:
            rows = rows.filter(project_id=project_id)
        return list(map(stored, rows.order_by("app_id", "project_id")))

    def hide(self, owner: Owner, memory_ids: Collection[str], at: datetime | None) -> None:
        Memory.objects.filter(owned_by(owner), memory_id__in=memory_ids).update(hidden_at=at)
        derived_memories.follow(owner, memory_ids, at)

    def hide_sessions(self, owner: Owner, session_ids: Collection[str], at: datetime | None) -> Set[str]:
        live = Session.objects.filter(owned_by(owner), session_id__in=session_ids, deleted_at__isnull=True)
        found = dict(live.values_list("pk", "session_id"))
        Session.objects.filter(pk__in=found).update(hidden_at=at)
        derived_memories.forget_sessions(owner, session_ids)
        return set(found.values())

    def replace(self, owner: Owner, wordings: Mapping[str, Wording]) -> None:
        with transaction.atomic():
            locked = Memory.objects.select_for_update().filter(owned_by(owner), memory_id__in=wordings)
            memories = {memory.memory_id: memory for memory in locked.order_by("pk")}
            removed: dict[int, keyword.Entry] = {}
            added: dict[Memory, keyword.Entry] = {}
            reworded: list[Memory] = []
            for memory_id, wording in wordings.items():
                memory = memories[memory_id]
                was_indexed, old_entry = memory.is_indexed, keyword.entry_of(memory)
                has_new_words = wording.text != memory.text
                memory.text, memory.category, memory.importance = wording
                memory.is_indexed = _is_found_here(memory)
                if has_new_words:
                    reworded.append(memory)
                elif memory.is_indexed == was_indexed:
                    continue  # the index knows neither category nor importance
                if was_indexed:
                    removed[memory.pk] = old_entry
                memory.token_count = 0
                if memory.is_indexed:
                    added[memory] = keyword.entry_of(memory)
                    memory.token_count = added[memory].length
            keyword.remove(owner, removed)
            if added:
                keyword.add(owner, added)
            fields = ["text", "category", "importance", "is_indexed", "token_count"]
            Memory.objects.bulk_update(memories.values(), fields)
            for memory in reworded:
                derived_memories.read_again(owner, memory)
            derived_memories.reword(owner, wordings)


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
