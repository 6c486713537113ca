"""The states of the dashboard and of the lists: which memories are meant, and where in the list one is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any, Final, NamedTuple

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from console.state import MAX_WORDS_CHARS, Cleaner, State, day, moment, one_of, parse_moment, share, text
from core.times import to_ms
from store.browse import Selection
from store.categories import CATEGORIES, TABS, label
from store.types import Position

RANGES: Final = {
    "24h": timedelta(days=1),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "2y": timedelta(days=730),
}
RANGE_LABELS: Final = {
    "24h": gettext_lazy("24 h"),
    "7d": gettext_lazy("7 days"),
    "30d": gettext_lazy("30 days"),
    "2y": gettext_lazy("2 years"),
}
ORIGINS: Final = {
    "embedded": gettext_lazy("conversation or file"),
    "upstream": gettext_lazy("EverOS"),
    "panel": gettext_lazy("by hand"),
    "tool": gettext_lazy("agent's tool"),
    "extracted": gettext_lazy("language model"),
}
SORTS: Final = ("newest", "oldest")
ALL_TAB: Final = "all"  # besides the document's three: what no category names, passages of files above all
TAB_LABELS: Final = {
    "user": pgettext_lazy("kind of memory", "User"),
    "self": pgettext_lazy("kind of memory", "Self-improving"),
    "full": pgettext_lazy("kind of memory", "Full context"),
    ALL_TAB: gettext_lazy("All"),
}
_POSITION = re.compile(r"(-?[0-9]{1,15})\.([0-9]{1,18})")


class Chip(NamedTuple):
    """A filter in force, in words, and the address without it."""

    label: str
    value: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFilter(State):
    """What narrows memories down, the same on the dashboard and in the lists."""

    range: str = ""
    since: str = ""
    until: str = ""
    user: str = ""
    agent: str = ""
    session: str = ""
    app: str = ""
    project: str = ""

    @classmethod
    def cleaners(cls) -> Mapping[str, Cleaner]:
        return {
            "range": one_of(*RANGES, "all"),
            "from": moment,
            "to": moment,
            "user": text(64),
            "agent": text(64),
            "session": text(128),
            "app": text(64),
            "project": text(64),
        }

    @property
    def since_input(self) -> str:
        """As a field for day and time wants it; a day begins at midnight."""
        return _as_input(self.since)

    @property
    def until_input(self) -> str:
        if not self.until or len(self.until) > 10:
            return self.until
        return f"{timezone.localtime(parse_moment(self.until, is_end=True)):%Y-%m-%dT%H:%M}"

    @property
    def has_own_times(self) -> bool:
        return bool(self.since or self.until)

    def span(self, now: datetime) -> tuple[datetime | None, datetime | None]:
        """From when to when; None where nothing bounds it. Times of one's own go before a range."""
        if self.has_own_times:
            since = parse_moment(self.since) if self.since else None
            return since, parse_moment(self.until, is_end=True) if self.until else None
        return (now - RANGES[self.range], None) if self.range in RANGES else (None, None)

    def is_backwards(self, now: datetime) -> bool:
        since, until = self.span(now)
        return since is not None and until is not None and since >= until

    def chips(self) -> list[Chip]:
        """The filters in force, each with the address without it."""
        named = {
            "since": _("From"),
            "until": _("To"),
            "user": _("User"),
            "agent": _("Agent"),
            "session": _("Session"),
            "app": _("App"),
            "project": _("Project"),
        }
        return [
            Chip(label, getattr(self, name).replace("T", " "), self.url(**{name: ""}, **self._first_page()))
            for name, label in named.items()
            if getattr(self, name)
        ]

    def ranges(self) -> list[dict[str, Any]]:
        """The presets as links."""
        return [
            {
                "label": label,
                "url": self.url(range=name, since="", until="", **self._first_page()),
                "is_on": self.range == name and not self.has_own_times,
            }
            for name, label in RANGE_LABELS.items()
        ]

    def _first_page(self) -> dict[str, str]:
        """What another filter takes back: the place in the list."""
        return {}

    def _selection(self, now: datetime, user_pk: Any) -> dict[str, Any]:
        since, until = self.span(now)
        return {
            "user_pk": user_pk,
            "app_id": self.app or None,
            "project_id": self.project or None,
            "agent_id": self.agent or None,
            "session_id": self.session or None,
            "since_ms": None if since is None else to_ms(since),
            "until_ms": None if until is None else to_ms(until),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardState(MemoryFilter):
    """The dashboard shows thirty days unless told otherwise."""

    range: str = "30d"

    @classmethod
    def defaults(cls) -> Mapping[str, str]:
        return {"range": "30d"}

    def is_backwards(self, now: datetime) -> bool:
        """It ends now unless told otherwise, so that it cannot begin tomorrow."""
        since, until = self.span(now)
        return since is not None and to_ms(since) >= to_ms(until or now)

    def selection(self, now: datetime, user_pk: Any) -> Selection:
        return Selection(**self._selection(now, user_pk))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListState(MemoryFilter):
    """A list of memories: its tab, its filters, its order and the place in it."""

    tab: str = "user"
    q: str = ""
    category: str = ""
    origin: str = ""
    importance_min: str = ""
    importance_max: str = ""
    sort: str = "newest"
    after: str = ""
    before: str = ""
    at: str = ""

    @classmethod
    def defaults(cls) -> Mapping[str, str]:
        return {"tab": "user", "sort": "newest"}

    @classmethod
    def cleaners(cls) -> Mapping[str, Cleaner]:
        return {
            "tab": one_of(*TABS, ALL_TAB),
            "q": text(MAX_WORDS_CHARS),
            **MemoryFilter.cleaners(),
            "category": one_of(*CATEGORIES),
            "origin": one_of(*ORIGINS),
            "importance_min": share,
            "importance_max": share,
            "sort": one_of(*SORTS),
            "after": position,
            "before": position,
            "at": day,
        }

    def _first_page(self) -> dict[str, str]:
        return {"after": "", "before": "", "at": ""}

    def ranges(self) -> list[dict[str, Any]]:
        """A list is of any time until a preset narrows it down, and again after."""
        url = self.first_page(range="", since="", until="")
        any_time = {"label": _("Any time"), "url": url, "is_on": self.range not in RANGES and not self.has_own_times}
        return [any_time, *super(ListState, self).ranges()]

    def chips(self) -> list[Chip]:
        return [*self._own_chips(), *super(ListState, self).chips()]

    def _own_chips(self) -> Iterator[Chip]:
        labelled = (
            ("q", _("Words"), self.q),
            ("category", _("Category"), str(label(self.category))),
            ("origin", _("Origin"), str(ORIGINS.get(self.origin, ""))),
            ("importance_min", _("Importance"), f"≥ {self.importance_min}"),
            ("importance_max", _("Importance"), f"≤ {self.importance_max}"),
        )
        for name, title, value in labelled:
            if getattr(self, name):
                yield Chip(title, value, self.first_page(**{name: ""}))

    @property
    def is_whole(self) -> bool:
        """Whether nothing narrows the list but who wrote it and where."""
        return {name for name, _value in self.parameters()} <= {"tab", "user", "agent", "app", "project", "sort"}

    @property
    def filter_count(self) -> int:
        """How many filters are set besides the words and the range."""
        beside = {"tab", "q", "range", "sort", "after", "before", "at"}
        return sum(name not in beside for name, _value in self.parameters())

    @property
    def oldest_first(self) -> bool:
        return self.sort == "oldest"

    def first_page(self, **changes: str) -> str:
        """The address of the first page of the same list, with other filters perhaps."""
        return self.url(**{**self._first_page(), **changes})

    def clear(self) -> str:
        """The address of the whole tab."""
        return type(self)(path=self.path, tab=self.tab).url()

    def selection(self, now: datetime, user_pk: Any) -> Selection:
        return Selection(
            **self._selection(now, user_pk),
            tab=None if self.tab == ALL_TAB else self.tab,
            categories=(self.category,) if self.category else (),
            origin=self.origin or None,
            importance_min=float(self.importance_min) if self.importance_min else None,
            importance_max=float(self.importance_max) if self.importance_max else None,
        )

    def places(self) -> dict[str, Position | None]:
        """Where the page begins or ends: after or before a place, or at a day."""
        if self.at:
            return {"after": self._day_place(), "before": None}
        return {
            "after": parse_position(self.after) if self.after else None,
            "before": parse_position(self.before) if self.before else None,
        }

    def _day_place(self) -> Position:
        """Right before the first row of the day, in the order of the list."""
        start = timezone.make_aware(datetime.combine(date.fromisoformat(self.at), time()))
        return Position(to_ms(start if self.oldest_first else start + timedelta(days=1)), 0)

    @property
    def kept(self) -> list[tuple[str, str]]:
        """The parameters that a jump to another day keeps."""
        return [(name, value) for name, value in self.parameters() if name not in {"after", "before", "at"}]


def position(value: str) -> str:
    parse_position(value)
    return value


def parse_position(value: str) -> Position:
    found = _POSITION.fullmatch(value)
    if found is None:
        raise ValueError(_("is no place in this list"))
    return Position(int(found[1]), int(found[2]))


def write_position(place: Position) -> str:
    return f"{place.created_at_ms}.{place.row}"


def _as_input(value: str) -> str:
    return f"{value}T00:00" if value and len(value) <= 10 else value
