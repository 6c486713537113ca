"""Delete, restore and override memories and sessions: one rule each, for one as for many.

- A deletion is a tombstone. It holds for everyone: what an operator deleted stays deleted for its user until it is
  restored.
- Deleting what someone else deleted takes their deletion over: undoing theirs no longer restores it.
- A memory that the gateway hid (superseded, or gone with its source) can be deleted too. From then on it is its user's
  decision, which its source no longer changes.
- Restoring ends one tombstone: memories that were deleted one by one stay deleted when their session is restored.
- An override is for a memory that is not deleted, neither by itself nor with its session.
- A message that EverOS has not flushed yet cannot be decided about: an error for one, skipped among many.
- An undo list names what a decision changed. What was hidden before stays hidden, and what was decided since stays so.

Each function locks the users in the order of their keys and reads after that. It needs a fixed number of statements for
each user and scope, however many memories it decides about, and writes audit events that name them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Q
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.models import MemoryUser
from core.errors import NotFound
from engines.port import Engine
from engines.registry import get_engine
from memories.models import Override, OverrideRevision, Tombstone
from memories.services import lookup
from memories.services.lookup import MemoryRef
from memories.services.owned import require_own_session
from store import browse
from store.models import Memory, owned_by
from store.types import Owner, StoredMemory, Wording

IDS_PER_EVENT: Final = 100
EVENTS: Final = (
    "memory.delete", "memory.restore", "memory.override", "memory.override_undo", "session.delete", "session.restore",
)  # fmt: skip
"""The actions of audit events that may name many subjects, in `memory_ids` or `session_ids` of their detail."""
Change = list[Any]
"""What undoing one change needs, as plain JSON."""
_Kind = Literal["memory", "session"]


@dataclass(frozen=True, slots=True)
class OverrideValues:
    """The parts of a memory to replace; None leaves a part as it is."""

    text: str | None = None
    category: str | None = None
    importance: float | None = None

    def applied_to(self, memory: StoredMemory) -> Wording:
        return Wording(
            memory.text if self.text is None else self.text,
            memory.category if self.category is None else self.category,
            memory.importance if self.importance is None else self.importance,
        )


def delete(user_pk: UUID, ref: MemoryRef, *, reason: str = "", actor: Actor, engine: Engine | None = None) -> Tombstone:
    """Move a memory to the trash. Deleting it again returns the same tombstone.

    Raises: `NotFound`, `InvalidInput` if several scopes have the memory, `Conflict` for a message not flushed yet.
    """
    with _found(user_pk, ref, actor, engine) as (decider, memory):
        lookup.require_flushed(memory, decider.engine)
        return decider.create_tombstones("memory", {memory.memory_id: memory}, reason)[0][memory.memory_id]


def restore(user_pk: UUID, ref: MemoryRef, *, actor: Actor, engine: Engine | None = None) -> Tombstone:
    """Take a memory out of the trash. Raises: `NotFound` also if it was not deleted by itself."""
    with _found(user_pk, ref, actor, engine) as (decider, memory):
        lifted = decider.lift_tombstones("memory", _in_force(memory.owner, "memory", [memory.memory_id]))
        if not lifted:
            raise NotFound("This memory is not in the trash.")
        return lifted[0]


def override(
    user_pk: UUID, ref: MemoryRef, values: OverrideValues, *, actor: Actor, engine: Engine | None = None
) -> Override:
    """Replace parts of a memory, as the next revision where an override is in force.

    Raises: `NotFound`, `InvalidInput` if several scopes have the memory, `Conflict` for a deleted one.
    """
    with _found(user_pk, ref, actor, engine) as (decider, memory):
        lookup.require_active(memory)
        lookup.require_flushed(memory, decider.engine)
        [(_, current, _)] = decider.override([(memory, values.applied_to(memory))])
        return current


def undo_override(user_pk: UUID, ref: MemoryRef, *, actor: Actor, engine: Engine | None = None) -> Override:
    """Give a memory its engine's text back. Raises: `NotFound` also if no override is in force."""
    with _found(user_pk, ref, actor, engine) as (decider, memory):
        ended = [current for current, _ in decider.overrides([memory]).values()]
        if not ended:
            raise NotFound("No correction of this memory is in force.")
        decider.end_overrides(ended)
        return ended[0]


def delete_session(
    owner: Owner, session_id: str, *, reason: str = "", actor: Actor, engine: Engine | None = None
) -> Tombstone:
    """Move a whole session to the trash. Raises: `NotFound`."""
    require_own_session(owner, session_id)
    with transaction.atomic():
        lookup.lock_user(owner.user_pk)
        decider = _Decider(owner, actor, engine or get_engine())
        in_force, _ = decider.create_tombstones("session", {session_id: None}, reason)
        if not in_force:
            raise NotFound("There is no such session.")
        return in_force[session_id]


