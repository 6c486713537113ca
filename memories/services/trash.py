"""Deletions that can be undone: of one memory, or of a whole session."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from accounts.audit import Actor, record
from engine.models import owned_by
from engine.port import Engine, Owner
from engine.registry import get_engine
from memories.models import Tombstone
from memories.services import lookup
from memories.services.lookup import Which
from memories.services.owned import require_own_session
from memory_gateway.core.errors import NotFound


def delete(user_pk: UUID, which: Which, *, reason: str = "", actor: Actor, engine: Engine | None = None) -> Tombstone:
    """Leaves a memory out of everything from now on; deleting it again is the same as once. What somebody else had
    deleted is from then on this one's deletion: undoing theirs does not bring it back.

    Errors: `NotFound`, `InvalidInput` if several scopes have the memory, `Conflict` for what is no memory yet.
    """
    engine = engine or get_engine()
    with transaction.atomic():
        lookup.lock(user_pk)
        memory = lookup.one(user_pk, which, engine)
        lookup.require_settled(memory, engine)
        existing = _in_force(memory.owner, memory_id=memory.memory_id)
        if existing is not None:
            return _taken_over(memory.owner, existing, reason, actor)
        tombstone = _bury(
            memory.owner,
            memory_id=memory.memory_id,
            session_id=memory.session_id or "",
            row_id=memory.row,
            reason=reason,
            actor=actor,
        )
        engine.hide(memory.owner, memory.memory_id, tombstone.created_at)
        return tombstone


def restore(user_pk: UUID, which: Which, *, actor: Actor, engine: Engine | None = None) -> Tombstone:
    """Undoes the deletion of a memory. Errors: `NotFound` also where it is not deleted by itself."""
    engine = engine or get_engine()
    with transaction.atomic():
        lookup.lock(user_pk)
        memory = lookup.one(user_pk, which, engine)
        tombstone = _in_force(memory.owner, memory_id=memory.memory_id)
        if tombstone is None:
            raise NotFound("This memory is not in the trash.")
        _raise(memory.owner, tombstone, actor)
        engine.hide(memory.owner, memory.memory_id, None)
        return tombstone


def delete_session(
    owner: Owner, session_id: str, *, reason: str = "", actor: Actor, engine: Engine | None = None
) -> Tombstone:
    """Leaves a whole session out of everything from now on. Errors: `NotFound`."""
    require_own_session(owner, session_id)
    engine = engine or get_engine()
    with transaction.atomic():
        lookup.lock(owner.user_pk)
        existing = _in_force(owner, memory_id="", session_id=session_id)
        if existing is not None:
            return existing
        if not engine.hide_session(owner, session_id, timezone.now()):
            raise NotFound("There is no such session.")
        return _bury(owner, session_id=session_id, reason=reason, actor=actor)


def restore_session(owner: Owner, session_id: str, *, actor: Actor, engine: Engine | None = None) -> Tombstone:
    """Undoes the deletion of a session; memories that were deleted one by one stay so. Errors: `NotFound`."""
    require_own_session(owner, session_id)
    engine = engine or get_engine()
    with transaction.atomic():
        lookup.lock(owner.user_pk)
        tombstone = _in_force(owner, memory_id="", session_id=session_id)
        if tombstone is None or not engine.hide_session(owner, session_id, None):
            raise NotFound("This session is not in the trash.")
        _raise(owner, tombstone, actor)
        return tombstone


def _in_force(owner: Owner, **subject: str) -> Tombstone | None:
    return Tombstone.objects.filter(owned_by(owner), undone_at__isnull=True, **subject).first()


def _bury(owner: Owner, *, actor: Actor, **fields: Any) -> Tombstone:
    tombstone = Tombstone.objects.create(
        user_id=owner.user_pk,
        app_id=owner.app_id,
        project_id=owner.project_id,
        actor_kind=actor.kind,
        actor=actor.name,
        **fields,
    )
    _record("delete", owner, tombstone, actor)
    return tombstone


def _taken_over(owner: Owner, tombstone: Tombstone, reason: str, actor: Actor) -> Tombstone:
    if (tombstone.actor_kind, tombstone.actor) != (actor.kind, actor.name):
        tombstone.actor_kind, tombstone.actor = actor.kind, actor.name
        tombstone.reason = reason or tombstone.reason
        tombstone.save(update_fields=["actor_kind", "actor", "reason"])
        _record("delete", owner, tombstone, actor)
    return tombstone


def _raise(owner: Owner, tombstone: Tombstone, actor: Actor) -> None:
    tombstone.undone_at = timezone.now()
    tombstone.save(update_fields=["undone_at"])
    _record("restore", owner, tombstone, actor)


def _record(verb: str, owner: Owner, tombstone: Tombstone, actor: Actor) -> None:
    subject = "memory" if tombstone.memory_id else "session"
    record(
        actor,
        f"{subject}.{verb}",
        subject_type=subject,
        subject_id=tombstone.memory_id or tombstone.session_id,
        user_id=owner.user_id,
        detail={"tombstone_id": tombstone.tombstone_id},
    )
