"""Patterns of relative expressions of time in Spanish, French and Portuguese, which share most of them.

"la semana pasada", "la semaine dernière" and "na semana passada" are a unit and a word for "last" in either order.
"""

from datetime import date
from typing import Final

from core.patterns import lazy_pattern
from store.text import time_windows as windows
from store.text.dates import ROMANCE_MONTHS
from store.text.time_rules import (
    SEASONS,
    Language,
    Rule,
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
)
from store.text.time_windows import Window

_NUMBER = (
    r"\d{1,3}|un[ea]?|uma?|dos|deux|dois|duas|tres|trois|cuatro|quatre|quatro|cinco|cinq|seis|six|siete|sept|sete|ocho"
    r"|huit|oito|nueve|neuf|nove|diez|dix|dez|once|onze|doce|douze|doze|quinze|quince"
)
_AMOUNT = (
    r"(?:(?P<few>unos|unas|algun[oa]s|vari[oa]s|quelques|plusieurs|alguns|algumas|uns|umas|(?:unos )?pocos)"
    r"|(?P<couple>(?:un|um) par de)|(?P<half>medio(?= ano)|meio(?= ano))"
    rf"|(?P<n>{_NUMBER}))"
)
_WEEKEND = r"fin(?:es)?[ -]de[ -]semana|fi[mn]s?[ -]de[ -]semana|finde|week-?ends?"
_UNIT = rf"dias?|jours?|{_WEEKEND}|semanas?|semaines?|mes(?:es)?|mois|an(?:ee)?s?|anos?"
_CLOCK = r"horas?|heures?|minut[oe]s?"
_MASCULINE = r"lunes|martes|miercoles|jueves|viernes|sabado|domingo"
_FEIRA = r"segunda|terca|quarta|quinta|sexta"
_FRENCH = r"lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche"
_WEEKDAY = rf"(?P<weekday>{_MASCULINE}|{_FRENCH}|{_FEIRA})(?:[ -]feira)?"
_DAY_PART = r"(?:por la |de |da |a |a la |en la )?(?:manana|tarde|noche|matin|soir|apres-midi|midi|manha|noite)"
_LAST = r"pasad[oa]s?|passad[oa]s?|anterior(?:es)?|ultim[oa]s?|dernier(?:e?s)?|derniere|passee?s?"
_NEXT = r"proxim[oa]s?|prochaine?s?|que viene|que vem|que entra"
_THIS = r"est[ea]|cet?(?:te)?|ess[ea]|n?est[ea]|n?ess[ea]|dest[ea]|dess[ea]"
_BEFORE = rf"(?:(?P<last>{_LAST})|(?P<next>proxim[oa]s?|prochaine?s?)|(?P<this>{_THIS}))"
_AFTER = rf"(?:(?P<last>{_LAST})|(?P<next>{_NEXT}))"
_LED = r"(?:\b(?:en|em|durante|pendant|del?|au|no|na|el|la|le|o|a|do|da)\s|\bl')?(?:\b(?:el|la|le|o|a)\s|\bl')?"
_SEASON = r"(?P<season>primavera|verano|otono|invierno|printemps|ete|automne|hiver|verao|outono|inverno)"
_MONTH = rf"(?P<month>{any_of(ROMANCE_MONTHS)})"
_YEAR_OF = rf"(?:(?:del?|du|do|d[ea] l') ?)?(?:ano|an|annee) {_AFTER}"


def _direction(parts: dict[str, str]) -> int:
    return -1 if "last" in parts else 1 if "next" in parts else 0


def _calendar(today: date, parts: dict[str, str]) -> list[Window]:
    if unit_in(parts) == "day":
        return []
    return calendar(today, parts, _direction(parts))


def _weekday(today: date, parts: dict[str, str]) -> list[Window]:
    return which_weekday(today, weekday_in(parts), _direction(parts))


def _season(today: date, parts: dict[str, str]) -> list[Window]:
    return windows.season_window(today, SEASONS[parts["season"]], _direction(parts))


def _month(today: date, parts: dict[str, str]) -> list[Window]:
    return windows.named_month(today, ROMANCE_MONTHS[parts["month"]], _direction(parts))


def _month_of_year(today: date, parts: dict[str, str]) -> list[Window]:
    first = date(today.year + _direction(parts), ROMANCE_MONTHS[parts["month"]], 1)
    return windows.month_window(first, 0)


_LASTS: Final = "pasad|passad|passe|ultim|derni|anterior"
_NEXTS: Final = "proxim|prochain|que v|que entra"
_THESE: Final = "este |esta |ese |esa |esse |essa |ce |cet |cette |neste|nesta|nesse|nessa|deste|desta|desse|dessa"
_ALL: Final = f"{_LASTS}|{_NEXTS}|{_THESE}"

