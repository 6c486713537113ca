"""Convert dates to tokens, so that `2026-05-01`, `1 May 2026`, `1. Mai 2026`, `May 2026` and `2026年5月1日` match.

Numbers with two readings (`03/05/2026`) become the tokens of both. A date becomes `d:2026-05-01`, `md:05-01`,
`m:2026-05`, `mo:05` and `y:2026`, as far as its parts are known. All functions take text that
`normalize.fold` has folded.
"""

import re
from collections.abc import Iterable
from datetime import date
from typing import Final

from core.patterns import lazy_pattern

MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janner jaenner", "february feb februar", "march mar marz maerz", "april apr", "may mai",
            "june jun juni", "july jul juli", "august aug", "september sept sep", "october oct oktober okt",
            "november nov", "december dec dezember dez",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
"""The folded English and German names of months and their numbers, 1 for January."""
ROMANCE_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "enero janvier janeiro", "febrero fevrier fevereiro", "marzo mars marco", "abril avril", "mayo mai maio",
            "junio juin junho", "julio juillet julho", "agosto aout", "septiembre setiembre septembre setembro",
            "octubre octobre outubro", "noviembre novembre novembro", "diciembre decembre dezembro",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
"""The folded Spanish, French and Portuguese names of months."""
_ALL_MONTHS: Final = {**MONTHS, **ROMANCE_MONTHS}
_FIRST_DAYS = """
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
sixteenth seventeenth eighteenth nineteenth twentieth
"""
_WRITTEN_DAYS: Final = {
    name: number
    for number, name in enumerate(
        [*_FIRST_DAYS.split(), *(f"twenty-{name}" for name in _FIRST_DAYS.split()[:9]), "thirtieth", "thirty-first"],
        start=1,
    )
}


def _any_of(names: Iterable[str]) -> str:
    return "|".join(sorted(names, key=len, reverse=True))


_NAME = f"(?P<name>{_any_of(MONTHS)})\\.?"
# After "5." a sentence may begin with these.
_NAME_AFTER_DOT = f"(?P<name>{_any_of(MONTHS.keys() - {'may', 'march', 'mar'})})\\.?"
# "may", "march" and short forms have other meanings too: alone they count as months only where a month is likely.
_PLAIN_NAMES = (
    "january|february|april|june|july|august|september|october|november|december"
    "|januar|februar|marz|maerz|juni|juli|oktober|dezember"
)
_ROMANCE_NAME = f"(?P<name>{_any_of(ROMANCE_MONTHS)})"
# Alone these have no other meaning; "marzo", "mars", "mai", "mayo", "julio" and "marco" are names or words too.
_ROMANCE_PLAIN = _any_of(ROMANCE_MONTHS.keys() - {"marzo", "mars", "marco", "mayo", "mai", "julio"})
_WRITTEN_DAY = f"(?P<written>{_any_of(_WRITTEN_DAYS)})"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DAY_ENGLISH = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_HAN_DIGITS: Final = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0}
_HAN = r"[一二三四五六七八九十]{1,3}"

_PATTERNS: Final = tuple(
    lazy_pattern(pattern)
    for pattern in (
        rf"(?<![\d.]){_YEAR}[-/.](?P<month>[01]?\d)[-/.](?P<day>[0-3]?\d)(?![\d])",
        rf"(?<![\d.-]){_YEAR}[-/](?P<month>[01]\d)(?![\d/-])",
        rf"(?<!\d){_YEAR}(?P<month>[01]\d)(?P<day>[0-3]\d)(?!\d)",
        (
            rf"(?P<hanyear>[零〇一二三四五六七八九]{{4}}|(?<!\d)(?:19|20)\d\d)\s?年"
            rf"(?:\s?(?P<month>[01]?\d|{_HAN})\s?月(?:份|\s?(?P<day>[0-3]?\d|{_HAN})\s?[日号號])?)?"
        ),
        rf"(?:(?<!\d)(?P<month>[01]?\d)|(?P<month2>{_HAN}))\s?月(?:份|\s?(?P<day>[0-3]?\d|{_HAN})\s?[日号號])?",
        rf"(?<![\w.:]){_DAY_ENGLISH}\s+(?:of\s+)?{_NAME}(?![\w])(?:,?\s+{_YEAR}(?!\d))?",
        rf"(?<![\w.:])(?P<day>[0-3]?\d)\.\s?{_NAME_AFTER_DOT}(?![\w])(?:\s+{_YEAR}(?!\d))?",
        rf"\b{_NAME}\s+{_DAY_ENGLISH}(?![\w:])(?:,?\s+{_YEAR}(?!\d))?",
        rf"\b{_NAME},?\s+(?:of\s+)?{_YEAR}(?!\d)",
        rf"\b{_WRITTEN_DAY}\s+(?:of\s+)?{_NAME}(?![\w])(?:,?\s+{_YEAR}(?!\d))?",
        rf"\b{_NAME}\s+(?:the\s+)?{_WRITTEN_DAY}\b(?:,?\s+{_YEAR}(?!\d))?",
        (
            rf"(?<![\w.:])(?P<day>[0-3]?\d)(?:er|o)?\s+(?:de\s+)?{_ROMANCE_NAME}(?!\w)(?:,?\s+(?:del?\s+)?{_YEAR}(?!\d))?"
        ),
        rf"\b(?P<written>primero|premier|primeiro)\s+(?:de\s+)?{_ROMANCE_NAME}(?!\w)",
        rf"\b{_ROMANCE_NAME}\s+(?:del?\s+)?{_YEAR}(?!\d)",
        rf"\b(?P<name>{_ROMANCE_PLAIN})\b",
        (
            r"(?<=\b(?:en|em)\s)(?P<name>marzo|mars|marco|mayo|mai|julio)\b"
            r"|(?<=\bmois\sde\s)(?P<name2>mars|mai)\b|(?<=\bmes\sde\s)(?P<name3>marzo|mayo|julio|marco)\b"
        ),
        rf"\b(?P<name>{_PLAIN_NAMES})\b",
        (
            r"(?<=\b(?:in|of|by)\s)(?P<name>may|march)\b|(?<=\b(?:last|next|this|late)\s)(?P<name2>may|march)\b"
            r"|(?<=\bim\s)(?P<name3>mai)\b"
        ),
        rf"(?<![\w/.-])(?P<a>[0-3]?\d)(?P<sign>[/-])(?P<b>[0-3]?\d)(?P=sign){_YEAR}(?![\w-])",
        r"(?<![\w/.-])(?P<a>[0-3]?\d)/(?P<b>[0-3]?\d)/(?P<shortyear>\d\d)(?![\w/])",
        r"(?:(?<=\b(?:on|el|le|du|em|no)\s)|(?<=\bdia\s))(?P<a>[0-3]?\d)/(?P<b>[0-3]?\d)(?![\w/%.]|\s?%)",
        rf"(?<![\w.])(?P<day>[0-3]?\d)(?P<dotted>\.)\s?(?P<month>[0-3]?\d)\.\s?{_YEAR}(?!\d)",
        (
            r"(?<=\b(?:am|on|ab)\s)(?P<day>[0-3]?\d)\.(?P<month>[01]?\d)\.(?P<shortyear>\d\d)?(?!\w|\.\d)"
            r"|(?<=\b(?:vom|dem|den|bis|zum)\s)(?P<day2>[0-3]?\d)\.(?P<month3>[01]?\d)\.(?P<shortyear2>\d\d)?(?!\w|\.\d)"
        ),
    )
)

