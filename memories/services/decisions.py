"""Delete, restore and override memories and sessions.

- A deletion is a tombstone, which only a restore ends. Deleting again replaces actor and reason.
- Memories that the gateway hid can be deleted, and stay so when their source is restored.
- Restoring a session restores neither memories deleted one by one, nor its resource.
- Only live memories can be overridden.
- An undo reverts its decision only.
- Copies deleted with a memory are restored with it.

Functions lock users first, and take a fixed number of statements.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Q
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.models import AuditEvent, MemoryUser
from core.errors import Conflict, InvalidInput, NotFound
from core.events import EventType, publish
from core.messages import Translatable as _
from engines.registry import get_engine
from memories.models import Override, OverrideRevision, Tombstone
from memories.services import incognito, lookup
from memories.services.hygiene import own_data, own_text
from memories.services.lookup import MemoryRef, require_own_session
from resources.queries import sessions_in_trash
from store import browse, derived_memories, expiry, writes
from store.admission import Offer, kept_reason, require_wanted
from store.ledger import ENDED_FIELDS, EXPIRY
from store.models import IS_PURGED, Memory, Session, State, owned_by, owner_columns
from store.search.copies import find_copies
from store.table import stored, visible
from store.text.wording import normalized
from store.types import KEPT, NewExpiry, Owner, StoredMemory, Wording

IDS_PER_EVENT: Final = 100
_ROWS_AT_ONCE: Final = 500
EVENTS: Final[Mapping[str, EventType]] = {
    "memory.delete": "memory.deleted",
    "memory.restore": "memory.restored",
    "memory.override": "memory.overridden",
    "memory.override_undo": "memory.override_undone",
    "memory.expire": "memory.expired",
    "session.delete": "session.deleted",
    "session.expire": "session.expired",
    "session.restore": "session.restored",
}
"""The actions of audit events that may have many subjects, in `memory_ids` or `session_ids` of their detail, and the
events that are published with them."""
Change = list[Any]
"""A change as plain JSON, with the data to undo it."""
_Kind = Literal["memory", "session"]


@dataclass(frozen=True, slots=True)
class OverrideValues:
    """The parts of a memory to replace. None keeps a part."""

    text: str | None = None
    category: str | None = None
    importance: float | None = None

    def cleaned(self) -> "OverrideValues":
        """Return the values without recalled memories in the text. Raises: `InvalidInput` if nothing is left of it."""
        if self.text is None or (text := own_text(self.text)) == self.text:
            return self
        if not text:
            raise InvalidInput.of_field("text", _("must contain text besides recalled memories"))
        return replace(self, text=text)

    def applied_to(self, memory: StoredMemory) -> Wording:
        return Wording(
            memory.text if self.text is None else self.text,
            memory.category if self.category is None else self.category,
            memory.importance if self.importance is None else self.importance,
        )


def delete(user_pk: UUID, ref: MemoryRef, *, reason: str = "", actor: Actor) -> Tombstone:
    """Move a memory to the trash. Deleting it again returns the same tombstone.

    Raises: `NotFound`, `InvalidInput` if several scopes have the memory.
    """
    with _locked_memory(user_pk, ref, actor) as (decider, memory):
        return decider.create_tombstones("memory", {memory.memory_id: memory}, reason)[0][memory.memory_id]


class DeletedCopies(NamedTuple):
    """The tombstone of a memory, the ids of its copies in the trash, and the new tombstones of all of them."""

    tombstone: Tombstone
    copy_ids: list[str]
    created: list[Tombstone]

    @property
    def changes(self) -> list[Change]:
        """Return what `restore_many` undoes: [row, tombstone]."""
        return [[one.row_id, one.tombstone_id] for one in self.created]


def delete_copies(user_pk: UUID, ref: MemoryRef, *, reason: str = "", reader: str = "", actor: Actor) -> DeletedCopies:
    """Move a memory and its copies to the trash; those that `reader`, one of the user's agents, may see.

    Deleting again returns the same tombstone and copies. Raises: as `delete`.
    """
    with _locked_memory(user_pk, ref, actor) as (decider, memory):
        copies = find_copies(memory, reader=reader)
        wanted = {one.memory_id: one for one in (memory, *copies)}
        active, created = decider.create_tombstones("memory", wanted, reason, copies_of=memory.memory_id)
        tombstone, copy_ids = active[memory.memory_id], [one.memory_id for one in copies]
        if tombstone not in created:
            copy_ids = [one.memory_id for one in _deleted_together(memory.owner, tombstone) if one != tombstone]
        return DeletedCopies(tombstone, copy_ids, created)


def restore(user_pk: UUID, ref: MemoryRef, *, expires_at: NewExpiry = KEPT, actor: Actor) -> list[Tombstone]:
    """Restore a memory from the trash, with the copies that were deleted with it. Return their tombstones, its first.

    One that was superseded, or deleted with a remote's memory, has none. Raises: `NotFound`, also if only its session
    was deleted; `InvalidInput` for a time that has passed, and without one for a memory that has expired; `NotKept`
    for what the person wants never remembered.
    """
    expiry.check(expires_at)
    with _locked_memory(user_pk, ref, actor) as (decider, memory):
        require_wanted(user_pk, Offer("agents", memory.text))
        active = _active_tombstones(memory.owner, "memory", [memory.memory_id])
        if expires_at is not KEPT:
            decider.set_expiry([memory.row], expires_at)
        elif expiry.has_ended(memory.expires_at):
            raise InvalidInput.of_field("expires_at", expiry.NEEDS_EXPIRY)
        if active:
            found = [*active.values(), *_deleted_together(memory.owner, active[memory.memory_id])]
            return decider.lift_tombstones("memory", {one.memory_id: one for one in found})
        if not decider.show_again(memory):
            raise NotFound(_("The memory is not in the trash."))
        return []


def set_expiry(user_pk: UUID, ref: MemoryRef, expires_at: datetime | None, *, actor: Actor) -> None:
    """Set when a memory expires; None: never.

    Raises: `InvalidInput` for a time that has passed; `NotFound`, `Conflict` for a deleted memory.
    """
    expiry.check(expires_at)
    with _locked_memory(user_pk, ref, actor) as (decider, memory):
        lookup.require_active(memory)
        if expires_at != memory.expires_at:
            decider.set_expiry([memory.row], expires_at)
            record(actor, "memory.set_expiry", memory.memory_id, user_id=memory.owner.user_id)


def set_labels(user_pk: UUID, ref: MemoryRef, labels: Mapping[str, Any], *, actor: Actor) -> None:
    """Replace the tags or the metadata of a memory, by their names in its payload; empty ones are removed.

    Raises: `NotFound`, `Conflict` for a deleted memory.
    """
    cleaned = own_data(labels)
    with _locked_memory(user_pk, ref, actor) as (decider, memory):
        lookup.require_active(memory)
        changed = decider.set_labels(memory.row, cleaned)
        if changed:
            owner = memory.owner
            record(actor, "memory.override", memory.memory_id, user_id=owner.user_id, detail={"fields": changed})
            publish("memory.overridden", user_pk, **owner.scope, memory_ids=[memory.memory_id])


def _deleted_together(owner: Owner, tombstone: Tombstone) -> list[Tombstone]:
    """Return the active deletions of a memory and its copies that were made together. One statement."""
    first = tombstone.cause or tombstone.pk
    found = Tombstone.objects.filter(owned_by(owner), Q(pk=first) | Q(cause=first), undone_at__isnull=True)
    return list(found.order_by("row_id"))


def override(
    user_pk: UUID, ref: MemoryRef, values: OverrideValues, *, reason: str = "", is_update: bool = False, actor: Actor
) -> Override:
    """Override parts of a memory. An active override gets another revision.

    `is_update`: the former text was right at its time, so `store.as_of` shows it.

    Raises: `NotFound`, `InvalidInput` if several scopes have the memory, `Conflict` for a deleted one.
    """
    values = values.cleaned()
    with _locked_memory(user_pk, ref, actor) as (decider, memory):
        lookup.require_active(memory)
        [(_, current, _)] = decider.override([(memory, values.applied_to(memory))], reason, is_update=is_update)
        return current


class OverriddenCopies(NamedTuple):
    """The override of a memory, the ids of its copies with the same values now, and what `undo_overrides` undoes."""

    override: Override
    copy_ids: list[str]
    changes: list[Change]


def override_copies(
    user_pk: UUID, ref: MemoryRef, values: OverrideValues, *, reason: str = "", reader: str = "", actor: Actor
) -> OverriddenCopies:
    """Override parts of a memory and of its copies; those that `reader`, one of the user's agents, may see.

    Raises: as `override`.
    """
    values = values.cleaned()
    with _locked_memory(user_pk, ref, actor) as (decider, memory):
        lookup.require_active(memory)
        copies = find_copies(memory, reader=reader)
        wanted = [(one, values.applied_to(one)) for one in (memory, *copies)]
        overridden = decider.override([wanted[0], *_differing(wanted[1:])], reason)
        changed = overridden if _differing(wanted[:1]) else overridden[1:]
        return OverriddenCopies(overridden[0][1], [one.memory_id for one in copies], _numbered(changed))


def _differing(wanted: Iterable[tuple[StoredMemory, Wording]]) -> list[tuple[StoredMemory, Wording]]:
    """Return the memories whose wording is not the wanted one yet."""
    return [(memory, new) for memory, new in wanted if new != _wording(memory)]


def undo_override(user_pk: UUID, ref: MemoryRef, *, with_copies: bool = False, actor: Actor) -> list[Override]:
    """Restore the engine's text of a memory, and of its copies that had the same. Return the overrides, its first.

    Raises: `NotFound`, also if it has no active override; `NotKept` for what the person wants never remembered.
    """
    with _locked_memory(user_pk, ref, actor) as (decider, memory):
        active = decider.overrides([memory, *(find_copies(memory) if with_copies else ())])
        if memory.memory_id not in active:
            raise NotFound(_("This memory has no active override."))
        first = active.pop(memory.memory_id)[0]
        require_wanted(user_pk, Offer("agents", first.original_text))
        original = normalized(first.original_text)
        ended = [first, *(one for one, _ in active.values() if normalized(one.original_text) == original)]
        decider.end_overrides(ended)
        return ended


def delete_session(owner: Owner, session_id: str, *, reason: str = "", actor: Actor) -> Tombstone:
    """Move a whole session to the trash. Raises: `NotFound`."""
    return _delete_session(owner, session_id, reason, actor)[0]


def delete_session_undoably(owner: Owner, session_id: str, *, actor: Actor) -> list[Change]:
    """Move a whole session to the trash. Changes: [tombstone]; none if it was there already. Raises: `NotFound`."""
    _tombstone, created = _delete_session(owner, session_id, "", actor)
    return [[one.tombstone_id] for one in created]


def _delete_session(owner: Owner, session_id: str, reason: str, actor: Actor) -> tuple[Tombstone, list[Tombstone]]:
    """Return the session's tombstone, and also in a list if it is new."""
    require_own_session(owner, session_id)
    with transaction.atomic():
        lookup.lock_user(owner.user_pk)
        active, created = _Decider(owner, actor).create_tombstones("session", {session_id: None}, reason)
        if not active:
            raise NotFound(_("There is no such session."))
        incognito.end(owner, session_id)
        return active[session_id], created


