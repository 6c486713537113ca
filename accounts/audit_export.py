"""Export of the audit trail: events as plain data, and those after a position, for a security information system."""

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from django.db import connection

from accounts import tenants
from accounts.models import AuditEvent
from core.times import isoformat

EXPORTED: Final = (
    "id", "at", "action", "kind", "actor_kind", "actor", "user_id", "users", "subject_type", "subject_id", "count",
    "last_at", "address", "client", "request_id", "detail",
)  # fmt: skip
EXPORTED_AT_ONCE: Final = 500
_PAUSE_SECONDS: Final = 0.05


def exported(events: Iterable[AuditEvent]) -> Iterator[dict[str, Any]]:
    """Yield events as plain data with all their users, for an operator limited to tenants theirs.

    One statement for each `EXPORTED_AT_ONCE` events, two with a limit.
    """
    remaining = iter(events)
    while batch := list(islice(remaining, EXPORTED_AT_ONCE)):
        users: dict[int, list[str]] = {event.pk: [] for event in batch}
        subjects = tenants.subjects_of_events().filter(event__in=users)
        for pk, name in subjects.order_by("user_id").values_list("event", "user_id"):
            users[pk].append(name)
        tenants.hide_others(batch)
        for event in batch:
            values = {name: getattr(event, name) for name in EXPORTED if name != "users"}
            values |= {"at": isoformat(event.at), "last_at": event.last_at and isoformat(event.last_at)}
            yield {name: users[event.pk] if name == "users" else values[name] for name in EXPORTED}


def events_after(
    position: int, limit: int = EXPORTED_AT_ONCE, *, wait_seconds: float = 5.0
) -> list[dict[str, Any]] | None:
    """Return the events after a position, oldest first; None if a running transaction may still add one before them.

    PostgreSQL gives out ids before a transaction commits, so an event may appear after one with a higher id. This waits
    `wait_seconds` for the end of such transactions.
    """
    keys = AuditEvent.objects.filter(pk__gt=position).order_by("pk").values_list("pk", flat=True)[:limit]
    last = max(keys, default=position)
    writers = _writers() if last > position else set()
    ends_at = time.monotonic() + wait_seconds
    while writers:
        if time.monotonic() > ends_at:
            return None
        time.sleep(_PAUSE_SECONDS)
        writers &= _writers()
    events = AuditEvent.objects.filter(pk__gt=position, pk__lte=last).order_by("pk")
    return list(exported(events))


def _writers() -> set[str]:
    """Return the other transactions that write audit events now: PostgreSQL locks the table for each until it ends."""
    if connection.vendor != "postgresql":
        return set()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT virtualtransaction FROM pg_locks WHERE relation = %s::regclass AND mode = 'RowExclusiveLock'"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            " AND pid <> pg_backend_pid()",
            [AuditEvent._meta.db_table],  # noqa: SLF001
        )
        return {name for (name,) in cursor.fetchall()}
