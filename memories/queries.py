"""The reads of what users decided about memories, each starting from the owner."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from core import sql
from memories.models import Override, OverrideRevision, Tombstone
from store.models import Memory, Session, owned_by
from store.owned import owner_values
from store.table import visible
from store.types import Hit, Owner, StoredMemory

# Each part is found in an index of its own, however much the owner deleted. SQLite would take the index of memories for
# the sessions too, and read all that are deleted, if they did not come first.
_DECISIONS = """
    WITH asked (session) AS (VALUES {sessions})
    SELECT 'tombstone', memory_id, session_id, tombstone_id, '', '' FROM memories_tombstone
    WHERE user_id = %s AND app_id = %s AND project_id = %s AND undone_at IS NULL AND memory_id IN ({memories})
    UNION ALL
    SELECT 'tombstone', memory_id, session_id, tombstone_id, '', '' FROM asked CROSS JOIN memories_tombstone
    WHERE user_id = %s AND app_id = %s AND project_id = %s AND undone_at IS NULL
        AND memory_id = '' AND session_id = session
    UNION ALL
    SELECT 'override', memory_id, session_id, override_id, original_text, text FROM memories_override
    WHERE user_id = %s AND app_id = %s AND project_id = %s AND undone_at IS NULL AND memory_id IN ({memories})
"""


# Each of them is asked of an index that holds little else.
_HAS_HIDDEN_OR_EDITED = """
    SELECT EXISTS (SELECT 1 FROM memories_tombstone WHERE {owned} AND undone_at IS NULL AND memory_id <> '')
        OR EXISTS (SELECT 1 FROM store_session WHERE {owned} AND (hidden_at IS NOT NULL OR deleted_at IS NOT NULL))
        OR EXISTS (SELECT 1 FROM memories_override WHERE {owned} AND undone_at IS NULL AND text <> original_text)