def restore_session(owner: Owner, session_id: str, *, actor: Actor, engine: Engine | None = None) -> Tombstone:
    """Take a session out of the trash. Raises: `NotFound`."""
    require_own_session(owner, session_id)
    lifted = restore_sessions([(owner, session_id)], actor=actor, engine=engine)
    if not lifted:
        raise NotFound("This session is not in the trash.")
    return lifted[0]


def restore_sessions(
    sessions: Sequence[tuple[Owner, str]], *, actor: Actor, engine: Engine | None = None
) -> list[Tombstone]:
    """Take sessions out of the trash. Return their tombstones, without those of sessions that are not in the trash."""
    lifted: list[Tombstone] = []
    with transaction.atomic():
        _lock_users({owner.user_pk for owner, _ in sessions})
        for owner in {owner for owner, _ in sessions}:
            in_force = _in_force(owner, "session", [session_id for whose, session_id in sessions if whose == owner])
            lifted += _Decider(owner, actor, engine or get_engine()).lift_tombstones("session", in_force)
    return lifted


def delete_many(rows: Collection[int], *, reason: str = "", actor: Actor, job: str = "") -> list[Change]:
    """Move memories, by their rows, to the trash. Changes: [row, tombstone]. Audit events name the `job`."""
    changes: list[Change] = []
    with transaction.atomic():
        for decider, memories in _locked(rows, actor, job):
            wanted = {one.memory_id: one for one in memories if lookup.is_flushed(one, decider.engine)}
            _, created = decider.create_tombstones("memory", wanted, reason)
            shown = {memory.row for memory in memories if memory.hidden_at is None}
            changes += [[one.row_id, one.tombstone_id] for one in created if one.row_id in shown]
    return changes


def restore_many(
    rows: Collection[int],
    *,
    tombstone_ids: Collection[str] | None = None,
    deleted_by: Actor | None = None,
    actor: Actor,
    job: str = "",
) -> list[Change]:
    """Take memories, by their rows, out of the trash; only by these tombstones and this actor's, if given.

    Changes: [row, tombstone]. Audit events name the `job`.
    """
    changes: list[Change] = []
    with transaction.atomic():
        for decider, memories in _locked(rows, actor, job):
            in_force = {
                memory_id: one
                for memory_id, one in _in_force(decider.owner, "memory", [one.memory_id for one in memories]).items()
                if (tombstone_ids is None or one.tombstone_id in tombstone_ids)
                and (deleted_by is None or (one.actor_kind, one.actor) == (deleted_by.kind, deleted_by.name))
            }
            changes += [[one.row_id, one.tombstone_id] for one in decider.lift_tombstones("memory", in_force)]
    return changes


def override_many(rows: Collection[int], values: OverrideValues, *, actor: Actor, job: str = "") -> list[Change]:
    """Replace parts of memories, by their rows. Changes: [row, override, its revision]. Audit events name the `job`."""
    changes: list[Change] = []
    with transaction.atomic():
        for decider, memories in _locked(rows, actor, job):
            flushed = [memory for memory in memories if lookup.is_flushed(memory, decider.engine)]
            wanted = [(memory, values.applied_to(memory)) for memory in flushed if lookup.is_active(memory)]
            done = decider.override([(memory, new) for memory, new in wanted if new != _wording(memory)])
            changes += [[memory.row, current.override_id, number] for memory, current, number in done]
    return changes


def undo_restore(changes: Sequence[Change], *, actor: Actor, job: str = "") -> int:
    """Delete again, for the same reasons, what `restore_many` restored and nobody deleted since. Return how many."""
    undone, lifted = 0, {change[1] for change in changes}
    with transaction.atomic():
        for decider, memories in _locked([change[0] for change in changes], actor, job):
            history = Tombstone.objects.filter(row_id__in=[memory.row for memory in memories]).order_by("created_at")
            last = {one.row_id: one for one in history}
            still = [one for one in memories if one.hidden_at is None and last[one.row].tombstone_id in lifted]
            for reason in {last[memory.row].reason for memory in still}:
                same = {memory.memory_id: memory for memory in still if last[memory.row].reason == reason}
                decider.create_tombstones("memory", same, reason)
            undone += len(still)
    return undone


