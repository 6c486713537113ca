"""The parts of rules that read relative expressions of time: patterns, windows, and words of several languages.

Patterns are matched with text that `normalize.fold` has folded.
"""

import re
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from typing import Final, NamedTuple, Self

from core.patterns import lazy_pattern
from store.text import time_windows as windows
from store.text.time_windows import Window

RECENT_DAYS: Final = 30


class Rule(NamedTuple):
    """A pattern and the windows that it means.

    `is_duration`: it may be a duration ("in two weeks"), so its words stay in the text, and it means no time after a
    verb of the past. `queries_only`: a message that says it means its own time, or none. `keeps_words`: its words may
    be those of a memory ("Christmas"), so they stay in the text. `of_past`: it means a time after a verb of the past
    only ("What did I do in winter?").
    """

    pattern: re.Pattern[str]
    windows: Callable[[date, dict[str, str]], list[Window]]
    needs: tuple[str, ...]
    is_duration: bool = False
    queries_only: bool = False
    keeps_words: bool = False
    of_past: bool = False

    def may_match(self, text: str) -> bool:
        """Return False if the text certainly has no match. Much faster than the pattern."""
        return any(map(text.__contains__, self.needs)) and self.pattern.search(text) is not None


def words_of(**values: str) -> dict[str, str]:
    return {word: key for key, words in values.items() for word in words.split()}


