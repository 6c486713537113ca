"""One worker at a time per resource: claiming by a conditional update, renewing, and settling only while held."""

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
"""How long after its first failure an ingestion is retried. Each try may cost LLM calls."""
_UNDONE = (Resource.Status.PENDING, Resource.Status.INGESTING, Resource.Status.FAILED)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an ingestion ended. `retry_at` is set when another try can help, with the time of the first failure;
    `searchable_at` when that is known."""

    status: Resource.Status
    error_message: str = ""
    retry_at: datetime | None = None
    searchable_at: datetime | None = None
    first_failed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Handover:
    """A resource that is reserved for one worker, with the address it is to be read from this once (None: its
    `source_uri`). The address lives in memory only: it may be a presigned one, which is a secret.
    """

    holder: str
    ingest_uri: str | None = field(repr=False)


def reserve(seen: Resource, now: datetime) -> str | None:
    """Makes an unfinished resource owed again, as if it had just come, but to the holder alone; None if somebody works
    on it.

    Whoever reserves it has what nobody else has, so the reservation outlasts any queue; that its process ended is
    noticed all the same.
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
    """Takes a resource to ingest it; None if it is done, deleted, unknown or in another worker's hands.

    The update names what was read, so of two workers that read the same one wins. For a failure that waited for an
    operator the tries are counted from one.
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
    """Makes a failed resource owed again, as if it had just come; False if it had not failed."""
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
    """Whether somebody who still lives works on it."""
    if resource.status != Resource.Status.INGESTING or resource.leased_until is None:
        return False
    return resource.leased_until >= now and not is_dead(resource.lease_holder)


def settle(resource: Resource, outcome: Outcome, now: datetime) -> bool:
    """Writes how it ended and gives the resource back; False if it was deleted or lost meanwhile."""
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
    """Make an empty resource extracted, because it has memories after all; False if it changed meanwhile."""
    empty = Resource.objects.filter(pk=resource.pk, status=Resource.Status.EMPTY)
    values = {"status": Resource.Status.EXTRACTED, "searchable_at": searchable_at, "updated_at": now}
    return bool(empty.update(**values))


def note_searchable(owner: Owner, session_id: str, at: datetime) -> None:
    """Writes since when a file is found that was extracted before anybody could say so."""
    rows = Resource.objects.filter(
        user_id=owner.user_pk, app_id=owner.app_id, project_id=owner.project_id, session_id=session_id
    )
    rows.filter(status=Resource.Status.EXTRACTED, searchable_at=None).update(searchable_at=at)


def retry_delay(attempts: int, longest: timedelta = LONGEST_RETRY) -> timedelta:
    """Return the exponential backoff after so many tries: from 2 s to `longest`, minus up to half at random, so that
    what failed together does not return together."""
    delay = min(FIRST_RETRY * (1 << max(0, min(attempts - 1, 20))), longest)
    return delay * random.uniform(0.5, 1.0)  # noqa: S311  spreads load, guards nothing


def note_flush_sent(resource: Resource, now: datetime) -> bool:
    """From now on it counts as given away; False if it was deleted or lost meanwhile."""
    resource.flush_sent_at = now
    return bool(_held(resource).update(flush_sent_at=now))


@contextmanager
def renewed(resource: Resource, clock: Callable[[], datetime], every: timedelta = LEASE / 3) -> Iterator[None]:
    """Keeps the claim alive while a slow call runs."""
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
    """A database that cannot write just now is asked again in time: the lease is three times as long."""
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
