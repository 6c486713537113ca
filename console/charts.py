"""The dashboard's charts as SVG coordinates in percent: they scale without a script."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from django.utils import timezone
from django.utils.functional import Promise

from core.times import to_ms
from store.categories import tab_of

MAX_LABELS: Final = 10
_GAP = 0.3
_FACTORS: Final = (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 4.8, 6, 8, 10)
_HOURLY, _DAILY = timedelta(hours=48), timedelta(days=60)
_FORMATS: Final = {"hour": ("%H:%M", "%Y-%m-%d %H:%M"), "day": ("%m-%d", "%Y-%m-%d"), "month": ("%Y-%m", "%Y-%m")}


class Edges(NamedTuple):
    """The bounds of time buckets. `unit` is hour, day or month."""

    unit: str
    at: tuple[datetime, ...]

    @property
    def ms(self) -> list[int]:
        return [to_ms(edge) for edge in self.at]


def edges(since: datetime, until: datetime) -> Edges:
    """Return hours for up to two days, days for up to sixty, else months.

    They are in the operator's time zone, from the bucket that contains `since` to that of `until`.
    """
    span = until - since
    unit = "hour" if span <= _HOURLY else "day" if span <= _DAILY else "month"
    start = timezone.localtime(since).replace(minute=0, second=0, microsecond=0)
    if unit != "hour":
        start = start.replace(hour=0)
    if unit == "month":
        start = start.replace(day=1)
    found = [start]
    while found[-1] < until:
        found.append(_next(found[-1], unit))
    return Edges(unit, tuple(found))


def _next(edge: datetime, unit: str) -> datetime:
    """Return the next edge. Days are in wall clock time (one may have 23 hours), hours in real time (none repeats)."""
    if unit == "hour":
        return timezone.localtime(edge.astimezone(UTC) + timedelta(hours=1))
    day = (edge.replace(day=1) + timedelta(days=32)).replace(day=1) if unit == "month" else edge + timedelta(days=1)
    return timezone.make_aware(day.replace(tzinfo=None, fold=0))


def trend(
    found: Edges,
    kinds: Mapping[str, Promise | str],
    counts: Sequence[Mapping[str, int]],
    link: Callable[[datetime, datetime], str],
    *,
    before: Sequence[int] = (),
) -> dict[str, Any]:
    """Return the columns, ticks and line of a chart.

    `kinds` are the labels of the parts of a column, from bottom to top; `counts` are each bucket's by kind, and
    `before` the totals of the previous period. `link` returns the address of a bucket's list. The line is in a box of
    100 × 100, empty without a previous period.
    """
    top = round_up(max([sum(one.values()) for one in counts] + [*before, 1]))
    step = 100 / max(len(counts), 1)
    every = math.ceil(len(counts) / MAX_LABELS)  # the number of columns that share a label
    short_format, full_format = _FORMATS[found.unit]
    columns = []
    for number, (since, until, numbers) in enumerate(zip(found.at[:-1], found.at[1:], counts, strict=True)):
        full_label, total = f"{since:{full_format}}", sum(numbers.values())
        rows = [(label, numbers.get(kind, 0)) for kind, label in kinds.items()]
        columns.append(
            {
                "label": f"{since:{short_format}}",
                "full_label": full_label,
                "tooltip": "\n".join(
                    [f"{full_label}: {total:,}", *(f"{label} {count:,}" for label, count in rows if count)]
                ),
                "x": f"{number * step + step * _GAP / 2:.3f}%",
                "middle": f"{(number + 0.5) * step:.3f}%",
                "width": f"{step * (1 - _GAP):.3f}%",
                "pieces": _pieces(kinds, numbers, top),
                "counts": rows,
                "total": total,
                "is_labeled": number % every == every // 2,
                "is_minor": number // every % 2 == 1,
                "url": link(since, until),
            }
        )
    points = enumerate(before[: len(counts)])
    return {
        "kinds": kinds,
        "columns": columns,
        "ticks": [abbreviated(top * part / 4) for part in (4, 3, 2, 1, 0)],
        "before": " ".join(f"{(number + 0.5) * step:.2f},{100 - 100 * value / top:.2f}" for number, value in points),
    }


def _pieces(kinds: Iterable[str], counts: Mapping[str, int], top: int) -> list[dict[str, str]]:
    pieces, ground = [], 100.0
    for kind in kinds:
        if counts.get(kind):
            height = max(100 * counts[kind] / top, 0.8)
            ground -= height
            pieces.append({"kind": kind, "y": f"{ground:.2f}%", "height": f"{height:.2f}%"})
    return pieces


def by_tab(bucket: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of categories by tab. `other` counts memories without a tab, mostly passages of files."""
    sums: Counter[str] = Counter()
    for category, count in bucket.items():
        sums[tab_of(category) or "other"] += count
    return sums


def by_bucket(found: Edges, counts: Iterable[tuple[datetime, Mapping[str, int]]]) -> list[dict[str, int]]:
    """Return the sums of counts by kind for each bucket. Times outside are left out."""
    sums = [Counter[str]() for _ in found.at[1:]]
    for at, numbers in counts:
        number = bisect_right(found.at, at) - 1
        if 0 <= number < len(sums):
            sums[number].update(numbers)
    return [dict(one) for one in sums]


def round_up(value: float) -> int:
    """Return a round number of at least `value` that is divisible by four."""
    if value <= 20:
        return max(4, 4 * math.ceil(value / 4))
    power = 10 ** math.floor(math.log10(value))
    top: float = next(factor * power for factor in _FACTORS if factor * power >= value)
    return round(top)


def abbreviated(value: float) -> str:
    """Return a number for a tick, such as 25k."""
    for size, sign in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value / size:.3g}{sign}"
    return f"{value:.3g}"


def spark(values: Sequence[int]) -> str:
    """Return the points of a sparkline in a box of 100 × 28, at most thirty."""
    if len(values) < 2:
        return ""
    size = math.ceil(len(values) / 30)
    sums = [sum(values[start : start + size]) for start in range(0, len(values), size)]
    largest = max([*sums, 1])
    step = 100 / max(len(sums) - 1, 1)
    return " ".join(f"{number * step:.1f},{26 - 24 * value / largest:.1f}" for number, value in enumerate(sums))


def change(now: int, before: int | None) -> str:
    """Return the signed change from the previous period, empty without one."""
    if not before:
        return ""
    share = round((now - before) / before, 3)
    sign = "+" if share > 0 else "−" if share < 0 else ""
    return f"{sign}{abs(share) * 100:,.1f}%"
