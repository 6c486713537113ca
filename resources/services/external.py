"""A file that lies elsewhere, registered: its row, its attachment and its ingestion; no copy of it is kept.

`source_uri` is where it really is and stays on record. `ingest_uri` is where it can be read this once, often a
presigned address: it goes to the ingestion in memory and is written nowhere.
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
    """What the caller says about a file. `sha256` is hex or empty; `content_type` counts only where MIME type and file
    name say nothing. `wait_seconds` is how long he waits for the ingestion (None: the setting).
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


def register(principal: Principal, said: Registration, *, pool: IngestionPool | None = None) -> Resource:
    """Records the file and has it ingested; returns the row as it is when the wait ends.

    The same digest in the same scope is the same resource. One that failed is ingested again, from the new
    `ingest_uri`. Errors: `InvalidInput` for addresses that must not be kept or reached, `UnsupportedType`, `Conflict`
    where its session is in the trash.
    """
    _check_addresses(said)
    _check_type(said)
    owner = Owner(principal.user_pk, principal.user_id, said.app_id, said.project_id)
    resource, handover = _taken_in(principal, owner, said, timezone.now())
    if resource.status not in _UNDONE:
        return resource
    given = () if handover is None else (handover,)
    future = (pool or ingestion_pool()).submit(resource.resource_id, owner.user_pk, *given)
    seconds = settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS if said.wait_seconds is None else said.wait_seconds
    return wait_for_ingestion(resource.resource_id, future, seconds)


def _check_addresses(said: Registration) -> None:
    errors = list(_address_errors(said))
    if errors:
        raise InvalidInput("; ".join(f"{error.field}: {error.message}" for error in errors), errors=errors)


def _address_errors(said: Registration) -> Iterator[FieldError]:
    policy = AddressPolicy.from_settings()
    for name, uri in (("source_uri", said.source_uri), ("ingest_uri", said.ingest_uri)):
        try:
            if uri is not None:
                check_uri(uri, policy)
        except BadAddress as error:
            yield FieldError(name, str(error))


def _check_type(said: Registration) -> None:
    """What is known beforehand to be refused is refused at once; the bytes are looked at when they are read."""
    known = _known_type(said)
    if known is not None:
        require_allowed(known, "mime_type" if mime_types.normalise(said.mime_type) else "filename")


def _known_type(said: Registration) -> str | None:
    return mime_types.normalise(said.mime_type) or mime_types.by_name(said.filename)


def _taken_in(
    principal: Principal, owner: Owner, said: Registration, now: datetime
) -> tuple[Resource, Handover | None]:
    """The row, and what its ingestion needs unless there is nothing to do or somebody else does it.

    The lock on the user makes registrations at the same moment one after the other.
    """
    with transaction.atomic():
        user = lock_named(owner.user_pk, owner.user_id)
        known = queries.registered(owner, said.source_uri, said.sha256)
        if known:
            require_not_in_trash(known)
        resource = known or _new_resource(user, said, now)
        holder = reserve(known, now) if known else resource.lease_holder
        if holder is not None:
            _write(resource, said, is_new=known is None)
            _record(principal, resource)
    handover = None if holder is None else Handover(holder, said.ingest_uri)
    return Resource.objects.select_related("user").get(pk=resource.pk), handover


def _new_resource(user: MemoryUser, said: Registration, now: datetime) -> Resource:
    """Reserved from the first moment: whoever else found it would have no `ingest_uri`."""
    resource_id = new_resource_id()
    return Resource(
        resource_id=resource_id,
        user=user,
        app_id=said.app_id,
        project_id=said.project_id,
        session_id=resource_session_id(user.user_id, resource_id),
        origin=Resource.Origin.EXTERNAL,
        status=Resource.Status.INGESTING,
        lease_holder=new_holder(),
        leased_until=now + RESERVATION,
    )


def _write(resource: Resource, said: Registration, *, is_new: bool) -> None:
    """The caller's latest words, unless the engine has the file under the former ones already."""
    words = _words(said)
    if is_new:
        for name, value in words.items():
            setattr(resource, name, value)
        resource.save(force_insert=True)
    elif resource.flush_sent_at is None:
        Resource.objects.filter(pk=resource.pk).update(**words)
        Attachment.objects.filter(resource=resource).delete()
    else:
        return
    _attach(resource, words)


def _words(said: Registration) -> dict[str, Any]:
    filename = filenames.clean(said.filename, said.mime_type or "")
    known = _known_type(said)
    return {
        "filename": filename,
        "title": said.title,
        "description": said.description,
        "content_type": content_type_of(known, filename) if known else said.content_type or "doc",
        "mime_type": (said.mime_type or "").partition(";")[0].strip().lower() or None,
        "size_bytes": said.size_bytes,
        "sha256": said.sha256,
        "source_uri": said.source_uri,
    }


def _attach(resource: Resource, words: dict[str, Any]) -> None:
    Attachment.objects.create(
        user_id=resource.user_id,
        app_id=resource.app_id,
        project_id=resource.project_id,
        session_id=resource.session_id,
        resource=resource,
        source=Attachment.Source.EXTERNAL_RESOURCE,
        type=words["content_type"],
        name=words["filename"],
        internal_uri=words["source_uri"],
        sha256=words["sha256"],
    )


def _record(principal: Principal, resource: Resource) -> None:
    record(
        Actor.key(principal),
        "resource.register",
        subject_type="resource",
        subject_id=resource.resource_id,
        user_id=principal.user_id,
    )