def undo_overrides(changes: Sequence[Change], *, actor: Actor, job: str = "") -> int:
    """Give back what memories said before `override_many`, unless they were edited since. Return how many."""
    undone, made = 0, {change[1]: change[2] for change in changes}
    with transaction.atomic():
        for decider, memories in _locked([change[0] for change in changes], actor, job):
            in_force = decider.overrides(memories)
            found = [(one, *in_force[one.memory_id]) for one in memories if one.memory_id in in_force]
            still = [(memory, current) for memory, current, number in found if made.get(current.pk) == number]
            former = OverrideRevision.objects.filter(override__in=[current for _, current in still])
            wordings = {(one.override_id, one.number): _wording(one) for one in former}
            decider.end_overrides([current for _, current in still if made[current.pk] == 1])
            edited = [(memory, current) for memory, current in still if made[current.pk] > 1]
            decider.override([(memory, wordings[current.pk, made[current.pk] - 1]) for memory, current in edited])
            undone += len(still)
    return undone


def reinstate(user: MemoryUser, tombstones: Sequence[Tombstone]) -> None:
    """Put deletions in force again, with their ids, actors and times, after an import replaced the user's rows.

    A memory that the import lacks keeps its tombstone too: EverOS may still hold it. Call inside the transaction.
    """
    for tombstone in tombstones:
        owner = Owner(user.pk, user.user_id, tombstone.app_id, tombstone.project_id)
        kind: _Kind = "memory" if tombstone.memory_id else "session"
        named = [tombstone.memory_id or tombstone.session_id]
        if not _in_force(owner, kind, named):
            tombstone.user, tombstone.row = user, None
            if kind == "memory":
                tombstone.row = Memory.objects.filter(owned_by(owner), memory_id=tombstone.memory_id).first()
            tombstone.save_base(raw=True, force_insert=True)  # raw: with its own time
            _hide(owner, kind, named, tombstone.created_at, get_engine())


@contextmanager
def _found(
    user_pk: UUID, ref: MemoryRef, actor: Actor, engine: Engine | None
) -> Iterator[tuple[_Decider, StoredMemory]]:
    engine = engine or get_engine()
    with transaction.atomic():
        lookup.lock_user(user_pk)
        memory = lookup.get_memory(user_pk, ref, engine)
        yield _Decider(memory.owner, actor, engine), memory


def _lock_users(user_pks: Collection[UUID]) -> None:
    list(MemoryUser.objects.select_for_update(no_key=True).filter(pk__in=user_pks).order_by("pk"))


def _locked(rows: Collection[int], actor: Actor, job: str) -> list[tuple[_Decider, list[StoredMemory]]]:
    """Lock the users of some memories, then read these, by owner."""
    _lock_users(Memory.objects.filter(pk__in=rows).order_by().values_list("user_id", flat=True).distinct())
    by_owner: dict[Owner, list[StoredMemory]] = {}
    for memory in browse.get_many(list(dict.fromkeys(rows))):
        by_owner.setdefault(memory.owner, []).append(memory)
    engine = get_engine()
    return [(_Decider(owner, actor, engine, job), memories) for owner, memories in by_owner.items()]


def _in_force(owner: Owner, kind: _Kind, ids: Collection[str]) -> dict[str, Tombstone]:
    """Return the tombstones in force by the ids of what they delete. One statement."""
    named = Q(memory_id__in=ids) if kind == "memory" else Q(memory_id="", session_id__in=ids)
    found = Tombstone.objects.filter(owned_by(owner), named, undone_at__isnull=True)
    return {one.memory_id or one.session_id: one for one in found}


def _hide(owner: Owner, kind: _Kind, ids: Collection[str], at: datetime | None, engine: Engine) -> Collection[str]:
    """Hide or show memories or sessions. Return the ids of those that exist."""
    if kind == "session":
        return engine.hide_sessions(owner, ids, at)
    engine.hide(owner, ids, at)
    return ids


def _wording(source: StoredMemory | OverrideRevision) -> Wording:
    return Wording(source.text, source.category, source.importance)


