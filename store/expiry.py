"""The times at which memories and sessions expire: the next one of a user, and what is due.

What expires gets a tombstone by `memories.services.expiry`, so that it is gone as what a person deletes is. A file has
the time of its session, and its passages have none: it expires as one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import F, Min, Q, QuerySet
from django.utils import timezone

from accounts import expiry
from accounts.models import MemoryUser
from accounts.zones import zone_of_user
from core.errors import InvalidInput
from core.messages import Translatable as _
from core.times import from_ms
from store.filters import MAX_MS
from store.models import Memory, Session, State
from store.text import times
from store.text.time_windows import Window
from store.types import TAGS, NewExpiry, Owner

NEEDS_EXPIRY: Final = _("is required, because the time has passed: send a new time, or null for never")
OF_TAG: Final = "tag:"
"""The beginning of a default's name that is a tag, not a category."""
EXPIRING_STATES: Final = (State.LIVE, State.SUPERSEDED)
"""The states of what can expire: something newer may be deleted, and then shows what it superseded again."""
_EXPIRES: Final = Q(expires_at__isnull=False, state__in=EXPIRING_STATES)


def check(expires_at: NewExpiry) -> None:
    """Check a new time. Raises: `InvalidInput` if it has passed."""
    if isinstance(expires_at, datetime) and expires_at <= timezone.now():
        raise InvalidInput.of_field("expires_at", _("must be in the future"))


def ending_of(given: date | None, user_pk: UUID, requested: str = "", *, field: str = "expires_at") -> datetime | None:
    """Return when something expires, in whole seconds as answers show it: a day ends where the user is; None: never.

    At most one SQL statement, and none for a time. Raises: `InvalidInput` for what has passed.
    """
    if given is None:
        return None
    if not isinstance(given, datetime):
        here = datetime.now(zone_of_user(user_pk, requested))
        given = from_ms(min(times.span_of(Window(given, given), here)[1], MAX_MS))
    if given <= timezone.now():
        raise InvalidInput.of_field(field, _("must be in the future"))
    return given.replace(microsecond=0)


def has_ended(expires_at: datetime | None) -> bool:
    """Return True if a time has passed."""
    return expires_at is not None and expires_at <= timezone.now()


def set_defaults(owner: Owner, memories: Iterable[Memory]) -> dict[str, tuple[str, int]]:
    """Set when unsaved memories without a time expire, by the days of the user and of `MEMORY_GATEWAY_EXPIRY`.

    Of several the earliest wins. Passages of files get none. Return the default that was applied, its name and its
    days, by memory id. One statement if a memory has no time.
    """
    applied: dict[str, tuple[str, int]] = {}
    lasting = [one for one in memories if one.expires_at is None and not one.payload.get("resource_id")]
    if not lasting:
        return applied
    rules = _rules(owner)
    for memory in lasting if any(rules) else ():
        tags = memory.payload.get(TAGS)
        found = _earliest(rules, [memory.category, *_of_tags(tags if isinstance(tags, list | tuple) else ())])
        if found is not None:
            days, name = found
            applied[memory.memory_id] = name, days
            memory.expires_at = _after(days)
    return applied


def default_of_file(owner: Owner, tags: Sequence[str]) -> datetime | None:
    """Return when a new file with these tags expires by the defaults; None: never. One statement if it has tags."""
    found = _earliest(_rules(owner), _of_tags(tags)) if tags else None
    return None if found is None else _after(found[0])


def _rules(owner: Owner) -> list[Mapping[str, int]]:
    return [settings.MEMORY_GATEWAY_EXPIRY, expiry.days_of(owner.user_pk)]


def _of_tags(tags: Iterable[str]) -> list[str]:
    return [f"{OF_TAG}{tag}" for tag in tags]


def _earliest(rules: Iterable[Mapping[str, int]], names: Iterable[str]) -> tuple[int, str] | None:
    """Return the fewest days of rules with one of the names, and that name."""
    known = list(names)
    return min(((rule[name], name) for rule in rules for name in known if name in rule), default=None)


def _after(days: int) -> datetime:
    return timezone.now().replace(microsecond=0) + timedelta(days=days)


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
