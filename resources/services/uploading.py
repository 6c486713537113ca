"""Upload a file: the file first, then the row, then its ingestion; one undeleted resource per content."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import cache
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.principal import Principal
from accounts.services import lock_named
from core.errors import Conflict, NoSpace, Unauthenticated
from core.ids import new_resource_id, resource_session_id
from documents.sniff import content_type_of, extension_of
from engines.registry import get_engine
from resources import queries, storage
from resources.models import Attachment, Resource
from resources.services.claims import reopen
from resources.services.ingestion import try_ingest
from resources.services.pool import IngestionPool
from resources.services.receiving import IncomingFile
from store.models import Session, owned_by
from store.types import Owner

POLL_SECONDS = 0.1
LOCAL_INGESTION_SLOTS, EXTERNAL_INGESTION_SLOTS = 2, 8
"""The embedded engine reads documents in child processes that use a CPU core; an external engine only means waiting."""
_MAX_RACES = 5
_UNDONE = {Resource.Status.PENDING, Resource.Status.INGESTING}


@dataclass(frozen=True, slots=True)
class Upload:
    """A caller's description of an upload. `wait_seconds`: how long to wait for its ingestion (None: the setting)."""

    app_id: str = "default"
    project_id: str = "default"
    title: str | None = None
    description: str | None = None
    wait_seconds: float | None = None


def ingestion_pool() -> IngestionPool:
    """Return this process's pool, which ingests with the process's engine."""
    return _pool(EXTERNAL_INGESTION_SLOTS if get_engine().is_external else LOCAL_INGESTION_SLOTS)


@cache
def _pool(slots: int) -> IngestionPool:
    return IngestionPool(try_ingest, slots)


def upload(
    principal: Principal, incoming: IncomingFile, metadata: Upload, *, pool: IngestionPool | None = None
) -> Resource:
    """Store a received file and ingest it; return the row when the ingestion ends or the wait is over.

    The same bytes in the same scope are the same resource: an existing one is returned, and ingested again if it
    failed. Raises: `NoSpace` for quotas and a full disk, `Conflict` if its session is in the trash, `Unauthenticated`
    for a user who was erased meanwhile.
    """
    owner = Owner(principal.user_pk, principal.user_id, metadata.app_id, metadata.project_id)
    return upload_as(owner, incoming, metadata, actor=Actor.key(principal), pool=pool)


def upload_as(
    owner: Owner, incoming: IncomingFile, metadata: Upload, *, actor: Actor, pool: IngestionPool | None = None
) -> Resource:
    """Upload a file for a user, in the scope of `owner`."""
    resource = _get_or_create(actor, owner, incoming, metadata)
    if not (reopen(resource.resource_id, timezone.now()) or resource.status in _UNDONE):
        return resource
    future = (pool or ingestion_pool()).submit(resource.resource_id, owner.user_pk)
    seconds = metadata.wait_seconds
    if seconds is None:
        seconds = settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS
    return wait_for_ingestion(resource.resource_id, future, seconds)


def wait_for_ingestion(
    resource_id: str, future: Future[None], seconds: float, *, clock: Callable[[], float] = time.monotonic
) -> Resource:
    """Return the row once its ingestion has ended, in this or another process, or after `seconds`."""
    deadline = clock() + seconds
    wait([future], timeout=seconds)
    while True:
        resource = Resource.objects.select_related("user").get(pk=resource_id)
        remaining = deadline - clock()
        if resource.status not in _UNDONE or remaining <= 0:
            return resource
        time.sleep(min(POLL_SECONDS, remaining))


def _get_or_create(actor: Actor, owner: Owner, incoming: IncomingFile, metadata: Upload) -> Resource:
    """Return the existing resource of these bytes or a new one. The unique constraint settles races."""
    for _ in range(_MAX_RACES):
        if (known := queries.same_content(owner, incoming.sha256)) is not None:
            return _reuse(known, incoming)
        try:
            return _create(actor, owner, incoming, metadata)
        except IntegrityError:
            continue
    raise Conflict("This file is being uploaded and deleted again and again at this moment: try again.")


