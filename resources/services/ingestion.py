"""From a stored file to memories: one claim, one add, one flush, one settled status."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from django.conf import settings
from django.utils import timezone

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
from memory_gateway.core.times import from_ms, to_ms
from resources import queries, storage
from resources.models import Resource
from resources.services.claims import Outcome, claim, note_flush_sent, renewed, retry_delay, settle
from resources.services.deletion import finish_deletion

Clock = Callable[[], datetime]
Sleep = Callable[[float], None]
_Result = TypeVar("_Result")

# They take the same message twice as one, and answer the flush of a resource's session again as they did before.
REPEATABLE_ENGINES = {"embedded"}
_BROKE_OFF = "The gateway itself failed while ingesting; it tries again."
_LOST = "The memory service failed while extracting and now holds nothing of it: delete it and upload it again."


class _NoLongerOurs(Exception):
    """The resource was deleted, or another worker took it over."""


def ingest(
    resource_id: str, *, engine: Engine | None = None, sleep: Sleep = time.sleep, clock: Clock = timezone.now
) -> Resource:
    """Gives a resource's file to the engine, unless it is done or somebody else works on it; returns the row.

    Every failure of the engine ends in the row: `failed`, with `retry_at` if another try can help. What was deleted
    meanwhile leaves nothing in the engine. Errors: Resource.DoesNotExist.
    """
    engine = engine or get_engine()
    resource = claim(resource_id, clock())
    if resource is not None and not _work(resource, engine, sleep, clock):
        _forget_if_deleted(resource, engine)
    return Resource.objects.select_related("user").get(pk=resource_id)


def _work(resource: Resource, engine: Engine, sleep: Sleep, clock: Clock) -> bool:
    """Whether the outcome could be settled."""
    try:
        with renewed(resource, clock):
            outcome = _remember(resource, engine, sleep, clock)
    except _NoLongerOurs:
        return False
    except EngineError as error:
        outcome = _failure(resource, error, clock())
    except BaseException:
        settle(resource, _to_retry(resource, _BROKE_OFF, clock()), clock())
        raise
    return settle(resource, outcome, clock())


def _remember(resource: Resource, engine: Engine, sleep: Sleep, clock: Clock) -> Outcome:
    """After a flush was sent a message is never added again, unless adding twice is the same as once."""
    owner, session_id = resource.owner, resource.session_id
    was_flushed = resource.flush_sent_at is not None
    can_add_again = engine.name in REPEATABLE_ENGINES
    if can_add_again or not was_flushed:
        message = message_of(resource)
        _attempt(lambda: engine.add(owner, session_id, [message]), sleep)
    if not note_flush_sent(resource, clock()):
        raise _NoLongerOurs
    flushed, failures = _attempt(lambda: engine.flush(owner, session_id), sleep)
    if flushed.status == "no_extraction" and (was_flushed or failures):
        return _after_lost_answer(resource, can_add_again=can_add_again)
    return _outcome(flushed)


def message_of(resource: Resource) -> Message:
    """The one message that a resource is; its time is the resource's own, so that sending it again is the same message.

    Errors: `Unreadable` if the file is gone.
    """
    path = storage.resolve(resource.storage_path)
    if not path.is_file():
        raise Unreadable("The stored file is missing: upload it again.")
    extras = {
        "resource_id": resource.resource_id,
        "source": str(resource.origin),
        "title": resource.title,
        "description": resource.description,
    }
    content_type: ContentType = resource.content_type  # type: ignore[assignment]
    item = ContentItem(
        content_type, file=path, name=resource.filename, mime_type=resource.mime_type or None, extras=extras
    )
    return Message(resource.user.user_id, "user", to_ms(resource.created_at), (item,))


def _attempt(call: Callable[[], _Result], sleep: Sleep) -> tuple[_Result, int]:
    """The answer of a call, tried as often as the settings say, and how often it failed before."""
    attempts: int = settings.MEMORY_GATEWAY_BACKEND_INGEST_ATTEMPTS
    for failures in range(attempts - 1):
        try:
            return call(), failures
        except EngineUnavailable:
            sleep(settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS)
    return call(), attempts - 1


def _outcome(flushed: FlushResult) -> Outcome:
    if flushed.status == "no_extraction":
        return Outcome(Resource.Status.EMPTY)
    at = flushed.searchable_at_ms
    return Outcome(Resource.Status.EXTRACTED, searchable_at=None if at is None else from_ms(at))


def _after_lost_answer(resource: Resource, *, can_add_again: bool) -> Outcome:
    """An earlier flush may have emptied the buffer, so that "nothing extracted" says nothing: look what is there."""
    if queries.has_memories(resource.owner, resource.session_id):
        return Outcome(Resource.Status.EXTRACTED)
    return Outcome(Resource.Status.EMPTY) if can_add_again else Outcome(Resource.Status.FAILED, _LOST)


def _failure(resource: Resource, error: EngineError, now: datetime) -> Outcome:
    if error.is_permanent:
        return Outcome(Resource.Status.FAILED, error.detail)
    return _to_retry(resource, error.detail, now)


def _to_retry(resource: Resource, message: str, now: datetime) -> Outcome:
    return Outcome(Resource.Status.FAILED, message, retry_at=now + retry_delay(resource.attempts))


def _forget_if_deleted(resource: Resource, engine: Engine) -> None:
    """Its deletion may have asked the engine before our add arrived there."""
    if Resource.objects.filter(pk=resource.pk, status=Resource.Status.DELETED).update(cleanup_owed=True):
        finish_deletion(resource.pk, engine=engine)
