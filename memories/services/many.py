"""Decisions about many memories at once: the same rows as one by one, in few statements, and no trail of their own.

Call inside a transaction that has locked the users (`lock`). What each needs to be undone later comes back as plain
JSON data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone

from accounts.audit import Actor
from accounts.models import MemoryUser
from engine import browse
from engine.port import Engine, StoredMemory
from memories.models import Override, Tombstone
from memories.services import edit, lookup
from memories.services.edit import Correction
from memory_gateway.core.errors import Conflict

Change = list[Any]


def lock(memories: Iterable[StoredMemory]) -> None:
    """Locks the users of the memories, always in the same order."""
    users = {memory.owner.user_pk for memory in memories}
    list(MemoryUser.objects.select_for_update(no_key=True).filter(pk__in=users).order_by("pk"))


def delete(memories: Sequence[StoredMemory], *, reason: str, actor: Actor, engine: Engine) -> list[Change]:
    """Moves memories to the trash; those there already, or not settled yet, are left. Changes: [row, tombstone]."""
    now = timezone.now()
    tombstones = [
        Tombstone(
            user_id=memory.owner.user_pk,
            app_id=memory.owner.app_id,
            project_id=memory.owner.project_id,
            memory_id=memory.memory_id,
            session_id=memory.session_id or "",
            row_id=memory.row,
            reason=reason,
            actor_kind=actor.kind,
            actor=actor.name,
        )
        for memory in memories
        if memory.hidden_at is None and _is_settled(memory, engine)
    ]
    Tombstone.objects.bulk_create(tombstones)
    _hide([memory for memory in memories if memory.hidden_at is None and _is_settled(memory, engine)], now, engine)
    return [[tombstone.row_id, tombstone.tombstone_id] for tombstone in tombstones]


def restore(memories: Sequence[StoredMemory], *, engine: Engine) -> list[Change]:
    """Takes memories that were deleted one by one out of the trash. Changes: [row, tombstone]."""
    in_force = Tombstone.objects.filter(row_id__in=[memory.row for memory in memories], undone_at__isnull=True)
    return _raise(in_force.exclude(memory_id=""), memories, engine)


def undo_delete(changes: Sequence[Change], *, by: Actor, engine: Engine) -> int:
    """Restores what those deletions of an actor still hide, unless somebody else deleted it too; how many."""
    memories = browse.get_many([row for row, _ in changes])
    lock(memories)
    ids = [tombstone_id for _, tombstone_id in changes]
    theirs = Tombstone.objects.filter(pk__in=ids, actor_kind=by.kind, actor=by.name, undone_at__isnull=True)
    return len(_raise(theirs, memories, engine))


def undo_restore(changes: Sequence[Change], *, actor: Actor, engine: Engine) -> int:
    """Deletes again what is still there; how many."""
    rows = [row for row, _ in changes]
    lock(browse.get_many(rows))
    memories = browse.get_many(rows)
    reasons = dict(Tombstone.objects.filter(pk__in=[old for _, old in changes]).values_list("row_id", "reason"))
    again = 0
    for reason in set(reasons.values()):
        of_reason = [memory for memory in memories if reasons.get(memory.row) == reason]
        again += len(delete(of_reason, reason=reason, actor=actor, engine=engine))
    return again


def categorise(memories: Sequence[StoredMemory], category: str, *, actor: Actor, engine: Engine) -> list[Change]:
    """Corrects the category alone. Changes: [row, override, its revision, the category before, whether it began]."""
    changes = []
    for memory in memories:
        if memory.hidden_at is None and memory.category != category and _is_settled(memory, engine):
            override, _ = edit.put_in_force(memory, Correction(category=category), actor=actor, engine=engine)
            revision = override.revisions.count() - 1
            changes.append([memory.row, override.override_id, revision, memory.category, revision == 1])
    return changes


def undo_categorise(changes: Sequence[Change], *, actor: Actor, engine: Engine) -> int:
    """Gives back the category where nobody has decided otherwise since; how many."""
    memories = {memory.row: memory for memory in browse.get_many([change[0] for change in changes])}
    lock(memories.values())
    overrides = Override.objects.filter(pk__in=[change[1] for change in changes], undone_at__isnull=True)
    in_force = {override.pk: override for override in overrides}
    undone = 0
    for row, override_id, revision, before, has_begun in changes:
        memory, override = memories.get(row), in_force.get(override_id)
        if memory is None or override is None or override.revisions.count() - 1 != revision:
            continue
        if has_begun:
            edit.take_back(memory, override, engine=engine)
        else:
            edit.put_in_force(memory, Correction(category=before), actor=actor, engine=engine)
        undone += 1
    return undone


def _raise(tombstones: Iterable[Tombstone], memories: Sequence[StoredMemory], engine: Engine) -> list[Change]:
    found = {tombstone.row_id: tombstone for tombstone in tombstones}
    raised = [memory for memory in memories if memory.row in found]
    ids = [found[memory.row].tombstone_id for memory in raised]
    Tombstone.objects.filter(pk__in=ids).update(undone_at=timezone.now())
    _hide(raised, None, engine)
    return [[memory.row, tombstone_id] for memory, tombstone_id in zip(raised, ids, strict=True)]


def _hide(memories: Iterable[StoredMemory], at: datetime | None, engine: Engine) -> None:
    for memory in memories:
        engine.hide(memory.owner, memory.memory_id, at)


def _is_settled(memory: StoredMemory, engine: Engine) -> bool:
    try:
        lookup.require_settled(memory, engine)
    except Conflict:
        return False
    return True