def restore_session(owner: Owner, session_id: str, *, expires_at: NewExpiry = KEPT, actor: Actor) -> Tombstone:
    """Restore a session from the trash.

    Raises: `NotFound`; `Conflict` if its resource is in the trash; `InvalidInput` for a time that has passed, and
    without one for a session that has expired.
    """
    require_own_session(owner, session_id)
    expiry.check(expires_at)
    with transaction.atomic():
        lookup.lock_user(owner.user_pk)
        if expires_at is not KEPT:
            Session.objects.filter(owned_by(owner), session_id=session_id).update(expires_at=expires_at)
        elif _ended_sessions(owner, [session_id]):
            raise InvalidInput.of_field("expires_at", expiry.NEEDS_EXPIRY)
        ended = restore_sessions([(owner, session_id)], actor=actor)
    if not ended and sessions_in_trash(owner, [session_id]):
        raise Conflict(_("The resource of this session is in the trash. Restore the resource first."))
    if not ended:
        raise NotFound(_("The session is not in the trash."))
    return ended[0]


def _ended_sessions(owner: Owner, session_ids: Collection[str]) -> set[str]:
    """Return the ids of those of the sessions whose time has passed. One statement."""
    found = Session.objects.filter(owned_by(owner), session_id__in=list(session_ids), expires_at__lte=timezone.now())
    return set(found.values_list("session_id", flat=True)) if session_ids else set()


