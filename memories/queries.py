"""Read queries of users' decisions about memories, each restricted to an owner."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from core.errors import existing
from core.ids import parse_session_id
from core.messages import Translatable as _
from core.persistence import sql
from memories.models import Override, OverrideRevision, Tombstone
from store import cover
from store.admission import unwanted
from store.models import IS_PURGED, MANUAL_ORIGINS, Memory, Session, State, owned_by, owner_values
from store.table import visible
from store.types import Owner, StoredMemory

# Each part uses a separate index, so the cost does not grow with the deletions of the owner. The `CROSS JOIN` begins
# with the sessions; otherwise SQLite would use the index of memories for them and read all deleted ones.
_DECISIONS = """
    WITH requested (session) AS (VALUES {sessions})
    SELECT 'tombstone', memory_id, session_id, tombstone_id, '', '' FROM memories_tombstone
    WHERE user_id = %s AND app_id = %s AND project_id = %s AND undone_at IS NULL AND memory_id IN ({memories})
        AND kind = 'deleted'
    UNION ALL
    SELECT 'tombstone', memory_id, session_id, tombstone_id, '', '' FROM requested CROSS JOIN memories_tombstone
    WHERE user_id = %s AND app_id = %s AND project_id = %s AND undone_at IS NULL
        AND memory_id = '' AND resource_id = '' AND kind = 'deleted' AND session_id = session
    UNION ALL
    SELECT 'override', memory_id, session_id, override_id, original_text, text FROM memories_override
    WHERE user_id = %s AND app_id = %s AND project_id = %s AND undone_at IS NULL AND memory_id IN ({memories})
    UNION ALL
    SELECT 'tombstone', memory_id, '', '', '', '' FROM store_memory
    WHERE memory_id IN ({memories}) AND user_id = %s AND app_id = %s AND project_id = %s
        AND state <> 'live'
"""
_DELETED_RESOURCES = """
    UNION ALL
    SELECT 'tombstone', '', session_id, resource_id, '', '' FROM resources_resource
    WHERE user_id = %s AND app_id = %s AND project_id = %s AND state <> 'live' AND resource_id IN ({resources})
"""


# Each part uses an index that holds few other rows.
_HAS_HIDDEN_OR_EDITED = """
    SELECT EXISTS (SELECT 1 FROM memories_tombstone
            WHERE {owned} AND undone_at IS NULL AND memory_id <> '' AND kind = 'deleted')
        OR EXISTS (SELECT 1 FROM store_session WHERE {owned} AND NOT (state = 'live'))
        OR EXISTS (SELECT 1 FROM memories_override WHERE {owned} AND undone_at IS NULL AND text <> original_text)