_RULES: Final[tuple[Rule, ...]] = (
    simple("ante", r"\b(?:anteayer|anteontem|anteanoche|antes de (?:ayer|ontem))\b|\bavant-hier\b", -2),
    simple("antier|avant-hier", rf"\b(?:antier|avant-hier)(?: {_DAY_PART})?\b", -2),
    simple(
        "pasado manana|pres-demain|depois de amanha",
        rf"\b(?:pasado manana|apres-demain|depois de amanha)(?: {_DAY_PART})?\b", 2,
    ),
    simple("ayer|anoche|ontem", rf"\b(?:ayer|ontem)(?: {_DAY_PART})?\b|\banoche\b", -1),
    simple(
        "hoy|hoje|aujourd|esta |ce |cet ",
        rf"\b(?:hoy|hoje|aujourd'hui)(?: {_DAY_PART})?\b|\besta (?:misma )?(?:manana|tarde|noche|manha|noite)\b"
        r"|\bce (?:matin|soir|midi)\b|\bcet(?:te)? apres-midi\b", 0,
    ),
    simple(
        "manana|demain|amanha",
        rf"(?<!\bla )(?<!\buna )(?<!\bcada )(?<!\bbuena )(?<!\besta )(?<!\bde )\b(?:manana|amanha)(?: {_DAY_PART})?\b"
        rf"|\bdemain(?: {_DAY_PART})?\b", 1,
    ),
    rule(
        "antepasad|retrasad|antes de la pasada|d'avant",
        r"\b(?:el |la |na |no |a |o )?(?P<unit>semana|mes|ano) (?:antepasad[oa]|retrasad[oa])\b",
        lambda day, parts: calendar(day, parts, -2),
    ),
    rule(
        "hace |il y a |ha |faz |tem ",
        rf"\b(?:hace|il y a|ha|faz)(?: (?:ya|como|unos|unas|casi|environ|presque|deja|cerca de|mais ou menos))?"
        rf" {_AMOUNT} (?P<unit>{_UNIT}|{_CLOCK})\b(?! que\b)",
        lambda day, parts: amount(day, parts, -1),
    ),
    rule(" atras", rf"\b{_AMOUNT} (?P<unit>{_UNIT}|{_CLOCK}) atras\b", lambda day, parts: amount(day, parts, -1)),
    rule(
        "dentro de |dans |daqui a |de aqui a ",
        rf"\b(?:dentro de|dans|da?qui a|de aqui a) {_AMOUNT} (?P<unit>{_UNIT})\b",
        lambda day, parts: amount(day, parts, 1),
    ),
    rule(
        "en |em ", rf"\be[nm] {_AMOUNT} (?P<unit>{_UNIT})\b", lambda day, parts: amount(day, parts, 1),
        is_duration=True,
    ),
    rule(
        _LASTS,
        rf"\b(?:(?:en|em|durante|pendant|au cours) )?(?:[ldnc]?[oae]s|des|est[oa]s) (?:(?P<n>{_NUMBER}) )?"
        rf"(?:ultim[oa]s|dernier(?:es|s)|passad[oa]s|pasad[oa]s) (?P<unit>{_UNIT})\b"
        rf"|\b(?:e[nm] )?[ln]?[oa]s ultim[oa]s (?P<n2>{_NUMBER}) (?P<unit2>{_UNIT})\b",
        lambda day, parts: length(day, _counted(parts), -1),
    ),
    rule(
        _NEXTS,
        rf"\b(?:(?:en|em|dans) )?(?:[ldnc]?[oae]s|des) (?:(?P<n>{_NUMBER}) )?(?:proxim[oa]s|prochaine?s) "
        rf"(?:(?P<n2>{_NUMBER}) )?(?P<unit>{_UNIT})\b",
        lambda day, parts: length(day, _counted(parts), 1),
    ),
    rule(
        "seman|semain",
        rf"\b(?:el |le |no |na )?{_WEEKDAY} (?:de la|da|de) (?:semana|semaine) {_AFTER}\b",
        lambda day, parts: windows.weekday_of_week(day, weekday_in(parts), _direction(parts)),
    ),
    rule(_LASTS + "|" + _NEXTS, rf"(?:\be[nm] )?\b{_MONTH} {_YEAR_OF}\b", _month_of_year),
    rule(_LASTS + "|" + _NEXTS, rf"{_LED}\b(?P<unit>{_UNIT}) {_AFTER}\b", _calendar),
    rule(_ALL, rf"{_LED}\b{_BEFORE} (?P<unit>{_UNIT})\b(?! d[eou]\b| d')", _calendar),
    rule(
        _LASTS + "|" + _NEXTS,
        rf"{_LED}\b{_WEEKDAY} {_AFTER}\b|{_LED}\b(?:(?P<last2>ultim[oa]|passad[oa]|pasado|dernier)"
        rf"|(?P<next2>proxim[oa]|prochain)) (?P<weekday2>{_MASCULINE}|{_FRENCH}|{_FEIRA})(?:[ -]feira)?\b",
        lambda day, parts: _weekday(day, {name.removesuffix("2"): value for name, value in parts.items()}),
    ),
    rule(_LASTS + "|" + _NEXTS, rf"{_LED}\b{_SEASON} {_AFTER}\b", _season),
    rule(_ALL, rf"{_LED}\b{_BEFORE} {_SEASON}\b", _season),
    rule(_LASTS + "|" + _NEXTS, rf"(?:\be[nm] )?(?:\bel )?\b{_MONTH} {_AFTER}\b", _month),
    rule(
        "feira|na |no |el |este |esta |neste|nesta|nesse|nessa|ce ",
        rf"\b(?:(?:el|este|ce|no|neste|nesse) (?P<weekday>{_MASCULINE}|{_FRENCH})"
        rf"|(?:(?:na|nesta|nessa|esta|essa) )?(?P<weekday2>{_FEIRA})[ -]feira"
        rf"|(?:na|nesta|nessa) (?P<weekday3>{_FEIRA}))(?: {_DAY_PART})?\b(?! d[aeo]\b|,? \d)",
        lambda day, parts: windows.this_weekday(
            day, weekday_in({"weekday": parts.get("weekday") or parts.get("weekday2") or parts["weekday3"]})
        ),
    ),
    rule(
        "di|dimanche",
        rf"(?<!\ble )(?<!\bles )(?<!\bchaque )(?<!\bun )(?<!\bdu )\b(?P<weekday>{_FRENCH})(?: {_DAY_PART})?\b(?!,? \d)",
        lambda day, parts: windows.this_weekday(day, weekday_in(parts)),
    ),
    rule(
        "semana|week|finde",
        rf"\b(?:el|este|le|ce|no|neste|nesse|du) (?:{_WEEKEND})\b", lambda day, _: this_or_last_weekend(day),
    ),
    season("e|i", rf"\b(?:en|e[nm] el|a[uo]|el|no|na|em|durante [eo]l?|pendant le|cet) {_SEASON}\b"),
    recent(
        "reciente|ultimamente|recemment|dernierement|ces derniers temps|recentemente|hace poco|faz pouco|ha pouco",
        r"\b(?:recientemente|ultimamente|recemment|dernierement|ces derniers temps|recentemente|hace poco|ha pouco"
        r"(?: tempo)?)\b",
    ),
    month_day("dia |el |le ", r"\b(?:(?:el|o|no) dia|dia|el|le) (?P<n>[12]?\d|3[01])\b(?!\s*[\w./:%-])"),
    feast("navidad|noel|natal", "navidad|noel|(?:no|de) natal", (12, 24), 3),
    feast("nochebuena|reveillon de noel", "nochebuena|vespera de natal", (12, 24)),
    feast(
        "nochevieja|reveillon|saint-sylvestre|fin de ano", "nochevieja|fin de ano|reveillon|saint-sylvestre", (12, 31)
    ),
    feast("ano nuevo|ano novo|jour de l'an|nouvel an", "ano nuevo|ano novo|(?:jour de l'|nouvel )an", (12, 31), 2),
)  # fmt: skip