def restore_sessions(
    chosen: Sequence[tuple[Owner, str]],
    *,
    tombstone_ids: Collection[str] | None = None,
    deleted_by: Actor | None = None,
    actor: Actor,
) -> list[Tombstone]:
    """Restore sessions from the trash. Return their tombstones.

    Sessions that are not in the trash, whose resource is in the trash, or that have expired, are skipped.
    `tombstone_ids` and `deleted_by` restrict it as in `restore_many`.
    """
    restored: list[Tombstone] = []
    with transaction.atomic():
        _lock_users({owner.user_pk for owner, _ in chosen})
        for owner in {owner for owner, _ in chosen}:
            ids = [session_id for session_owner, session_id in chosen if session_owner == owner]
            active = _active_tombstones(owner, "session", set(ids) - sessions_in_trash(owner, ids))
            active = _chosen(active, tombstone_ids, deleted_by)
            ended = _ended_sessions(owner, active)
            lifted = {name: one for name, one in active.items() if name not in ended}
            restored += _Decider(owner, actor).lift_tombstones("session", lifted)
    return restored


def delete_many(rows: Collection[int], *, reason: str = "", actor: Actor, job: str = "") -> list[Change]:
    """Move the memories of these rows to the trash. Changes: [row, tombstone]. Audit events name the `job`."""
    changes: list[Change] = []
    with transaction.atomic():
        for decider, memories in _locked_memories(rows, actor, job):
            _, created = decider.create_tombstones("memory", {one.memory_id: one for one in memories}, reason)
            shown = {memory.row for memory in memories if memory.is_live}
            changes += [[one.row_id, one.tombstone_id] for one in created if one.row_id in shown]
    return changes


