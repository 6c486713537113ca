"""A chain of digests over the audit trail, by which changes and gaps of it show.

Every minute a batch gets a salted digest of each new event, and a root over them and the root before. An erasure
removes event and salt and marks the digest as released: nothing can be guessed from it. Retention drops whole batches
and keeps the last root. Not covered: counts and users of events, to which reads are added for ten minutes, and events
of older versions, which have no salt.
"""

import json
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final, NamedTuple

from django.db import transaction
from django.db.models import Exists, OuterRef

from accounts.audit_export import events_after
from accounts.models import AuditBatch, AuditDigest, AuditEvent
from core.times import isoformat

MAX_EVENTS: Final = 2_000
"""The most events of a batch; a longer backlog makes several."""
SHOWN: Final = 10
_COVERED: Final = (
    "id", "at", "action", "kind", "actor_kind", "actor", "user_id", "subject_type", "subject_id", "address", "client",
    "request_id",
)  # fmt: skip


class Verified(NamedTuple):
    """The result of a check: numbers of events and batches, the last root, and what is wrong."""

    events: int
    batches: int
    released: int
    root: str
    problems: list[str]


def seal(now: datetime) -> bool:
    """Chain the events since the last batch; return True if more wait."""
    last = AuditBatch.objects.order_by("-pk").first()
    found = events_after(last.last_event if last else 0, MAX_EVENTS, wait_seconds=0.5)
    if not found:
        return False
    keys = [one["id"] for one in found]
    with transaction.atomic():
        # Rows are read again: an erasure may have changed them meanwhile.
        events = list(AuditEvent.objects.select_for_update().filter(pk__in=keys).exclude(salt="").order_by("pk"))
        values = {event.pk: digest_of(event) for event in events}
        root = _root(last.root if last else "", values.items())
        batch = AuditBatch.objects.create(last_event=keys[-1], count=len(values), root=root, sealed_at=now)
        AuditDigest.objects.bulk_create(
            AuditDigest(event_id=key, batch=batch, value=value) for key, value in values.items()
        )
    return len(keys) == MAX_EVENTS


def digest_of(event: AuditEvent) -> str:
    covered: dict[str, Any] = {name: getattr(event, name) for name in _COVERED}
    # Rows of older versions have their users in the detail at first.
    covered |= {"at": isoformat(event.at), "detail": {k: v for k, v in event.detail.items() if k != "users"}}
    written = json.dumps(covered, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(f"{event.salt}{written}".encode()).hexdigest()


def drop_old(now: datetime, days: int) -> int:
    """Remove the batches, with their events, that are older than so many days; return the number of batches.

    The last removed one stays as an empty batch, with whose root the next one begins.
    """
    old = AuditBatch.objects.filter(sealed_at__lt=now - timedelta(days=days)).order_by("pk")
    keys = list(old.values_list("pk", flat=True))
    for key in keys:
        with transaction.atomic():
            events = AuditDigest.objects.filter(batch=key).values("event_id")
            AuditEvent.objects.filter(pk__in=events).delete()
            AuditDigest.objects.filter(batch=key).delete()
            AuditBatch.objects.filter(pk__lt=key).delete()
            AuditBatch.objects.filter(pk=key).update(count=0, is_dropped=True)
    return len(keys)


def verify() -> Verified:
    """Compare the chain with the events. It reads all of them, a batch at a time."""
    problems: list[str] = []
    root, events, released, known = "", 0, 0, 0
    batches = list(AuditBatch.objects.order_by("pk"))
    for batch in batches:
        digests = list(AuditDigest.objects.filter(batch=batch).order_by("event_id"))
        if batch.is_dropped:
            root = batch.root
            continue
        values = [(one.event_id, one.value) for one in digests]
        root = _root(root, values)
        if root != batch.root or len(values) != batch.count:
            problems.append(f"batch {batch.pk} does not follow from the one before")
            root = batch.root
        events += len(digests)
        released += sum(one.is_released for one in digests)
        problems += _changed(digests)
        known = batch.last_event
    sealed = AuditDigest.objects.filter(pk=OuterRef("pk"))
    first = next((one.last_event for one in batches if one.is_dropped), 0)
    added = AuditEvent.objects.filter(~Exists(sealed), pk__gt=first, pk__lte=known).exclude(salt="")
    problems += [f"event {key} was added later" for key in added.order_by("pk").values_list("pk", flat=True)[:SHOWN]]
    return Verified(events, len(batches), released, root, problems)


def _changed(digests: list[AuditDigest]) -> list[str]:
    kept = [one for one in digests if not one.is_released]
    found = AuditEvent.objects.in_bulk([one.event_id for one in kept])
    problems = []
    for one in kept:
        event = found.get(one.event_id)
        if event is None:
            problems.append(f"event {one.event_id} is missing")
        elif digest_of(event) != one.value:
            problems.append(f"event {one.event_id} was changed")
    return problems


def _root(before: str, values: Any) -> str:
    written = "".join(f"\n{key} {value}" for key, value in values)
    return sha256(f"{before}{written}".encode()).hexdigest()