@dataclass(frozen=True, slots=True)
class _Decider:
    """Decide about memories and sessions of one owner, whose user is locked."""

    owner: Owner
    actor: Actor
    engine: Engine
    job: str = ""

    def create_tombstones(
        self, kind: _Kind, wanted: Mapping[str, StoredMemory | None], reason: str
    ) -> tuple[dict[str, Tombstone], list[Tombstone]]:
        """Return the tombstones in force by id, and the new ones among them. There is none for a missing session.

        `wanted` has memories by id, or session ids with None.
        """
        in_force = _in_force(self.owner, kind, wanted)
        missing: list[str] = []
        taken_over: list[Tombstone] = []
        created: list[Tombstone] = []
        for name in wanted:
            one = in_force.get(name)
            if one is None:
                missing.append(name)
            elif (one.actor_kind, one.actor) != (self.actor.kind, self.actor.name):
                one.actor_kind, one.actor, one.reason = self.actor.kind, self.actor.name, reason or one.reason
                taken_over.append(one)
        for name in _hide(self.owner, kind, missing, timezone.now(), self.engine):
            memory = wanted[name]
            about: dict[str, Any] = {"session_id": name}
            if memory is not None:
                about = {"memory_id": name, "session_id": memory.session_id or "", "row_id": memory.row}
            in_force[name] = Tombstone(**self._by(), reason=reason, **about)
            created.append(in_force[name])
        Tombstone.objects.bulk_update(taken_over, ["actor_kind", "actor", "reason"])
        Tombstone.objects.bulk_create(created)
        self._record("delete", [*taken_over, *created])
        return in_force, created

    def lift_tombstones(self, kind: _Kind, in_force: Mapping[str, Tombstone]) -> list[Tombstone]:
        """End tombstones, except those of purged sessions. Return the ended ones."""
        lifted = [in_force[name] for name in _hide(self.owner, kind, list(in_force), None, self.engine)]
        for one in lifted:
            one.undone_at = timezone.now()
        Tombstone.objects.bulk_update(lifted, ["undone_at"])
        self._record("restore", lifted)
        return lifted

    def overrides(self, memories: Iterable[StoredMemory]) -> dict[str, tuple[Override, int]]:
        """Return the overrides in force by memory id, each with the number of its last revision. One statement."""
        ids = [memory.memory_id for memory in memories]
        found = Override.objects.filter(owned_by(self.owner), memory_id__in=ids, undone_at__isnull=True)
        return {one.memory_id: (one, one.count - 1) for one in found.annotate(count=Count("revisions"))}

    def override(self, wanted: Sequence[tuple[StoredMemory, Wording]]) -> list[tuple[StoredMemory, Override, int]]:
        """Put wordings in force as the next revisions. Return each memory's override and its last number."""
        in_force = self.overrides([memory for memory, _ in wanted])
        done: list[tuple[StoredMemory, Override, int]] = []
        created, edited, revisions, wordings = [], [], [], {}
        for memory, wording in wanted:
            current, number = in_force.get(memory.memory_id, (None, 0))
            if current is not None and wording == _wording(memory):
                done.append((memory, current, number))
                continue
            if current is None:
                named = {"memory_id": memory.memory_id, "session_id": memory.session_id or "", "row_id": memory.row}
                current = Override(**self._by(), **named, original_text=memory.text)
                created.append(current)
                revisions.append(OverrideRevision(override=current, number=0, **_wording(memory)._asdict()))
            else:
                edited.append(current)
            current.text, current.updated_at = wording.text, timezone.now()
            by = {"actor_kind": self.actor.kind, "actor": self.actor.name}
            revisions.append(OverrideRevision(override=current, number=number + 1, **wording._asdict(), **by))
            wordings[memory.memory_id] = wording
            done.append((memory, current, number + 1))
        Override.objects.bulk_create(created)
        Override.objects.bulk_update(edited, ["text", "updated_at"])
        OverrideRevision.objects.bulk_create(revisions)
        self._replace(wordings)
        self._record("override", [*created, *edited])
        return done

    def end_overrides(self, overrides: Sequence[Override]) -> None:
        """Give memories back what they said before their overrides."""
        for one in overrides:
            one.undone_at = one.updated_at = timezone.now()
        Override.objects.bulk_update(overrides, ["undone_at", "updated_at"])
        first = OverrideRevision.objects.filter(override__in=overrides, number=0)
        originals = {one.override_id: _wording(one) for one in first}
        self._replace({one.memory_id: originals[one.pk] for one in overrides})
        self._record("override_undo", overrides)

    def _replace(self, wordings: Mapping[str, Wording]) -> None:
        if wordings:
            self.engine.replace(self.owner, wordings)

    def _by(self) -> dict[str, Any]:
        """Return whose decision it is and who makes it, as fields of its row."""
        return {
            "user_id": self.owner.user_pk,
            "app_id": self.owner.app_id,
            "project_id": self.owner.project_id,
            "actor_kind": self.actor.kind,
            "actor": self.actor.name,
        }

    def _record(self, verb: str, decided: Sequence[Tombstone] | Sequence[Override]) -> None:
        """Write an event for one memory or session, or for each hundred, which it names by their ids."""
        for start in range(0, len(decided), IDS_PER_EVENT):
            part = decided[start : start + IDS_PER_EVENT]
            kind = "memory" if part[0].memory_id else "session"
            subject_id, detail = "", dict[str, Any]({"job": self.job} if self.job else {})
            if len(part) == 1:
                subject_id = part[0].memory_id or part[0].session_id
                detail["tombstone_id" if isinstance(part[0], Tombstone) else "override_id"] = part[0].pk
            else:
                detail[f"{kind}_ids"] = [one.memory_id or one.session_id for one in part]
            about = {"subject_type": kind, "subject_id": subject_id, "user_id": self.owner.user_id}
            record(self.actor, f"{kind}.{verb}", **about, detail=detail)
