"""Patterns of relative expressions of time in English, German and Chinese, and of words that only look like them.

Patterns are matched with text that `normalize.fold` has folded.
"""

from datetime import date
from typing import Final

from core.patterns import lazy_pattern
from store.text import dates
from store.text import time_windows as windows
from store.text.time_romance import ROMANCE
from store.text.time_rules import (
    SEASONS,
    Language,
    amount,
    any_of,
    calendar,
    feast,
    length,
    month_day,
    recent,
    rule,
    season,
    simple,
    this_or_last_weekend,
    unit_in,
    weekday_in,
    which_weekday,
    words_of,
    year,
)
from store.text.time_windows import Window

_LONG_WEEKDAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_SHORT_WEEKDAYS = "mon|tues?|wed|thu(?:rs?)?|fri"
_GERMAN_WEEKDAYS = "montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag"
_MONTHS: Final = dates.MONTHS
_MONTH_NAMES = any_of(name for name in _MONTHS if len(name) > 3 or name in {"may", "mai"})
_ENGLISH_NUMBER = r"\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_GERMAN_NUMBER = r"\d{1,3}|ein(?:em|er|en|e)?|zwei|drei|vier|funf|fuenf|sechs|sieben|acht|neun|zehn|elf|zwolf|zwoelf"
_CHINESE_NUMBER = r"\d{1,3}|十[一二]?|[一二两三四五六七八九]"
_ENGLISH_UNIT = r"days?|weeks?|wks?|weekends?|months?|years?|yrs?"
_ENGLISH_CLOCK = r"hours?|hrs?|minutes?|mins?"
_GERMAN_UNIT = r"tag(?:en?)?|wochen?|monat(?:en?)?|jahr(?:en?)?"
_GERMAN_CLOCK = r"stunden?|minuten?"
_CHINESE_UNIT = r"天|日|周|个?星期|个?礼拜|个月|年"
_DAY_PART = r"(?:early |late )?(?:morning|afternoon|evening|night)|noon"
_GERMAN_DAY_PART = r"(?:fruh|frueh|morgen|vormittag|mittag|nachmittag|abend|nacht)"


_DIRECTIONS: Final = {"last": -1, "past": -1, "previous": -1, "this": 0, "next": 1, "coming": 1}


def _english_calendar(today: date, parts: dict[str, str]) -> list[Window]:
    number = _DIRECTIONS[parts["which"]]
    if number == 0 and unit_in(parts) == "weekend" and today.weekday() < 2:
        return windows.weekend_window(today, 0) + windows.weekend_window(
            today, -1
        )  # on a Monday people call the one before "this weekend"
    return calendar(today, parts, number)