# A fast check for possible dates: each alternative begins with a literal character. False positives are harmless.
_HINTS = [r"19\d\d", r"20\d\d", "年", "月", *(rf"{digit}[./]\s?\d" for digit in range(10))]
_HINT = lazy_pattern("|".join([*_HINTS, *(rf"{name}(?!\w)" for name in _ALL_MONTHS)]))
_LEAP_YEAR = 2000
_FIRST_SHORT_YEAR = 70  # "70" is 1970, "69" is 2069
_BLANK = "\uffff"


def extract(text: str) -> tuple[list[str], str]:
    """Return the tokens of every date in a text, and the text with those dates blanked."""
    found: list[str] = []

    def blank(match: re.Match[str]) -> str:
        tokens = _tokens_of_match(match)
        found.extend(tokens)
        return _BLANK * len(match[0]) if tokens else match[0]

    if not _HINT.search(text):
        return [], text
    for pattern in _PATTERNS:  # complete dates first: their text is blanked for later patterns
        text = pattern.sub(blank, text)
    return found, text.replace(_BLANK, " ")


def _tokens_of_match(match: re.Match[str]) -> list[str]:
    parts = match.groupdict()
    year = number_of(parts.get("year") or parts.get("hanyear"))
    if short := parts.get("shortyear") or parts.get("shortyear2"):
        year = int(short) + (1900 if int(short) >= _FIRST_SHORT_YEAR else 2000)
    if parts.get("a"):
        # Ambiguous: the day or the month may come first.
        first, second = int(parts["a"]), int(parts["b"])
        return list(dict.fromkeys(tokens_of(year, first, second) + tokens_of(year, second, first)))
    name = parts.get("name") or parts.get("name2") or parts.get("name3")
    month = _ALL_MONTHS[name] if name else number_of(parts.get("month") or parts.get("month2") or parts.get("month3"))
    day = number_of(parts.get("day") or parts.get("day2"))
    if written := parts.get("written"):
        day = _WRITTEN_DAYS.get(written, 1)
    # American dates with dots name the month first, which shows only where the other reading is no date.
    return tokens_of(year, month, day) or (tokens_of(year, day, month) if parts.get("dotted") else [])


def number_of(written: str | None) -> int | None:
    """Return the value of an Arabic or Chinese number; four Chinese digits are a year."""
    if not written or written.isascii():
        return int(written) if written else None
    if len(written) == 4:
        return int("".join(str(_HAN_DIGITS[char]) for char in written))
    tens, has_ten, ones = written.rpartition("十")
    if not has_ten:
        return _HAN_DIGITS[written] if len(written) == 1 else None
    if len(tens) > 1 or len(ones) > 1:
        return None
    return (_HAN_DIGITS[tens] if tens else 1) * 10 + (_HAN_DIGITS[ones] if ones else 0)


def tokens_of(year: int | None, month: int | None, day: int | None) -> list[str]:
    """Return the tokens of a date, as far as its parts are known; none for a date that does not exist."""
    if not _exists(year, month, day):
        return []
    found = [f"y:{year}"] if year else []
    if month:
        found.append(f"mo:{month:02}")
        found += [f"m:{year}-{month:02}"] if year else []
    if month and day:
        found.append(f"md:{month:02}-{day:02}")
        found += [f"d:{year}-{month:02}-{day:02}"] if year else []
    return found


def _exists(year: int | None, month: int | None, day: int | None) -> bool:
    try:
        date(year or _LEAP_YEAR, 1 if month is None else month, 1 if day is None else day)
    except ValueError:
        return False
    return True
