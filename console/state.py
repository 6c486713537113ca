"""A page's state is its address: parameters in, typed filters out, and addresses with one thing changed.

Every parameter is a plain string that one cleaner has looked at; what no cleaner accepts is left away and said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, Final, Self
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

MAX_WORDS_CHARS: Final = 2000
LABELS: Final = {
    "q": gettext_lazy("Words"),
    "range": gettext_lazy("Time range"),
    "from": gettext_lazy("From"),
    "to": gettext_lazy("To"),
    "at": gettext_lazy("Jump to"),
    "user": gettext_lazy("User"),
    "agent": gettext_lazy("Agent"),
    "session": gettext_lazy("Session"),
    "app": gettext_lazy("App"),
    "project": gettext_lazy("Project"),
    "category": gettext_lazy("Category"),
    "origin": gettext_lazy("Origin"),
    "importance_min": gettext_lazy("Importance at least"),
    "importance_max": gettext_lazy("Importance at most"),
    "radius": gettext_lazy("Least similarity, 0 to 1"),
    "method": gettext_lazy("Method"),
    "sort": gettext_lazy("Order"),
    "state": gettext_lazy("State"),
    "action": gettext_lazy("Action"),
    "actor": gettext_lazy("Actor"),
}
"""What pages call parameters."""
Cleaner = Callable[[str], str]


def plain(values: Iterable[str]) -> list[str]:
    """Without what no database has: PostgreSQL cannot even be asked for it."""
    return [value for value in values if "\x00" not in value]


def text(limit: int) -> Cleaner:
    """Any words up to a length, without control characters."""

    def clean(value: str) -> str:
        value = value.strip()
        if len(value) > limit or any(ord(char) < 32 for char in value):
            raise ValueError(_("is too long or holds control characters"))
        return value

    return clean


def one_of(*choices: str) -> Cleaner:
    def clean(value: str) -> str:
        if value not in choices:
            raise ValueError(_("is not one of the choices"))
        return value

    return clean


def share(value: str) -> str:
    """A number from 0 to 1."""
    try:
        inside = 0 <= float(value) <= 1
    except ValueError:
        inside = False
    if not inside:
        raise ValueError(_("must be a number from 0 to 1"))
    return value


def moment(value: str) -> str:
    """A day, or a time of the viewer's clock, as browsers send them."""
    parse_moment(value)
    return value


def day(value: str) -> str:
    try:
        _check_year(date.fromisoformat(value))
    except ValueError:
        raise ValueError(_("is no day: write 2026-11-20")) from None
    return value


def parse_moment(value: str, *, is_end: bool = False) -> datetime:
    """A day as an end is the end of that day. Errors: ValueError with a sentence."""
    try:
        found = datetime.fromisoformat(value)
        _check_year(found)
        if len(value) <= 10 and is_end:
            found += timedelta(days=1)
        return timezone.make_aware(found) if found.tzinfo is None else found
    except ValueError:
        raise ValueError(_("is no time: write 2026-11-20 or 2026-11-20T16:42")) from None


def _check_year(when: date) -> None:
    """Memories are of this age; a chart of ten thousand years would be drawn month by month. Errors: ValueError."""
    if not 2000 <= when.year <= 2100:
        raise ValueError(when.year)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Base of a page's state. A page's own class names its parameters as fields and their cleaners in `CLEANERS`."""

    path: str = ""
    problems: tuple[str, ...] = ()

    @classmethod
    def cleaners(cls) -> Mapping[str, Cleaner]:
        raise NotImplementedError

    @classmethod
    def defaults(cls) -> Mapping[str, str]:
        """Values that need not stand in the address."""
        return {}

    @classmethod
    def read(cls, path: str, query: QueryDict) -> Self:
        values: dict[str, str] = dict(cls.defaults())
        problems: list[str] = []
        for name, clean in cls.cleaners().items():
            given = query.get(name, "")
            if not given:
                continue
            try:
                values[name] = clean(given)
            except ValueError as error:
                problems.append(f"{LABELS.get(name, name)}: {error}")
        return cls(path=path, problems=tuple(problems), **{_attribute(name): value for name, value in values.items()})

    def url(self, **changes: Any) -> str:
        """The address with some parameters changed; an empty value takes one away."""
        query = urlencode(list(replace(self, **changes).parameters()))
        return f"{self.path}?{query}" if query else self.path

    def parameters(self) -> Iterator[tuple[str, str]]:
        """What stands in the address."""
        defaults = self.defaults()
        for name in self.cleaners():
            value = getattr(self, _attribute(name))
            if value and value != defaults.get(name, ""):
                yield name, value

    @property
    def query(self) -> str:
        return urlencode(list(self.parameters()))


_ATTRIBUTES: Final = {"from": "since", "to": "until"}


def _attribute(parameter: str) -> str:
    """`from` is no name that a field could have."""
    return _ATTRIBUTES.get(parameter, parameter)
