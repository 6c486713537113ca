"""Delete resources: move them to the trash, restore them, and purge them.

A resource in the trash keeps its row, file, attachments and memories. A tombstone that follows from its own hides its
session, and ends with it; a session that was also deleted by itself stays so. A resource expires at the time of its
session.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.models import MemoryUser
from accounts.services import lock_caller
from core.background.tasks import enqueue
from core.errors import Conflict, EngineError, InvalidInput, NotFound, StorageUnavailable, existing
from core.events import publish
from core.messages import Translatable as _
from core.persistence.files import stored_files
from engines.registry import get_engine
from resources import queries
from resources.models import Attachment, Resource
from resources.services.claims import retry_delay
from resources.states import RESOURCES
from store import derived_memories, expiry, sessions
from store.ledger import ENDED_FIELDS, EXPIRY, Tombstone
from store.models import IS_PURGED, Session, State, owned_by, owner_columns
from store.port import Engine
from store.types import KEPT, NewExpiry

logger = logging.getLogger("memory_gateway.resources")

IN_TRASH: Final = Q(state=State.TRASHED)
_LONGEST_RETRY = timedelta(hours=1)
_INTERRUPTED: Final[Mapping[str, Any]] = {
    "status": Case(When(status="ingesting", then=Value("pending")), default=F("status")),
    "lease_holder": "",
    "leased_until": None,
    "sealed_ingest_uri": "",
}
"""The columns with which a running ingestion ends without effect, and starts again after a restore."""


def delete_as(user_pk: UUID, user_id: str, resource_id: str, *, actor: Actor, at: datetime | None = None) -> Resource:
    """Move a user's resource to the trash. `at` is the time of an earlier deletion that is repeated.

    A running ingestion ends without effect. A resource that is in the trash already gets the time of this deletion, so
    that undoing the earlier one does not restore it.

    Raises: `NotFound` for resources that are unknown, deleted or another user's, `Unauthenticated` for a user who was
    erased meanwhile.
    """
    with transaction.atomic():
        lock_caller(user_pk, user_id, no_key=True)
        resource = queries.live_resource(user_pk, resource_id).first()
        is_live = resource is not None
        if resource is None:
            resource = existing(queries.deleted_resource(user_pk, resource_id), _("There is no such resource."))
        record(actor, "resource.delete", resource_id, user_id=user_id)
        if is_live:
            _delete(resource, actor, at or timezone.now())
            publish("resource.deleted", user_pk, **resource.event_data)
        else:
            _delete_again(resource, actor, timezone.now())
    if not is_live:
        raise NotFound(_("There is no such resource."))
    return resource


def expire(user: MemoryUser, ended: Sequence[Session]) -> list[Session]:
    """Move the resources of sessions whose time has passed to the trash; return the sessions that have none.

    Call with the user locked.
    """
    names = [one.session_id for one in ended]
    found = Resource.objects.filter(user=user, session_id__in=names, state=State.LIVE).select_related("user")
    resources = {(one.app_id, one.project_id, one.session_id): one for one in (found if names else ())}
    for resource in resources.values():
        record(EXPIRY, "resource.expire", resource.pk, user_id=user.user_id)
        _delete(resource, EXPIRY, timezone.now())
        publish("resource.expired", user.pk, **resource.event_data)
    return [one for one in ended if (one.app_id, one.project_id, one.session_id) not in resources]


def _delete(resource: Resource, actor: Actor, at: datetime) -> None:
    """Move a resource to the trash, with its session."""
    record_deletion(resource, actor, at)
    Resource.objects.filter(pk=resource.pk).update(updated_at=timezone.now(), **_INTERRUPTED)
    _refresh(resource)
    if resource.status == Resource.Status.PENDING:
        # The interrupted ingestion may still write to the session.
        with connection.cursor() as cursor:
            sessions.create(cursor, resource.owner, resource.session_id)
    _hide_session(resource)


def record_deletion(resource: Resource, actor: Actor, at: datetime) -> Tombstone:
    """Save the tombstone of a resource, unless it has one."""
    tombstone, _created = Tombstone.ledger.get_or_create(
        resource_id=resource.pk,
        undone_at=None,
        defaults={
            **owner_columns(resource.owner),
            "actor_kind": actor.kind,
            "actor": actor.name,
            "created_at": at,
        },
    )
    return tombstone


def _hide_session(resource: Resource) -> None:
    """Hide the session of a deleted resource, if it exists, as long as the resource is deleted."""
    if not Session.objects.filter(~IS_PURGED, owned_by(resource.owner), session_id=resource.session_id).exists():
        return
    deletion = Tombstone.ledger.get(resource_id=resource.pk, undone_at=None)
    Tombstone.ledger.get_or_create(
        **owner_columns(resource.owner),
        session_id=resource.session_id,
        kind=Tombstone.Kind.RESOURCE_DELETED,
        cause=deletion.pk,
        undone_at=None,
        defaults={
            "actor_kind": deletion.actor_kind,
            "actor": deletion.actor,
            "created_at": deletion.created_at,
        },
    )
    derived_memories.follow_sessions(resource.owner, [resource.session_id])


def _delete_again(resource: Resource, actor: Actor, at: datetime) -> None:
    """Move the time of a deletion, with that of the session that it hid."""
    tombstone = record_deletion(resource, actor, at)
    Tombstone.ledger.filter(Q(pk=tombstone.pk) | Q(cause=tombstone.pk)).update(created_at=at)
    Resource.objects.filter(pk=resource.pk).update(updated_at=at)
    _refresh(resource)
    _hide_session(resource)


def _refresh(resource: Resource) -> None:
    """Set the columns of a resource, here and in the database, to what its open tombstone says."""
    RESOURCES.refresh(Resource.objects.filter(pk=resource.pk))
    resource.refresh_from_db()


def deletion_of(resource: Resource) -> list[str]:
    """Return the deletion of a resource in the trash as plain JSON, for `undo_deletions`."""
    return [resource.pk, resource.state_since.isoformat()] if resource.state_since else []


def undo_deletions(deletions: Iterable[Sequence[str]], *, actor: Actor) -> int:
    """Restore resources from the trash; return their number. Those that were deleted again or expired since stay.

    Raises: `Conflict`, as `restore_as`.
    """
    undone = 0
    for resource_id, at in deletions:
        for found in Resource.objects.filter(pk=resource_id).select_related("user"):
            with suppress(NotFound, InvalidInput):
                deleted_at = datetime.fromisoformat(at)
                restore_as(found.user_id, found.user.user_id, resource_id, actor=actor, deleted_at=deleted_at)
                undone += 1
    return undone


def restore_as(
    user_pk: UUID,
    user_id: str,
    resource_id: str,
    *,
    actor: Actor,
    deleted_at: datetime | None = None,
    expires_at: NewExpiry = KEPT,
) -> Resource:
    """Restore a user's resource from the trash. An ingestion that the deletion interrupted starts again.

    With `deleted_at`, only if it was deleted then and not again since.

    Raises: `NotFound` for resources that are not in the user's trash, `Conflict` if the user has the same file as
    another resource by now, `InvalidInput` for a time that has passed, and without one for a resource that has expired,
    `Unauthenticated` for a user who was erased meanwhile.
    """
    expiry.check(expires_at)
    with transaction.atomic():
        lock_caller(user_pk, user_id, no_key=True)
        found = queries.deleted_resource(user_pk, resource_id).select_for_update(of=("self",), no_key=True)
        if deleted_at is not None:
            found = found.filter(state_since=deleted_at)
        resource = existing(found, _("There is no such resource in the trash."))
        _require_no_other(resource)
        _set_expiry(resource, expires_at)
        for tombstone in Tombstone.ledger.filter(resource_id=resource.pk, undone_at__isnull=True):
            tombstone.end(actor)
            tombstone.save(update_fields=ENDED_FIELDS)
            derived_memories.end_followers([tombstone])
        Resource.objects.filter(pk=resource.pk).update(updated_at=timezone.now())
        _refresh(resource)
        derived_memories.follow_sessions(resource.owner, [resource.session_id])
        record(actor, "resource.restore", resource_id, user_id=user_id)
        publish("resource.restored", user_pk, **resource.event_data)
        if resource.status == Resource.Status.PENDING:
            enqueue("ingest_pending")
    return resource


def purge(resource_id: str, *, actor: Actor, condition: Q = IN_TRASH, engine: Engine | None = None) -> Resource | None:
    """Delete a resource permanently, with its file and its memories.

    Return None if it does not meet the condition, or is purged already. It disappears with the first commit. The row's
    `retry_at` records a cleanup that a crash or an outage interrupts.
    """
    with transaction.atomic():
        now = timezone.now()
        found = Resource.objects.filter(condition, pk=resource_id).exclude(state=State.PURGED)
        changed = found.update(
            state=State.PURGED,
            state_since=Coalesce("state_since", Value(now)),
            updated_at=now,
            attempts=0,
            retry_at=now,
            reading=None,
            labels=None,
            **_INTERRUPTED,
        )
        if not changed:
            return None
        Attachment.objects.filter(resource_id=resource_id).delete()
        resource = Resource.objects.select_related("user").get(pk=resource_id)
        record_deletion(resource, actor, now)
        record(actor, "resource.purge", resource_id, user_id=resource.user.user_id)
    return finish_deletion(resource_id, engine=engine)


def finish_deletion(resource_id: str, *, engine: Engine | None = None) -> Resource:
    """Clean up a purged resource; idempotent. A failure leaves the time of the next try in `retry_at`."""
    resource = Resource.objects.select_related("user").get(pk=resource_id)
    is_done = True
    try:
        (engine or get_engine()).delete(resource.owner, resource.session_id)
    except EngineError as error:
        logger.warning("The engine could not delete %s: %s", resource.session_id, error.detail)
        is_done = error.is_permanent
    try:
        if resource.storage_path:
            stored_files().remove(resource.file_key)
    except (OSError, StorageUnavailable) as error:
        logger.warning("The file of %s could not be removed: %s", resource.resource_id, error)
        is_done = False
    if is_done:
        resource.storage_path, resource.retry_at = "", None
    else:
        resource.attempts += 1
        resource.retry_at = timezone.now() + retry_delay(resource.attempts, _LONGEST_RETRY)
    resource.save(update_fields=["storage_path", "retry_at", "attempts"])
    return resource


def _set_expiry(resource: Resource, expires_at: NewExpiry) -> None:
    """Set when a resource expires. Raises: `InvalidInput` if its time has passed and is kept."""
    session = Session.objects.filter(~IS_PURGED, owned_by(resource.owner), session_id=resource.session_id)
    if expires_at is not KEPT:
        session.update(expires_at=expires_at)
    elif any(map(expiry.has_ended, session.values_list("expires_at", flat=True))):
        raise InvalidInput.of_field("expires_at", expiry.NEEDS_EXPIRY)


def _require_no_other(resource: Resource) -> None:
    """Check that no undeleted resource has the same content. Raises: `Conflict`."""
    other = queries.same_content(resource.owner, resource.sha256, resource.origin) if resource.sha256 else None
    if other is not None:
        raise Conflict(
            _(
                "The same file was added again as %(resource)s. Use that resource, or delete it before you restore "
                "this one.",
                resource=other.resource_id,
            )
        )