_ENGLISH = (
    simple("yesterday", rf"\b(?:the )?day before yesterday(?:'s)?(?: (?:{_DAY_PART}))?\b", -2),
    simple("tomorrow", rf"\b(?:the )?day after tomorrow(?:'s)?(?: (?:{_DAY_PART}))?\b", 2),
    simple("before last", r"\b(?:the )?night before last\b", -2),
    rule(
        "before last",
        rf"\b(?:on )?(?:the )?(?P<weekday>{_LONG_WEEKDAYS}) before last\b",
        lambda day, parts: windows.past_weekday(
            windows.past_weekday(day, weekday_in(parts))[0].first, weekday_in(parts)
        )[:1],
    ),
    rule(
        "before last",
        r"\b(?:the )?(?P<unit>week|weekend|month|year) before last\b",
        lambda day, parts: calendar(day, parts, -2),
    ),
    rule(
        "after next",
        r"\b(?:the )?(?P<unit>week|weekend|month|year) after next\b",
        lambda day, parts: calendar(day, parts, 2),
    ),
    simple("erday|last night", rf"\b(?:yesterday(?:'s)?(?: (?:{_DAY_PART}))?|last night(?:'s)?|yest?erday)\b", -1),
    simple(
        "today|tonight|this ",
        r"\b(?:earlier |later )?(?:today(?:'s)?|tonight(?:'s)?|this (?:morning|afternoon|evening)(?:'s)?)\b",
        0,
    ),
    simple("tom", rf"\b(?:tomorrow|tommorow|tomorow)(?:'s)?(?: (?:{_DAY_PART}))?\b", 1),
    rule(
        " ago| back",
        rf"\b(?:(?:about|around|roughly|almost|over) )?(?:(?P<few>(?:a )?few|several|some)"
        rf"|(?P<couple>(?:a )?couple(?: of)?)|(?P<half>half an?)|(?P<n>{_ENGLISH_NUMBER}))"
        rf"[ -](?P<unit>{_ENGLISH_UNIT}|fortnight|{_ENGLISH_CLOCK}) (?:ago|back)\b(?: today)?",
        lambda day, parts: amount(day, parts, -1),
    ),
    rule(
        " from ",
        rf"\b(?P<n>{_ENGLISH_NUMBER}) (?P<unit>{_ENGLISH_UNIT}) from (?:now|today)\b",
        lambda day, parts: amount(day, parts, 1),
    ),
    rule(
        "last |past |previous ",
        rf"\b(?:(?:in|over|during|within|for|from) )?(?:the |these )?(?:last|past|previous) "
        rf"(?:(?P<few>few|several)|(?P<couple>couple(?: of)?)|(?P<half>half)|(?P<n>{_ENGLISH_NUMBER})) "
        rf"(?P<unit>{_ENGLISH_UNIT}|{_ENGLISH_CLOCK})\b(?! of\b)",
        lambda day, parts: length(day, parts, -1),
    ),
    rule(
        "next |coming ",
        rf"\b(?:(?:in|over|during|within|for) )?(?:the |these )?(?:next|coming) "
        rf"(?:(?P<few>few|several)|(?P<couple>couple(?: of)?)|(?P<n>{_ENGLISH_NUMBER})) (?P<unit>{_ENGLISH_UNIT})\b",
        lambda day, parts: length(day, parts, 1),
    ),
    rule(
        "the past ",
        r"\b(?:in|over|during|within|for) the (?:past) (?P<unit>week|month|year)\b",
        lambda day, parts: windows.span(day, -1, unit_in(parts)),
    ),
    rule(
        "recent ",
        r"\b(?:in|over|during) (?:the )?recent (?P<unit>days|weeks|months)\b",
        lambda day, parts: windows.span(day, {"day": -7, "week": -5, "month": -4}[unit_in(parts)], unit_in(parts)),
    ),
    rule(
        " week",
        rf"\b(?:on )?(?P<weekday>{_LONG_WEEKDAYS}) (?:of )?(?P<which>last|this|next) week\b",
        lambda day, parts: windows.weekday_of_week(day, weekday_in(parts), _DIRECTIONS[parts["which"]]),
    ),
    rule(
        "last |past |previous |this |next |coming ",
        r"\b(?:(?:in|over|during|on) the )?(?P<which>last|past|previous|this|next|coming) "
        r"(?P<unit>week|weekend|month|year)(?:'s)?\b(?! (?:of|tonight|before|after)\b)",
        _english_calendar,
    ),
    rule(
        "last |past |this |next |coming ",
        rf"\b(?:on )?(?P<which>last|past|this|next|coming) (?P<weekday>{_LONG_WEEKDAYS}|{_SHORT_WEEKDAYS})"
        rf"(?:'s)?(?: (?:{_DAY_PART}))?\b(?! \d)",
        lambda day, parts: which_weekday(day, weekday_in(parts), _DIRECTIONS[parts["which"]]),
    ),
    rule(
        " week",
        rf"\b(?:a week (?:ago (?:last |on )?|last )|last week's )(?P<weekday>{_LONG_WEEKDAYS})\b",
        lambda day, parts: windows.weekday_of_week(day, weekday_in(parts), -1),
    ),
    month_day("on the |of the ", r"\b(?:on|of) the (?P<n>[12]?\d|3[01])(?:st|nd|rd|th)?\b(?!\s*[\w./:%-])"),
    feast("christmas|xmas", "christmas(?! eve| tree| card| song)|xmas", (12, 24), 3),
    feast("christmas eve", "christmas eve", (12, 24)),
    feast("new year", "new year'?s(?! eve| resolution)(?: day)?", (1, 1)),
    feast("new year", "new year'?s eve", (12, 31)),
    feast("valentine", "valentine'?s?(?: day)?", (2, 14)),
    feast("halloween", "halloween", (10, 31)),
    feast("bonfire night", "bonfire night", (11, 5)),
    feast("april fool", "april fools?'?(?: day)?", (4, 1)),
    year(" 19| 20", r"\b(?:in|during|im jahr|en|em|no ano) (?P<year>(?:19|20)\d\d)\b(?![\w/.:-]\w)"),
    year("年", r"(?<!\d)(?P<year>(?:19|20)\d\d)年(?!\d|底|初)"),
    season(
        "spring|summer|fall|autumn|winter",
        r"\b(?:in|over|during)(?: the)? (?P<season>spring|summer|autumn|fall|winter)\b(?! of\b)",
    ),
    rule(
        " mon| tue| wed| thu| fri| sat| sun",
        rf"\b(?:on|by|until|till|since|due|before|from) (?P<weekday>{_LONG_WEEKDAYS}|{_SHORT_WEEKDAYS})"
        rf"(?: (?:{_DAY_PART}))?\b(?!'s|-|,? (?:the )?\d|,? (?:{_MONTH_NAMES})\b)",
        lambda day, parts: windows.this_weekday(day, weekday_in(parts)),
    ),
    rule(
        "day ",
        rf"\b(?P<weekday>{_LONG_WEEKDAYS}) (?:morning|afternoon|evening|night)\b",
        lambda day, parts: windows.this_weekday(day, weekday_in(parts)),
    ),
    rule(
        "the weekend",
        r"\b(?:on|at|over|during) the weekend\b",
        lambda day, _: this_or_last_weekend(day),
    ),
    rule(
        "last |this |next ",
        rf"\b(?:in )?(?P<which>last|this|next) (?P<month>{_MONTH_NAMES})\b(?! \d)",
        lambda day, parts: windows.named_month(day, _MONTHS[parts["month"]], _DIRECTIONS[parts["which"]]),
    ),
    rule(
        " year",
        rf"\b(?:in )?(?P<month>{_MONTH_NAMES}) (?:of )?(?P<which>last|this|next) year\b",
        lambda day, parts: [
            *windows.month_window(date(day.year + _DIRECTIONS[parts["which"]], _MONTHS[parts["month"]], 1), 0),
        ],
    ),
    rule(
        "last |this |next ",
        r"\b(?:(?:in|over|during) )?(?P<which>last|this|next) (?P<season>spring|summer|autumn|fall|winter)\b",
        lambda day, parts: windows.season_window(day, SEASONS[parts["season"]], _DIRECTIONS[parts["which"]]),
    ),
    rule(
        " day| week| month| year",
        rf"(?<!within )\bin (?:about )?(?:(?P<few>a few|several)|(?P<couple>a couple(?: of)?)|(?P<half>half a)"
        rf"|(?P<n>{_ENGLISH_NUMBER})) (?P<unit>{_ENGLISH_UNIT})\b(?!'| of\b| time of\b| or less| flat)",
        lambda day, parts: amount(day, parts, 1),
        is_duration=True,
    ),
    recent("recently|lately|of late|other day", r"\b(?:recently|lately|of late|the other day)\b"),
)