def any_of(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def numbered(words: str, start: int = 0) -> dict[str, int]:
    return {word: number for number, group in enumerate(words.split("|"), start) for word in group.split()}


NUMBERS: Final = numbered(
    "|a an one ein einem einer einen eine 一 un una uno une um uma|two zwei 二 两 dos deux dois duas"
    "|three drei 三 tres trois|four vier 四 cuatro quatre quatro|five funf fuenf 五 cinco cinq|six sechs 六 seis"
    "|seven sieben 七 siete sept sete|eight acht 八 ocho huit oito|nine neun 九 nueve neuf nove"
    "|ten zehn 十 diez dix dez|eleven elf 十一 once onze|twelve zwolf zwoelf 十二 doce douze doze|||quince quinze"
)
WEEKDAYS: Final = numbered(
    "monday mon montag 一 lunes lundi segunda|tuesday tue tues dienstag 二 martes mardi terca"
    "|wednesday wed mittwoch 三 miercoles mercredi quarta|thursday thu thur thurs donnerstag 四 jueves jeudi quinta"
    "|friday fri freitag 五 viernes vendredi sexta|saturday samstag sonnabend 六 sabado samedi"
    "|sunday sonntag 日 天 domingo dimanche"
)
UNITS: Final = words_of(
    day="day days tag tage tagen tages 天 日 dia dias jour jours",
    week="week weeks wk wks fortnight woche wochen 周 星期 礼拜 semana semanas semaine semaines",
    weekend="weekend weekends wochenende wochenendes 周末 finde week-end week-ends",
    month="month months monat monate monaten monats 月 mes meses mois",
    year="year years yr yrs jahr jahre jahren jahres 年 ano anos an ans annee annees",
    hour="hour hours hr hrs minute minutes min mins second seconds stunde stunden minute minuten 小时 分钟 钟头 "
    "hora horas heure heures minuto minutos",
)
SEASONS: Final = numbered(
    "spring fruhling fruehling fruhjahr fruehjahr 春 primavera printemps|summer sommer 夏 verano ete verao"
    "|fall autumn herbst 秋 otono automne outono|winter 冬 invierno hiver inverno"
)
FEW: Final = (2, 6)
COUPLE: Final = (1, 3)


def number_in(parts: dict[str, str]) -> int:
    written = parts.get("n", "1")
    return int(written) if written.isascii() and written.isdecimal() else NUMBERS[written]


def unit_in(parts: dict[str, str]) -> str:
    unit = parts["unit"].removeprefix("个")
    return "weekend" if "de semana" in unit.replace("-", " ") else UNITS[unit]


def weekday_in(parts: dict[str, str]) -> int:
    return WEEKDAYS[parts["weekday"]]


def amount(today: date, parts: dict[str, str], sign: int) -> list[Window]:
    """Return "`n` units ago" (-1) or "in `n` units" (1), also for "a few" and "a couple of"."""
    if "few" in parts:
        return windows.between(today, FEW, unit_in(parts), sign)
    if "couple" in parts:
        return windows.between(today, COUPLE, unit_in(parts), sign)
    if "half" in parts:
        return windows.around(today, sign * 6, "month")
    number = number_in(parts)
    if parts["unit"] == "fortnight":
        number *= 2
    return windows.around(today, sign * number, unit_in(parts))


def length(today: date, parts: dict[str, str], sign: int) -> list[Window]:
    """Return "the last `n` units" (-1) or "the next `n` units" (1)."""
    if "few" in parts or "couple" in parts:
        return windows.span(today, sign * (6 if "few" in parts else 3), unit_in(parts))
    if "half" in parts:
        return windows.span(today, sign * 6, "month")
    return windows.span(today, sign * number_in(parts), unit_in(parts))


def calendar(today: date, parts: dict[str, str], number: int) -> list[Window]:
    return windows.CALENDAR[unit_in(parts)](today, number)


def rule(needs: str, pattern: str, windows_of: Callable[[date, dict[str, str]], list[Window]], **options: bool) -> Rule:
    """Return a rule; every match contains one of the texts `needs`, which are separated by "|"."""
    return Rule(lazy_pattern(pattern), windows_of, tuple(needs.split("|")), **options)


def simple(needs: str, pattern: str, number: int) -> Rule:
    return rule(needs, pattern, lambda today, _: windows.day_window(today, number))


def recent(needs: str, pattern: str) -> Rule:
    """Return a rule for "recently" in a query."""
    return rule(needs, pattern, lambda today, _: [Window(today - timedelta(RECENT_DAYS), today)], queries_only=True)


def this_or_last_weekend(today: date) -> list[Window]:
    return windows.weekend_window(today, 0) + (windows.weekend_window(today, -1) if today.weekday() < 5 else [])


def which_weekday(today: date, weekday: int, number: int) -> list[Window]:
    """Return "last" (-1), "this" (0) or "next" (1) Tuesday."""
    if number < 0:
        return windows.past_weekday(today, weekday)
    return windows.next_weekday(today, weekday) if number else windows.this_weekday(today, weekday)


def feast(needs: str, pattern: str, first: tuple[int, int], days: int = 1) -> Rule:
    """Return a rule for days of every year, from the month and day `first` on: the latest and the coming ones."""
    return rule(
        needs, rf"\b(?:{pattern})\b(?! (?:19|20)\d\d)" if pattern.isascii() else pattern,
        lambda today, _: windows.yearly(today, *first, days), queries_only=True, keeps_words=True,
    )  # fmt: skip


def month_day(needs: str, pattern: str) -> Rule:
    """Return a rule for "the 14th" of a month that is not named: the latest and the coming one."""
    return rule(needs, pattern, lambda today, parts: windows.month_days(today, int(parts["n"])), queries_only=True)


def year(needs: str, pattern: str) -> Rule:
    """Return a rule for a year in a query, whose messages hold no word for it."""
    return rule(
        needs, pattern, lambda today, parts: windows.year_window(today, int(parts["year"]) - today.year),
        queries_only=True, keeps_words=True,
    )  # fmt: skip


def season(needs: str, pattern: str) -> Rule:
    """Return a rule for "in winter" after a verb of the past: the latest one."""
    return rule(
        needs, pattern, lambda today, parts: windows.latest_season(today, SEASONS[parts["season"]]),
        queries_only=True, keeps_words=True, of_past=True,
    )  # fmt: skip


class Language(NamedTuple):
    """The rules of a language, and patterns of what they do not mean. A match contains one of the texts `needs`.

    With `names` they are for texts of these languages alone (`store.text.languages`), because others have their words.
    """

    rules: tuple[Rule, ...]
    not_meant: tuple[re.Pattern[str], ...]
    needs: tuple[str, ...]
    names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, rules: tuple[Rule, ...], not_meant: tuple[re.Pattern[str], ...], names: Iterable[str] = ()) -> Self:
        texts = {text for rule in rules for text in rule.needs}
        needs = tuple(text for text in texts if not any(one in text for one in texts - {text}))
        return cls(rules, not_meant, needs, frozenset(names))