def _counted(parts: dict[str, str]) -> dict[str, str]:
    """Return the parts of "the last `n` units"; without a number a few."""
    found = {name.removesuffix("2"): value for name, value in parts.items()}
    return found if "n" in found else {**found, "few": "x"}


_HIER: Final = (simple("hier", rf"(?<!-)\bhier(?: {_DAY_PART}| au soir)?\b(?!-)", -1),)
_NOT_MEANT: Final = tuple(
    lazy_pattern(pattern)
    for pattern in (
        (
            rf"\b(?:cad[ao]|tod[oa]s (?:l?[oa]s )?|chaque|tous les|toutes les|los|les|aos|[aà]s|nos) "
            rf"(?:{_MASCULINE}|{_FRENCH}s?|{_FEIRA}|{_UNIT})s?\b(?! (?:{_LAST})\b)"
        ),
        r"\b(?:por la|de la|la|cada|buena|una) manana\b|\bmas de manana\b|\bmanana y tarde\b",
        rf"\b(?:primer[oa]?|premiere?|primeir[oa]|segund[oa]|deuxieme) (?:{_UNIT})\b",
        r"\bhoy en dia\b|\bde nos jours\b|\bhoje em dia\b",
        rf"\b(?:de|del|du) (?:{_MASCULINE}|{_FRENCH}) au? (?:{_MASCULINE}|{_FRENCH})\b",
        r"\bmes (?:dernier|derniere|prochaine?)s?\b|\bmi (?:ultim[oa]|proxim[oa])\b|\bmon dernier\b|\bma derniere\b",
    )
)

ROMANCE: Final = (
    Language.of(_RULES, _NOT_MEANT, ("", "spanish", "french", "portuguese", "italian")),
    Language.of(_HIER, (), ("french",)),
)
"""The second are words that German has too."""