_LAST_GERMAN = r"(?:letzt|vorig|vergangen)(?:e[nrsm]?)"
_NEXT_GERMAN = r"(?:nachst|naechst|kommend)(?:e[nrsm]?)"
_THIS_GERMAN = r"dies(?:e[nrsm]?)"
_WHICH_GERMAN = rf"(?:(?P<last>{_LAST_GERMAN})|(?P<next>{_NEXT_GERMAN})|(?P<this>{_THIS_GERMAN}))"


def _german_direction(parts: dict[str, str]) -> int:
    return -1 if "last" in parts else 1 if "next" in parts else 0


_GERMAN = (
    simple("vorgestern", rf"\b(?:vorgestern)(?: {_GERMAN_DAY_PART})?\b", -2),
    simple("bermorgen", rf"\b(?:ubermorgen|uebermorgen)(?: {_GERMAN_DAY_PART})?\b", 2),
    rule(
        "vorletzt|vorvorig|bernachst|bernaechst",
        r"\b(?:in der |am |im )?(?:(?P<before>vorletzt|vorvorig)|(?:uber|ueber)(?:nachst|naechst))e[nrsm]? "
        r"(?P<unit>woche|wochenende|monat|jahr)\b",
        lambda day, parts: calendar(day, parts, -2 if "before" in parts else 2),
    ),
    simple("gestern", rf"\bgestern(?: {_GERMAN_DAY_PART})?\b", -1),
    simple("heute", rf"\bheute(?: {_GERMAN_DAY_PART})?\b", 0),
    rule(
        "vor ",
        rf"\bvor (?:(?P<few>ein paar|einigen|wenigen|mehreren)|(?P<half>einem halben)|(?P<n>{_GERMAN_NUMBER})) "
        rf"(?P<unit>{_GERMAN_UNIT}|{_GERMAN_CLOCK})\b",
        lambda day, parts: amount(day, parts, -1),
    ),
    rule(
        "letzt|vorig|vergangen",
        rf"\b(?:in|wahrend|waehrend|uber) den (?P<last>{_LAST_GERMAN}) "
        rf"(?:(?P<few>paar|Tagen)|(?P<n>{_GERMAN_NUMBER})) (?P<unit>{_GERMAN_UNIT})\b",
        lambda day, parts: length(day, parts, -1),
    ),
    rule(
        "letzt|vorig|vergangen",
        rf"\b(?:in|wahrend|waehrend) den {_LAST_GERMAN} (?P<unit>tagen|wochen|monaten|jahren)\b",
        lambda day, parts: length(day, parts | {"few": "x"}, -1),
    ),
    rule(
        "nachst|naechst|kommend",
        rf"\b(?:in|wahrend|waehrend) den {_NEXT_GERMAN} "
        rf"(?:(?P<few>paar)|(?P<n>{_GERMAN_NUMBER})) (?P<unit>{_GERMAN_UNIT})\b",
        lambda day, parts: length(day, parts, 1),
    ),
    rule(
        "letzt|vorig|vergangen|nachst|naechst|kommend|dies",
        rf"\b(?:in der |in |am |im )?{_WHICH_GERMAN} "
        rf"(?P<unit>woche|wochenendes?|monats?|jahr(?:es|e)?)\b(?! (?:des|der|vor|von|meine[rs]|seine[rs]|ihre[rs])\b)",
        lambda day, parts: calendar(day, parts, _german_direction(parts)),
    ),
    rule(
        "letzt|vorig|vergangen|nachst|naechst|kommend|dies",
        rf"\b(?:am )?{_WHICH_GERMAN} (?P<weekday>{_GERMAN_WEEKDAYS})"
        rf"(?: {_GERMAN_DAY_PART})?\b(?!,? (?:den|dem)? ?\d)",
        lambda day, parts: which_weekday(day, weekday_in(parts), _german_direction(parts)),
    ),
    rule(
        "letzt|vorig|vergangen|nachst|naechst|kommend|dies",
        rf"\b(?:im )?{_WHICH_GERMAN} (?P<month>{_MONTH_NAMES})\b(?! \d)",
        lambda day, parts: windows.named_month(day, _MONTHS[parts["month"]], _german_direction(parts)),
    ),
    rule(
        "letzt|vorig|vergangen|nachst|naechst|kommend|dies",
        rf"\b(?:im )?{_WHICH_GERMAN} (?P<season>fruhling|fruehling|fruhjahr|fruehjahr|sommer|herbst|winter)\b",
        lambda day, parts: windows.season_window(day, SEASONS[parts["season"]], _german_direction(parts)),
    ),
    rule(
        "tag|mittwoch|sonnabend",
        rf"\b(?:am|bis|seit|ab|bis zum|vom) (?P<weekday>{_GERMAN_WEEKDAYS})(?:{_GERMAN_DAY_PART}| {_GERMAN_DAY_PART})?"
        rf"\b(?!,? (?:den|dem)? ?\d)",
        lambda day, parts: windows.this_weekday(day, weekday_in(parts)),
    ),
    rule(
        "wochenende",
        r"\bam wochenende\b",
        lambda day, _: this_or_last_weekend(day),
    ),
    simple("letzte nacht", r"\b(?:in der )?letzten? nacht\b", -1),
    month_day("am ", r"\bam (?P<n>[12]?\d|3[01])\b\.?(?!\s*[\w./:%-])"),
    feast("weihnacht", "weihnachten", (12, 24), 3),
    feast("heiligabend|heilig abend", "heiligabend|heilig abend", (12, 24)),
    feast("silvester", "silvester", (12, 31)),
    feast("neujahr", "neujahr(?:stag)?", (1, 1)),
    season("fruh|sommer|herbst|winter", r"\bim (?P<season>fruhling|fruhjahr|sommer|herbst|winter)\b"),
    simple("morgen", r"\bmorgen(?: (?:fruh|frueh|vormittag|mittag|nachmittag|abend|nacht))?\b", 1),
    rule(
        "tag|woche|monat|jahr",
        rf"\bin (?:(?P<few>ein paar|einigen|wenigen)|(?P<half>einem halben)|(?P<n>{_GERMAN_NUMBER})) "
        rf"(?P<unit>{_GERMAN_UNIT})\b(?! (?:vor|nach)\b)",
        lambda day, parts: amount(day, parts, 1),
        is_duration=True,
    ),
    recent(
        "zlich|neulich|letztens|vor kurzem|letzte",
        r"\b(?:kurzlich|kuerzlich|neulich|letztens|vor kurzem|in letzter zeit|in der letzten zeit)\b",
    ),
)

