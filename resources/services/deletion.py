"""Delete a resource permanently: the row first, then its memories in the engine, then the file."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.principal import Principal
from core.errors import EngineError, NotFound
from engines.port import Engine
from engines.registry import get_engine
from resources import queries, storage
from resources.models import Attachment, Resource
from resources.services.claims import retry_delay

logger = logging.getLogger("memory_gateway.resources")

_LONGEST_RETRY = timedelta(hours=1)


def delete(principal: Principal, resource_id: str, *, engine: Engine | None = None) -> Resource:
    """Delete one of the caller's resources permanently.

    It is invisible from the first commit on. Cleanup that a crash or an outage interrupts stays pending in the row.
    Raises: `NotFound` for unknown and deleted resources and those of other users.
    """
    return delete_as(principal.user_pk, principal.user_id, resource_id, actor=Actor.key(principal), engine=engine)


def delete_as(user_pk: UUID, user_id: str, resource_id: str, *, actor: Actor, engine: Engine | None = None) -> Resource:
    """Delete a user's resource for an operator. Raises: `NotFound`."""
    with transaction.atomic():
        _mark_deleted(user_pk, resource_id, timezone.now())
        Attachment.objects.filter(resource_id=resource_id).delete()
        record(actor, "resource.delete", subject_type="resource", subject_id=resource_id, user_id=user_id)
    return finish_deletion(resource_id, engine=engine)


def finish_deletion(resource_id: str, *, engine: Engine | None = None) -> Resource:
    """Clean up a deleted resource; idempotent. A failure stays pending with a retry time."""
    resource = Resource.objects.select_related("user").get(pk=resource_id)
    is_deleted_in_engine = _delete_from_engine(resource, engine or get_engine())
    is_removed = _remove_file(resource)
    if is_deleted_in_engine and is_removed:
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


def _delete_from_engine(resource: Resource, engine: Engine) -> bool:
    """Delete the session in the engine; return False if this must be retried."""
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
