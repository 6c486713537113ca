"""The numbers of the dashboard as lengths of SVG: everything in percent, so that pictures stretch without script."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.utils import timezone

from core.times import to_ms
from store.categories import tab_of

STACK: Final = ("full", "user", "self", "")  # from the ground up
MAX_LABELS: Final = 10
_GAP = 0.3
Link = Callable[[datetime, datetime], str]
_HOURLY, _DAILY = timedelta(hours=48), timedelta(days=60)


class Edges(NamedTuple):
    """Where buckets begin and end; `unit` is hour, day or month."""

    unit: str
    at: tuple[datetime, ...]

    @property
    def ms(self) -> list[int]:
        return [to_ms(edge) for edge in self.at]


class _Grid(NamedTuple):
    """What all columns share: the number at the top, a column's width in percent, every how many one has a label."""

    found: Edges
    top: int
    step: float
    every: int


@dataclass(frozen=True, slots=True)
class Piece:
    """One kind's part of a column, in percent from the top."""

    kind: str
    y: str
    height: str


@dataclass(frozen=True, slots=True)
class Column:
    """One bucket: its bar, its numbers for the table, the list that it stands for."""

    label: str
    full_label: str
    since: datetime
    until: datetime
    x: str
    middle: str
    width: str
    pieces: tuple[Piece, ...]
    counts: Mapping[str, int]
    total: int
    is_labelled: bool
    is_minor: bool
    url: str

    @property
    def other(self) -> int:
        """What no tab shows, passages of files above all."""
        return self.counts.get("", 0)


@dataclass(frozen=True, slots=True)
class Trend:
    unit: str
    columns: tuple[Column, ...]
    ticks: tuple[str, ...]
    before: str
    """The period before as points of a line in a box of 100 × 100, empty without one."""


def edges(since: datetime, until: datetime) -> Edges:
    """Hours up to two days, days up to sixty, else months; on the viewer's clock, from the one that holds `since` to
    the end of the one that holds `until`."""
    span = until - since
    start = timezone.localtime(since).replace(minute=0, second=0, microsecond=0)
    unit = "hour" if span <= _HOURLY else "day" if span <= _DAILY else "month"
    if unit != "hour":
        start = start.replace(hour=0)
    if unit == "month":
        start = start.replace(day=1)
    found = [start]
    while found[-1] < until:
        found.append(_next(found[-1], unit))
    return Edges(unit, tuple(found))


def _next(edge: datetime, unit: str) -> datetime:
    """On the wall clock: a day of 23 hours is a day. Hours are counted in real time, so that none comes twice."""
    if unit == "hour":
        return timezone.localtime(timezone.localtime(edge, timezone.get_default_timezone()) + timedelta(hours=1))
    day = (edge.replace(day=1) + timedelta(days=32)).replace(day=1) if unit == "month" else edge + timedelta(days=1)
    return timezone.make_aware(day.replace(tzinfo=None, fold=0))


def trend(found: Edges, buckets: Sequence[Mapping[str, int]], before: Sequence[int], link: Link) -> Trend:
    """`buckets` by category, `before` the totals of the period before, bucket by bucket; `link` gives the list of a
    bucket."""
    counts = [by_tab(bucket) for bucket in buckets]
    top = nice(max([sum(one.values()) for one in counts] + [*before, 1]))
    grid = _Grid(found, top, 100 / max(len(counts), 1), math.ceil(len(counts) / MAX_LABELS))
    columns = tuple(_column(grid, number, one, link) for number, one in enumerate(counts))
    line = " ".join(
        f"{(number + 0.5) * grid.step:.2f},{100 - 100 * value / top:.2f}"
        for number, value in enumerate(before[: len(counts)])
    )
    return Trend(found.unit, columns, tuple(short(top * part / 4) for part in (4, 3, 2, 1, 0)), line)


def by_tab(bucket: Mapping[str, int]) -> dict[str, int]:
    sums = dict.fromkeys(STACK, 0)
    for category, count in bucket.items():
        sums[tab_of(category)] += count
    return sums


def _column(grid: _Grid, number: int, counts: Mapping[str, int], link: Link) -> Column:
    found, top, step, every = grid
    since, until = found.at[number], found.at[number + 1]
    pieces, ground = [], 100.0
    for kind in STACK:
        if counts[kind]:
            height = max(100 * counts[kind] / top, 0.8)
            ground -= height
            pieces.append(Piece(kind or "other", f"{ground:.2f}%", f"{height:.2f}%"))
    return Column(
        label=_label(since, found.unit),
        full_label=_label(since, found.unit, is_full=True),
        since=since,
        until=until,
        x=f"{number * step + step * _GAP / 2:.3f}%",
        middle=f"{(number + 0.5) * step:.3f}%",
        width=f"{step * (1 - _GAP):.3f}%",
        pieces=tuple(pieces),
        counts=counts,
        total=sum(counts.values()),
        is_labelled=number % every == every // 2,
        is_minor=number // every % 2 == 1,
        url=link(since, until),
    )


def _label(edge: datetime, unit: str, *, is_full: bool = False) -> str:
    if unit == "month":
        return f"{edge:%Y-%m}"
    if is_full:
        return f"{edge:%Y-%m-%d %H:%M}" if unit == "hour" else f"{edge:%Y-%m-%d}"
    return f"{edge:%H:%M}" if unit == "hour" else f"{edge:%m-%d}"


def nice(value: float) -> int:
    """The next number of 1, 2, 4, 6, 8 × 10ⁿ, or of small ones of 4, 8, …, 20: a quarter of it is a whole number."""
    if value <= 20:
        return max(4, 4 * math.ceil(value / 4))
    power = 10 ** math.floor(math.log10(value))
    return int(next(factor * power for factor in (1, 2, 4, 6, 8, 10) if factor * power >= value))


def short(value: float) -> str:
    """A tick's number, as short as it can be said."""
    for size, sign in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value / size:.3g}{sign}"
    return f"{value:.3g}"


def spark(values: Sequence[int]) -> str:
    """A small line in a box of 100 × 28; at most thirty points."""
    if len(values) < 2:
        return ""
    size = math.ceil(len(values) / 30)
    sums = [sum(values[start : start + size]) for start in range(0, len(values), size)]
    most = max([*sums, 1])
    step = 100 / max(len(sums) - 1, 1)
    return " ".join(f"{number * step:.1f},{26 - 24 * value / most:.1f}" for number, value in enumerate(sums))


def change(now: int, before: int | None) -> str:
    """Against the period before, as a signed share; empty where there is nothing to compare with."""
    if not before:
        return ""
    share = round((now - before) / before, 3)
    sign = "+" if share > 0 else "−" if share < 0 else ""
    return f"{sign}{abs(share) * 100:,.1f}%"
