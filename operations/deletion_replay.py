"""What a user deleted after an archive was made stays deleted where the archive comes in their place."""

from __future__ import annotations

from dataclasses import dataclass

from accounts.audit import Actor
from accounts.models import MemoryUser
from memories.models import Tombstone
from memories.services import decisions
from operations import purge
from resources.models import Resource
from resources.services.deletion import delete_as
from store.models import Session


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
    decisions.reinstate(user, deletions.tombstones)


def purge_again(user: MemoryUser, deletions: Deletions, actor: Actor) -> None:
    """Until then it lies in the trash, where the next purge finds it as well."""
    if deletions.purged:
        purge.purge_memory(deletions.purged, user_pk=user.pk, actor=actor)