def expire(user: MemoryUser, sessions: Iterable[Session], memories: Iterable[Memory]) -> None:
    """Move sessions and memories of a user to the trash, because their time has passed. Call with the user locked."""
    by_owner: dict[tuple[Owner, _Kind], dict[str, StoredMemory | None]] = defaultdict(dict)
    for session in sessions:
        owner = Owner(user.pk, user.user_id, session.app_id, session.project_id)
        by_owner[owner, "session"][session.session_id] = None
    for memory in memories:
        one = stored(memory)
        by_owner[one.owner, "memory"][one.memory_id] = one
    for (owner, kind), wanted in by_owner.items():
        _Decider(owner, EXPIRY).create_tombstones(kind, wanted, "")


def delete_of_sender(
    owner: Owner, sender_id: str, *, session_id: str | None = None, reason: str = "", actor: Actor
) -> int:
    """Move the messages of a sender, of one session or of all, to the trash. Return their number.

    Uploaded files and manual memories stay. An interrupted call has deleted a part: repeat it.
    """
    found = visible(Memory.objects.filter(owned_by(owner), sender_id=sender_id, state=State.LIVE))
    found = found.filter(origin=Memory.Origin.EMBEDDED).exclude(session__kind=Session.Kind.RESOURCE)
    if session_id is not None:
        found = found.filter(session__session_id=session_id)
    count, last = 0, 0
    while rows := list(found.filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:_ROWS_AT_ONCE]):
        count, last = count + len(delete_many(rows, reason=reason, actor=actor)), rows[-1]
    return count


def restore_many(
    rows: Collection[int],
    *,
    tombstone_ids: Collection[str] | None = None,
    deleted_by: Actor | None = None,
    actor: Actor,
    job: str = "",
) -> list[Change]:
    """Restore the memories of these rows from the trash, without those whose time has passed.

    Changes: [row, tombstone]. Audit events name the `job`. `tombstone_ids` and `deleted_by` restrict it to these
    tombstones, or to tombstones of this actor.
    """
    changes: list[Change] = []
    with transaction.atomic():
        for decider, memories in _locked_memories(rows, actor, job):
            active = _active_tombstones(decider.owner, "memory", [one.memory_id for one in memories])
            lasting = {one.memory_id for one in memories if not expiry.has_ended(one.expires_at)}
            active = {name: one for name, one in active.items() if name in lasting}
            chosen = _chosen(active, tombstone_ids, deleted_by)
            changes += [[one.row_id, one.tombstone_id] for one in decider.lift_tombstones("memory", chosen)]
    return changes


def _chosen(
    active: Mapping[str, Tombstone], tombstone_ids: Collection[str] | None, deleted_by: Actor | None
) -> dict[str, Tombstone]:
    """Return the tombstones with these ids, and of this actor."""
    return {
        name: one
        for name, one in active.items()
        if (tombstone_ids is None or one.tombstone_id in tombstone_ids)
        and (deleted_by is None or (one.actor_kind, one.actor) == (deleted_by.kind, deleted_by.name))
    }


