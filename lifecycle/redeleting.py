"""What a user deleted after an archive was made stays deleted where the archive comes in their place."""

from __future__ import annotations

from dataclasses import dataclass

from accounts.audit import Actor
from accounts.models import MemoryUser
from engine.models import Memory, Session, owned_by
from engine.port import Owner
from engine.registry import get_engine
from lifecycle import purge
from memories.models import Tombstone
from resources.models import Resource
from resources.services.deletion import delete_as


@dataclass(frozen=True, slots=True)
class Deletions:
    """Of one user: what lies in the trash, which of it was purged for good, and which files were deleted."""

    tombstones: list[Tombstone]
    purged: frozenset[str]
    resources: frozenset[str]


def of(user: MemoryUser) -> Deletions:
    tombstones = list(Tombstone.objects.filter(user=user, undone_at__isnull=True))
    closed = Session.objects.filter(user=user, deleted_at__isnull=False)
    scopes = set(closed.values_list("app_id", "project_id", "session_id"))
    purged = frozenset(
        one.pk
        for one in tombstones
        if (one.row_id is None if one.memory_id else (one.app_id, one.project_id, one.session_id) in scopes)
    )
    deleted = Resource.objects.filter(user=user, deleted_at__isnull=False)
    return Deletions(tombstones, purged, frozenset(deleted.values_list("pk", flat=True)))


def repeat(user: MemoryUser, deletions: Deletions, actor: Actor) -> None:
    """Deletes again what the rows that came in hold: call in their transaction, and `purge_again` after it."""
    back = Resource.objects.filter(user=user, deleted_at__isnull=True, pk__in=deletions.resources)
    for resource_id in back.values_list("pk", flat=True):
        delete_as(user.pk, user.user_id, resource_id, actor=actor)
    for tombstone in deletions.tombstones:
        _bury_again(user, tombstone)


def purge_again(user: MemoryUser, deletions: Deletions, actor: Actor) -> None:
    """Until then it lies in the trash, where the next purge finds it as well."""
    if deletions.purged:
        purge.purge_memory(deletions.purged, user_pk=user.pk, actor=actor)


def _bury_again(user: MemoryUser, tombstone: Tombstone) -> None:
    """Also where the archive has no such memory: an upstream may still hold it."""
    owner = Owner(user.pk, user.user_id, tombstone.app_id, tombstone.project_id)
    subject = {"memory_id": tombstone.memory_id} if tombstone.memory_id else {"session_id": tombstone.session_id}
    in_force = Tombstone.objects.filter(owned_by(owner), undone_at__isnull=True, **{"memory_id": "", **subject})
    if in_force.exists():
        return
    tombstone.user, tombstone.row = user, None
    if tombstone.memory_id:
        tombstone.row = Memory.objects.filter(owned_by(owner), memory_id=tombstone.memory_id).first()
    tombstone.save_base(raw=True, force_insert=True)  # raw: with its own time
    if tombstone.row:
        get_engine().hide(owner, tombstone.memory_id, tombstone.created_at)
    elif not tombstone.memory_id:
        get_engine().hide_session(owner, tombstone.session_id, tombstone.created_at)