def _reuse(known: Resource, incoming: IncomingFile) -> Resource:
    """Return the existing resource; restore its file if that is missing on disk."""
    require_not_in_trash(known)
    if not storage.resolve(known.storage_path).exists():
        incoming.keep_as(known.storage_path)
    return known


def require_not_in_trash(known: Resource) -> None:
    """Check that the resource's session is not in the trash, where it would be purged.

    Raises: `Conflict`.
    """
    session = Session.objects.filter(owned_by(known.owner), session_id=known.session_id, hidden_at__isnull=False)
    if session.exists():
        raise Conflict(f"This file is in the trash with its session {known.session_id}: restore the session first.")


def _create(actor: Actor, owner: Owner, incoming: IncomingFile, metadata: Upload) -> Resource:
    resource = _new_resource(owner, incoming, metadata)
    require_quota(owner.user_pk, incoming.size_bytes)
    incoming.keep_as(resource.storage_path)
    try:
        return _insert(actor, owner, resource)
    except (IntegrityError, NoSpace, Unauthenticated):
        # After any other failure the row may exist; if not, the worker removes the file.
        incoming.take_back(resource.storage_path)
        raise


def _new_resource(owner: Owner, incoming: IncomingFile, metadata: Upload) -> Resource:
    resource_id = new_resource_id()
    return Resource(
        resource_id=resource_id,
        user_id=owner.user_pk,
        app_id=owner.app_id,
        project_id=owner.project_id,
        session_id=resource_session_id(owner.user_id, resource_id),
        filename=incoming.filename,
        title=metadata.title,
        description=metadata.description,
        content_type=content_type_of(incoming.mime_type, incoming.filename),
        mime_type=incoming.mime_type,
        size_bytes=incoming.size_bytes,
        sha256=incoming.sha256,
        storage_path=storage.storage_path(owner.user_pk, resource_id, extension_of(incoming.mime_type)),
    )


def _insert(actor: Actor, owner: Owner, resource: Resource) -> Resource:
    with transaction.atomic():
        # The lock serializes quota checks of one user's concurrent uploads.
        resource.user = lock_named(owner.user_pk, owner.user_id)
        require_quota(owner.user_pk, resource.size_bytes or 0)
        resource.save(force_insert=True)
        _attach(resource)
        record(
            actor,
            "resource.upload",
            subject_type="resource",
            subject_id=resource.resource_id,
            user_id=owner.user_id,
        )
    return resource


def _attach(resource: Resource) -> None:
    Attachment.objects.create(
        user_id=resource.user_id,
        app_id=resource.app_id,
        project_id=resource.project_id,
        session_id=resource.session_id,
        resource=resource,
        source=Attachment.Source.UPLOAD,
        type=resource.content_type,
        name=resource.filename,
        internal_uri=storage.resolve(resource.storage_path).as_uri(),
        sha256=resource.sha256,
    )


def require_quota(user_pk: UUID, size_bytes: int, files: int = 1) -> None:
    """Check the quotas for `files` more files of `size_bytes` in all. Raises: `NoSpace`."""
    max_files: int = settings.MEMORY_GATEWAY_QUOTA_FILES
    max_bytes: int = settings.MEMORY_GATEWAY_QUOTA_BYTES
    if not max_files and not max_bytes:
        return
    used = queries.usage_of(user_pk)
    if max_files and used.files + files > max_files:
        raise NoSpace(
            f"You have {used.files} files, and a user may have {max_files} (MEMORY_GATEWAY_QUOTA_FILES): "
            "delete some first."
        )
    if max_bytes and used.size_bytes + size_bytes > max_bytes:
        raise NoSpace(
            f"You have {used.size_bytes} bytes of files, this one has {size_bytes}, and a user may have {max_bytes} "
            "(MEMORY_GATEWAY_QUOTA_BYTES): delete some first."
        )