def override_many(rows: Collection[int], values: OverrideValues, *, actor: Actor, job: str = "") -> list[Change]:
    """Override the memories of these rows. Changes: [row, override, its revision]. Audit events name the `job`."""
    changes: list[Change] = []
    values = values.cleaned()
    with transaction.atomic():
        for decider, memories in _locked_memories(rows, actor, job):
            wanted = [(memory, values.applied_to(memory)) for memory in memories if lookup.is_active(memory)]
            overridden = decider.override(_differing(wanted))
            changes += _numbered(overridden)
    return changes


def _numbered(overridden: Iterable[tuple[StoredMemory, Override, int]]) -> list[Change]:
    """Return the changes of overrides: [row, override, its revision]."""
    return [[memory.row, current.override_id, number] for memory, current, number in overridden]


def undo_session_deletions(changes: Sequence[Change], *, deleted_by: Actor, actor: Actor) -> int:
    """Restore sessions that `deleted_by` deleted with these changes; return their number.

    Those that another actor deleted since, or whose resource is in the trash, are skipped.
    """
    tombstone_ids = {change[0] for change in changes}
    found = Tombstone.objects.filter(pk__in=tombstone_ids).select_related("user")
    sessions = [(one.owner, one.session_id) for one in found]
    return len(restore_sessions(sessions, tombstone_ids=tombstone_ids, deleted_by=deleted_by, actor=actor))


def undo_restore(changes: Sequence[Change], *, actor: Actor, job: str = "") -> int:
    """Delete memories again that `restore_many` restored, with the same reasons; return their number.

    Memories that were deleted in the meantime are skipped.
    """
    undone, tombstone_ids = 0, {change[1] for change in changes}
    with transaction.atomic():
        for decider, memories in _locked_memories([change[0] for change in changes], actor, job):
            history = Tombstone.objects.filter(row_id__in=[memory.row for memory in memories]).order_by("created_at")
            latest = {one.row_id: one for one in history}
            unchanged = [one for one in memories if one.is_live and latest[one.row].tombstone_id in tombstone_ids]
            for reason in {latest[memory.row].reason for memory in unchanged}:
                with_reason = {memory.memory_id: memory for memory in unchanged if latest[memory.row].reason == reason}
                decider.create_tombstones("memory", with_reason, reason)
            undone += len(unchanged)
    return undone


def undo_overrides(changes: Sequence[Change], *, actor: Actor, job: str = "") -> int:
    """Restore the texts before `override_many`; return the number of memories. Memories edited since are skipped."""
    undone, revision_numbers = 0, {change[1]: change[2] for change in changes}
    with transaction.atomic():
        for decider, memories in _locked_memories([change[0] for change in changes], actor, job):
            active = decider.overrides(memories)
            found = [(one, *active[one.memory_id]) for one in memories if one.memory_id in active]
            unchanged = [
                (memory, current) for memory, current, number in found if revision_numbers.get(current.pk) == number
            ]
            revisions = OverrideRevision.objects.filter(override__in=[current for _, current in unchanged])
            wordings = {(one.override_id, one.number): _wording(one) for one in revisions}
            decider.end_overrides([current for _, current in unchanged if revision_numbers[current.pk] == 1])
            edited = [(memory, current) for memory, current in unchanged if revision_numbers[current.pk] > 1]
            decider.override(
                [(memory, wordings[current.pk, revision_numbers[current.pk] - 1]) for memory, current in edited]
            )
            undone += len(unchanged)
    return undone


def reinstate(user: MemoryUser, tombstones: Sequence[Tombstone]) -> None:
    """Create deletions again, with their ids, actors and times, after an import has replaced the user's rows.

    Memories that the import lacks get their tombstones too, because the remote may still hold them. Call inside the
    transaction of the import.
    """
    for tombstone in tombstones:
        owner = Owner(user.pk, user.user_id, tombstone.app_id, tombstone.project_id)
        kind: _Kind = "memory" if tombstone.memory_id else "session"
        ids = [tombstone.memory_id or tombstone.session_id]
        if not _active_tombstones(owner, kind, ids):
            tombstone.user, tombstone.row = user, None
            if kind == "memory":
                tombstone.row = Memory.objects.filter(owned_by(owner), memory_id=tombstone.memory_id).first()
            tombstone.save(force_insert=True)
            _follow(owner, kind, [tombstone])


