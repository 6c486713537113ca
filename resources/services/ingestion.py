"""Ingest a stored or registered file: claim, add, flush, settle."""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.utils import timezone
from django_tasks import TaskResult

from core.background.leases import renewed
from core.background.tasks import start, start_here
from core.errors import EngineError, EngineUnavailable, Unreadable
from core.messages import MANAGE, joined
from core.messages import Translatable as _
from core.network.url_policy import is_allowed_object, is_in_object_store
from core.persistence.files import stored_files
from core.times import from_ms, to_ms
from documents.mime_types import ContentType
from documents.reader import needs_parser
from engines.registry import get_engine
from resources import queries
from resources.models import Attachment, Resource
from resources.services.claims import (
    LEASE,
    RETRIED_FOR,
    Outcome,
    claim,
    held,
    ingest_uri_of,
    note_flush_sent,
    retry_delay,
    settle,
)
from resources.services.deletion import finish_deletion
from store.cover import is_attached
from store.models import State
from store.port import Engine, FileReading, require_allowed_address
from store.types import ContentItem, Message

logger = logging.getLogger("memory_gateway.resources")

Clock = Callable[[], datetime]
Sleep = Callable[[float], None]
_Result = TypeVar("_Result")

_INTERRUPTED = _("The gateway failed during the ingestion. It will retry.")
_NEEDS_ADDRESS = _("The source_uri is not readable. Ingestion needs an ingest_uri, which is valid for one ingestion.")
_REGISTER_AGAIN = _("Register it again with a new ingest_uri.")
_FILE_LOST = _(
    "The memory engine failed during the extraction and lost the file. Delete the resource and upload it again."
)
_NEEDS_OCR = _(
    "The document contains no text that can be read. If its pages are scanned, ask the operator to install "
    "memory-gateway[ocr], which recognizes text in pictures. Then delete the file and upload it again."
)


def enqueue_ingestion(resource: Resource) -> TaskResult[Any]:
    """Enqueue the ingestion of a resource."""
    return start(_task_of(resource), user=str(resource.user_id), resource_id=resource.resource_id)


def start_ingestion(resource: Resource) -> Future[None]:
    """Start the ingestion of a resource in this process."""
    return start_here(_task_of(resource), user=str(resource.user_id), resource_id=resource.resource_id)


def _task_of(resource: Resource) -> str:
    is_upload, has_ocr = resource.origin == Resource.Origin.UPLOAD, settings.MEMORY_GATEWAY_OCR != "off"
    if is_attached():
        return "ingest_externally"
    if is_upload and not needs_parser(resource.mime_type, has_ocr=has_ocr):
        return "ingest_text"
    return "ingest_document"


class _LeaseLost(Exception):
    """The resource was deleted, or another worker claimed it."""


def ingest(
    resource_id: str,
    *,
    engine: Engine | None = None,
    sleep: Sleep = time.sleep,
    clock: Clock = timezone.now,
) -> Resource:
    """Ingest a resource unless it is done or claimed by another worker; return the row.

    A registered file is read from its one-time address, or without one from its `source_uri`. Failures of the engine
    are recorded in the row: `failed`, with `retry_at` if a retry can help. A resource that is purged meanwhile leaves
    nothing in the engine; what one in the trash leaves is hidden. Raises: `Resource.DoesNotExist`.
    """
    try_ingest(resource_id, engine=engine, sleep=sleep, clock=clock)
    return Resource.objects.select_related("user").get(pk=resource_id)


def try_ingest(
    resource_id: str,
    *,
    engine: Engine | None = None,
    sleep: Sleep = time.sleep,
    clock: Clock = timezone.now,
) -> bool:
    """Ingest a resource like `ingest`; return True if this call worked on it."""
    engine = engine or get_engine()
    resource = claim(resource_id, clock())
    if resource is None:
        return False
    work = _Work(engine, sleep, clock, ingest_uri_of(resource))
    if not _run(resource, work):
        _clean_up_if_purged(resource, engine)
    return True


