"""Register an external file: its row, attachment and ingestion. The file itself is not stored.

`source_uri` is its permanent address and is stored. `ingest_uri` is a one-time, often presigned address: it is stored
encrypted until the ingestion ends.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts import idempotency
from accounts.audit import Actor, record
from accounts.controls import require_not_paused
from accounts.models import MemoryUser, Principal
from accounts.services import lock_caller
from core.errors import FieldError, InvalidInput
from core.events import publish
from core.ids import new_resource_id, resource_session_id, session_name
from core.network.url_policy import AddressPolicy, BadAddress, check_uri
from documents import mime_types
from documents.mime_types import ContentType, content_type_of
from resources import queries
from resources.models import Resource
from resources.services.claims import reset, seal
from resources.services.receiving import clean_filename, require_allowed
from resources.services.uploading import ingest_and_wait, require_not_in_trash, set_default_expiry, stored_labels
from store.admission import Offer, require, texts_in
from store.types import Owner


@dataclass(frozen=True, slots=True)
class Registration:
    """A caller's description of an external file.

    `sha256` is hex or empty; `content_type` is used only if MIME type and file name are unknown. `wait_seconds` is the
    longest wait for the ingestion (None: the setting).
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
    labels: Mapping[str, Any] = field(default_factory=dict)
    app_id: str = "default"
    project_id: str = "default"
    wait_seconds: float | None = None


def register(principal: Principal, registration: Registration) -> Resource:
    """Record the file and ingest it; return the row when the ingestion ends or the wait is over.

    A file with the same digest in the same scope is the same resource. If it failed, it is ingested again, from the new
    `ingest_uri`.

    Raises: `InvalidInput` for addresses that must not be stored or read, `UnsupportedType`, `Conflict` if its session
    is in the trash, `Paused`, `NotKept` for its names.
    """
    require_not_paused(principal.user_pk, "files")
    names = [registration.filename, registration.title, registration.description, registration.source_uri]
    require(principal.user_pk, Offer("files", others=tuple(texts_in([*names, registration.labels]))))
    policy, errors = AddressPolicy.from_settings(), []
    for name, uri in (("source_uri", registration.source_uri), ("ingest_uri", registration.ingest_uri)):
        try:
            if uri is not None:
                check_uri(uri, policy)
        except BadAddress as error:
            errors.append(FieldError(name, error.message))
    if errors:
        raise InvalidInput.of_fields(errors)
    # An unsupported type is refused at once if it is known. The engine checks the content when it reads the file.
    if known_type := _known_type(registration):
        require_allowed(known_type, "mime_type" if mime_types.normalize(registration.mime_type) else "filename")
    owner = Owner(principal.user_pk, principal.user_id, registration.app_id, registration.project_id)
    resource = _record_registration(principal, owner, registration, timezone.now())
    if not resource.is_pending:
        return resource
    return ingest_and_wait(resource, registration.wait_seconds)


def _known_type(registration: Registration) -> str | None:
    return mime_types.normalize(registration.mime_type) or mime_types.by_name(registration.filename)


def _record_registration(principal: Principal, owner: Owner, registration: Registration, now: datetime) -> Resource:
    """Return the row, reset unless the file is ingested already or a worker has it.

    The lock on the user serializes concurrent registrations.
    """
    with transaction.atomic():
        user = lock_caller(owner.user_pk, owner.user_id)
        require_not_paused(owner.user_pk, "files")
        known = _interrupted(owner) or queries.registered(owner, registration.source_uri, registration.sha256)
        if known:
            require_not_in_trash(known)
        resource = known or _new_resource(user, registration)
        if known is None or reset(known, registration.ingest_uri, now):
            # After a flush, the engine may have the file with the previous fields, which then stay.
            if resource.flush_sent_at is None:
                fields = _fields(registration)
                for name, value in fields.items():
                    setattr(resource, name, value)
                if known:
                    resource.save(update_fields=fields)
                    resource.attachments.all().delete()
                else:
                    resource.save(force_insert=True)
                    publish("resource.created", owner.user_pk, **resource.event_data)
                resource.new_attachment().save()
                if not known:
                    set_default_expiry(resource)
            actor, subject = Actor.key(principal), resource.resource_id
            record(actor, "resource.register", subject, user_id=owner.user_id)
        idempotency.keep(resource_id=resource.pk)
    return Resource.objects.select_related("user").get(pk=resource.pk)


def _interrupted(owner: Owner) -> Resource | None:
    """Return the resource that an earlier attempt of this request registered before its process ended."""
    resource_id = idempotency.kept("resource_id")
    return queries.live_resource(owner.user_pk, resource_id).first() if resource_id else None


def _new_resource(user: MemoryUser, registration: Registration) -> Resource:
    resource_id = new_resource_id()
    return Resource(
        resource_id=resource_id,
        user=user,
        app_id=registration.app_id,
        project_id=registration.project_id,
        session_id=resource_session_id(session_name(user.pk, user.user_id), resource_id),
        origin=Resource.Origin.EXTERNAL,
        sealed_ingest_uri=seal(registration.ingest_uri),
    )


def _fields(registration: Registration) -> dict[str, Any]:
    filename = clean_filename(registration.filename, registration.mime_type or "")
    known = _known_type(registration)
    return {
        "filename": filename,
        "title": registration.title,
        "description": registration.description,
        "labels": stored_labels(registration.labels),
        "content_type": content_type_of(known, filename) if known else registration.content_type or "doc",
        "mime_type": (registration.mime_type or "").partition(";")[0].strip().lower() or None,
        "size_bytes": registration.size_bytes,
        "sha256": registration.sha256,
        "source_uri": registration.source_uri,
    }
