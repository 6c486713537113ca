"""Find statements in texts and the slots that questions ask for, in English, Chinese and German.

Rules, not a model: they miss much, and what they find must be right. Questions, plans, wishes, conditions, quotes,
retellings and jokes say nothing.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from core.patterns import lazy_pattern
from store.text import questions_en, statements_de, statements_en, statements_zh
from store.text.slots import FRAME, GROUP, SPEAKER, Slot, Statement

MAX_CHARS: Final = 600
MAX_HAN_CHARS: Final = 200
"""Longer texts are documents or pasted: only their beginning is read."""
MAX_SENTENCES: Final = 12
MAX_SENTENCE_CHARS: Final = 240

_ENGLISH_TEXT = "i i'm i've we we're we've my our user the is are what who where which when how now am do"
_ENGLISH: Final = frozenset(_ENGLISH_TEXT.split())
_GERMAN_TEXT = """
    ich wir mein meine meinen meinem meiner unser unsere unseren unserem unserer ist sind wurde wurden der die das
    den nutzer heißt findet nicht nach wohnt wie wo wer wann welche welches welchen welcher wohin neuer neue
    neues lautet beträgt kein mehr
"""
_GERMAN: Final = frozenset(_GERMAN_TEXT.split())
_TRIGGERS: Final = (
    (_ENGLISH - {"the", "do"})
    | (_GERMAN - {"der", "die", "das", "den", "nach", "nicht", "wie", "wo", "wer", "wann"})
    | frozenset(
        [
            "user's",
            "was",
            "been",
            "got",
            "moved",
            "changed",
            "has",
            "joined",
            "quit",
            "left",
            "pushed",
            "switched",
            "started",
            "uses",
            "runs",
            "lives",
            "works",
            "starts",
            "begins",
            "opens",
            "closes",
            "ends",
            "leaves",
            "departs",
            "costs",
            "happens",
            "meets",
            "comes",
            "takes",
            "expires",
            "listens",
            "drives",
            "kostet",
            "beginnt",
            "startet",
            "endet",
            "läuft",
            "steht",
            "öffnet",
            "schließt",
            "trinke",
            "arbeite",
            "wohne",
            "fahre",
            "it's",
            "postponed",
            "rescheduled",
            "migrated",
            "upgraded",
            "replaced",
        ]
    )
)
_HAN = lazy_pattern("[\u3041-\u30fa\u3400-\u9fff]")
_HAN_TRIGGER = lazy_pattern("[是在改换搬叫涨降推提岁升调定减增为住用开吃了不迁：:跳入我坐骑点岁每高重]")
_SENTENCE = lazy_pattern(
    r"(?<=[.!?])(?<!\d\.)\s+|(?<=\d\.)\s+(?=(?:I|We|My|Our|The|It|Ich|Wir|Mein|Unser|Das|Der|Die)\b)|(?<="
    r"[。！？；])|\n+"
)
_FIRST = lazy_pattern(
    (
        r"\b(?:first|original(?:ly)?|initial(?:ly)?|at first|zuerst|originalmente|primer[oa]?|premi[eè]re?|à"
        r" l'origine|oorspronkelijk|ursprünglich\w*|anfangs|erste[nrs]?)\b|最初|最早|一开始|当初|第一"
    ),
    re.IGNORECASE,
)
_PAST = lazy_pattern(
    r"\b(?:formerly|in the past|vorher\w*|zuvor|davor|vor (?:herrn?|frau|dem|der)"
    r"|(?:hat|habe|haben|hatten?|war|waren|gab)\b.* vor (?-i:(?!Ort|Weihnachten|Ostern|Mittag)[A-ZÄÖÜ]\w+)"
    r"|früher\w*|damals|ursprünglich\w*"
    r"|antes|anteriormente|anterior"
    r"|antigamente|antigu[oa]s?|antig[oa]s?|al principio|no início|auparavant|autrefois|ancien(?:ne)?s?|précédente?s?"
    r"|à l'origine|avant)\b|(?:以|之|涨|调|改|换|搬)\w{0,2}前",
    re.IGNORECASE,
)
"""Words for what was, whichever language a question seems to be of."""
_TITLES: Final = ("Dr. ", "Mr. ", "Mrs. ", "Ms. ", "Prof. ", "St. ", "No. ", "Nr. ", "dr. ", "Str. ")
_ABBREVIATION = lazy_pattern(r"\b(Dr|dr|Mr|Mrs|Ms|Prof|St|No|Nr|Str)\.\s")
_CONTINUED = lazy_pattern(r"\b(changed|updated|reset|moved)\. It(?= is\b|'s\b)")
_MAY_QUOTE = lazy_pattern('["“„「『`>]')
_QUOTED = lazy_pattern(
    '["“„]([^"”“]{12,})["”“]|「[^」]{6,}」|『[^』]{6,}』|“[^”]{6,}”|```.*?(?:```|$)|^\\s*>.*$', re.DOTALL | re.MULTILINE
)


class _Language(NamedTuple):
    """The rules of a language. `is_doubtful` is of sentences, `is_fiction` of texts: they say nothing."""

    statements: Callable[[str], Iterator[Statement]]
    asked: Callable[[str], Iterator[Slot]]
    is_about_past: Callable[[str], bool]
    is_doubtful: Callable[[str], bool]
    is_fiction: Callable[[str], bool]


_LANGUAGES: Final = {
    name: _Language(rules.statements, questions.asked, questions.is_about_past, rules.is_doubtful, rules.is_fiction)
    for name, rules, questions in (
        ("en", statements_en, questions_en),
        ("zh", statements_zh, statements_zh),
        ("de", statements_de, statements_de),
    )
}


def statements(text: str) -> tuple[Statement, ...]:
    """Return what a text says of slots, in its order; nothing of a long Chinese one, which is an article."""
    if len(text) > MAX_HAN_CHARS and _HAN_TRIGGER.search(text[:MAX_CHARS]):
        return ()
    return _statements(text[:MAX_CHARS])


@lru_cache(maxsize=16_384)
def _statements(text: str) -> tuple[Statement, ...]:
    text = text.replace("\u2019", "'")
    if "=" in text and (setting := _SETTING.fullmatch(text.strip())):
        return (Statement(setting["name"].lower(), GROUP, setting["value"], "change"),)
    words = set(text.lower().split())
    if words.isdisjoint(_TRIGGERS) and ": " not in text and (text.isascii() or not _HAN_TRIGGER.search(text)):
        return ()
    language = _language_of(text, words)
    if _MAY_QUOTE.search(text):
        text = _QUOTED.sub(" ? ", text)
    if any(title in text for title in _TITLES):
        text = _ABBREVIATION.sub(r"\1 ", text)
    if "d. It" in text or "t. It" in text:
        text = _CONTINUED.sub(r"\1, it", text)
    found: dict[Statement, None] = {}
    for sentence in _SENTENCE.split(text)[:MAX_SENTENCES]:
        if 4 <= len(sentence) <= MAX_SENTENCE_CHARS and "?" not in sentence and "？" not in sentence:
            said = list(language.statements(sentence)) or list(_framed(sentence))
            if said and not language.is_doubtful(sentence):
                found |= dict.fromkeys(said)
    return () if found and language.is_fiction(text) else tuple(found)


_SETTING = lazy_pattern(r"(?P<name>[A-Za-z][\w.-]+) ?= ?(?P<value>[^=\n]{1,60})")


def _framed(sentence: str) -> Iterator[Statement]:
    """Yield the numbers of a sentence about a habit of the speaker, with its other words as the relation."""
    if len(sentence) > MAX_FRAME_CHARS or not _NUMBER.search(sentence) or not _SPEAKER.match(sentence):
        return
    frame, signals = _NOW.subn("", sentence.lower())
    words = re.sub(r"[\W_]+", " ", _NUMBER.sub("#", frame).replace("#", " n ")).strip()
    yield Statement(f"{FRAME} {words}", SPEAKER, " ".join(_NUMBER.findall(frame)), "change" if signals else "")


MAX_FRAME_CHARS: Final = 80
_NUMBER = lazy_pattern(r"\d[\d.:,]*\d|\d|[一二两三四五六七八九十]+(?=[杯点个次公小分岁块元天碗片粒])")
_SPEAKER = lazy_pattern(r"(?:now )?(?:i|we|ich|wir)\b|我|jetzt|ahora|maintenant", re.IGNORECASE)
_NOW = lazy_pattern(r"\b(?:now|these days|jetzt|nun|ahora|maintenant|agora|adesso)\b|现在|只|目前|了", re.IGNORECASE)


@lru_cache(maxsize=1024)
def asked(question: str) -> tuple[Slot, ...]:
    """Return the slots that a question asks for, the likeliest first; those of its statements if it is no question."""
    if len(question) > MAX_SENTENCE_CHARS:
        return ()
    question = question.replace("\u2019", "'")
    found = dict.fromkeys(slot for slot in _language_of_question(question).asked(question) if slot.relation)
    return tuple(found or slots_of(question))


def slots_of(text: str) -> tuple[Slot, ...]:
    """Return the slots that a text speaks about, without those that no question can ask for."""
    slots = (statement.slot for statement in statements(text))
    return tuple(dict.fromkeys(slot for slot in slots if not slot.relation.startswith(FRAME)))


def is_about_past(question: str) -> bool:
    """Return True if a question asks for what was, not for what is: "before", "used to", 以前, "früher"."""
    return _PAST.search(question) is not None or _language_of_question(question).is_about_past(question)


def is_about_first(question: str) -> bool:
    """Return True if a question about the past asks for what was first, not for what was last."""
    return _FIRST.search(question) is not None


def _language_of_question(question: str) -> _Language:
    return _language_of(question, set(question.lower().rstrip("?!. ").split()))


def _language_of(text: str, words: set[str]) -> _Language:
    if not text.isascii() and _HAN.search(text):
        return _LANGUAGES["zh"]
    return _LANGUAGES["de" if len(words & _GERMAN) > len(words & _ENGLISH) else "en"]