@dataclass(frozen=True, slots=True)
class _Work:
    """The context of one ingestion. `ingest_uri` is the one-time address of a registered file."""

    engine: Engine
    sleep: Sleep
    clock: Clock
    ingest_uri: str | None = field(repr=False)


def _run(resource: Resource, work: _Work) -> bool:
    """Ingest the claimed resource; return True if the outcome was settled."""
    try:
        with renewed(held(resource), LEASE, clock=work.clock):
            outcome = _add_and_flush(resource, work)
    except _LeaseLost:
        return False
    except EngineError as error:
        level = logging.INFO if error.is_permanent else logging.WARNING
        logger.log(level, "The ingestion of %s failed: %s", resource.resource_id, error.detail, extra={"cause": error})
        outcome = _outcome_of_error(resource, error, work)
        if _describe(resource, work.engine):
            outcome = replace(outcome, searchable_at=work.clock())
    except BaseException:
        settle(resource, _retried_failure(resource, _INTERRUPTED, work.clock()), work.clock())
        raise
    return settle(resource, outcome, work.clock())


def _add_and_flush(resource: Resource, work: _Work) -> Outcome:
    """Add the message and flush its session.

    Once a flush was sent, the message is not added again, except to the embedded engine, which ignores duplicates.
    """
    owner, session_id = resource.owner, resource.session_id
    was_flushed = resource.flush_sent_at is not None
    is_readable = work.ingest_uri is not None or _has_durable_source(resource)
    can_add_again = not is_attached() and is_readable
    readings: Sequence[FileReading] = ()
    if can_add_again or not was_flushed:
        # This engine says itself what it cannot read, and does not read pictures.
        durable_uri = None if is_attached() else resource.source_uri or None
        message = message_of(resource, work.ingest_uri or durable_uri)
        added, _failures = _call_with_retries(lambda: work.engine.add(owner, session_id, [message]), work)
        readings = added.readings
    if not note_flush_sent(resource, work.clock(), readings[0].reading if readings else None):
        raise _LeaseLost
    flushed, failures = _call_with_retries(lambda: work.engine.flush(owner, session_id), work)
    if flushed.status == "extracted":
        at = flushed.searchable_at_ms
        return Outcome(Resource.Status.EXTRACTED, searchable_at=None if at is None else from_ms(at))
    outcome = Outcome(Resource.Status.EMPTY)
    if was_flushed or failures:
        outcome = _outcome_after_failure(resource, work.clock(), can_add_again=can_add_again)
    is_unread = outcome.status == Resource.Status.EMPTY and resource.content_type == "pdf"
    if is_unread and not is_attached() and settings.MEMORY_GATEWAY_OCR == "off":
        return replace(outcome, error_message=_NEEDS_OCR)
    return outcome


def _describe(resource: Resource, engine: Engine) -> bool:
    """Store title and description of a registered file that could not be read. Return True if searches find them."""
    if resource.origin != Resource.Origin.EXTERNAL or resource.flush_sent_at is not None:
        return False
    with suppress(EngineError):  # the caller records the failure that came first
        return engine.describe(resource.owner, resource.session_id, _message(resource, resource.source_uri))
    return False


def message_of(resource: Resource, ingest_uri: str | None = None) -> Message:
    """Return the resource as a message. It has the time of the resource: repeated, it is the same message.

    Raises: `Unreadable` if the file is missing, at an address that is refused now, or needs an `ingest_uri` that is not
    given.
    """
    message = _message(resource, ingest_uri)
    for item in message.content:
        require_allowed_address(item)
    return message


