"""Corrections: a user's words in the place of what the engine remembered, undone as easily as done."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from accounts.audit import Actor, record
from engine.models import owned_by
from engine.port import Engine, StoredMemory
from engine.registry import get_engine
from memories.models import Override, OverrideRevision
from memories.services import lookup
from memories.services.lookup import Which
from memory_gateway.core.errors import NotFound


@dataclass(frozen=True, slots=True)
class Correction:
    """What is to be said instead; None leaves that part as it is."""

    text: str | None = None
    category: str | None = None
    importance: float | None = None


@dataclass(frozen=True, slots=True)
class _Wording:
    text: str
    category: str
    importance: float | None


def correct(
    user_pk: UUID, which: Which, correction: Correction, *, actor: Actor, engine: Engine | None = None
) -> Override:
    """Puts a correction in force, over an earlier one of the same memory as its next revision.

    Errors: `NotFound`, `InvalidInput` if several scopes have the memory, `Conflict` for a deleted one.
    """
    engine = engine or get_engine()
    with transaction.atomic():
        lookup.lock(user_pk)
        memory = lookup.live(user_pk, which, engine)
        lookup.require_settled(memory, engine)
        override, is_new = put_in_force(memory, correction, actor=actor, engine=engine)
        if is_new:
            _record("memory.override", memory, override, actor)
        return override


def put_in_force(
    memory: StoredMemory, correction: Correction, *, actor: Actor, engine: Engine
) -> tuple[Override, bool]:
    """The correction in force, and whether it says anything new. Its user is locked; the trail is the caller's."""
    wording = _corrected(memory, correction)
    override = _in_force(memory)
    if override is not None and wording == _wording_of(memory):
        return override, False
    override = override or _begin(memory, actor)
    _reword(override, memory, wording, actor, engine)
    return override, True


def undo(user_pk: UUID, which: Which, *, actor: Actor, engine: Engine | None = None) -> Override:
    """Gives the memory its engine's words back. Errors: `NotFound` also where no correction is in force."""
    engine = engine or get_engine()
    with transaction.atomic():
        lookup.lock(user_pk)
        memory = lookup.one(user_pk, which, engine)
        override = _in_force(memory)
        if override is None:
            raise NotFound("No correction of this memory is in force.")
        take_back(memory, override, engine=engine)
        _record("memory.override_undo", memory, override, actor)
        return override


def take_back(memory: StoredMemory, override: Override, *, engine: Engine) -> None:
    """Ends a correction in force. Its user is locked; the trail is the caller's."""
    original = override.revisions.get(number=0)
    override.undone_at = timezone.now()
    override.save(update_fields=["undone_at", "updated_at"])
    engine.replace(
        memory.owner,
        memory.memory_id,
        text=original.text,
        category=original.category,
        importance=original.importance,
    )


def _in_force(memory: StoredMemory) -> Override | None:
    return Override.objects.filter(owned_by(memory.owner), memory_id=memory.memory_id, undone_at__isnull=True).first()


def _begin(memory: StoredMemory, actor: Actor) -> Override:
    """A correction that says nothing yet, with the engine's own words as its revision 0."""
    override = Override.objects.create(
        user_id=memory.owner.user_pk,
        app_id=memory.owner.app_id,
        project_id=memory.owner.project_id,
        memory_id=memory.memory_id,
        session_id=memory.session_id or "",
        row_id=memory.row,
        original_text=memory.text,
        actor_kind=actor.kind,
        actor=actor.name,
    )
    _add_revision(override, 0, _wording_of(memory), None)
    return override


def _reword(override: Override, memory: StoredMemory, wording: _Wording, actor: Actor, engine: Engine) -> None:
    override.text = wording.text
    override.save(update_fields=["text", "updated_at"])
    _add_revision(override, override.revisions.count(), wording, actor)
    engine.replace(
        memory.owner,
        memory.memory_id,
        text=wording.text,
        category=wording.category,
        importance=wording.importance,
    )


def _add_revision(override: Override, number: int, wording: _Wording, actor: Actor | None) -> None:
    OverrideRevision.objects.create(
        override=override,
        number=number,
        text=wording.text,
        category=wording.category,
        importance=wording.importance,
        actor_kind=actor.kind if actor else "",
        actor=actor.name if actor else "",
    )


def _wording_of(memory: StoredMemory) -> _Wording:
    return _Wording(memory.text, memory.category, memory.importance)


def _corrected(memory: StoredMemory, correction: Correction) -> _Wording:
    return _Wording(
        text=memory.text if correction.text is None else correction.text,
        category=memory.category if correction.category is None else correction.category,
        importance=memory.importance if correction.importance is None else correction.importance,
    )


def _record(action: str, memory: StoredMemory, override: Override, actor: Actor) -> None:
    record(
        actor,
        action,
        subject_type="memory",
        subject_id=memory.memory_id,
        user_id=memory.owner.user_id,
        detail={"override_id": override.override_id},
    )
