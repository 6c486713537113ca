"""List, hide and edit memories in the table that both engines share."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from store import as_of, cover, derived_memories, filter_queries, writes
from store.index import keyword
from store.models import IN_LIVE_SESSION, IS_PURGED, MANUAL_ORIGINS, NOT_INCOGNITO, Memory, State, owned_by
from store.states import IS_IN_TRASH
from store.types import ListPage, ListRequest, Owner, Position, StoredMemory, Wording

_IS_LIVE: Final = Q(state=State.LIVE)


class MemoryTable:
    """The methods of `store.port.Engine` that all engines share."""

    def list(self, owner: Owner, request: ListRequest) -> ListPage:
        rows = list(listed(owner, request).order_by("-created_at_ms", "-pk")[: request.limit + 1])
        page = rows[: request.limit]
        following = Position(page[-1].created_at_ms, page[-1].pk) if len(rows) > request.limit else None
        memories = map(stored, page)
        return ListPage(tuple(as_of.reworded(owner, memories, request.as_of) if request.as_of else memories), following)

    def find(
        self, user_pk: UUID, memory_id: str, *, app_id: str | None = None, project_id: str | None = None
    ) -> Sequence[StoredMemory]:
        rows = visible(Memory.objects.filter(user_id=user_pk, memory_id=memory_id))
        if app_id is not None:
            rows = rows.filter(app_id=app_id)
        if project_id is not None:
            rows = rows.filter(project_id=project_id)
        return list(map(stored, rows.order_by("app_id", "project_id")))

    def replace(self, owner: Owner, wordings: Mapping[str, Wording]) -> None:
        with transaction.atomic():
            locked = Memory.objects.select_for_update().filter(owned_by(owner), memory_id__in=wordings)
            memories = {memory.memory_id: memory for memory in locked.order_by("pk")}
            former: dict[int, keyword.IndexEntry] = {}
            edited: dict[Memory, str] = {}
            for memory_id, wording in wordings.items():
                memory = memories[memory_id]
                entry, former_text = keyword.entry_of(memory), memory.text
                memory.text, memory.category, memory.importance = wording
                if memory.text == former_text:
                    continue
                edited[memory] = former_text
                if memory.is_indexed:
                    former[memory.pk] = entry
                memory.is_indexed = True
            fields = ["text", "category", "importance"]
            writes.replace(owner, former, list(edited), fields)
            writes.save(owner, [one for one in memories.values() if one not in edited], fields)
            for memory, former_text in edited.items():
                derived_memories.follow_edit(owner, memory, former_text)
            derived_memories.apply_edits(owner, wordings)


def listed(owner: Owner, request: ListRequest) -> QuerySet[Memory]:
    """Return the memories that a list shows, unordered and without its limit. Raises: `InvalidInput` for filters."""
    if request.as_of is not None:
        found = visible(as_of.memories_of(owner, request.as_of))
    else:
        shown = ~_IS_LIVE & Q(IS_IN_TRASH) if request.is_deleted else _IS_LIVE
        found = visible(Memory.objects.filter(owned_by(owner), shown, IN_LIVE_SESSION)).exclude(cover.is_left_out())
    if request.session_id is None:
        found = found.filter(NOT_INCOGNITO)
    found = found.filter(_conditions(request))
    return found.filter(filter_queries.query_of(owner, request.filters)) if request.filters else found


def visible(memories: QuerySet[Memory]) -> QuerySet[Memory]:
    """Return the memories that are not purged, by themselves or with their session, with user and session."""
    return memories.exclude(IS_PURGED).exclude(session__state=State.PURGED).select_related("user", "session")


def _conditions(request: ListRequest) -> Q:
    named = {
        "session__session_id": request.session_id,
        "memory_type": request.memory_type,
        "category": request.category,
        "agent_id": request.agent_id,
        "sender_id": request.sender_id,
        "created_at_ms__gte": request.since_ms,
        "created_at_ms__lt": request.until_ms,
    }
    wanted = Q(**{name: value for name, value in named.items() if value is not None})
    if request.reader is not None:
        wanted &= readable_by(request.reader)
    if request.after is None:
        return wanted
    at, row = request.after
    return wanted & (Q(created_at_ms__lt=at) | Q(created_at_ms=at, pk__lt=row))


def readable_by(agent_id: str) -> Q:
    """Return the condition of memories that an agent may see: not those that were stored for another one."""
    return ~Q(origin__in=MANUAL_ORIGINS) | Q(agent_id__in=["", agent_id])


_CALCULATED: Final = {"owner", "row", "session_id", "is_session_hidden", "is_incognito"}
_COPIED: Final = [field.name for field in fields(StoredMemory) if field.name not in _CALCULATED]


def stored(row: Memory) -> StoredMemory:
    """Convert a row, selected with its user and session, into the type that services use."""
    return StoredMemory(
        owner=Owner(row.user_id, row.user.user_id, row.app_id, row.project_id),
        row=row.pk,
        session_id=row.session.session_id if row.session else None,
        is_session_hidden=row.session is not None and row.session.state != State.LIVE,
        is_incognito=row.session is not None and row.session.incognito_until is not None,
        **{name: getattr(row, name) for name in _COPIED},
    )