def _message(resource: Resource, ingest_uri: str | None) -> Message:
    is_registered = resource.origin == Resource.Origin.EXTERNAL
    source = Attachment.Source.EXTERNAL_RESOURCE if is_registered else Attachment.Source.UPLOAD
    extras = {
        "resource_id": resource.resource_id,
        "source": str(source),
        "title": resource.title,
        "description": resource.description,
    }
    content_type: ContentType = resource.content_type  # type: ignore[assignment]
    item = ContentItem(content_type, name=resource.filename, mime_type=resource.mime_type or None, extras=extras)
    if not is_registered:
        if not stored_files().exists(resource.file_key):
            raise Unreadable(_("The stored file is missing. Upload it again."))
        item = replace(item, file=resource.file_key)
    elif ingest_uri is None and is_in_object_store(resource.source_uri):
        raise Unreadable(_NEEDS_ADDRESS)
    else:
        item = replace(item, uri=resource.source_uri, ingest_uri=ingest_uri)
    return Message(resource.user.user_id, "user", to_ms(resource.created_at), (item,), **(resource.labels or {}))


def _has_durable_source(resource: Resource) -> bool:
    """Return True if the file can be read without its one-time `ingest_uri`. The remote reads no object store."""
    if resource.origin == Resource.Origin.UPLOAD or not is_in_object_store(resource.source_uri):
        return True
    return not is_attached() and is_allowed_object(resource.source_uri)


def _call_with_retries(call: Callable[[], _Result], work: _Work) -> tuple[_Result, int]:
    """Call with the configured attempts; return the result and the number of failures before it.

    There is one attempt for an external engine, which retries its calls itself.
    """
    is_local = not is_attached()
    attempts: int = settings.MEMORY_GATEWAY_BACKEND_INGEST_ATTEMPTS if is_local else 1
    for failures in range(attempts - 1):
        try:
            return call(), failures
        except EngineUnavailable:
            work.sleep(settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS)
    return call(), attempts - 1


def _outcome_after_failure(resource: Resource, now: datetime, *, can_add_again: bool) -> Outcome:
    """Return the outcome of "no_extraction" after an earlier failure, by the memories that exist.

    An earlier flush may have emptied the engine's buffer, and its memories may become visible later.
    """
    if queries.has_memories(resource.owner, resource.session_id):
        return Outcome(Resource.Status.EXTRACTED)
    return Outcome(Resource.Status.EMPTY) if can_add_again else _retried_failure(resource, _FILE_LOST, now)


def _outcome_of_error(resource: Resource, error: EngineError, work: _Work) -> Outcome:
    """Return the outcome of an error: a retry if the error is temporary, and the file was sent or is still readable."""
    was_sent = resource.flush_sent_at is not None
    if not error.is_permanent and (was_sent or _has_durable_source(resource)):
        at_least = timedelta(seconds=error.retry_after_seconds or 0)
        return _retried_failure(resource, error.detail, work.clock(), at_least)
    is_registered = resource.origin == Resource.Origin.EXTERNAL
    message = joined(" ", [error.detail, _REGISTER_AGAIN]) if is_registered else error.detail
    return Outcome(Resource.Status.FAILED, message)


def _retried_failure(resource: Resource, message: str, now: datetime, at_least: timedelta = timedelta(0)) -> Outcome:
    """Return a failure with a retry after the backoff; without one, seven days after the first failure."""
    since = resource.first_failed_at or now
    if now - since >= RETRIED_FOR:
        not_retried = _(
            "The ingestion failed %(number)s times and is not retried. Upload the file again, or ask the "
            "operator to run `%(manage)s ingest --failed`.",
            manage=MANAGE,
            number=resource.attempts,
        )
        return Outcome(Resource.Status.FAILED, joined(" ", [message, not_retried]))
    retry_at = now + max(retry_delay(resource.attempts), at_least)
    return Outcome(Resource.Status.FAILED, message, retry_at=retry_at, first_failed_at=since)


def _clean_up_if_purged(resource: Resource, engine: Engine) -> None:
    """Delete the message of a purged resource from the engine: the purge may have preceded the add.

    The message of a resource in the trash stays, in its hidden session.
    """
    if Resource.objects.filter(pk=resource.pk, state=State.PURGED).update(retry_at=timezone.now()):
        finish_deletion(resource.pk, engine=engine)
