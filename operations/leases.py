"""Named leases: one process at a time runs a periodic task or a move between engines."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from core.leases import is_free
from operations.models import Lease


def take(name: str, holder: str, *, now: datetime, lasts: timedelta) -> bool:
    """Take or renew the lease until `now + lasts`; return False while another running process holds it."""
    values = {"holder": holder, "expires_at": now + lasts}
    seen, is_new = Lease.objects.get_or_create(name=name, defaults=values)
    free = Q(holder=holder) | is_free(seen.holder, now, expires="expires_at")
    return is_new or bool(Lease.objects.filter(free, name=name).update(**values))


def release(name: str, holder: str) -> None:
    """Release the lease if `holder` has it."""
    Lease.objects.filter(name=name, holder=holder).delete()