""".format(owned="user_id = %s AND app_id = %s AND project_id = %s")


def has_other_sessions(owner: Owner, conversation_id: str | None) -> bool:
    """Return True if the owner has sessions to find besides this chat and those of resources. One statement."""
    live = Session.objects.filter(owned_by(owner), state=State.LIVE, incognito_until=None)
    return live.exclude(kind=Session.Kind.RESOURCE).exclude(session_id=f"chat:{conversation_id}").exists()


class ActiveOverride(NamedTuple):
    """An active override, as search applies it."""

    override_id: str
    original_text: str
    text: str


class Decisions(NamedTuple):
    """Decisions about found memories: ids of deleted memories and sessions, overrides by memory id."""

    memories: frozenset[str]
    sessions: frozenset[str]
    overrides: dict[str, ActiveOverride]

    def is_deleted(self, memory_id: str, session_id: str | None) -> bool:
        """Return True if the memory is deleted, by itself or with its session."""
        return memory_id in self.memories or session_id in self.sessions


_NOTHING: Final = Decisions(frozenset(), frozenset(), {})


def decisions(owner: Owner, memory_ids: Sequence[str], session_ids: Sequence[str]) -> Decisions:
    """Return the active decisions about memories and sessions, and the sessions of deleted resources.

    Memories that the gateway hid count as deleted: a remote may return them. One statement, none without memories.
    """
    if not memory_ids:
        return _NOTHING
    sessions = ", ".join(["(%s)"] * len(session_ids)) or "(NULL)"
    statement = _DECISIONS.format(memories=sql.slots(memory_ids), sessions=sessions)
    owned = owner_values(owner)
    values = [*session_ids, *owned, *memory_ids, *owned, *owned, *memory_ids, *memory_ids, *owned]
    names = [parse_session_id(session_id) for session_id in session_ids]
    if resources := [name.rest for name in names if name.kind == "resource"]:
        statement += _DELETED_RESOURCES.format(resources=sql.slots(resources))
        values += [*owned, *resources]
    rows = sql.rows(statement, values)
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
    """An event in a memory's history.

    `action` is original, override, override_undo, delete, expire, restore or superseded; `by` is the kind of the actor
    and `actor` its name, empty if unknown.
    """

    at: datetime
    action: str
    by: str
    values: dict[str, Any]
    actor: str = ""


def superseded(memory: StoredMemory) -> list[Event]:
    """Return the event of a newer memory superseding this one; an empty list if none did."""
    if memory.is_live:
        return []
    of_memory = Tombstone.ledger.filter(row=memory.row, kind=Tombstone.Kind.SUPERSEDED, undone_at__isnull=True)
    return [Event(one.created_at, "superseded", "engine", {"superseded_by": one.other_id}) for one in of_memory]


def history(owner: Owner, memory_id: str) -> list[Event]:
    """Return the decisions about a memory, oldest first, without texts that the person wants never remembered.

    Two statements, and one for a memory that was edited.
    """
    found = OverrideRevision.objects.select_related("override").filter(
        override__user_id=owner.user_pk,
        override__app_id=owner.app_id,
        override__project_id=owner.project_id,
        override__memory_id=memory_id,
    )
    revisions = list(found.order_by("created_at", "number"))
    withheld = unwanted(owner.user_pk, [one.text for one in revisions])
    events: list[Event] = []
    undone: dict[str, Event] = {}
    for revision in revisions:
        override = revision.override
        values = {
            "override_id": override.override_id,
            **({} if revision.text in withheld else {"text": revision.text}),
            "category": revision.category,
            "importance": revision.importance,
            **({"reason": revision.reason} if revision.reason else {}),
        }
        action = "override" if revision.number else "original"
        events.append(Event(revision.created_at, action, revision.actor_kind, values, revision.actor))
        if override.undone_at is not None:
            ended = {"override_id": override.override_id}
            undone[override.override_id] = Event(
                override.undone_at, "override_undo", override.undone_by_kind, ended, override.undone_by
            )
    events += undone.values()
    for tombstone in Tombstone.objects.filter(owned_by(owner), memory_id=memory_id):
        values = {"tombstone_id": tombstone.tombstone_id}
        deleted = {**values, "reason": tombstone.reason}
        action = "expire" if tombstone.is_expiry else "delete"
        events.append(Event(tombstone.created_at, action, tombstone.actor_kind, deleted, tombstone.actor))
        if tombstone.undone_at is not None:
            restored_by = tombstone.undone_by_kind, tombstone.undone_by
            events.append(Event(tombstone.undone_at, "restore", restored_by[0], values, restored_by[1]))
    return sorted(events, key=lambda event: event.at)


def edits_of(rows: Collection[int]) -> dict[int, list[tuple[datetime, datetime | None]]]:
    """Return when each edit of these memories was made, and when its override ended, by row."""
    found: dict[int, list[tuple[datetime, datetime | None]]] = {}
    edits = (
        OverrideRevision.objects.filter(override__row__in=rows, number__gt=0)
        if rows
        else OverrideRevision.objects.none()
    )
    for row, made_at, ended_at in edits.values_list("override__row", "created_at", "override__undone_at"):
        found.setdefault(row, []).append((made_at, ended_at))
    return found


def version_at(moment: datetime, edits: Iterable[tuple[datetime, datetime | None]]) -> int:
    """Return the number of edits until a moment; 0 if none was in force, so that the original text was shown."""
    made = [ended_at for made_at, ended_at in edits if made_at <= moment]
    return len(made) if any(ended_at is None or ended_at > moment for ended_at in made) else 0


def override_ids(owner: Owner, memory_ids: Iterable[str]) -> dict[str, str]:
    """Return the ids of the active overrides by memory id. One statement."""
    active = Override.objects.filter(owned_by(owner), undone_at__isnull=True, memory_id__in=list(memory_ids))
    return dict(active.values_list("memory_id", "override_id"))


def restorable(condition: Q) -> QuerySet[Tombstone]:
    """Return the tombstones in the trash, which can still be undone, without those of incognito sessions."""
    session = Session.objects.filter(
        user_id=OuterRef("user_id"),
        app_id=OuterRef("app_id"),
        project_id=OuterRef("project_id"),
        session_id=OuterRef("session_id"),
    ).exclude(IS_PURGED)
    is_incognito = Q(Exists(session.filter(incognito_until__isnull=False)))
    remains = Q(row__isnull=False) | Q(Exists(session), memory_id="")
    return Tombstone.objects.filter(condition, remains, ~is_incognito, undone_at__isnull=True)


def trash(owner: Owner, after: tuple[datetime, str] | None, limit: int, *, reader: str = "") -> list[Tombstone]:
    """Return deletions that can be undone, newest first, with the memory's row. One statement.

    With `reader`, one of the user's agents, leave out what other agents have stored.
    """
    found = restorable(owned_by(owner)).select_related("row")
    if reader:
        is_private = Q(row__origin__in=MANUAL_ORIGINS) & ~Q(row__agent_id__in=["", reader])
        found = found.filter(Q(row__isnull=True) | ~is_private)
    if after is not None:
        at, tombstone_id = after
        found = found.filter(Q(created_at__lt=at) | Q(created_at=at, tombstone_id__lt=tombstone_id))
    return list(found.order_by("-created_at", "-tombstone_id")[:limit])


def sessions(owner: Owner, *, is_hidden: bool, after: int | None, limit: int) -> QuerySet[Session]:
    """Return sessions but incognito ones, newest first. `after` is the last row of the page before. One statement."""
    found = Session.objects.filter(~IS_PURGED, owned_by(owner), incognito_until=None)
    found = found.exclude(state=State.LIVE) if is_hidden else found.filter(state=State.LIVE)
    if after is not None:
        found = found.filter(pk__lt=after)
    return found.order_by("-pk")[:limit]


def session(owner: Owner, session_id: str, *, is_locked: bool = False) -> Session:
    """Return a session, a deleted one too; `is_locked` lets added messages wait. One statement. Raises: `NotFound`."""
    found = Session.objects.filter(~IS_PURGED, owned_by(owner), session_id=session_id)
    if is_locked:
        found = found.select_for_update(no_key=True)
    return existing(found, _("There is no such session."))


def counts(found: Iterable[Session]) -> dict[int, dict[str, int]]:
    """Return the number of shown memories, and of unflushed messages, of each session. One statement."""
    pending = Q(memory_type=Memory.Type.UNPROCESSED_MESSAGE)
    rows = (
        visible(Memory.objects.filter(session__in=[session.pk for session in found], state=State.LIVE))
        .exclude(cover.is_left_out())
        .order_by()
        .values("session_id")
        .annotate(memories=Count("pk", filter=~pending), pending=Count("pk", filter=pending))
    )
    return {row["session_id"]: {"memories": row["memories"], "pending": row["pending"]} for row in rows}