def remove_tombstone(tombstone: Tombstone) -> None:
    """Delete a tombstone that an import created, and show its memory or session again."""
    owner = tombstone.owner
    with transaction.atomic():
        lookup.lock_user(owner.user_pk)
        if tombstone.undone_at is None:
            tombstone.end(Actor(tombstone.actor_kind, tombstone.actor))
            tombstone.save(update_fields=ENDED_FIELDS)
            _follow(owner, "memory" if tombstone.memory_id else "session", [tombstone])
        tombstone.delete()


def import_override(override: Override, *, text: str, created_at: datetime) -> bool:
    """Save an unsaved override of another gateway; return False if the memory has one, or was purged.

    `text` is the new text. Without the memory, which the remote may hold, the original text is unknown and equals it.
    """
    owner = override.owner
    with transaction.atomic():
        lookup.lock_user(owner.user_pk)
        memory = Memory.objects.filter(owned_by(owner), memory_id=override.memory_id).first()
        taken = Override.objects.filter(owned_by(owner), memory_id=override.memory_id, undone_at__isnull=True)
        if taken.exists() or (memory and memory.state == State.PURGED):
            return False
        before = Wording(memory.text, memory.category, memory.importance) if memory else Wording(text, "", None)
        override.row, override.original_text, override.text = memory, before.text, text
        override.created_at = override.updated_at = created_at
        override.save_base(raw=True, force_insert=True)  # raw: keep its time
        after = before._replace(text=text)
        by = {"actor_kind": override.actor_kind, "actor": override.actor}
        OverrideRevision.objects.bulk_create(
            [
                OverrideRevision(override=override, number=0, **before._asdict()),
                OverrideRevision(override=override, number=1, **after._asdict(), **by),
            ]
        )
        if memory:
            get_engine().replace(owner, {memory.memory_id: after})
        return True


def remove_override(override: Override) -> bool:
    """Delete an override that an import created, with its effect; return False if a user edited it since."""
    owner = override.owner
    with transaction.atomic():
        lookup.lock_user(owner.user_pk)
        revisions = list(override.revisions.order_by("number"))
        if override.undone_at is not None or len(revisions) > 2:
            return False
        if override.row_id is not None:
            get_engine().replace(owner, {override.memory_id: _wording(revisions[0])})
        override.delete()
        return True


@contextmanager
def _locked_memory(user_pk: UUID, ref: MemoryRef, actor: Actor) -> Iterator[tuple["_Decider", StoredMemory]]:
    with transaction.atomic():
        lookup.lock_user(user_pk)
        memory = lookup.get_memory(user_pk, ref)
        yield _Decider(memory.owner, actor), memory


def _lock_users(user_pks: Collection[UUID]) -> None:
    list(MemoryUser.objects.select_for_update(no_key=True).filter(pk__in=user_pks).order_by("pk"))


def _locked_memories(rows: Collection[int], actor: Actor, job: str) -> list[tuple["_Decider", list[StoredMemory]]]:
    """Lock the users of some memories, then read the memories. Return them by owner."""
    _lock_users(Memory.objects.filter(pk__in=rows).order_by().values_list("user_id", flat=True).distinct())
    by_owner: dict[Owner, list[StoredMemory]] = {}
    for memory in browse.get_many(list(dict.fromkeys(rows))):
        by_owner.setdefault(memory.owner, []).append(memory)
    return [(_Decider(owner, actor, job), memories) for owner, memories in by_owner.items()]


def _active_tombstones(owner: Owner, kind: _Kind, ids: Collection[str]) -> dict[str, Tombstone]:
    """Return the active tombstones by the ids of their memories or sessions. One statement."""
    subjects = Q(memory_id__in=ids) if kind == "memory" else Q(memory_id="", session_id__in=ids)
    found = Tombstone.objects.filter(owned_by(owner), subjects, undone_at__isnull=True)
    return {one.memory_id or one.session_id: one for one in found}


def _follow(owner: Owner, kind: _Kind, tombstones: Collection[Tombstone]) -> None:
    """Show or hide the memories or sessions of tombstones that were just saved or ended."""
    if kind == "session":
        derived_memories.follow_sessions(owner, [one.session_id for one in tombstones])
    else:
        derived_memories.follow(owner, tombstones)


def _existing(owner: Owner, kind: _Kind, names: Collection[str]) -> Collection[str]:
    """Return those of the sessions that exist and are not purged; memories are known to exist."""
    if kind == "memory":
        return names
    found = Session.objects.filter(~IS_PURGED, owned_by(owner), session_id__in=names)
    return set(found.values_list("session_id", flat=True))


