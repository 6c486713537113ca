"""From a stored or registered file to memories: one claim, one add, one flush, one settled status."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from django.conf import settings
from django.utils import timezone

from engine import file_uris
from engine.port import (
    ContentItem,
    ContentType,
    Engine,
    EngineError,
    EngineUnavailable,
    FlushResult,
    Message,
    Unreadable,
)
from engine.registry import get_engine
from memory_gateway.core.addresses import lies_in_a_store
from memory_gateway.core.times import from_ms, to_ms
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

Clock = Callable[[], datetime]
Sleep = Callable[[float], None]
_Result = TypeVar("_Result")

# They take the same message twice as one, and answer the flush of a resource's session again as they did before.
REPEATABLE_ENGINES = {"embedded"}
_GIVEN_UP = "Given up after {} tries: upload it again, or have an operator run `manage.py ingest --failed`."
_BROKE_OFF = "The gateway itself failed while ingesting; it tries again."
_NEEDS_ADDRESS = (
    "Its source_uri only says where it lies: reading it takes an ingest_uri, which serves for one ingestion."
)
_REGISTER_AGAIN = "Register it again with a fresh ingest_uri."
_LOST = "The memory service failed while extracting and now holds nothing of it: delete it and upload it again."


class _NoLongerOurs(Exception):
    """The resource was deleted, or another worker took it over."""


def ingest(
    resource_id: str,
    handover: Handover | None = None,
    *,
    engine: Engine | None = None,
    sleep: Sleep = time.sleep,
    clock: Clock = timezone.now,
) -> Resource:
    """Gives a resource's file to the engine, unless it is done or somebody else works on it; returns the row.

    With a handover, only for the one it was reserved for; without, a registered file is read from its `source_uri`.
    Every failure of the engine ends in the row: `failed`, with `retry_at` if another try can help. What was deleted
    meanwhile leaves nothing in the engine. Errors: Resource.DoesNotExist.
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
    """The same, and whether it was this call that worked on it."""
    engine = engine or get_engine()
    resource = claim(resource_id, clock(), handover.holder if handover else "")
    if resource is None:
        return False
    work = _Work(engine, sleep, clock, handover.ingest_uri if handover else None)
    if not _work(resource, work):
        _forget_if_deleted(resource, engine)
    return True


@dataclass(frozen=True, slots=True)
class _Work:
    """What one ingestion is done with. `ingest_uri` is where a registered file is read from this once."""

    engine: Engine
    sleep: Sleep
    clock: Clock
    ingest_uri: str | None = field(repr=False)


def _work(resource: Resource, work: _Work) -> bool:
    """Whether the outcome could be settled."""
    try:
        with renewed(resource, work.clock):
            outcome = _remember(resource, work)
    except _NoLongerOurs:
        return False
    except EngineError as error:
        outcome = _failure(resource, error, work.clock())
    except BaseException:
        settle(resource, _to_retry(resource, _BROKE_OFF, work.clock()), work.clock())
        raise
    return settle(resource, outcome, work.clock())


def _remember(resource: Resource, work: _Work) -> Outcome:
    """After a flush was sent a message is never added again, unless adding twice is the same as once."""
    owner, session_id = resource.owner, resource.session_id
    was_flushed = resource.flush_sent_at is not None
    can_be_read = work.ingest_uri is not None or _can_be_read_later(resource)
    can_add_again = work.engine.name in REPEATABLE_ENGINES and can_be_read
    if can_add_again or not was_flushed:
        message = message_of(resource, work.ingest_uri)
        _attempt(lambda: work.engine.add(owner, session_id, [message]), work)
    if not note_flush_sent(resource, work.clock()):
        raise _NoLongerOurs
    flushed, failures = _attempt(lambda: work.engine.flush(owner, session_id), work)
    if flushed.status == "no_extraction" and (was_flushed or failures):
        return _after_lost_answer(resource, work.clock(), can_add_again=can_add_again)
    return _outcome(flushed)


def message_of(resource: Resource, ingest_uri: str | None = None) -> Message:
    """The one message that a resource is; its time is the resource's own, so that sending it again is the same message.

    Errors: `Unreadable` if the file is gone, lies outside the folders that may be read, or where only an `ingest_uri`
    can reach it and none is given.
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
    elif ingest_uri is None and not _can_be_read_later(resource):
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


def _can_be_read_later(resource: Resource) -> bool:
    """Without its `ingest_uri`, which nobody keeps."""
    return resource.origin == Resource.Origin.UPLOAD or not lies_in_a_store(resource.source_uri)


def _attempt(call: Callable[[], _Result], work: _Work) -> tuple[_Result, int]:
    """The answer of a call, tried as often as the settings say, and how often it failed before.

    An engine over the network repeats its calls itself: trying again here would multiply the two.
    """
    repeats_here = work.engine.name in REPEATABLE_ENGINES
    attempts: int = settings.MEMORY_GATEWAY_BACKEND_INGEST_ATTEMPTS if repeats_here else 1
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


def _after_lost_answer(resource: Resource, now: datetime, *, can_add_again: bool) -> Outcome:
    """An earlier flush may have emptied the buffer, so that "nothing extracted" says nothing: look what is there. The
    engine may show it later."""
    if queries.has_memories(resource.owner, resource.session_id):
        return Outcome(Resource.Status.EXTRACTED)
    return Outcome(Resource.Status.EMPTY) if can_add_again else _to_retry(resource, _LOST, now)


def _failure(resource: Resource, error: EngineError, now: datetime) -> Outcome:
    """Another try helps if the trouble may pass and there is still something to read, or nothing left to read."""
    has_arrived = resource.flush_sent_at is not None
    if not error.is_permanent and (has_arrived or _can_be_read_later(resource)):
        return _to_retry(resource, error.detail, now, timedelta(seconds=error.retry_after_seconds or 0))
    is_external = resource.origin == Resource.Origin.EXTERNAL
    return Outcome(Resource.Status.FAILED, f"{error.detail} {_REGISTER_AGAIN}" if is_external else error.detail)


def _to_retry(resource: Resource, message: str, now: datetime, at_least: timedelta = timedelta(0)) -> Outcome:
    """Retry with backoff; seven days after the first failure, wait for an operator."""
    since = resource.first_failed_at or now
    if now - since >= RETRIED_FOR:
        return Outcome(Resource.Status.FAILED, f"{message} {_GIVEN_UP.format(resource.attempts)}")
    retry_at = now + max(retry_delay(resource.attempts), at_least)
    return Outcome(Resource.Status.FAILED, message, retry_at=retry_at, first_failed_at=since)


def _forget_if_deleted(resource: Resource, engine: Engine) -> None:
    """Its deletion may have asked the engine before our add arrived there."""
    if Resource.objects.filter(pk=resource.pk, status=Resource.Status.DELETED).update(cleanup_owed=True):
        finish_deletion(resource.pk, engine=engine)
