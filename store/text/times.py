"""Read relative expressions of time: "yesterday", "two months ago", 上周三, "letzten Dienstag".

An expression becomes a window of days, and a window becomes tokens of the index. Those of a query find the messages of
these days (`d:2026-06-09`; whole months are `said-m:2026-05`) and texts that name them; those of a message its text,
counted from its own time, so that "Tomorrow I fly" is found by its date.

Precision comes first: titles, habits ("every Friday"), durations and times that count from another day are not read.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from functools import partial
from itertools import takewhile
from typing import Final, NamedTuple

from core.patterns import lazy_pattern
from store.text import dates, languages
from store.text.normalize import fold
from store.text.time_expressions import LANGUAGES, PAST
from store.text.time_rules import Language, Rule
from store.text.time_windows import Window, month_window, year_window

MAX_DAYS: Final = 46
"""The length of the longest window whose tokens are days; those of a longer one are months."""
MAX_READ: Final = 32
"""The number of expressions that are read in one text."""
_MAX_MONTHS = 36
_MASK = "\uffff"
_ISO = lazy_pattern(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?")
_JOINS = frozenset("-_/")
_CLAUSE_END = lazy_pattern("[.!?;。！？；]")


class Times(NamedTuple):
    """The tokens of the days that a query means, and the folded query without the expressions that were read.

    `spans` are the same days from the asker's midnight to midnight, as Unix milliseconds `first <= time < end`: they
    find what was said then in whatever zone, where `tokens` go by the day of the one who said it.
    """

    tokens: tuple[str, ...]
    rest: str
    spans: tuple[tuple[int, int], ...] = ()


def may_mention(text: str) -> bool:
    """Return False if a text certainly has no expression that `query_times` reads. Costs a few microseconds."""
    if text.isascii():
        return any(map(text.lower().__contains__, _TRIGGERS))
    return any(map(text.casefold().__contains__, _TRIGGERS)) or _HAN_TRIGGERS.search(text) is not None


def query_times(query: str, now: datetime) -> Times:
    """Return the tokens of the messages of the time that a query means; `now` is in the zone of the user.

    Without such a time: no tokens, and the folded query. "now", "currently" and 现在 mean no time.
    """
    folded = fold(query)
    if not may_mention(query):
        return Times((), folded)
    windows, rest = _read(query, folded, now.date())
    windows = _of_year(windows)
    tokens = dict.fromkeys(token for window in windows for token in _query_tokens(window))
    return Times(tuple(tokens), rest, tuple(dict.fromkeys(span_of(window, now) for window in windows)))


def _of_year(windows: list[Window]) -> list[Window]:
    """Return the windows in the year that one of them is, if there is one: "at Christmas in 2024"."""
    years = [window for window in windows if window == year_window(window.first, 0)[0]]
    parts = [window for window in windows if window not in years]
    if len(years) != 1 or not parts:
        return windows
    year = years[0].first.year
    inside = [window for window in parts if window.first.year == year]
    return inside or [
        Window(first, first + (window.last - window.first))
        for window in parts
        if (first := _date_or_none(year, window.first.month, window.first.day))
    ]


def message_tokens(text: str, day: date, tokens: Sequence[str]) -> list[str]:
    """Return the tokens of the days that a message means; none for its own `day`, which is indexed with every message.

    `tokens` are those of the text, which begin with its dates: "9 June" and "in June" are those nearest to the day.
    """
    return [*_nearest_tokens(tokens, day), *_window_tokens(text, day)]


def _nearest_tokens(tokens: Sequence[str], day: date) -> Iterator[str]:
    """Yield the full dates of days and months that the text names without a year."""
    if not tokens or not tokens[0].startswith("mo:"):
        return
    written = list(takewhile(lambda token: ":" in token, tokens))
    if any(token.startswith("y:") for token in written):
        return
    for token in written:
        kind, _, value = token.partition(":")
        if kind in {"mo", "md"}:
            month, number = int(value[:2]), int(value[3:] or 15)
            near = [found for year in (-1, 0, 1) if (found := _date_or_none(day.year + year, month, number))]
            nearest = min(near, key=lambda one: abs(one - day), default=day)
            yield f"d:{nearest}" if kind == "md" else f"m:{nearest:%Y-%m}"


def _date_or_none(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _window_tokens(text: str, day: date) -> list[str]:
    if not may_mention(text):
        return []
    windows, _ = _read(text, fold(text), day, is_query=False)
    found = (token for window in windows if window != (day, day) for token in _mention_tokens(window, day))
    return list(dict.fromkeys(found))


def days_of(text: str, now: datetime) -> Window | None:
    """Return the days that a text names, and nothing else: `2026-06-01`, `2026-06`, "5 March 2026", "last week".

    None for any other text.
    """
    folded = fold(text.strip())
    if match := _ISO.fullmatch(folded):
        year, month, day = (int(part) if part else None for part in match.groups())
        first = _date_or_none(year or 0, month or 1, day or 1)
        if first is None:
            return None
        if day:
            return Window(first, first)
        return Window(first, month_window(first, 0)[0].last if month else first.replace(month=12, day=31))
    tokens, rest = dates.extract(folded)
    if not rest.strip() and (written := [token[2:] for token in tokens if token.startswith("d:")]):
        return Window(date.fromisoformat(written[0]), date.fromisoformat(written[0]))
    windows, rest = _read(folded, folded, now.date())
    if not windows or rest.strip(" .,'"):
        return None
    return Window(min(one.first for one in windows), max(one.last for one in windows))


def span_of(window: Window, now: datetime) -> tuple[int, int]:
    """Return the days of a window in the zone of `now` as Unix milliseconds, from its first to after its last."""
    first = datetime.combine(window.first, time(), now.tzinfo)
    last = datetime.combine(window.last, time.max, now.tzinfo)
    return int(first.timestamp() * 1000), int(last.timestamp() * 1000) + 1


def _query_tokens(window: Window) -> Iterator[str]:
    years = range(window.first.year, window.last.year + 1)
    if window.first == date(window.first.year, 1, 1) and window.last == date(window.last.year, 12, 31):
        yield from (f"y:{year}" for year in years)
    if window.is_whole or (window.last - window.first).days > MAX_DAYS:
        for year, month in _months(window):
            yield f"said-m:{year}-{month:02}"
            yield f"m:{year}-{month:02}"
    else:
        yield from (f"d:{day}" for day in _days(window))


def _mention_tokens(window: Window, day: date) -> Iterator[str]:
    """Yield the tokens of days that a message means, without those of the month in which it was written."""
    if (window.last - window.first).days > MAX_DAYS and not window.is_whole:
        return
    if window.first.year < window.last.year or (window.is_whole and window.first.month != window.last.month):
        yield from (f"y:{year}" for year in range(window.first.year, window.last.year + 1))
        return
    for year, month in _months(window):
        if (year, month) != (day.year, day.month):
            yield f"m:{year}-{month:02}"
            yield f"mo:{month:02}"
    if not window.is_whole:
        for one in _days(window):
            yield f"d:{one}"
            yield f"md:{one:%m-%d}"


def _days(window: Window) -> Iterator[date]:
    for number in range(min((window.last - window.first).days, MAX_DAYS) + 1):
        yield window.first + timedelta(number)


def _months(window: Window) -> Iterator[tuple[int, int]]:
    first, last = (day.year * 12 + day.month - 1 for day in window)
    for number in range(first, min(last, first + _MAX_MONTHS) + 1):
        yield number // 12, number % 12 + 1


def _read(text: str, folded: str, today: date, *, is_query: bool = True) -> tuple[list[Window], str]:
    """Return the windows that a text means, and the folded text without what was read."""
    rules, not_meant = _matching(folded, is_query=is_query)
    if not rules:
        return [], folded
    masked = _TITLE_PARTS.sub(_mask, folded)
    for title in {fold(match[0]) for match in (*_CAPITAL.finditer(text), *_TITLE.finditer(text))}:
        masked = masked.replace(title, _MASK * len(title))
    for pattern in not_meant:
        masked = pattern.sub(_mask, masked)
    found: list[tuple[int, list[Window]]] = []
    read: list[tuple[int, int]] = []

    def mask_read(rule: Rule, match: re.Match[str]) -> str:
        if len(found) == MAX_READ or not _is_meant(rule, match):
            return match[0]
        try:
            windows = rule.windows(today, {name: value for name, value in match.groupdict().items() if value})
        except (OverflowError, ValueError):  # years before 1 or after 9999
            return match[0]
        if not windows:
            return match[0]
        found.append((match.start(), windows))
        read.extend([] if rule.is_duration or rule.keeps_words else [match.span()])
        return _mask(match)

    for rule in rules:
        masked = rule.pattern.sub(partial(mask_read, rule), masked)
    rest = folded
    for start, end in read:
        rest = rest[:start] + " " * (end - start) + rest[end:]
    return [window for _, windows in sorted(found) for window in windows], rest


def _matching(folded: str, *, is_query: bool) -> tuple[list[Rule], list[re.Pattern[str]]]:
    """Return the rules that match a text, and the patterns of what they do not mean."""
    rules: list[Rule] = []
    patterns: list[re.Pattern[str]] = []
    for language in LANGUAGES:
        if any(map(folded.__contains__, language.needs)) and _is_in(language, folded):
            matching = [rule for rule in language.rules if rule.may_match(folded)]
            rules += [rule for rule in matching if is_query or not rule.queries_only]
            patterns += language.not_meant if matching else ()
    return rules, patterns


def _is_in(language: Language, folded: str) -> bool:
    return not language.names or languages.guess(languages.first_words(folded)) in language.names


def _is_meant(rule: Rule, match: re.Match[str]) -> bool:
    """Return False for a part of a word with hyphens ("the today-dashboard"), and for another tense."""
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:2]
    if before in _JOINS or (after[:1] in _JOINS and after[1:].isalnum()):
        return False
    if rule.is_duration or rule.of_past:
        is_past = PAST.search(_sentence(match) if rule.of_past else _clause(match)) is not None
        return is_past == rule.of_past
    return True


def _sentence(match: re.Match[str]) -> str:
    return match.string[max(0, match.start() - 80) : match.end() + 80]


def _mask(match: re.Match[str]) -> str:
    return _MASK * len(match[0])


def _clause(match: re.Match[str]) -> str:
    """Return the words of the clause before a match."""
    return _CLAUSE_END.split(match.string[max(0, match.start() - 80) : match.start()])[-1]


# Titles: text in quotation marks, and a time word with a capital letter inside a sentence ("Who sang Yesterday?").
_TITLE_PARTS = lazy_pattern(
    r"""(?<!\w)'[^'\n]{1,60}'(?!\w)|"[^"\n]{1,60}"|“[^”\n]{1,60}”|„[^“”"\n]{1,60}[“”"]|‚[^'\n]{1,60}'"""
    r"|«[^»\n]{1,60}»|»[^«\n]{1,60}«|《[^》\n]{1,60}》|「[^」\n]{1,60}」"
)
_CAPITAL = lazy_pattern(
    r"(?<=[a-z0-9,;] )(?:The )?(?:Day (?:After|Before) )?(?:Yesterday|Today|Tomorrow|Tonight)\b"
    r"|(?<=[a-z0-9,;] )(?:Last|This|Next|Every) (?:Week|Month|Year|Night|Weekend|Summer|Winter|Spring|Monday|Tuesday|"
    r"Wednesday|Thursday|Friday|Saturday|Sunday|Christmas)\b"
    r"|(?<=[a-zäöüß,;] )(?:Heute|Gestern|Vorgestern|Übermorgen|(?<!heute )(?<!gestern )Morgen)\b"
    r"|(?<=[a-zà-ÿ,;] )(?:Hoy|Ayer|Anoche|Anteayer|Mañana|Hier|Demain|Aujourd['’]hui|Ontem|Hoje|Amanhã)\b"
)

