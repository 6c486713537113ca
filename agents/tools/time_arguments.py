"""The arguments of tools that name a time: ISO dates, ISO times and words such as "last week"."""

from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from agents.tools.caller import Caller
from core.errors import InvalidInput
from core.messages import Translatable as _
from core.storable import check_text
from core.times import to_ms
from memories.services import zones
from store.text import times

MAX_CHARS: Final = 64
NEVER: Final = "never"


def _check(value: str) -> str:
    check_text(value)
    now = datetime.now(UTC)
    if zones.end_of(value, now) is None:
        raise ValueError(zones.NO_TIME)
    return value


_Time = Annotated[str, Field(max_length=MAX_CHARS), AfterValidator(_check)]
Since = Annotated[
    _Time | None, Field(description="Only memories from this time on: `2026-06-01`, or words such as `last week`.")
]
Until = Annotated[
    _Time | None, Field(description="Only memories until the end of this time: `2026-06-30`, or `yesterday`.")
]


AsOf = Annotated[
    _Time | None,
    Field(description="Answer as of then: `2026-06-30`, or `last month`. Deleted and corrected texts stay gone."),
]


def _check_end(value: str) -> str:
    return NEVER if value.strip().lower() == NEVER else _check(value.strip())


Expires = Annotated[
    Annotated[str, Field(max_length=MAX_CHARS), AfterValidator(_check_end)] | None,
    Field(description="When it expires: a time, the last day (`2026-12-31`), or `never`."),
]


def end_of(caller: Caller, value: str | None) -> datetime | None:
    """Return the time that `expires_at` names, for a day its end where the caller is; None for never."""
    if value is None or value == NEVER:
        return None
    moment = zones.end_of(value, zones.local(datetime.now(UTC), caller.owner.user_pk))
    if moment is None:
        raise InvalidInput.of_field("expires_at", _("must be a date or a time"))
    return moment.replace(microsecond=0)


def as_of_time(caller: Caller, value: str | None) -> datetime | None:
    """Return the time that `as_of` names; None without one. Raises: `InvalidInput` for the future."""
    return None if value is None else zones.as_of_time(value, caller.owner.user_pk)


def time_filter(since: str | None, until: str | None) -> dict[str, Any] | None:
    """Return the filter of a search for what lies between two times; None without any."""
    bounds = {"gte": since, "lte": until}
    given = {op: value for op, value in bounds.items() if value is not None}
    return {"timestamp": given} if given else None


def bounds_ms(caller: Caller, since: str | None, until: str | None) -> dict[str, int]:
    """Return `since_ms` and `until_ms` of a list between two times, in the zone of the caller."""
    found: dict[str, int] = {}
    now = zones.local(datetime.now(UTC), caller.owner.user_pk) if since or until else datetime.now(UTC)
    for name, value, end in (("since_ms", since, 0), ("until_ms", until, 1)):
        if value is None:
            continue
        moment = zones.moment_of(value, now)
        days = times.days_of(value, now)
        if days is not None:
            found[name] = times.span_of(days, now)[end]
        elif moment is not None:
            found[name] = to_ms(moment) + end
    return found