_CHINESE_DAYS: Final = words_of(
    **{
        "-3": "大前天", "-2": "前天 前日 前晚", "-1": "昨天 昨日 昨晚 昨夜 昨早",
        "0": "今天 今日 今早 今晚 今晨 今夜", "1": "明天 明日 明早 明晚 明晨", "2": "后天 后日", "3": "大后天",
    }
)  # fmt: skip
_CHINESE_YEARS: Final = {"大前年": -3, "前年": -2, "去年": -1, "今年": 0, "本年": 0, "明年": 1, "后年": 2}
_CHINESE_WEEK = r"个?(?:星期|礼拜|周)"
_CHINESE_WHICH = r"(?P<which>上上|下下|上一?|这一?|本|下一?)"
_CHINESE_STEPS: Final = {"上上": -2, "上": -1, "上一": -1, "这": 0, "这一": 0, "本": 0, "下": 1, "下一": 1, "下下": 2}
_HAN_MONTH = r"1[0-2]|[1-9]|0[1-9]|十[一二]?|[一二三四五六七八九]"
_HAN_DAY = r"[12]\d|3[01]|0?[1-9]|[二三]?十[一二三四五六七八九]?|[一二三四五六七八九]"


def _han_number(written: str) -> int:
    return dates.number_of(written) or 0


