"""Claims of resources: a worker takes the lease of a resource, renews it, and settles the outcome."""

import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.audit import Actor, record
from core.background.leases import take
from core.background.tasks import enqueue
from core.crypto import Purpose, Undecryptable
from core.events import EventType, publish
from core.monitoring import INGESTION_SECONDS
from core.persistence import replica
from documents.reading import Reading
from resources import queries
from resources.models import UNFINISHED, Resource
from store.models import State, owned_by
from store.types import Owner

LEASE = timedelta(seconds=30)
FIRST_RETRY = timedelta(seconds=2)
LONGEST_RETRY = timedelta(days=1)
RETRIED_FOR = timedelta(days=7)
"""The time after its first failure for which an ingestion is retried. Each retry may cost LLM calls."""
_PURPOSE: Final = Purpose("ingest uri", "resources.Resource.sealed_ingest_uri")


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


def reset(seen: Resource, ingest_uri: str | None, now: datetime) -> bool:
    """Reset an unfinished resource to pending, with a new one-time address; return False while a worker has it."""
    if seen.status not in UNFINISHED or seen.is_held(now):
        return False
    return bool(
        _unchanged(seen).update(
            status=Resource.Status.PENDING,
            sealed_ingest_uri=seal(ingest_uri),
            lease_holder="",
            leased_until=None,
            attempts=0,
            error_message="",
            retry_at=None,
            first_failed_at=None,
            updated_at=now,
        )
    )


def seal(ingest_uri: str | None) -> str:
    """Encrypt a one-time address, which may be presigned: a secret that any worker must be able to read."""
    return _PURPOSE.encrypt(ingest_uri) if ingest_uri else ""


def ingest_uri_of(resource: Resource) -> str | None:
    """Return the one-time address of a resource; None if there is none, or it is sealed with a lost key."""
    with suppress(Undecryptable):
        return _PURPOSE.decrypt(resource.sealed_ingest_uri) if resource.sealed_ingest_uri else None
    return None


def claim(resource_id: str, now: datetime) -> Resource | None:
    """Claim a resource for ingestion; return None if it is done, deleted, unknown or claimed by another worker.

    `attempts` restarts at 1 for a failure that waited for an operator.
    """

    def attempts(before: Resource) -> int:
        waited_for_operator = before.status == Resource.Status.FAILED and before.retry_at is None
        return 1 if waited_for_operator else before.attempts + 1

    taken = take(
        queries.unfinished(Q(pk=resource_id)).select_related("user"),
        1,
        LEASE,
        now=now,
        status=Resource.Status.INGESTING,
        attempts=attempts,
        retry_at=None,
        updated_at=now,
    )
    return taken[0] if taken else None


def reopen(resources: QuerySet[Resource], now: datetime) -> int:
    """Reset those of the resources that failed to pending, and return their number."""
    return resources.filter(state=State.LIVE, status=Resource.Status.FAILED).update(
        status=Resource.Status.PENDING,
        attempts=0,
        error_message="",
        retry_at=None,
        first_failed_at=None,
        updated_at=now,
    )


def settle(resource: Resource, outcome: Outcome, now: datetime) -> bool:
    """Write the outcome and release the resource; return False if it was deleted or its lease was lost."""
    with transaction.atomic():
        is_settled = bool(
            held(resource).update(
                status=outcome.status,
                error_message=outcome.error_message,
                retry_at=outcome.retry_at,
                searchable_at=outcome.searchable_at,
                first_failed_at=outcome.first_failed_at,
                sealed_ingest_uri="",
                lease_holder="",
                leased_until=None,
                updated_at=now,
            )
        )
        if is_settled and outcome.retry_at is None:
            _publish_status(resource, outcome.status)
            INGESTION_SECONDS.labels(outcome.status).observe((now - resource.created_at).total_seconds())
    if is_settled:
        replica.note_write(replica.user_of(resource.user_id))
    return is_settled


def mark_extracted(resource: Resource, searchable_at: datetime | None, now: datetime) -> bool:
    """Mark an empty resource that has memories as extracted; return False if it is no longer empty."""
    empty = Resource.objects.filter(pk=resource.pk, state=State.LIVE, status=Resource.Status.EMPTY)
    values = {"status": Resource.Status.EXTRACTED, "searchable_at": searchable_at, "updated_at": now}
    with transaction.atomic():
        is_healed = bool(empty.update(**values))
        if is_healed:
            _publish_status(resource, Resource.Status.EXTRACTED)
    return is_healed


_EVENTS: Final[Mapping[Resource.Status, EventType]] = {
    Resource.Status.EXTRACTED: "resource.extracted",
    Resource.Status.EMPTY: "resource.empty",
    Resource.Status.FAILED: "resource.failed",
}


def _publish_status(resource: Resource, status: Resource.Status) -> None:
    reading = {} if status == Resource.Status.FAILED else {"reading": resource.anonymous_reading}
    publish(_EVENTS[status], resource.user_id, **resource.event_data, **reading)


def note_searchable(owner: Owner, session_id: str, at: datetime) -> None:
    """Record the time from which searches find the memories of an extracted resource."""
    rows = Resource.objects.filter(owned_by(owner), session_id=session_id, state=State.LIVE)
    rows.filter(status=Resource.Status.EXTRACTED, searchable_at=None).update(searchable_at=at)


def retry_delay(attempts: int, longest: timedelta = LONGEST_RETRY) -> timedelta:
    """Return the exponential backoff after so many attempts: from 2 s to `longest`.

    Up to half of it is random, which spreads the retries of failures that occurred together.
    """
    delay = min(FIRST_RETRY * (1 << max(0, min(attempts - 1, 20))), longest)
    return delay * random.uniform(0.5, 1.0)  # noqa: S311  spreads load, guards nothing


def note_flush_sent(resource: Resource, now: datetime, reading: Reading | None) -> bool:
    """Record that the engine has the file, and what was read of it, unless it had it before (None).

    Return False if the resource was deleted or its lease was lost.
    """
    resource.flush_sent_at = now
    if reading is not None:
        resource.reading = reading.as_json()
    return bool(held(resource).update(flush_sent_at=now, reading=resource.reading))


def _unchanged(seen: Resource) -> QuerySet[Resource]:
    """Return the resource unless it was claimed, settled or deleted since `seen` was read."""
    return Resource.objects.filter(
        pk=seen.pk, state=State.LIVE, status=seen.status, lease_holder=seen.lease_holder, attempts=seen.attempts
    )


def held(resource: Resource) -> QuerySet[Resource]:
    """Return the resource while it is live and has the lease with which it was read."""
    return Resource.objects.filter(
        pk=resource.pk, state=State.LIVE, status=Resource.Status.INGESTING, lease_holder=resource.lease_holder
    )


_MAX_RETRIED: Final = 1000


def retry(resources: QuerySet[Resource], *, actor: Actor) -> int:
    """Reset those of the resources that failed, at most 1,000, to pending, and return their number."""
    failed = resources.filter(state=State.LIVE, status=Resource.Status.FAILED)
    with transaction.atomic():
        found = dict(failed.order_by("created_at").values_list("resource_id", "user__user_id")[:_MAX_RETRIED])
        count = reopen(Resource.objects.filter(pk__in=found), timezone.now())
        if count:
            enqueue("ingest_pending")
            users = sorted(set(found.values()))
            record(
                actor,
                "resource.retry",
                next(iter(found)) if len(found) == 1 else "",
                user_id=users[0] if len(users) == 1 else "",
                users=users,
                detail={"count": count, "resources": list(found)[:100]},
            )
    return count
