"""The times at which memories and sessions expire: the next one of a user, and what is due.

What expires gets a tombstone by `memories.services.expiry`, so that it is gone as what a person deletes is.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import F, Min, Q, QuerySet
from django.utils import timezone

from accounts import expiry
from accounts.models import MemoryUser
from store.models import Memory, Session, State
from store.types import Owner

OF_TAG: Final = "tag:"
"""The beginning of a default's name that is a tag, not a category."""
EXPIRING_STATES: Final = (State.LIVE, State.SUPERSEDED)
"""The states of what can expire: something newer may be deleted, and then shows what it superseded again."""
_EXPIRES: Final = Q(expires_at__isnull=False, state__in=EXPIRING_STATES)


def set_defaults(owner: Owner, memories: Iterable[Memory]) -> dict[str, tuple[str, int]]:
    """Set when unsaved memories without a time expire, by the days of the user and of `MEMORY_GATEWAY_EXPIRY`.

    Of several the earliest wins. Return the default that was applied, its name and its days, by memory id. One
    statement if a memory has no time.
    """
    applied: dict[str, tuple[str, int]] = {}
    lasting = [memory for memory in memories if memory.expires_at is None]
    if not lasting:
        return applied
    rules: list[Mapping[str, int]] = [settings.MEMORY_GATEWAY_EXPIRY, expiry.days_of(owner.user_pk)]
    for memory in lasting if any(rules) else ():
        tags = memory.payload.get("tags")
        names = [memory.category, *(f"{OF_TAG}{tag}" for tag in (tags if isinstance(tags, list | tuple) else ()))]
        if found := [(rule[name], name) for rule in rules for name in names if name in rule]:
            days, name = min(found)
            applied[memory.memory_id] = name, days
            memory.expires_at = timezone.now().replace(microsecond=0) + timedelta(days=days)
    return applied


def memories_due(user_pk: UUID, now: datetime) -> QuerySet[Memory]:
    """Return the user's memories that are due, the first first."""
    return Memory.objects.filter(_EXPIRES, user_id=user_pk, expires_at__lte=now).order_by("expires_at", "pk")


def sessions_due(user_pk: UUID, now: datetime) -> QuerySet[Session]:
    """Return the user's sessions that are due, the first first."""
    return Session.objects.filter(_EXPIRES, user_id=user_pk, expires_at__lte=now).order_by("expires_at", "pk")


def next_of(user_pk: UUID) -> datetime | None:
    """Return when the next memory or session of a user expires; None if none does. Two statements."""
    of_user: tuple[QuerySet[Any], ...] = (Memory.objects.all(), Session.objects.all())
    times = (rows.filter(_EXPIRES, user_id=user_pk).aggregate(at=Min("expires_at"))["at"] for rows in of_user)
    return min((at for at in times if at is not None), default=None)


def note(rows: Iterable[Any]) -> None:
    """Lower the bounds of users for saved memories or sessions that can expire. One statement per user."""
    earliest: dict[UUID, datetime] = {}
    for row in rows:
        at = getattr(row, "expires_at", None)  # what a migration or a resource has not
        if at is not None:
            earliest[row.user_id] = min(at, earliest.get(row.user_id, at))
    for user_pk, at in earliest.items():
        expiry.lower(user_pk, at)


def differences(user: MemoryUser | None = None) -> Iterator[str]:
    """Yield the users whose bound is too late, so that something would be shown after its time."""
    of_user = Q() if user is None else Q(user_id=user.pk)
    for model in (Memory, Session):
        later = Q(user__next_expiry_at__isnull=True) | Q(user__next_expiry_at__gt=F("expires_at"))
        rows = model.objects.filter(_EXPIRES, of_user, later)
        for name in rows.order_by("user__user_id").values_list("user__user_id", flat=True).distinct():
            yield f"the next expiry of {name} is later than that of a {model._meta.model_name}"  # noqa: SLF001


def renew(user_pk: UUID) -> None:
    """Set the bound of a user to the next time at which something expires. Call with the user locked."""
    MemoryUser.objects.filter(pk=user_pk).update(next_expiry_at=next_of(user_pk))
