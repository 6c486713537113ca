"""Recognize that a person is, goes or often does something at a place with a name, by its capital letter."""

import re
from functools import cache
from typing import Final

# Names of places have a capital letter, as days, languages and holidays do.
_NAME: Final = (
    r"(?:the )?(?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|(?:January|February|March|April|May|June|July|August"
    r"|September|October|November"
    r"|December|Christmas|Easter|Thanksgiving|Halloween|Ramadan|Lent|God|Python|Java\w*|English|French|German"
    r"|Spanish|Chinese|Instagram"
    r"|Facebook|YouTube|Netflix|Zoom|Excel|Word|TV|PC|Spring|Summer|Autumn|Fall|Winter|I)\b)[A-Z][\w'-]+"
)
_AT: Final = r"(?:in|at|on|near|from|to|through|down|along|around|by|up|off|behind|opposite|outside|across|above|past)"
_PLACE: Final = (
    r"(?:[Ss]treet|[Rr]oad|[Ll]ane|[Aa]venue|[Cc]lose|[Cc]rescent|[Tt]errace|[Gg]ardens?|[Ss]quare|[Pp]ark"
    r"|[Ss]tation|[Aa]irport|[Bb]aths"
    r"|[Pp]ool|[Bb]each|[Bb]ridge|[Hh]ospital|[Ll]ibrary|[Cc]ampus|[Mm]arket|[Gg]ym|[Ll]ake|[Hh]arbou?r"
    r"|[Vv]illage|[Cc]afe|[Pp]ub|[Mm]all"
    r"|[Hh]otel|[Ee]states?|[Hh]ill|[Ll]eisure|[Cc]ent(?:re|er)|[Ss]chool|[Cc]ollege|[Uu]niversity)"
)
_HABIT: Final = re.compile(
    r"\b(?:every|each|always|usually|most|right now|until|till|this week|at the moment|currently|\w+days"
    r"|\w*mornings|\w*evenings|after work)\b",
    re.IGNORECASE,
)
_PRESENT: Final = (
    r"(?:am|'m|are|'re|was|were|live|stay|swim|run|jog|walk|cycle|bike|row|sit|stand|work|study|train|shop|eat"
    r"|meet|park|wait|camp|climb|skate"
    r"|surf|ski|play|dance|sing|paint|volunteer|commute|have (?:lunch|breakfast|dinner|coffee|tea)|get (?:on|off"
    r"|my|the)|grab|buy|take|drop"
    r"|pick|go|head|come|spend|drink|fish|lunch|catch)"
)
_CAPITAL: Final = re.compile(r"(?<=[ (])[A-ZÄÖÜ]")

_WHEN_GERMAN: Final = re.compile(
    r"\b(?:gerade|grad|jetzt|momentan|derzeit|zurzeit|heute|bis|noch|seit|jede[nrs]?|immer|oft|meistens|\w+tags"
    r"|morgens|mittags|abends"
    r"|nachts|diese Woche)\b",
    re.IGNORECASE,
)
_PLACES_GERMAN: Final = re.compile(
    r"\b(?:bin|sind|sitz\w*|steh\w*|wart\w*|lieg\w*|lauf\w*|jogg\w*|schwimm\w*|trainier\w*|spazier\w*|wohn\w*"
    r"|leb\w*|ess\w*|park\w*|hol\w*|treff\w*"
    r"|tanz\w*|spiel\w*|geh\w*|arbeit\w*|kauf\w*|trink\w*|mach\w*|fahr\w*)\b(?:,? [\w-]+){0,7} (?:in|im|auf|am"
    r"|an der|bei|beim|nach|vor dem|aus|durch de[nr]|durch die|durch das|in den) "
    r"(?!(?:Eile|\w*[Tt]herapie|Behandlung|Rente|\w*zeit|Panik|Trauer|Ordnung|Form|\w*[Aa]rbeit|Sorge|Not"
    r"|\w*[Ss]timmung|Gefahr|Stress|Ende|Anfang|Kopf"
    r"|Bett|\w+tag\w*|Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Sommer"
    r"|Winter|Herbst|Früh\w+|Abend"
    r"|Morgen|Wochenende|Tag|Wochen?|Monate?n?|Jahre?n?|Moment|Diät|Suche|Weg|Weihnachten|Ostern|Kontakt"
    r"|Beziehung|Internet|Handy|Computer"
    r"|Laptop|Deutsch|Englisch|Schicht|Team|Projekt\w*|Grunde?|Prinzip|Gespräch|Urlaub|Angst|Ruhe|Frieden|Achse"
    r"|Trab|Zukunft|Schule|Liebe"
    r"|Reihe|Haus|Hause|Garten|Gegenteil|Voraus|Schnitt|Durchschnitt|Verein|Chor|Minus|Plus|Verzug|Streik|\w+ung"
    r"|\w+heit|\w+keit)\b)"
    r"[A-ZÄÖÜ]\w+"
)
_GERMAN_I: Final = re.compile(r"\b(?:[Ii]ch|[Ww]ir)\b")


