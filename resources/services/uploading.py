"""Upload a file: the file first, then the row, then its ingestion; one undeleted resource per content."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.controls import Paused, require_not_paused
from accounts.expiry import lower
from accounts.services import lock_caller
from core.background.tasks import wait
from core.errors import Conflict, NoSpace, Unauthenticated
from core.events import publish
from core.ids import new_resource_id, resource_session_id
from core.messages import Translatable as _
from core.persistence.files import stored_files
from core.redaction import masked_data
from documents.mime_types import content_type_of, extension_of
from resources import queries, storage
from resources.models import Resource
from resources.services import storage_binding
from resources.services.claims import reopen
from resources.services.ingestion import enqueue_ingestion
from resources.services.receiving import IncomingFile
from store import expiry, sessions
from store.admission import Offer, require, texts_in
from store.models import Session, State, owned_by, owner_columns
from store.types import TAGS, Owner, labels_of

POLL_SECONDS = 0.1
_MAX_RACES = 5


@dataclass(frozen=True, slots=True)
class Upload:
    """A caller's description of an upload, with its tags and metadata by name.

    `wait_seconds` is the longest wait for its ingestion (None: the setting).
    """

    title: str | None = None
    description: str | None = None
    labels: Mapping[str, Any] = field(default_factory=dict)
    wait_seconds: float | None = None


def upload(owner: Owner, incoming: IncomingFile, metadata: Upload, *, actor: Actor) -> Resource:
    """Store a received file in the owner's scope and ingest it; return the row when that ends or the wait is over.

    The same bytes in the same scope are the same resource: an existing one is returned, and ingested again if it
    failed. Raises: `NoSpace` for quotas and a full disk, `StorageUnavailable`, `Conflict` if its session is in the
    trash, `Unauthenticated` for a user who was erased meanwhile, `Paused`, `NotKept` for its names.
    """
    require_not_paused(owner.user_pk, "files")
    named = [incoming.filename, metadata.title, metadata.description, metadata.labels]
    require(owner.user_pk, Offer("files", others=tuple(texts_in(named))))
    resource = _get_or_create(actor, owner, incoming, metadata)
    if resource.status == Resource.Status.FAILED:
        reopen(Resource.objects.filter(pk=resource.pk), timezone.now())
    elif not resource.is_pending:
        return resource
    return ingest_and_wait(resource, metadata.wait_seconds)


def ingest_and_wait(resource: Resource, seconds: float | None) -> Resource:
    """Start the ingestion; return the row when that ends, in any process, or after `seconds` (None: the setting)."""
    seconds = settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS if seconds is None else seconds
    deadline = time.monotonic() + seconds
    wait(enqueue_ingestion(resource), seconds)
    while True:
        resource = Resource.objects.select_related("user").get(pk=resource.pk)
        remaining = deadline - time.monotonic()
        if not resource.is_pending or remaining <= 0:
            return resource
        time.sleep(min(POLL_SECONDS, remaining))


def _get_or_create(actor: Actor, owner: Owner, incoming: IncomingFile, metadata: Upload) -> Resource:
    """Return the existing resource of these bytes or a new one. The unique constraint decides races."""
    storage_binding.require_unchanged()
    for _attempt in range(_MAX_RACES):
        if (known := queries.same_content(owner, incoming.sha256)) is not None:
            require_not_in_trash(known)
            if not stored_files().exists(known.file_key):
                stored_files().put(incoming.path, known.file_key)
            return known
        try:
            return _create(actor, owner, incoming, metadata)
        except IntegrityError:
            continue
    raise Conflict(_("Other requests are uploading and deleting the same file. Repeat the request."))


def require_not_in_trash(known: Resource) -> None:
    """Check that the resource's session is not in the trash, which would purge it. Raises: `Conflict`."""
    session = Session.objects.filter(owned_by(known.owner), session_id=known.session_id)
    if session.exclude(state=State.LIVE).exists():
        raise Conflict(
            _(
                "The file is in the trash with its session %(session)s. Restore the session first.",
                session=known.session_id,
            )
        )


def _create(actor: Actor, owner: Owner, incoming: IncomingFile, metadata: Upload) -> Resource:
    resource = _new_resource(owner, incoming, metadata)
    require_quota(owner.user_pk, incoming.size_bytes)
    stored_files().put(incoming.path, resource.file_key)
    try:
        with transaction.atomic():
            # The lock serializes quota checks of one user's concurrent uploads.
            resource.user = lock_caller(owner.user_pk, owner.user_id)
            require_not_paused(owner.user_pk, "files")
            require_quota(owner.user_pk, incoming.size_bytes)
            resource.save(force_insert=True)
            resource.new_attachment().save()
            set_default_expiry(resource)
            subject = resource.resource_id
            record(actor, "resource.upload", subject, user_id=owner.user_id)
            publish("resource.created", owner.user_pk, **resource.event_data)
    except (IntegrityError, NoSpace, Unauthenticated, Paused):
        # After any other failure the row may exist. If it does not, the worker removes the file.
        stored_files().undo_put(incoming.path, resource.file_key)
        raise
    return resource


def _new_resource(owner: Owner, incoming: IncomingFile, metadata: Upload) -> Resource:
    resource_id = new_resource_id()
    return Resource(
        resource_id=resource_id,
        **owner_columns(owner),
        session_id=resource_session_id(owner.session_name, resource_id),
        filename=incoming.filename,
        title=metadata.title,
        description=metadata.description,
        labels=stored_labels(metadata.labels),
        content_type=content_type_of(incoming.mime_type, incoming.filename),
        mime_type=incoming.mime_type,
        size_bytes=incoming.size_bytes,
        sha256=incoming.sha256,
        storage_path=storage.storage_path(owner.user_pk, resource_id, extension_of(incoming.mime_type)),
    )


def stored_labels(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return tags and metadata as a resource stores them, without values to mask; None without any."""
    return labels_of(masked_data(given)) or None


def set_default_expiry(resource: Resource) -> None:
    """Set when a new file expires, by the defaults for its tags. Call in the transaction that saves it."""
    expires_at = expiry.default_of_file(resource.owner, (resource.labels or {}).get(TAGS, ()))
    if expires_at is not None:
        lower(resource.user_id, expires_at)
        sessions.set_expiry(sessions.locked(resource.owner, resource.session_id), expires_at)


def require_quota(user_pk: UUID, size_bytes: int, files: int = 1) -> None:
    """Check the quotas for `files` more files of `size_bytes` in all. Raises: `NoSpace`."""
    max_files: int = settings.MEMORY_GATEWAY_QUOTA_FILES
    max_bytes: int = settings.MEMORY_GATEWAY_QUOTA_BYTES
    if not max_files and not max_bytes:
        return
    used = queries.usage_of(user_pk)
    if max_files and used.files + files > max_files:
        raise NoSpace(
            _(
                "You have %(files)s files, and the limit is %(most)s. Files in the trash count until they are purged. "
                "Delete some, or ask the operator to purge your trash.",
                files=used.files,
                most=max_files,
            )
        )
    if max_bytes and used.size_bytes + size_bytes > max_bytes:
        raise NoSpace(
            _(
                "You have %(held)s bytes of files, this one has %(size)s, and the limit is %(most)s. Files in the "
                "trash count until they are purged. Delete some, or ask the operator to purge your trash.",
                held=used.size_bytes,
                size=size_bytes,
                most=max_bytes,
            )
        )