def _chinese_year(today: date, parts: dict[str, str]) -> list[Window]:
    year = today.year + _CHINESE_YEARS[parts["year"]]
    if "season" in parts:
        first = date(year, 3 * SEASONS[parts["season"]] + 3, 1)
        return [Window(first, windows.month_window(first, 2)[0].last)]
    if "month" not in parts:
        return windows.year_window(today, year - today.year)
    first = date(year, _han_number(parts["month"]), 1)
    if "day" in parts:
        return windows.day_window(first.replace(day=_han_number(parts["day"])), 0)
    return windows.month_window(first, 0)


def _chinese_month(today: date, parts: dict[str, str]) -> list[Window]:
    [window] = windows.month_window(today, _CHINESE_STEPS[parts["which"]])
    if "day" in parts:
        return windows.day_window(window.first.replace(day=_han_number(parts["day"])), 0)
    return [window]


def _chinese_week(today: date, parts: dict[str, str]) -> list[Window]:
    week = _CHINESE_STEPS[parts["which"]]
    if "end" in parts:
        return windows.weekend_window(today, week)
    return (
        windows.weekday_of_week(today, weekday_in(parts), week)
        if "weekday" in parts
        else windows.week_window(today, week)
    )


_CHINESE = (
    rule(
        "天|日|晚|早|夜|晨",
        rf"(?P<day>{any_of(_CHINESE_DAYS)})(?:[早晚]上|上午|下午|中午|凌晨|傍晚|夜里|清晨)?",
        lambda day, parts: windows.day_window(day, int(_CHINESE_DAYS[parts["day"]])),
    ),
    rule(
        "年",
        rf"(?P<year>{any_of(_CHINESE_YEARS)})的?(?:(?P<month>{_HAN_MONTH})月份?(?:(?P<day>{_HAN_DAY})[日号])?"
        rf"|(?P<season>[春夏秋冬])[天季]?)?",
        _chinese_year,
    ),
    rule(
        "周|星期|礼拜",
        rf"{_CHINESE_WHICH}(?:{_CHINESE_WEEK}(?:(?P<weekday>[一二三四五六日天])|(?P<end>末))?)",
        _chinese_week,
    ),
    rule("月", rf"{_CHINESE_WHICH}(?:个月份?|月份?)(?:(?P<day>{_HAN_DAY})[日号])?", _chinese_month),
    rule(
        "近|过去|这",
        rf"(?:最近|过去|近|这)的?(?:(?P<few>几|数)|(?P<half>半年)|(?P<n>{_CHINESE_NUMBER}))(?P<unit>{_CHINESE_UNIT})?"
        rf"(?:里|内|以来|来)?",
        lambda day, parts: length(day, parts, -1) if "unit" in parts or "half" in parts else [],
    ),
    rule(
        "未来|接下来|今后|往后",
        rf"(?:未来|接下来|今后|往后)的?(?:(?P<few>几|数)|(?P<n>{_CHINESE_NUMBER}))(?P<unit>{_CHINESE_UNIT})",
        lambda day, parts: length(day, parts, 1),
    ),
    rule(
        "前",
        rf"(?:(?P<few>几|好几|数)|(?P<n>{_CHINESE_NUMBER}))(?P<unit>{_CHINESE_UNIT}|个?小时|分钟)(?:之|以)?前",
        lambda day, parts: amount(day, parts, -1),
    ),
    rule("半年", r"(?P<half>半年)(?:多)?(?:之|以)?前", lambda day, parts: amount(day, parts, -1)),
    rule(
        "前",
        r"前(?P<few>几|两)(?P<unit>天|周|个?星期|个月|年)",
        lambda day, parts: windows.between(day, (1, 7), unit_in(parts), -1),
    ),
    rule(
        "后",
        rf"(?:(?P<few>几|数)|(?P<n>{_CHINESE_NUMBER}))(?P<unit>{_CHINESE_UNIT})(?:之|以)?后(?!来)",
        lambda day, parts: amount(day, parts, 1),
        is_duration=True,
    ),
    rule(
        "周|星期|礼拜",
        r"(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])(?:[早晚]上|上午|下午|中午)?",
        lambda day, parts: windows.this_weekday(day, weekday_in(parts)),
    ),
    rule(
        "周末",
        r"(?:周末)",
        lambda day, _: this_or_last_weekend(day),
    ),
    month_day("号|日", r"(?<![月\d])(?P<n>[12]?\d|3[01])[号日](?![线楼房店机院球门桌码车厅])"),
    feast("元旦", "元旦", (1, 1)),
    feast("圣诞", "圣诞节?", (12, 24), 2),
    feast("情人节", "情人节", (2, 14)),
    feast("国庆", "国庆节?", (10, 1), 7),
    feast("五一|劳动节", "五一|劳动节", (5, 1), 5),
    feast("除夕夜|跨年", "跨年", (12, 31), 2),
    recent("近|阵子|段时间", r"(?:最近|近来|近期|前阵子|前段时间|这阵子|这段时间)"),
)