def _wording(source: StoredMemory | OverrideRevision) -> Wording:
    return Wording(source.text, source.category, source.importance)


@dataclass(frozen=True, slots=True)
class _Decider:
    """Decisions about memories and sessions of one owner, whose user is locked."""

    owner: Owner
    actor: Actor
    job: str = ""

    def create_tombstones(
        self, kind: _Kind, wanted: Mapping[str, StoredMemory | None], reason: str, *, copies_of: str = ""
    ) -> tuple[dict[str, Tombstone], list[Tombstone]]:
        """Return the active tombstones by id, and the new ones among them. A missing session gets none.

        `wanted` has memories by id, or session ids with None. The others are copies of the memory `copies_of`.
        """
        active = _active_tombstones(self.owner, kind, wanted)
        reason = self._kept(reason)
        missing: list[str] = []
        taken_over: list[Tombstone] = []
        created: list[Tombstone] = []
        followed: list[Tombstone] = []
        now = timezone.now()
        for name in wanted:
            one = active.get(name)
            if one is None:
                missing.append(name)
            elif self.actor == EXPIRY:
                followed.append(one)
            elif (one.actor_kind, one.actor) != (self.actor.kind, self.actor.name):
                followed += [one] if one.is_expiry else []  # the state becomes another
                one.actor_kind, one.actor, one.reason = self.actor.kind, self.actor.name, reason or one.reason
                taken_over.append(one)
        for name in _existing(self.owner, kind, missing):
            memory = wanted[name]
            subject: dict[str, Any] = {"session_id": name}
            if memory is not None:
                subject = {"memory_id": name, "session_id": memory.session_id or "", "row_id": memory.row}
            active[name] = Tombstone(**self._owner_and_actor(), reason=reason, created_at=now, **subject)
            created.append(active[name])
        if copies_of:
            first = active[copies_of]
            for one in created:
                one.cause = "" if one is first else first.cause or first.pk
        Tombstone.objects.bulk_update(taken_over, ["actor_kind", "actor", "reason"])
        Tombstone.objects.bulk_create(created)
        if followed or created:
            _follow(self.owner, kind, [*followed, *created])
        self._record("expire" if self.actor == EXPIRY else "delete", [*taken_over, *created])
        return active, created

    def lift_tombstones(self, kind: _Kind, active: Mapping[str, Tombstone]) -> list[Tombstone]:
        """End tombstones, except those of purged sessions. Return the ended ones."""
        ended = [active[name] for name in _existing(self.owner, kind, list(active))]
        for one in ended:
            one.end(self.actor)
        Tombstone.objects.bulk_update(ended, ENDED_FIELDS)
        if ended:
            _follow(self.owner, kind, ended)
        self._record("restore", ended)
        return ended

    def set_expiry(self, rows: Collection[int], expires_at: datetime | None) -> None:
        """Set when some memories of the owner expire."""
        found = list(Memory.objects.select_for_update().filter(owned_by(self.owner), pk__in=rows))
        for memory in found:
            memory.expires_at = expires_at
        writes.save(self.owner, found, ["expires_at"])

    def set_labels(self, row: int, labels: Mapping[str, Any]) -> list[str]:
        """Replace tags or metadata in the payload of a memory; return the names of those that differ."""
        memory = Memory.objects.select_for_update().get(owned_by(self.owner), pk=row)
        changed = sorted(
            name for name, value in labels.items() if (memory.payload.get(name) or None) != (value or None)
        )
        if changed:
            kept = {name: value for name, value in memory.payload.items() if name not in labels}
            memory.payload = kept | {name: value for name, value in labels.items() if value}
            writes.save(self.owner, [memory], ["payload"])
        return changed

    def overrides(self, memories: Iterable[StoredMemory]) -> dict[str, tuple[Override, int]]:
        """Return the active overrides by memory id, each with the number of its last revision. One statement."""
        ids = [memory.memory_id for memory in memories]
        found = Override.objects.filter(owned_by(self.owner), memory_id__in=ids, undone_at__isnull=True)
        return {one.memory_id: (one, one.count - 1) for one in found.annotate(count=Count("revisions"))}

    def override(
        self, wanted: Sequence[tuple[StoredMemory, Wording]], reason: str = "", *, is_update: bool = False
    ) -> list[tuple[StoredMemory, Override, int]]:
        """Apply wordings as the next revisions. Return each memory's override and the number of its last revision."""
        active = self.overrides([memory for memory, _ in wanted])
        reason = self._kept(reason)
        overridden: list[tuple[StoredMemory, Override, int]] = []
        created, edited, revisions, wordings = [], [], [], {}
        for memory, wording in wanted:
            current, number = active.get(memory.memory_id, (None, 0))
            if current is not None and wording == _wording(memory):
                overridden.append((memory, current, number))
                continue
            if current is None:
                subject = {"memory_id": memory.memory_id, "session_id": memory.session_id or "", "row_id": memory.row}
                current = Override(**self._owner_and_actor(), **subject, original_text=memory.text)
                created.append(current)
                revisions.append(OverrideRevision(override=current, number=0, **_wording(memory)._asdict()))
            else:
                edited.append(current)
            current.text, current.updated_at = wording.text, timezone.now()
            by = {"actor_kind": self.actor.kind, "actor": self.actor.name, "reason": reason}
            revision = OverrideRevision(override=current, number=number + 1, is_update=is_update, **by)
            revision.text, revision.category, revision.importance = wording
            revisions.append(revision)
            wordings[memory.memory_id] = wording
            overridden.append((memory, current, number + 1))
        Override.objects.bulk_create(created)
        Override.objects.bulk_update(edited, ["text", "updated_at"])
        OverrideRevision.objects.bulk_create(revisions)
        self._replace(wordings)
        self._record("override", [*created, *edited])
        return overridden

    def end_overrides(self, overrides: Sequence[Override]) -> None:
        """End overrides and restore the original texts."""
        for one in overrides:
            one.end(self.actor)
            one.updated_at = timezone.now()
        Override.objects.bulk_update(overrides, [*ENDED_FIELDS, "updated_at"])
        first = OverrideRevision.objects.filter(override__in=overrides, number=0)
        originals = {one.override_id: _wording(one) for one in first}
        self._replace({one.memory_id: originals[one.pk] for one in overrides})
        self._record("override_undo", overrides)

    def show_again(self, memory: StoredMemory) -> bool:
        """Show a memory again that another one hid. Return False if none did."""
        ended = derived_memories.show_again(self.owner, memory.memory_id, self.actor)
        if not ended:
            return False
        newer = [one.other_id for one in ended if one.kind == Tombstone.Kind.SUPERSEDED]
        detail = {"superseded_by": newer[0]} if newer else {"deleted_with": [one.other_id for one in ended]}
        record(self.actor, "memory.restore", memory.memory_id, user_id=self.owner.user_id, detail=detail)
        publish("memory.restored", self.owner.user_pk, **self.owner.scope, memory_ids=[memory.memory_id])
        return True

    def _kept(self, reason: str) -> str:
        """Return the reason, empty if the person's controls do not let the actor write it."""
        is_of_agent = self.actor.kind in {AuditEvent.ActorKind.KEY, AuditEvent.ActorKind.TOKEN}
        return kept_reason(self.owner.user_pk, reason, is_of_person=not is_of_agent)

    def _replace(self, wordings: Mapping[str, Wording]) -> None:
        if wordings:
            get_engine().replace(self.owner, wordings)

    def _owner_and_actor(self) -> dict[str, Any]:
        """Return the fields of a decision's row that name its owner and actor."""
        return owner_columns(self.owner) | {"actor_kind": self.actor.kind, "actor": self.actor.name}

    def _record(self, verb: str, decided: Sequence[Tombstone] | Sequence[Override]) -> None:
        """Write an audit event for one memory or session, or for each hundred, with their ids, and publish it."""
        for start in range(0, len(decided), IDS_PER_EVENT):
            part = decided[start : start + IDS_PER_EVENT]
            kind = "memory" if part[0].memory_id else "session"
            ids = [one.memory_id or one.session_id for one in part]
            subject_id, detail = "", dict[str, Any]({"job": self.job} if self.job else {})
            if len(part) == 1:
                subject_id = ids[0]
                detail["tombstone_id" if isinstance(part[0], Tombstone) else "override_id"] = part[0].pk
            else:
                detail[f"{kind}_ids"] = ids
            action = f"{kind}.{verb}"
            record(self.actor, action, subject_id, user_id=self.owner.user_id, detail=detail)
            named = {f"{kind}_ids": ids}
            publish(EVENTS[action], self.owner.user_pk, **self.owner.scope, **named)
            if action == "memory.override" and self.actor.kind == AuditEvent.ActorKind.PERSON:
                publish("memory.corrected_by_user", self.owner.user_pk, **self.owner.scope, **named)
