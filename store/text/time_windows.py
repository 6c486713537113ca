"""Windows of days, counted from a day: "last week", "two months ago", "on Friday".

A list of windows means any of them: "next Friday" is the coming one for some people, and that of the next week for
others.
"""

from calendar import monthrange
from collections.abc import Callable
from datetime import MAXYEAR, MINYEAR, date, timedelta
from typing import Final, NamedTuple


class Window(NamedTuple):
    """The days from `first` to `last`."""

    first: date
    last: date

    @property
    def is_whole(self) -> bool:
        """Return True if it consists of whole months."""
        return self.first.day == 1 and self.last.day == monthrange(self.last.year, self.last.month)[1]


def shift_months(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not MINYEAR <= year <= MAXYEAR:
        raise ValueError(year)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def day_window(today: date, number: int) -> list[Window]:
    day = today + timedelta(number)
    return [Window(day, day)]


def week_window(today: date, number: int) -> list[Window]:
    monday = today + timedelta(7 * number - today.weekday())
    return [Window(monday, monday + timedelta(6))]


def weekend_window(today: date, number: int) -> list[Window]:
    [(monday, sunday)] = week_window(today, number)
    return [Window(monday + timedelta(5), sunday)]


def month_window(today: date, number: int) -> list[Window]:
    first = shift_months(today.replace(day=1), number)
    return [Window(first, first.replace(day=monthrange(first.year, first.month)[1]))]


def year_window(today: date, number: int) -> list[Window]:
    return [Window(date(today.year + number, 1, 1), date(today.year + number, 12, 31))]


CALENDAR: Final[dict[str, Callable[[date, int], list[Window]]]] = {
    "day": day_window, "week": week_window, "weekend": weekend_window, "month": month_window, "year": year_window,
}  # fmt: skip


def around(today: date, number: int, unit: str) -> list[Window]:
    """Return the time `number` units from today: the longer ago, the less exact people say it."""
    sign, size = (1 if number > 0 else -1), abs(number)
    if unit == "hour":
        return day_window(today, 0 if size < 12 else sign * max(1, round(size / 24)))
    if unit == "day":
        spread = timedelta(0 if size < 7 else 1 if size < 21 else 3)
        [(day, _)] = day_window(today, number)
        return [Window(day - spread, day + spread)]
    if unit in {"week", "weekend"}:
        [(day, _)] = day_window(today, 7 * number)
        return [Window(day - timedelta(3), day + timedelta(3))]
    if unit == "month":
        day = shift_months(today, number)
        return [*month_window(today, number), Window(day - timedelta(10), day + timedelta(10))]
    return year_window(today, number)


def between(today: date, numbers: tuple[int, int], unit: str, sign: int) -> list[Window]:
    """Return the time "a few units ago", for `sign` 1 "in a few units"."""
    near, far = (shifted(today, sign * number, unit) for number in numbers)
    return [Window(min(near, far), max(near, far))]


def span(today: date, number: int, unit: str) -> list[Window]:
    """Return the time from `number` units before today until today, or from today to `number` units after it."""
    end = shifted(today, number, unit)
    return [Window(min(end, today), max(end, today))]


def shifted(today: date, number: int, unit: str) -> date:
    if unit in {"month", "year"}:
        return shift_months(today, number * (12 if unit == "year" else 1))
    if unit == "hour":
        return today + timedelta(round(number / 24) or (-1 if number < 0 else 1))
    return today + timedelta(number * (7 if unit in {"week", "weekend"} else 1))


def past_weekday(today: date, weekday: int) -> list[Window]:
    """Return "last Tuesday": the latest, and the one before it if the latest is in this week."""
    back = (today.weekday() - weekday - 1) % 7 + 1
    return day_window(today, -back) + (day_window(today, -back - 7) if back <= today.weekday() else [])


def next_weekday(today: date, weekday: int) -> list[Window]:
    """Return "next Friday": that of the next week, and the coming one."""
    ahead = (weekday - today.weekday() - 1) % 7 + 1
    return day_window(today, ahead) + (day_window(today, ahead + 7) if ahead < 7 - today.weekday() else [])


def this_weekday(today: date, weekday: int) -> list[Window]:
    """Return "on Friday": the coming or the latest one, and today if today is one."""
    back, ahead = (today.weekday() - weekday) % 7, (weekday - today.weekday()) % 7
    return (
        day_window(today, -back) + day_window(today, ahead)
        if ahead
        else day_window(today, 0) + day_window(today, -7) + day_window(today, 7)
    )


def weekday_of_week(today: date, weekday: int, week: int) -> list[Window]:
    return day_window(today, 7 * week + weekday - today.weekday())


def named_month(today: date, month: int, number: int) -> list[Window]:
    """Return "last June" (-1), "this June" (0) or "next June" (1)."""
    year = today.year
    if number < 0 and month >= today.month:
        year -= 1
    if number > 0 and month <= today.month:
        year += 1
    return [Window(date(year, month, 1), date(year, month, monthrange(year, month)[1]))]


def season_window(today: date, season: int, number: int) -> list[Window]:
    """Return "last summer" (-1), "this summer" (0) or "next summer" (1); 0 is spring, seasons begin in March."""
    first = date(today.year, 3 * season + 3, 1)
    while number < 0 and shift_months(first, 2) >= today.replace(day=1):
        first = shift_months(first, -12)
    if number > 0 and first <= today:
        first = shift_months(first, 12)
    last = shift_months(first, 2)
    return [Window(first, last.replace(day=monthrange(last.year, last.month)[1]))]


def latest_season(today: date, season: int) -> list[Window]:
    """Return the latest season that began; 0 is spring."""
    first = date(today.year, 3 * season + 3, 1)
    first = shift_months(first, -12) if first > today else first
    return [Window(first, month_window(first, 2)[0].last)]


def yearly(today: date, month: int, day: int, days: int) -> list[Window]:
    """Return the latest and the coming days of every year that begin with a month and day."""
    firsts = [date(today.year + number, month, day) for number in (-1, 0, 1)]
    coming = next(number for number, first in enumerate(firsts) if first > today)
    return [Window(first, first + timedelta(days - 1)) for first in firsts[coming - 1 : coming + 1]]


def month_days(today: date, day: int) -> list[Window]:
    """Return the latest and the coming day of a month with this number, today if it is that one."""
    months = [month_window(today, number)[0] for number in range(-2, 3)]
    found = [one.first.replace(day=day) for one in months if day <= one.last.day]
    past, coming = [one for one in found if one <= today], [one for one in found if one > today]
    return [Window(one, one) for one in (past[-1:] + ([] if past[-1:] == [today] else coming[:1]))]
