"""One holder at a time of a duty: taken by a conditional write, lapsing when its holder stops renewing it."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from operations.models import Lease
from resources.leases import is_dead


def take(name: str, holder: str, *, now: datetime, lasts: timedelta) -> bool:
    """Whether the duty is the holder's until `now + lasts`: it was free or lapsed, his already, or a dead process's."""
    values = {"holder": holder, "expires_at": now + lasts}
    if Lease.objects.filter(Q(holder=holder) | Q(expires_at__lt=now), name=name).update(**values):
        return True
    seen = Lease.objects.filter(name=name).first()
    if seen is None:
        return Lease.objects.get_or_create(name=name, defaults=values)[1]
    return is_dead(seen.holder) and bool(Lease.objects.filter(name=name, holder=seen.holder).update(**values))


def give_back(name: str, holder: str) -> None:
    """Lets the next one take it at once; somebody else's lease stays."""
    Lease.objects.filter(name=name, holder=holder).delete()