_WORK = "song|film|movie|book|novel|album|band|poem|title|magazine|newspaper|paper"
_TIME_WORD = (
    r"(?:yesterday|today|tomorrow|tonight|last (?:night|week|year|month)|next (?:week|year)"
    r"|day (?:after tomorrow|before yesterday))"
)
_POSITION = r"(?:last|first|second|third|final|next|previous|past)"
_ANY_UNIT = (
    rf"(?:days?|weeks?|weekends?|months?|years?|nights?|mornings?|{_LONG_WEEKDAYS}|spring|summer|autumn|fall|winter)"
)
_GERMAN_POSITION = r"(?:letzt|erst|zweit|vorletzt|vorig|nachst|naechst)e[rsnm]?"
_ANY_GERMAN_UNIT = rf"(?:tage?n?|wochen?|monat[es]?n?|jahre?n?s?|wochenendes?|{_GERMAN_WEEKDAYS})"
# "in the last week" is a time; "the last week" alone is one of many.
_UNLED = "".join(rf"(?<!\b{word} )" for word in ("in", "over", "during", "within", "for", "from", "wahrend", "uber"))
_NOT_ENGLISH = tuple(
    lazy_pattern(pattern)
    for pattern in (
        rf"\b(?:{_LONG_WEEKDAYS}) (?:morning|afternoon|evening|night)s\b|\bborn on (?:{_LONG_WEEKDAYS})\b",
        r"\bhow (?:often|much|many)\b[^.?!]{0,60} in (?:an?|one) (?:day|week|month|year)\b",
        (
            rf"\b(?:(?<!\bi )(?<!\bwe )(?<!\byou )(?<!\bto )(?:{_WORK})"
            rf"|(?:{_WORK}|it|is|was|one) (?:called|titled|named|entitled)"
            rf"|who (?:wrote|sang|sings|sing|directed|composed|covered|recorded)) (?:the )?{_TIME_WORD}\b"
            r"(?! (?:did|do|was|i)\b)"
        ),
        r"\b(?:every|each|per|other|any|some|one|black|good|taco|cyber|bloody|ruby|super|palm|easter|ash|fat)"
        r" (?:other )?(?:days?|weeks?|weekends?|months?|years?|night|morning|"
        + _LONG_WEEKDAYS
        + r")s?\b(?! (?:ago|back|before last)\b)",
        rf"\b(?:{_LONG_WEEKDAYS})s\b",
        rf"\b(?:{_LONG_WEEKDAYS})(?:\.com| night (?:football|live|lights|fever)| times| blues)",
        rf"\b(?:from |between )?(?:{_LONG_WEEKDAYS}) (?:to|through|thru|and|until|till) (?:{_LONG_WEEKDAYS})\b",
        rf"\bon an? (?:{_LONG_WEEKDAYS})\b|\bfriday the (?:13th|thirteenth)\b",
        rf"{_UNLED}\bthe (?:very )?{_POSITION} {_ANY_UNIT}\b",
        rf"\b(?:an?|my|our|his|her|their|your|its|that|whose) (?:very )?{_POSITION} {_ANY_UNIT}\b",
        r"\b(?:first|second|third|final|last) (?:day|week|month|year|night|weekend)s? of\b",
        (
            r"\b(?:usa|psychology|russia|history|christianity|physics|medicine|economics) today\b|\btoday show\b"
            r"|\btonight show\b|\btoday's (?:world|society|youth|standards|market|age|kids|generation)\b"
        ),
        (
            r"\b(?:no|better|brighter|world of|stars of|city of|leaders of|house of|land of) tomorrow\b"
            r"|\btomorrow (?:never|people|is another day|land|war)\b|\btomorrow x\b"
        ),
        (
            r"\b(?:times?|once|twice|often|much|many|hours?|days?|nights?) (?:in|a|per|every) (?:an? )?"
            r"(?:day|week|month|year)\b"
        ),
        r"\byesterday once more\b|\b(?:born|yesterday)'s (?:enterprise|children)\b|\bborn yesterday\b",
        r"\blast (?:week|year) tonight\b|\blast christmas\b|\bnext day (?:delivery|shipping)\b",
        r"\blong ago\b|\bhow (?:many|long) \w+ ago\b|\b(?:mid|late|early)-?(?:morning|week)\b",
        r"\b(?:the|a) (?:few|couple of) (?:days|weeks|months|years) (?:before|after|later|earlier)\b",
    )
)
_NOT_GERMAN = tuple(
    lazy_pattern(pattern)
    for pattern in (
        (
            r"\b(?:am|gute[nrs]?|jede[nrms]?|der|den|dem|diese[nrm]?|eine[nsm]?|schone[nr]?|gegen|fruhen|nachste[nr]|jenem|"
            r"grauer|bis zum|ganze[nr]|vor)\s+morgen\b"
        ),
        (
            r"\bvon heute auf morgen\b|\bvon gestern(?= (?:sein|bin|bist|ist|sind)\b)|\bnicht von gestern\b"
            r"|\bschnee von gestern\b"
            r"|\bheute(?:-show|[ -]journal)|\bewig gestern\w*|\bheute oder morgen\b|\bheutzutage\b"
        ),
        rf"{_UNLED}\b(?:die|der|das|den|dem|des) {_GERMAN_POSITION} {_ANY_GERMAN_UNIT}\b",
        rf"\b(?:mein|sein|ihr|unser|eur|kein|ein)e?[rsnm]? {_GERMAN_POSITION} {_ANY_GERMAN_UNIT}\b",
        (
            rf"\b(?:jede[nrsm]?|immer)\s+(?:(?:zweite[nrs]?)\s+)?(?:tag|woche|monat|jahr|wochenende|{_GERMAN_WEEKDAYS})\b"
            rf"|\b(?:{_GERMAN_WEEKDAYS})s\b|\bvon (?:{_GERMAN_WEEKDAYS}) bis (?:{_GERMAN_WEEKDAYS})\b"
        ),
        r"\b(?:mal|oft|haufig|stunden|tage) (?:in der|pro|im|am|in einer|in einem) (?:tag|woche|monat|jahr)\b",
    )
)
_NOT_CHINESE = tuple(
    lazy_pattern(pattern)
    for pattern in (
        r"[上下本这]周(?=[期围口边岁刊报游])|[上下本这]月(?=[台球亮饼光票薪])|前天(?=津)|今天下(?=之|大)|哪\S{0,6}最近",
        r"今日头条|明日方舟|明日之后|明天会更好|昨日重现|今日(?:美|资)?(?:说法|资讯)|今天头条|明日香|明日花|昨日青空",
        r"(?<=[以今之然最随])后天(?=天)|(?<!大)后天(?=[性失培形环教养习缺免]|的?努力|的?因素)",
        r"日本(?=[周月年])|(?<=[海水湖江天])上月|上月(?=[球亮饼光])|下月(?=[球亮光])",
        r"(?<=[楼网身早晚线路桌街])上(?=周|月|星期|礼拜)|(?<=[楼底天脚树山桥手乡地])下(?=周|月|星期|礼拜)",
        r"(?<=[说证表声发])明(?=天[线气文])|[今明昨前后]天(?=线(?![上下]))|[目以之]前(?=[年天晚夜])|(?:周|星期)五(?=餐厅)",
        r"每个?(?:周|星期|礼拜)[末一二三四五六日天]|(?:周|星期)[一二三四五六日天][到至和](?:周|星期)?[一二三四五六日天]",
        r"最近的|离\S{0,10}最近|(?:走|靠|挨|谁|哪里|哪个|哪家)(?:得)?最近",
        r"(?:第|前)[一二三四五六七八九十两\d]+(?:天|周|年|个月)|周末愉快|[一二三四五六七八九十\d]周年",
        r"(?<=[一二三四五六七八九十几半\d])周[一](?=[次回])|周[日天](?=[报])|一[周天年](?:之计|到头)",
    )
)


LANGUAGES: Final = (
    Language.of(_ENGLISH, _NOT_ENGLISH), Language.of(_GERMAN, _NOT_GERMAN), Language.of(_CHINESE, _NOT_CHINESE),
    *ROMANCE,
)  # fmt: skip
PAST = lazy_pattern(
    r"\b(?:did|were|took|had|made|built|wrote|read|learned|learnt|finished|sold|won|lost|ran|got|\w{3,}ed"
    r"|hat|habe|haben|hatte|hatten|war|waren|wurde|wurden"
    r"|ai|as-tu|avons|etais|etait|etions|he|hice|hicimos|hizo|fui|fue|fuimos|estuve|tuve|fiz|fez|foi|estive|tive"
    r"|\w{2,}(?:aste|iste|aron|ieron|aram|eram|iram|ei))\b|[了过]"
)
