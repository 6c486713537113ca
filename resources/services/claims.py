"""Claims of resources: one worker at a time, by conditional updates, with leases that are renewed."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import OperationalError, connections
from django.db.models import F, QuerySet

from core.leases import is_dead, new_holder
from resources.models import Resource
from store.types import Owner

logger = logging.getLogger("memory_gateway.ingestion")

LEASE = timedelta(seconds=30)
RESERVATION = timedelta(hours=1)
FIRST_RETRY = timedelta(seconds=2)
LONGEST_RETRY = timedelta(days=1)
RETRIED_FOR = timedelta(days=7)
"""Stop retrying an ingestion this long after its first failure. Each try may cost LLM calls."""
_UNDONE = (Resource.Status.PENDING, Resource.Status.INGESTING, Resource.Status.FAILED)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an ingestion.

    `retry_at` and `first_failed_at` are set if a retry can help, `searchable_at` if it is known.
    """

    status: Resource.Status
    error_message: str = ""
    retry_at: datetime | None = None
    searchable_at: datetime | None = None
    first_failed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Handover:
    """A resource reserved for one worker, with its one-time address (None: use `source_uri`).

    The address stays in memory: it may be a presigned URL, which is a secret.
    """

    holder: str
    ingest_uri: str | None = field(repr=False)


def reserve(seen: Resource, now: datetime) -> str | None:
    """Reset an unfinished resource to pending for one holder; return the holder, or None while a worker has it.

    Only the holder has the one-time address, so the reservation outlasts any queue, and ends when its process ends.
    """
    if seen.status not in _UNDONE or is_held(seen, now):
        return None
    holder = new_holder()
    won = _as_seen(seen).update(
        status=Resource.Status.INGESTING,
        lease_holder=holder,
        leased_until=now + RESERVATION,
        attempts=0,
        error_message="",
        retry_at=None,
        first_failed_at=None,
        updated_at=now,
    )
    return holder if won else None


def claim(resource_id: str, now: datetime, reserved_by: str = "") -> Resource | None:
    """Claim a resource for ingestion; return None if it is done, deleted, unknown or claimed by another worker.

    The update is conditional on what was read, so one of two workers wins. Attempts restart at 1 for a failure that
    waited for an operator.
    """
    seen = Resource.objects.select_related("user").filter(pk=resource_id, status__in=_UNDONE).first()
    if seen is None or (is_held(seen, now) and seen.lease_holder != reserved_by):
        return None
    holder = new_holder()
    has_waited = seen.status == Resource.Status.FAILED and seen.retry_at is None
    won = _as_seen(seen).update(
        status=Resource.Status.INGESTING,
        lease_holder=holder,
        leased_until=now + LEASE,
        attempts=1 if has_waited else F("attempts") + 1,
        retry_at=None,
        updated_at=now,
    )
    return Resource.objects.select_related("user").filter(pk=resource_id, lease_holder=holder).first() if won else None


def reopen(resource_id: str, now: datetime) -> bool:
    """Reset a failed resource to pending; return False if it had not failed."""
    failed = Resource.objects.filter(pk=resource_id, status=Resource.Status.FAILED)
    return bool(
        failed.update(
            status=Resource.Status.PENDING,
            attempts=0,
            error_message="",
            retry_at=None,
            first_failed_at=None,
            updated_at=now,
        )
    )


def is_held(resource: Resource, now: datetime) -> bool:
    """Return True if a live worker holds the resource."""
    if resource.status != Resource.Status.INGESTING or resource.leased_until is None:
        return False
    return resource.leased_until >= now and not is_dead(resource.lease_holder)


def settle(resource: Resource, outcome: Outcome, now: datetime) -> bool:
    """Write the outcome and release the resource; return False if it was deleted or its lease was lost."""
    return bool(
        _held(resource).update(
            status=outcome.status,
            error_message=outcome.error_message,
            retry_at=outcome.retry_at,
            searchable_at=outcome.searchable_at,
            first_failed_at=outcome.first_failed_at,
            lease_holder="",
            leased_until=None,
            updated_at=now,
        )
    )


def heal_empty(resource: Resource, searchable_at: datetime | None, now: datetime) -> bool:
    """Mark an empty resource that has memories as extracted; return False if it changed meanwhile."""
    empty = Resource.objects.filter(pk=resource.pk, status=Resource.Status.EMPTY)
    values = {"status": Resource.Status.EXTRACTED, "searchable_at": searchable_at, "updated_at": now}
    return bool(empty.update(**values))


def note_searchable(owner: Owner, session_id: str, at: datetime) -> None:
    """Record since when the memories of an extracted resource can be found."""
    rows = Resource.objects.filter(
        user_id=owner.user_pk, app_id=owner.app_id, project_id=owner.project_id, session_id=session_id
    )
    rows.filter(status=Resource.Status.EXTRACTED, searchable_at=None).update(searchable_at=at)


def retry_delay(attempts: int, longest: timedelta = LONGEST_RETRY) -> timedelta:
    """Return the exponential backoff after so many attempts: from 2 s to `longest`.

    Up to half of it is random, so that failures of one moment are not retried together.
    """
    delay = min(FIRST_RETRY * (1 << max(0, min(attempts - 1, 20))), longest)
    return delay * random.uniform(0.5, 1.0)  # noqa: S311  spreads load, guards nothing


def note_flush_sent(resource: Resource, now: datetime) -> bool:
    """Record that the file was handed to the engine; return False if the resource was deleted or lost."""
    resource.flush_sent_at = now
    return bool(_held(resource).update(flush_sent_at=now))


@contextmanager
def renewed(resource: Resource, clock: Callable[[], datetime], every: timedelta = LEASE / 3) -> Iterator[None]:
    """Renew the claim while a slow call runs."""
    ended = threading.Event()
    keeper = threading.Thread(target=_renew, args=(resource, clock, every, ended), name="lease", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        ended.set()
        keeper.join()


def _renew(resource: Resource, clock: Callable[[], datetime], every: timedelta, ended: threading.Event) -> None:
    try:
        while not ended.wait(every.total_seconds()):
            _renew_once(resource, clock())
    finally:
        connections.close_all()


def _renew_once(resource: Resource, now: datetime) -> None:
    """Renew the lease once. A failed write is repeated; the lease lasts for three intervals."""
    try:
        _held(resource).update(leased_until=now + LEASE)
    except OperationalError as error:
        logger.warning("The lease on %s was not renewed: %s", resource.resource_id, error)


def _as_seen(seen: Resource) -> QuerySet[Resource]:
    return Resource.objects.filter(
        pk=seen.pk, status=seen.status, lease_holder=seen.lease_holder, attempts=seen.attempts
    )


def _held(resource: Resource) -> QuerySet[Resource]:
    return Resource.objects.filter(pk=resource.pk, status=Resource.Status.INGESTING, lease_holder=resource.lease_holder)
