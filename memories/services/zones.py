"""The zone in which a user writes and asks: that of the request, else of the profile, else of the installation."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final
from uuid import UUID

from django.utils import timezone

from accounts.zones import zone_of_user
from core.errors import InvalidInput
from core.messages import Translatable as _
from core.times import from_ms, to_ms
from core.zones import offset_minutes, zone_of
from memories.services.scoped_hits import SearchCommand
from store import filters
from store.text import times

NO_TIME: Final = _("must be a date such as 2026-06-01, an ISO 8601 time, or words such as last week")
_FIRST: Final = from_ms(0)
UNKNOWN_ZONE: Final = _("The time zone is not known, so days are those of the installation's time zone.")


def unknown_zone(requested: str) -> str | None:
    """Return what to tell a caller whose request names a zone that is not known; None without one."""
    return UNKNOWN_ZONE if requested and zone_of(requested) is None else None


def offset_of(zone: tzinfo, milliseconds: int) -> dict[str, int]:
    """Return what the payload of a memory says of its zone: the minutes from UTC at its time; nothing in UTC."""
    offset = offset_minutes(zone, milliseconds)
    return {"utc_offset": offset} if offset else {}


def with_local_now(command: SearchCommand, user_pk: UUID) -> SearchCommand:
    """Return the command with `now` in the user's zone and moments for days in its filters, if it may name a time.

    At most one SQL statement, and none for a command without filters and times.
    """
    if not command.filters and not times.may_mention(command.query):
        return command
    now = command.now or datetime.now(UTC)
    if command.zone or command.now is None:
        now = local(now, user_pk, command.zone)
    tree = filters.with_moments(command.filters, now) if isinstance(command.filters, Mapping) else command.filters
    return replace(command, now=now, filters=tree)


def filters_now(tree: Mapping[str, Any] | None, user_pk: UUID) -> Mapping[str, Any] | None:
    """Return filters with moments for days in the user's zone. At most one SQL statement, and none without filters."""
    return filters.with_moments(tree, local(datetime.now(UTC), user_pk)) if tree else tree


def end_of(written: str, now: datetime) -> datetime | None:
    """Return the time that a text names, for a day or another span its end where `now` is; None if it names none.

    Times without a zone are of that zone, too.
    """
    if (days := times.days_of(written, now)) is not None:
        return from_ms(min(times.span_of(days, now)[1], filters.MAX_MS))
    return moment_of(written, now)


def moment_of(written: str, now: datetime) -> datetime | None:
    """Return an ISO 8601 time, in the zone of `now` if it has none; None for another text."""
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)


def as_of_time(written: str, user_pk: UUID, requested: str = "", now: datetime | None = None) -> datetime:
    """Return the time that `as_of` names; of a day or another span its end, or the present if it has not ended.

    At most one SQL statement. Raises: `InvalidInput` for other texts, and for times in the future.
    """
    present = timezone.now()
    here = local(now or present, user_pk, requested)
    days = times.days_of(written, here)
    moment = end_of(written, here)
    if moment is None:
        raise InvalidInput.of_field("as_of", NO_TIME)
    if days is not None and times.span_of(days, here)[0] <= to_ms(present):
        moment = min(moment - timedelta(milliseconds=1), present)
    if moment > present:
        raise InvalidInput.of_field("as_of", _("must not be in the future: leave it out for what is current now"))
    return max(moment, _FIRST)


def local(now: datetime, user_pk: UUID, requested: str = "") -> datetime:
    """Return a time in the zone of a user, unchanged at the ends of the calendar. At most one SQL statement."""
    with suppress(OverflowError):
        return now.astimezone(zone_of_user(user_pk, requested))
    return now