# "our band, Seven Weeks Ago": a number or the like and a word for a time, all with capital letters.
_TITLE = lazy_pattern(
    r"(?<=[\w,;] )(?:[A-Z]\w+ )+(?:Days?|Weeks?|Months?|Years?|Nights?|Mornings?) Ago\b"
    r"|(?<=[a-z,;] )(?:Mme|Mlle|Frau|Herr|Se[ñn]ora?|Sr|Sra|Mr|Mrs|Ms|Dr)\.? [A-Z]\w+"
    r"|(?<=& )(?:Heute|Gestern|Morgen|Hoy|Ayer|Hier|Demain|Tomorrow|Today)\b|(?<=叫)(?:星期|周)[一二三四五六日天]"
)

_TRIGGERS: Final = (
    " 19", " 20", "年", "of the ", "bonfire", "april",
    "erday", "today", "tonight", "tom", " ago", " back", "recent", "lately", "of late", "weekend", "last ", "next ",
    "this ", "past ", "coming ", "previous ", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday",
    "sunday", " mon", " tue", " wed", " thu", " fri", "before last", "after next", "from now", "in a ", " days",
    " weeks", " years", "heute", "morgen", "vor ", "letzt", "vorig", "vergangen", "chste", "kommend", "dies", "tag",
    "mittwoch", "sonnabend", "woche", "monat", "jahr", "rzlich", "neulich", "nacht", "other day", "on the ",
    "christmas", "xmas", "new year", "valentine", "halloween", "spring", "summer", "autumn", "winter", " fall",
    "heilig", "hling", "sommer", "herbst", "am ", "ayer", "antier", "ontem", "hier", "hoy", "hoje", "aujourd",
    "mañana", "manana", "demain", "amanh", "il y a", "há ", "ha ", "faz ", "atr", "dans ", "dentro", "daqui", "pasad",
    "passad", "passé", "dernier", "derniè", "ltimo", "ltima", "rxim", "róxim", "roxim", "prochain", "que v", "est",
    "ess", "ce ", "cet", "feira", "na ", "no ", "el ", "lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi",
    "dimanche", "week-end", "récemment", "dia ", "le ", "navidad", "noël", "natal", "noche", "réveillon", "año",
    "jour de", "nouvel",
)  # fmt: skip
_HAN_TRIGGERS = lazy_pattern("[天日晚早夜晨年周週星礼禮月近过過去后後前末号號旦诞誕节節庆慶五跨]")
