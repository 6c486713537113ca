"""Deleting a resource for good: the row first, then what the engine keeps, then the file."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.principal import Principal
from engine.port import Engine, EngineError
from engine.registry import get_engine
from memory_gateway.core.errors import NotFound
from resources import queries, storage
from resources.models import Attachment, Resource
from resources.services.claims import retry_delay

logger = logging.getLogger("memory_gateway.resources")

_LONGEST_RETRY = timedelta(hours=1)


def delete(principal: Principal, resource_id: str, *, engine: Engine | None = None) -> Resource:
    """Deletes one of the caller's resources; it cannot be restored.

    From the first commit it is gone for everybody; what a crash or an outage leaves of it stays owed in the row.
    Errors: `NotFound` for unknown, deleted and other people's resources alike.
    """
    return delete_as(principal.user_pk, principal.user_id, resource_id, actor=Actor.key(principal), engine=engine)


def delete_as(user_pk: UUID, user_id: str, resource_id: str, *, actor: Actor, engine: Engine | None = None) -> Resource:
    """The same in somebody's name. Errors: `NotFound`."""
    with transaction.atomic():
        _mark_deleted(user_pk, resource_id, timezone.now())
        Attachment.objects.filter(resource_id=resource_id).delete()
        record(actor, "resource.delete", subject_type="resource", subject_id=resource_id, user_id=user_id)
    return finish_deletion(resource_id, engine=engine)


def finish_deletion(resource_id: str, *, engine: Engine | None = None) -> Resource:
    """Clears away what a deleted resource left; doing it twice is fine. A failure stays owed, with a time to retry."""
    resource = Resource.objects.select_related("user").get(pk=resource_id)
    is_forgotten = _forget(resource, engine or get_engine())
    is_removed = _remove_file(resource)
    if is_forgotten and is_removed:
        resource.cleanup_owed, resource.storage_path, resource.retry_at = False, "", None
    else:
        resource.attempts += 1
        resource.retry_at = timezone.now() + retry_delay(resource.attempts, _LONGEST_RETRY)
    resource.save(update_fields=["cleanup_owed", "storage_path", "retry_at", "attempts"])
    return resource


def _mark_deleted(user_pk: UUID, resource_id: str, now: datetime) -> None:
    changed = queries.live_resource(user_pk, resource_id).update(
        status=Resource.Status.DELETED,
        deleted_at=now,
        updated_at=now,
        cleanup_owed=True,
        attempts=0,
        retry_at=None,
        lease_holder="",
        leased_until=None,
    )
    if not changed:
        raise NotFound("There is no such resource.")


def _forget(resource: Resource, engine: Engine) -> bool:
    """Whether nothing more is owed to the engine; what it refuses for good is not asked again."""
    try:
        engine.delete(resource.owner, resource.session_id)
    except EngineError as error:
        logger.warning("The engine did not forget %s: %s", resource.session_id, error.detail)
        return error.is_permanent
    return True


def _remove_file(resource: Resource) -> bool:
    try:
        if resource.storage_path:
            storage.remove(resource.storage_path)
    except OSError as error:
        logger.warning("The file of %s was not removed: %s", resource.resource_id, error)
        return False
    return True
