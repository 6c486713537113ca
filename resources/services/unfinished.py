"""Find pending ingestions that no worker has claimed."""

from collections.abc import Collection
from datetime import datetime
from enum import Enum
from functools import reduce
from operator import or_

from django.db.models import Q

from core.background.leases import is_dead
from core.persistence.sql import turn_of_user
from resources import queries
from resources.models import Resource


class Kind(Enum):
    """Reasons why an ingestion is pending: not started, worker gone, retry due. `FAILED` selects every failure."""

    PENDING = "pending"
    STALE = "stale"
    DUE = "due"
    FAILED = "failed"


UNFINISHED = frozenset({Kind.PENDING, Kind.STALE, Kind.DUE})


def unfinished_ingestions(
    now: datetime, limit: int, *, kinds: Collection[Kind] = UNFINISHED, user_id: str | None = None
) -> list[Resource]:
    """Return at most `limit` pending resources of these kinds, round-robin by user, oldest first.

    With `user_id`, only that user's. A worker is gone when its lease has expired, or when its process on this machine
    has ended. The rows have the fields that `start_ingestion` needs.
    """
    of_user = Q() if user_id is None else Q(user__user_id=user_id)
    dead = _dead_holders(now) if Kind.STALE in kinds else []
    wanted = reduce(or_, (_condition(kind, now, dead) for kind in kinds))
    age = ("created_at", "resource_id")
    rows = queries.unfinished(of_user & wanted).annotate(turn=turn_of_user(*age)).order_by("turn", *age)
    return list(rows.only("user", "origin", "mime_type")[:limit])


def _condition(kind: Kind, now: datetime, dead_holders: list[str]) -> Q:
    status = Resource.Status
    if kind is Kind.PENDING:
        return Q(status=status.PENDING)
    if kind is Kind.STALE:
        has_expired = Q(leased_until__isnull=True) | Q(leased_until__lt=now)
        return Q(status=status.INGESTING) & (has_expired | Q(lease_holder__in=dead_holders))
    return Q(status=status.FAILED, retry_at__lte=now) if kind is Kind.DUE else Q(status=status.FAILED)


def _dead_holders(now: datetime) -> list[str]:
    held = queries.unfinished(Q(status=Resource.Status.INGESTING, leased_until__gte=now))
    return [holder for holder in held.values_list("lease_holder", flat=True) if is_dead(holder)]
