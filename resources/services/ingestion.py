"""Ingest a stored or registered file: claim, add, flush, settle."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from django.conf import settings
from django.utils import timezone

from core.errors import EngineError, EngineUnavailable, Unreadable
from core.times import from_ms, to_ms
from core.url_policy import lies_in_a_store
from documents.mime_types import ContentType
from engines import file_uris
from engines.port import Engine, FlushResult
from engines.registry import get_engine
from resources import queries, storage
from resources.models import Attachment, Resource
from resources.services.claims import (
    RETRIED_FOR,
    Handover,
    Outcome,
    claim,
    note_flush_sent,
    renewed,
    retry_delay,
    settle,
)
from resources.services.deletion import finish_deletion
from store.types import ContentItem, Message

Clock = Callable[[], datetime]
Sleep = Callable[[float], None]
_Result = TypeVar("_Result")

_GIVEN_UP = "Given up after {} tries: upload it again, or have an operator run `manage.py ingest --failed`."
_BROKE_OFF = "The gateway itself failed while ingesting; it tries again."
_NEEDS_ADDRESS = (
    "Its source_uri only says where it lies: reading it takes an ingest_uri, which serves for one ingestion."
)
_REGISTER_AGAIN = "Register it again with a fresh ingest_uri."
_LOST = "The memory service failed while extracting and now holds nothing of it: delete it and upload it again."


class _LeaseLost(Exception):
    """The resource was deleted, or another worker claimed it."""


def ingest(
    resource_id: str,
    handover: Handover | None = None,
    *,
    engine: Engine | None = None,
    sleep: Sleep = time.sleep,
    clock: Clock = timezone.now,
) -> Resource:
    """Ingest a resource unless it is done or claimed by another worker; return the row.

    With a handover, only its holder may claim the resource; without, a registered file is read from its `source_uri`.
    Failures of the engine end in the row: `failed`, with `retry_at` if a retry can help. A resource deleted meanwhile
    leaves nothing in the engine. Raises: `Resource.DoesNotExist`.
    """
    try_ingest(resource_id, handover, engine=engine, sleep=sleep, clock=clock)
    return Resource.objects.select_related("user").get(pk=resource_id)


def try_ingest(
    resource_id: str,
    handover: Handover | None = None,
    *,
    engine: Engine | None = None,
    sleep: Sleep = time.sleep,
    clock: Clock = timezone.now,
) -> bool:
    """Ingest a resource like `ingest`; return True if this call worked on it."""
    engine = engine or get_engine()
    resource = claim(resource_id, clock(), handover.holder if handover else "")
    if resource is None:
        return False
    work = _Work(engine, sleep, clock, handover.ingest_uri if handover else None)
    if not _run(resource, work):
        _clean_up_if_deleted(resource, engine)
    return True


@dataclass(frozen=True, slots=True)
class _Work:
    """The parts of one ingestion. `ingest_uri` is the one-time address of a registered file."""

    engine: Engine
    sleep: Sleep
    clock: Clock
    ingest_uri: str | None = field(repr=False)


def _run(resource: Resource, work: _Work) -> bool:
    """Ingest the claimed resource; return True if the outcome was settled."""
    try:
        with renewed(resource, work.clock):
            outcome = _add_and_flush(resource, work)
    except _LeaseLost:
        return False
    except EngineError as error:
        outcome = _failure(resource, error, work.clock())
    except BaseException:
        settle(resource, _to_retry(resource, _BROKE_OFF, work.clock()), work.clock())
        raise
    return settle(resource, outcome, work.clock())


def _add_and_flush(resource: Resource, work: _Work) -> Outcome:
    """Add the message and flush its session.

    After a flush was sent, the message is not added again, unless the engine is local, where adding twice is harmless.
    """
    owner, session_id = resource.owner, resource.session_id
    was_flushed = resource.flush_sent_at is not None
    can_be_read = work.ingest_uri is not None or _has_durable_source(resource)
    can_add_again = not work.engine.is_external and can_be_read
    if can_add_again or not was_flushed:
        message = message_of(resource, work.ingest_uri)
        _call_with_retries(lambda: work.engine.add(owner, session_id, [message]), work)
    if not note_flush_sent(resource, work.clock()):
        raise _LeaseLost
    flushed, failures = _call_with_retries(lambda: work.engine.flush(owner, session_id), work)
    if flushed.status == "no_extraction" and (was_flushed or failures):
        return _outcome_after_failure(resource, work.clock(), can_add_again=can_add_again)
    return _outcome(flushed)


def message_of(resource: Resource, ingest_uri: str | None = None) -> Message:
    """Return the resource as a message. Its time is the resource's, so that sending it again is the same message.

    Raises: `Unreadable` if the file is missing, outside the readable folders, or needs an `ingest_uri` that is not
    given.
    """
    is_external = resource.origin == Resource.Origin.EXTERNAL
    source = Attachment.Source.EXTERNAL_RESOURCE if is_external else Attachment.Source.UPLOAD
    extras = {
        "resource_id": resource.resource_id,
        "source": str(source),
        "title": resource.title,
        "description": resource.description,
    }
    content_type: ContentType = resource.content_type  # type: ignore[assignment]
    item = ContentItem(content_type, name=resource.filename, mime_type=resource.mime_type or None, extras=extras)
    if not is_external:
        item = replace(item, file=_stored_file(resource))
    elif ingest_uri is None and not _has_durable_source(resource):
        raise Unreadable(_NEEDS_ADDRESS)
    else:
        item = replace(item, uri=resource.source_uri, ingest_uri=ingest_uri)
        file_uris.require_allowed(item)
    return Message(resource.user.user_id, "user", to_ms(resource.created_at), (item,))


def _stored_file(resource: Resource) -> Path:
    path = storage.resolve(resource.storage_path)
    if not path.is_file():
        raise Unreadable("The stored file is missing: upload it again.")
    return path


def _has_durable_source(resource: Resource) -> bool:
    """Return True if the file can be read without its one-time `ingest_uri`."""
    return resource.origin == Resource.Origin.UPLOAD or not lies_in_a_store(resource.source_uri)


def _call_with_retries(call: Callable[[], _Result], work: _Work) -> tuple[_Result, int]:
    """Call with the configured attempts; return the answer and the number of failures before it.

    An external engine retries its calls itself.
    """
    is_local = not work.engine.is_external
    attempts: int = settings.MEMORY_GATEWAY_BACKEND_INGEST_ATTEMPTS if is_local else 1
    for failures in range(attempts - 1):
        try:
            return call(), failures
        except EngineUnavailable:
            work.sleep(settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS)
    return call(), attempts - 1


def _outcome(flushed: FlushResult) -> Outcome:
    if flushed.status == "no_extraction":
        return Outcome(Resource.Status.EMPTY)
    at = flushed.searchable_at_ms
    return Outcome(Resource.Status.EXTRACTED, searchable_at=None if at is None else from_ms(at))


def _outcome_after_failure(resource: Resource, now: datetime, *, can_add_again: bool) -> Outcome:
    """Settle "no_extraction" after an earlier failure by the memories that exist.

    The earlier flush may have emptied the buffer, and the engine may show its memories later.
    """
    if queries.has_memories(resource.owner, resource.session_id):
        return Outcome(Resource.Status.EXTRACTED)
    return Outcome(Resource.Status.EMPTY) if can_add_again else _to_retry(resource, _LOST, now)


def _failure(resource: Resource, error: EngineError, now: datetime) -> Outcome:
    """Return the outcome of an error: retry if it may pass and the file was sent or can still be read."""
    has_arrived = resource.flush_sent_at is not None
    if not error.is_permanent and (has_arrived or _has_durable_source(resource)):
        return _to_retry(resource, error.detail, now, timedelta(seconds=error.retry_after_seconds or 0))
    is_external = resource.origin == Resource.Origin.EXTERNAL
    return Outcome(Resource.Status.FAILED, f"{error.detail} {_REGISTER_AGAIN}" if is_external else error.detail)


def _to_retry(resource: Resource, message: str, now: datetime, at_least: timedelta = timedelta(0)) -> Outcome:
    """Return a retry with backoff; seven days after the first failure, wait for an operator."""
    since = resource.first_failed_at or now
    if now - since >= RETRIED_FOR:
        return Outcome(Resource.Status.FAILED, f"{message} {_GIVEN_UP.format(resource.attempts)}")
    retry_at = now + max(retry_delay(resource.attempts), at_least)
    return Outcome(Resource.Status.FAILED, message, retry_at=retry_at, first_failed_at=since)


def _clean_up_if_deleted(resource: Resource, engine: Engine) -> None:
    """Delete the message from the engine: the resource's deletion may have come before our add."""
    if Resource.objects.filter(pk=resource.pk, status=Resource.Status.DELETED).update(cleanup_owed=True):
        finish_deletion(resource.pk, engine=engine)