def is_at_place(sentence: str, speaker: str) -> bool:
    """Return True if a person is, goes or often does something where a name with a capital letter is."""
    if not _CAPITAL.search(sentence):
        return False
    being, habit = _places(speaker)
    return (
        being.search(sentence) is not None
        or (_HABIT.search(sentence) is not None and habit.search(sentence) is not None)
        or (
            _GERMAN_I.search(sentence) is not None
            and _WHEN_GERMAN.search(sentence) is not None
            and _PLACES_GERMAN.search(sentence) is not None
        )
    )


@cache
def _places(speaker: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of being somewhere, and of doing something there: a habit, or what lasts."""
    subject = {"user": "I|[Ww]e", "other": "I|[Ww]e|[Yy]ou", "note": r"[\w-]+"}[speaker]
    return re.compile(
        rf"\b(?:{subject})(?:(?:'m|'re| am| are| is| was| were|'ll be| will be)(?: [\w']+){{0,5}} (?:in|at|to"
        rf"|from|near) {_NAME}"
        r"|(?:(?:'m|'re| am| are|'ll be)(?: \w+)?|) (?:stay|liv|sitt|stand|wait|camp|work|study|visit|based"
        r"|rent)\w*(?: [\w']+){0,6} (?:in|at|on|near|outside|by|around|with) "
        rf"{_NAME}"
        r"|(?:'\w+)?(?: \w+){0,2} (?:(?:move|moved|moving)(?! (?:the|this|that|it|my|a|an|all|them|our)\b)|go"
        r"|went|going|gone|travel\w*|fly|flying|flew"
        r"|drive|driving|drove|trip|been|relocat\w*|heading|headed|return\w*|back)(?: \w+){0,3}"
        rf" (?:to|from|in|back to) {_NAME}"
        rf"|(?:'\w+)?(?: \w+){{0,2}} visit(?:ed|ing)? {_NAME}"
        rf"|(?:'\w+)?(?: \w+){{0,2}} {_PRESENT}(?:,? [\w']+){{0,6}} {_AT} (?:the )?(?:[A-Z][\w']+ ){{1,3}}{_PLACE}\b)"
        r"|\b(?:[Mm]y|[Oo]ur)(?: \w+)? (?:house|flat|home|place|office|apartment|cottage|school|gym|farm|studio"
        r"|shop|family|parents|mum|mom"
        r"|dad|sister|brother|son|daughter|boyfriend|girlfriend|partner|wife|husband)(?:'?s?'?(?: \w+)?) (?:is"
        r"|are|lives?|'s|works?|stays?)"
        rf"(?: \w+){{0,3}} (?:in|at|near|on) {_NAME}"
        rf"|\b\d+[a-z]? (?:[A-Z][\w']+ ){{1,3}}(?:Street|St|Avenue|Ave|Road|Rd|Lane|Boulevard|Close|Crescent"
        rf"|Terrace|Gardens|Square|Court"
        r"|Way|Row|Mews|Place|Hill|Drive)\b"
    ), re.compile(rf"\b(?:{subject})(?:'\w+)?(?: \w+){{0,2}} {_PRESENT}(?:,? [\w']+){{0,6}} {_AT} {_NAME}")
