"""The moment at which something of a user may expire, compared at every read.

`MemoryUser.next_expiry_at` is a lower bound: what authenticates a caller reads it with the caller, so a read costs no
further statement. When it has passed, `due` is sent before anything is read. A receiver that raises fails the read,
rather than letting it show what has expired.
"""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from django.db.models import Q
from django.dispatch import Signal
from django.utils import timezone

from accounts.models import MemoryUser

due = Signal()
"""Sent with `user_pk` when the user's `next_expiry_at` has passed. The receiver ends what is due, and sets it again."""


def end_due(user_pk: UUID) -> None:
    """End what is due of a user."""
    due.send(sender=None, user_pk=user_pk)


def end_all_due() -> None:
    """End what is due of all users. Call before reading what may be several users'. One statement if nothing is."""
    users = MemoryUser.objects.filter(next_expiry_at__lte=timezone.now()).order_by("next_expiry_at")
    for user_pk in list(users.values_list("pk", flat=True)):
        end_due(user_pk)


def is_any_due(now: datetime) -> bool:
    """Return True if something of a user may be due. One statement."""
    return MemoryUser.objects.filter(next_expiry_at__lte=now).exists()


def lower(user_pk: UUID, at: datetime) -> None:
    """Let the user's bound be `at` or earlier, in the transaction that stores something that expires then.

    This locks the user: call it before locking a session, in the order of decisions.
    """
    later = Q(next_expiry_at__isnull=True) | Q(next_expiry_at__gt=at)
    MemoryUser.objects.filter(later, pk=user_pk).update(next_expiry_at=at)


def days_of(user_pk: UUID) -> Mapping[str, int]:
    """Return after how many days new memories of a user expire, by category, or `tag:` and a tag. One statement."""
    return MemoryUser.objects.filter(pk=user_pk).values_list("expiry_days", flat=True).first() or {}
