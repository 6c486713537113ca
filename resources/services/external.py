"""Register an external file: its row, attachment and ingestion. No copy of the file is kept.

`source_uri` is its permanent address and is recorded. `ingest_uri` is a one-time, often presigned address: it is passed
to the ingestion in memory and never stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.models import MemoryUser
from accounts.principal import Principal
from accounts.services import lock_named
from core.errors import FieldError, InvalidInput
from core.ids import new_resource_id, resource_session_id
from core.leases import new_holder
from core.url_policy import AddressPolicy, BadAddress, check_uri
from documents import mime_types
from documents.mime_types import ContentType
from documents.sniff import content_type_of
from resources import filenames, queries
from resources.models import Attachment, Resource
from resources.services.claims import RESERVATION, Handover, reserve
from resources.services.pool import IngestionPool
from resources.services.receiving import require_allowed
from resources.services.uploading import ingestion_pool, require_not_in_trash, wait_for_ingestion
from store.types import Owner

_UNDONE = {Resource.Status.PENDING, Resource.Status.INGESTING}


@dataclass(frozen=True, slots=True)
class Registration:
    """A caller's description of an external file.

    `sha256` is hex or empty; `content_type` is used only if MIME type and file name are unknown. `wait_seconds` is how
    long to wait for the ingestion (None: the setting).
    """

    filename: str
    source_uri: str
    ingest_uri: str | None = field(default=None, repr=False)
    mime_type: str | None = None
    content_type: ContentType | None = None
    size_bytes: int | None = None
    sha256: str = ""
    title: str | None = None
    description: str | None = None
    app_id: str = "default"
    project_id: str = "default"
    wait_seconds: float | None = None


def register(principal: Principal, registration: Registration, *, pool: IngestionPool | None = None) -> Resource:
    """Record the file and ingest it; return the row when the ingestion ends or the wait is over.

    The same digest in the same scope is the same resource. A failed one is ingested again, from the new `ingest_uri`.
    Raises: `InvalidInput` for addresses that must not be stored or read, `UnsupportedType`, `Conflict` if its session
    is in the trash.
    """
    _check_addresses(registration)
    _check_type(registration)
    owner = Owner(principal.user_pk, principal.user_id, registration.app_id, registration.project_id)
    resource, handover = _record_registration(principal, owner, registration, timezone.now())
    if resource.status not in _UNDONE:
        return resource
    given = () if handover is None else (handover,)
    future = (pool or ingestion_pool()).submit(resource.resource_id, owner.user_pk, *given)
    seconds = registration.wait_seconds
    if seconds is None:
        seconds = settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS
    return wait_for_ingestion(resource.resource_id, future, seconds)


def _check_addresses(registration: Registration) -> None:
    errors = list(_address_errors(registration))
    if errors:
        raise InvalidInput("; ".join(f"{error.field}: {error.message}" for error in errors), errors=errors)


def _address_errors(registration: Registration) -> Iterator[FieldError]:
    policy = AddressPolicy.from_settings()
    for name, uri in (("source_uri", registration.source_uri), ("ingest_uri", registration.ingest_uri)):
        try:
            if uri is not None:
                check_uri(uri, policy)
        except BadAddress as error:
            yield FieldError(name, str(error))


def _check_type(registration: Registration) -> None:
    """Refuse a type that is known to be unsupported. The content is checked when it is read."""
    known = _known_type(registration)
    if known is not None:
        require_allowed(known, "mime_type" if mime_types.normalise(registration.mime_type) else "filename")


def _known_type(registration: Registration) -> str | None:
    return mime_types.normalise(registration.mime_type) or mime_types.by_name(registration.filename)


def _record_registration(
    principal: Principal, owner: Owner, registration: Registration, now: datetime
) -> tuple[Resource, Handover | None]:
    """Return the row, and a handover unless it is done or another worker has it.

    The lock on the user serializes concurrent registrations.
    """
    with transaction.atomic():
        user = lock_named(owner.user_pk, owner.user_id)
        known = queries.registered(owner, registration.source_uri, registration.sha256)
        if known:
            require_not_in_trash(known)
        resource = known or _new_resource(user, registration, now)
        holder = reserve(known, now) if known else resource.lease_holder
        if holder is not None:
            _update(resource, registration, is_new=known is None)
            _record(principal, resource)
    handover = None if holder is None else Handover(holder, registration.ingest_uri)
    return Resource.objects.select_related("user").get(pk=resource.pk), handover


def _new_resource(user: MemoryUser, registration: Registration, now: datetime) -> Resource:
    """Return a new row, already reserved: another worker would not have its `ingest_uri`."""
    resource_id = new_resource_id()
    return Resource(
        resource_id=resource_id,
        user=user,
        app_id=registration.app_id,
        project_id=registration.project_id,
        session_id=resource_session_id(user.user_id, resource_id),
        origin=Resource.Origin.EXTERNAL,
        status=Resource.Status.INGESTING,
        lease_holder=new_holder(),
        leased_until=now + RESERVATION,
    )


def _update(resource: Resource, registration: Registration, *, is_new: bool) -> None:
    """Store the caller's latest fields, unless the engine already received the file with the former ones."""
    fields = _fields(registration)
    if is_new:
        for name, value in fields.items():
            setattr(resource, name, value)
        resource.save(force_insert=True)
    elif resource.flush_sent_at is None:
        Resource.objects.filter(pk=resource.pk).update(**fields)
        Attachment.objects.filter(resource=resource).delete()
    else:
        return
    _attach(resource, fields)


def _fields(registration: Registration) -> dict[str, Any]:
    filename = filenames.clean(registration.filename, registration.mime_type or "")
    known = _known_type(registration)
    return {
        "filename": filename,
        "title": registration.title,
        "description": registration.description,
        "content_type": content_type_of(known, filename) if known else registration.content_type or "doc",
        "mime_type": (registration.mime_type or "").partition(";")[0].strip().lower() or None,
        "size_bytes": registration.size_bytes,
        "sha256": registration.sha256,
        "source_uri": registration.source_uri,
    }


def _attach(resource: Resource, fields: dict[str, Any]) -> None:
    Attachment.objects.create(
        user_id=resource.user_id,
        app_id=resource.app_id,
        project_id=resource.project_id,
        session_id=resource.session_id,
        resource=resource,
        source=Attachment.Source.EXTERNAL_RESOURCE,
        type=fields["content_type"],
        name=fields["filename"],
        internal_uri=fields["source_uri"],
        sha256=fields["sha256"],
    )


def _record(principal: Principal, resource: Resource) -> None:
    record(
        Actor.key(principal),
        "resource.register",
        subject_type="resource",
        subject_id=resource.resource_id,
        user_id=principal.user_id,
    )
