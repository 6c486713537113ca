"""Pages of a list by key: as quick on the last page as on the first, and stable while rows come and go."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, NamedTuple, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.utils.translation import gettext as _

from console.state import Cleaner, State

_Row = TypeVar("_Row", bound=Model)
_PLACE = re.compile(r"([0-9]{1,17})\.([A-Za-z0-9_.@+-]{1,64})")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Place(NamedTuple):
    """Where a page ends: a time to the microsecond, and the key of the row."""

    at: datetime
    key: str


@dataclass(frozen=True, slots=True)
class Found(Generic[_Row]):
    """A page, newest first; `previous` and `following` are places as addresses have them, or empty."""

    rows: list[_Row]
    previous: str
    following: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Paged(State):
    """A list's place in its address."""

    after: str = ""
    before: str = ""

    @classmethod
    def places(cls) -> Mapping[str, Cleaner]:
        return {"after": place, "before": place}

    def first_page(self, **changes: str) -> str:
        """The address of the first page of the same list, with other filters perhaps."""
        return self.url(**{"after": "", "before": "", **changes})

    def neighbours(self, found: Found[Any]) -> dict[str, str]:
        """The addresses of the pages before and after."""
        return {
            "previous": self.first_page(before=found.previous) if found.previous else "",
            "following": self.first_page(after=found.following) if found.following else "",
        }


def newest_first(rows: QuerySet[_Row], state: Paged, *, limit: int, time: str = "") -> Found[_Row]:
    """At most `limit` rows after or before the state's place. `time` names the column that orders them, their primary
    key decides between equals; without one the key alone orders them. A place of another list is the first page."""
    after = _place_among(rows, state.after)
    before = _place_among(rows, state.before) if after is None else None
    if before is not None:
        ahead = list(rows.filter(_beyond(time, before, "gt")).order_by(*_order(time))[: limit + 1])
        page = ahead[:limit][::-1]
        return Found(page, _place(page[0], time) if len(ahead) > limit else "", _place(page[-1], time) if page else "")
    if after is not None:
        rows = rows.filter(_beyond(time, after, "lt"))
    found = list(rows.order_by(*_order(time, "-"))[: limit + 1])
    page = found[:limit]
    return Found(
        page,
        _place(page[0], time) if after is not None and page else "",
        _place(page[-1], time) if len(found) > limit else "",
    )


def place(value: str) -> str:
    """A cleaner. Errors: ValueError for what `newest_first` did not make."""
    _parse(value)
    return value


def _parse(value: str) -> Place:
    found = _PLACE.fullmatch(value)
    if found is None:
        raise ValueError(_("is no place in this list"))
    try:
        return Place(_EPOCH + timedelta(microseconds=int(found[1])), found[2])
    except OverflowError:
        raise ValueError(_("is no place in this list")) from None


def _place_among(rows: QuerySet[_Row], value: str) -> Place | None:
    """None also for a key that these rows cannot have."""
    if not value:
        return None
    found = _parse(value)
    try:
        rows.model._meta.pk.to_python(found.key)  # noqa: SLF001
    except ValidationError:
        return None
    return found


def _place(row: Model, time: str) -> str:
    at = (getattr(row, time) - _EPOCH) // timedelta(microseconds=1) if time else 0
    return f"{at}.{row.pk}"


def _order(time: str, sign: str = "") -> list[str]:
    return [sign + name for name in (time, "pk") if name]


def _beyond(time: str, at: Place, side: str) -> Q:
    """The first condition is for the index, the second for those of the same moment."""
    if not time:
        return Q(**{f"pk__{side}": at.key})
    return Q(**{f"{time}__{side}e": at.at}) & (Q(**{f"{time}__{side}": at.at}) | Q(**{f"pk__{side}": at.key}))