""".format(owned="user_id = %s AND app_id = %s AND project_id = %s")


class ActiveOverride(NamedTuple):
    """An override in force, as search applies it."""

    override_id: str
    original_text: str
    text: str


class Decisions(NamedTuple):
    """What users decided about found memories: deleted by memory id or session id, corrected by memory id."""

    memories: frozenset[str]
    sessions: frozenset[str]
    overrides: dict[str, ActiveOverride]

    def hide(self, memory_id: str, session_id: str | None) -> bool:
        """Whether the memory is deleted, by itself or with its session."""
        return memory_id in self.memories or session_id in self.sessions

    def live(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        """Those that are not deleted."""
        if not self.memories and not self.sessions:
            return hits
        return [hit for hit in hits if not self.hide(hit.memory_id, hit.session_id)]


_NOTHING: Final = Decisions(frozenset(), frozenset(), {})


def decisions(owner: Owner, memory_ids: Sequence[str], session_ids: Sequence[str]) -> Decisions:
    """The decisions in force about some memories and sessions. One statement, none if there are no memories."""
    if not memory_ids:
        return _NOTHING
    sessions = ", ".join(["(%s)"] * len(session_ids)) or "(NULL)"
    statement = _DECISIONS.format(memories=sql.slots(memory_ids), sessions=sessions)
    owned = owner_values(owner)
    rows = sql.rows(statement, [*session_ids, *owned, *memory_ids, *owned, *owned, *memory_ids])
    if not rows:
        return _NOTHING
    tombstones = [row for row in rows if row[0] == "tombstone"]
    return Decisions(
        memories=frozenset(row[1] for row in tombstones if row[1]),
        sessions=frozenset(row[2] for row in tombstones if not row[1]),
        overrides={row[1]: ActiveOverride(*row[3:]) for row in rows if row[0] == "override"},
    )


def has_hidden_or_edited_memories(owner: Owner) -> bool:
    """Return True if a memory of the owner is deleted, purged, edited or in a deleted session. One statement."""
    return bool(sql.rows(_HAS_HIDDEN_OR_EDITED, owner_values(owner) * 3)[0][0])


class Event(NamedTuple):
    """Something that was done to a memory: `action` is original, override, override_undo, delete or restore; `by` is
    the kind of the actor, `actor` the name, where they are known."""

    at: datetime
    action: str
    by: str
    values: dict[str, Any]
    actor: str = ""


def history(owner: Owner, memory_id: str) -> list[Event]:
    """All that was decided about a memory, oldest first. Two statements."""
    revisions = OverrideRevision.objects.filter(_of_override(owner, memory_id)).select_related("override")
    tombstones = Tombstone.objects.filter(owned_by(owner), memory_id=memory_id)
    events = [*_revision_events(revisions.order_by("created_at", "number")), *_tombstone_events(tombstones)]
    return sorted(events, key=lambda event: event.at)


def superseded(memory: StoredMemory) -> list[Event]:
    """That a newer memory took the place of one, and which."""
    newer = memory.payload.get("superseded_by")
    if newer is None or memory.hidden_at is None:
        return []
    return [Event(memory.hidden_at, "superseded", "engine", {"superseded_by": newer})]


def _of_override(owner: Owner, memory_id: str) -> Q:
    return Q(
        override__user_id=owner.user_pk,
        override__app_id=owner.app_id,
        override__project_id=owner.project_id,
        override__memory_id=memory_id,
    )


def _revision_events(revisions: Iterable[OverrideRevision]) -> Iterable[Event]:
    undone: dict[str, datetime] = {}
    for revision in revisions:
        override = revision.override
        values = {
            "override_id": override.override_id,
            "text": revision.text,
            "category": revision.category,
            "importance": revision.importance,
        }
        action = "override" if revision.number else "original"
        yield Event(revision.created_at, action, revision.actor_kind, values, revision.actor)
        if override.undone_at is not None:
            undone[override.override_id] = override.undone_at
    for override_id, at in undone.items():
        yield Event(at, "override_undo", "", {"override_id": override_id})


def _tombstone_events(tombstones: Iterable[Tombstone]) -> Iterable[Event]:
    for tombstone in tombstones:
        values = {"tombstone_id": tombstone.tombstone_id}
        deleted = {**values, "reason": tombstone.reason}
        yield Event(tombstone.created_at, "delete", tombstone.actor_kind, deleted, tombstone.actor)
        if tombstone.undone_at is not None:
            yield Event(tombstone.undone_at, "restore", "", values)


def override_ids(owner: Owner, memory_ids: Iterable[str]) -> dict[str, str]:
    """The ids of the corrections in force by memory id. One statement."""
    in_force = Override.objects.filter(owned_by(owner), undone_at__isnull=True, memory_id__in=list(memory_ids))
    return dict(in_force.values_list("memory_id", "override_id"))


def trash(owner: Owner, after: tuple[datetime, str] | None, limit: int) -> list[Tombstone]:
    """Deletions that can be undone, newest first, with the memory's row. One statement."""
    session = Session.objects.filter(
        user_id=OuterRef("user_id"),
        app_id=OuterRef("app_id"),
        project_id=OuterRef("project_id"),
        session_id=OuterRef("session_id"),
        deleted_at__isnull=True,
    )
    restorable = Q(row__isnull=False) | Q(Exists(session), memory_id="")
    found = Tombstone.objects.filter(owned_by(owner), restorable, undone_at__isnull=True).select_related("row")
    if after is not None:
        at, tombstone_id = after
        found = found.filter(Q(created_at__lt=at) | Q(created_at=at, tombstone_id__lt=tombstone_id))
    return list(found.order_by("-created_at", "-tombstone_id")[:limit])


def sessions(owner: Owner, *, is_hidden: bool, after: int | None, limit: int) -> QuerySet[Session]:
    """Sessions, newest first. One statement."""
    found = Session.objects.filter(owned_by(owner), deleted_at__isnull=True, hidden_at__isnull=not is_hidden)
    if after is not None:
        found = found.filter(pk__lt=after)
    return found.order_by("-pk")[:limit]


def counts(found: Iterable[Session]) -> dict[int, dict[str, int]]:
    """How many live memories, and among them unflushed messages, each session has. One statement."""
    pending = Q(memory_type=Memory.Type.UNPROCESSED_MESSAGE)
    rows = (
        visible(Memory.objects.filter(session__in=[session.pk for session in found], hidden_at__isnull=True))
        .order_by()
        .values("session_id")
        .annotate(memories=Count("pk", filter=~pending), pending=Count("pk", filter=pending))
    )
    return {row["session_id"]: {"memories": row["memories"], "pending": row["pending"]} for row in rows}
