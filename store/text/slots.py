"""Slots and statements, and how one statement replaces another: what the languages share.

A statement says the value of a slot: "I moved to Lisbon" says that the home of the speaker is Lisbon. A newer statement
of the same slot with another value replaces the older one, if the relation has one value at a time or the newer one
says that it changed.
"""

import hashlib
import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from core.patterns import lazy_pattern
from store.text.ended_values import is_whole
from store.text.normalize import fold
from store.text.slot_words import ALSO_WORDS, MULTIPLE, RELATIONS, SINGLE, SINGLE_HEADS, STATES, TOOLS

SPEAKER: Final = "me"
"""The subject of statements about the speaker, or about "the user"."""
GROUP: Final = "us"
"""The subject of statements about "we", "our" and things without an owner."""
MAX_TOKEN_CHARS: Final = 64
SLOT_PREFIX: Final = "slot:"
USES: Final = "use"
"""The relation of a tool whose kind is not known. It has several values."""
FRAME: Final = "="
"""Begins the relation of statements that are compared word by word: only numbers may differ."""
LEAVES: Final = "leave"
"""The relation of statements that only end another value: of "I left Google", a home or an employer."""
_PERSONAL_TEXT = (
    """home address car rent landlord insurance bank gym doctor dentist phone employer job diet age provider"""
)
PERSONAL: Final = frozenset(_PERSONAL_TEXT.split()) | {"wifi password", "gate code", "marital status"}
"""Relations that "we" and "our" say of the speaker too."""

Signal = Literal["", "change", "negation"]


Rule = tuple[re.Pattern[str], str, Signal]
"""The pattern of a predicate, the relation that it says, and its signal."""


def compiled(*rules: tuple[str, str, Signal], flags: re.RegexFlag = re.NOFLAG) -> tuple[Rule, ...]:
    """Return rules with compiled patterns. `[A-Z]` matches capital letters only, whatever the flags."""
    return tuple(
        (lazy_pattern(pattern.replace("[A-Z]", "(?-i:[A-Z])") if flags else pattern, flags), relation, signal)
        for pattern, relation, signal in rules
    )


class Slot(NamedTuple):
    """The subject and the relation that a statement is about, both in lower case."""

    relation: str
    subject: str

    @property
    def token(self) -> str:
        """Return the token of the keyword index, at most MAX_TOKEN_CHARS characters without a space."""
        token = re.sub(r"\s+", "_", SLOT_PREFIX + fold(f"{self.relation}:{self.subject}"))
        if len(token) <= MAX_TOKEN_CHARS:
            return token
        return SLOT_PREFIX + hashlib.blake2b(token.encode(), digest_size=16).hexdigest()


class Statement(NamedTuple):
    """The value that a sentence says of a slot.

    `signal` "change": it says that the value is new. "negation": that `value` holds no longer. `replaces` is the old
    value that it names.
    """

    relation: str
    subject: str
    value: str
    signal: Signal = ""
    replaces: str = ""

    @property
    def slot(self) -> Slot:
        return Slot(self.relation, self.subject)


class Link(NamedTuple):
    """A newer statement replaces an older one. `is_marked` False: it only ranks first."""

    relation: str
    rule: Literal["single value", "change", "negation", "named value", "same words"]
    confidence: Literal["high", "low"]

    @property
    def is_marked(self) -> bool:
        return self.rule != "same words"


def is_single(relation: str) -> bool:
    """Return True if a slot of the relation has one value at a time."""
    if relation in SINGLE:
        return True
    head = relation.rpartition(" ")[2]
    return relation not in RELATIONS and (head in SINGLE_HEADS or head.endswith(_COMPOUND_HEADS))


_COMPOUND_HEADS = (
    "code", "nummer", "passwort", "adresse", "befehl", "frist", "leiter",
    "leiterin", "farbe", "gebühr", "limit", "preis",
    "grenze", "密码",
    "状态", "号码", "端口", "地址", "版本", "命令", "负责人", "上限", "颜色", "价格",
)  # fmt: skip


def is_multiple(relation: str) -> bool:
    """Return True if several values of the relation hold at a time."""
    if relation in _TOOL_RELATIONS:
        return relation == USES
    return relation == "use for" or relation.rpartition(" ")[2] in MULTIPLE


def relation_of_tool(name: str) -> str:
    """Return the kind of the tool that a value names, USES if it is not known."""
    words = _WORD.findall(name.lower())
    for count in (3, 2, 1):
        for start in range(len(words) - count + 1):
            tool = " ".join(words[start : start + count])
            if (kind := TOOLS.get(tool)) and (tool not in ALSO_WORDS or tool.capitalize() in name):
                return kind
    return next((TOOLS[word] for word in _HAN_TOOLS if word in name), USES)


def relation_of_use(value: str, replaces: str, what: str = "") -> str:
    """Return the relation of a tool by its kind, else by that of the one that it replaces, else by its purpose."""
    found = (kind for kind in (relation_of_tool(value), relation_of_tool(replaces)) if kind != USES)
    return next(found, f"{USES} {what}".strip())


def owner_of(subject: str, relation: str) -> str:
    """Return the subject of a statement: "we" says a personal relation of the speaker too."""
    return SPEAKER if subject == GROUP and relation in PERSONAL else subject


def slots_of_question(slot: Slot) -> Iterator[Slot]:
    """Yield the slot that a question names, and those whose statements may answer it too."""
    yield slot
    if slot.subject == SPEAKER and slot.relation not in PERSONAL:
        yield Slot(slot.relation, GROUP)
    if slot.relation == "job":
        yield Slot("employer", slot.subject)


def link_of(older: Statement, newer: Statement) -> Link | None:
    """Return the link by which `newer` replaces `older`, None for none. Subjects must be of the same speaker."""
    if older.signal == "negation" and newer.signal == "negation":
        return None
    if older.subject != newer.subject:
        return _link_of_other_owner(older, newer)
    if newer.relation != older.relation:
        return _link_of_named_value(older, newer)
    return _link_of_slot(older, newer)


def _link_of_other_owner(older: Statement, newer: Statement) -> Link | None:
    """Return a link between "my yoga class" and "the yoga class", if the newer one says that it changed."""
    if {older.subject, newer.subject} != {SPEAKER, GROUP} or newer.signal != "change":
        return None
    if newer.relation != older.relation:
        return _link_of_named_value(older, newer)
    link = _link_of_slot(older, newer)
    if link and newer.relation in RELATIONS and link.rule != "named value":
        return link._replace(confidence="low")
    return link


def _link_of_slot(older: Statement, newer: Statement) -> Link | None:
    is_same = _is_same_value(older.value, newer.value)
    if newer.signal == "negation":
        return Link(newer.relation, "negation", "high") if _denies(older, newer) else None
    if older.signal == "negation" or is_same:
        # The older one said that the value ended, the newer one that it holds.
        return Link(newer.relation, "change", "high") if is_same and older.signal == "negation" else None
    if newer.replaces and _is_same_value(older.value, newer.replaces):
        return Link(newer.relation, "named value", "high")
    return _link_of_values(older, newer)


def _link_of_values(older: Statement, newer: Statement) -> Link | None:
    """Return the link between two values of a slot, if the newer statement names no older value."""
    if newer.relation.startswith(FRAME):
        return Link("number", "change", "high") if newer.signal else None
    places = [match[1].lower() for match in map(_PURPOSE.search, (older.value, newer.value)) if match]
    if older.relation in _TOOL_RELATIONS and len(set(places)) > 1:
        return None  # one tool in production, another one in tests
    if is_multiple(newer.relation) or not _are_of_one_kind(older.value, newer.value):
        return None
    if is_single(newer.relation) or (_is_state(older.value) and _is_state(newer.value)):
        return Link(newer.relation, "change" if newer.signal else "single value", "high")
    if newer.signal == "change":
        return Link(newer.relation, "change", "high")
    kinds = kinds_of(newer.value)
    return Link(newer.relation, "same words", "low") if kinds & PLAIN_KINDS else None


def _link_of_named_value(older: Statement, newer: Statement) -> Link | None:
    """Return a link of another relation, if the newer statement says that the older value ended."""
    ended = newer.replaces or (newer.value if newer.signal == "negation" else "")
    if not ended or not older.value or older.signal == "negation" or not is_whole(older.value, ended):
        return None
    related = {newer.relation, older.relation}
    is_tool = USES in related or related <= _TOOL_RELATIONS
    is_left = newer.relation == LEAVES and older.relation in {"home", "employer", "job", "school", "gym", "bank", "use"}
    if (is_tool or is_left or related <= {"employer", "job"}) and _is_same_value(older.value, ended):
        return Link(older.relation, "named value", "high")
    if newer.replaces and older.relation not in SINGLE and kinds_of(older.value) <= {"name", "word"}:
        # "Our test framework is unittest", then "We moved our tests from unittest to pytest".
        return Link(older.relation, "named value", "low") if _is_same_value(older.value, ended) else None
    return None


_IS_STATE = lazy_pattern(f"{STATES}$")


def _is_state(value: str) -> bool:
    return _IS_STATE.match(value.lower()) is not None


_PURPOSE = lazy_pattern(r" (?:in|for) (.+?)(?: now)?$")
_TOOL_RELATIONS = frozenset(TOOLS.values()) | {USES}


def _denies(older: Statement, newer: Statement) -> bool:
    ended = newer.replaces or newer.value
    if not ended:
        return not is_multiple(newer.relation)
    return _is_same_value(older.value, ended) and is_whole(older.value, ended)


_WORD = lazy_pattern(r"[a-z0-9äöüßéèáàóñç@._:/#&+-]*[a-z0-9äöüßéèáàóñç#+]|[\u3400-\u9fff]")
_HAN_TOOLS = tuple(name for name in TOOLS if not name.isascii())
_HAN_NUMBER = lazy_pattern("[一二两三四五六七八九十百千万零半点元块钱]+")
_FILLING_TEXT = """
    a an the my our is are now at on in to for of and with as currently new old years year please called named still
    der die das ein eine einen einem mein meine jetzt im am bei in nach um auf von und als alt neu jahre 了 的 是 在
    现 个
"""
_FILLING: Final = frozenset(_FILLING_TEXT.split())


def _words_of(value: str) -> frozenset[str]:
    words = frozenset(_WORD.findall(value.lower()))
    return words - _FILLING or words


def _is_same_value(first: str, second: str) -> bool:
    """Return True if one value says nothing that the other one does not."""
    if _HAN_NUMBER.fullmatch(first) and _HAN_NUMBER.fullmatch(second):
        return first == second
    one, other = _words_of(first), _words_of(second)
    return one <= other or other <= one


WEEKDAY = (
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag"
    r"|sonnabend"
    r"|sonntag)s?\b|(?:周|星期|礼拜)[一二三四五六日天]"
    r"|\b(?:lunes|martes|miércoles|jueves|viernes|sábado|domingo|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche"
    r"|segunda|terça|quarta|quinta|sexta|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica"
    r"|maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|zondag)\b|[月火水木金土日]曜"
)
_KINDS: Final = (
    ("day", lazy_pattern(WEEKDAY)),
    (
        "day",
        lazy_pattern(
            r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december|januar"
            r"|februar|märz"
            r"|mai|juni|juli|oktober|dezember|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?(?=\W*\d|$)|\d"
            r"(?:st|nd|rd|th)\b"
            r"|\d{4}-\d\d-\d\d|\d+\s*[月日号]|tomorrow|tonight|today|明天|后天|今天|下周|next (?:week|month)"
        ),
    ),
    (
        "clock",
        lazy_pattern(
            r"\b\d{1,2}(?::\d\d)?\s*(?:am|pm|a\.m\.|p\.m\.|uhr|o'clock)\b|\b\d{1,2}:\d\d\b|\bnoon\b|\bmidnight\b"
            r"|\bmittag"
            r"|[0-9一二两三四五六七八九十]+点|^(?:at|um) \d{1,2}\b|half past|quarter (?:past|to)"
        ),
    ),
    ("number", lazy_pattern(r"\d|[一二三四五六七八九十百千万]+(?:个|元|块|岁|公斤|斤|厘米|小时|分钟|天|次|人)")),
)
PLAIN_KINDS = frozenset({"day", "clock", "number", "name"})


def kinds_of(value: str) -> frozenset[str]:
    """Return what a value is: days, a time of day, else a number, a name, or words."""
    folded = value.lower()
    kinds = frozenset(kind for kind, pattern in _KINDS if pattern.search(folded))
    if kinds & {"day", "clock"}:
        return kinds - {"number"}
    if kinds:
        return kinds
    return frozenset({"name" if re.search(r"(?:^|\s)[A-ZÄÖÜ]", value) else "word"})


def _are_of_one_kind(first: str, second: str) -> bool:
    one, other = kinds_of(first), kinds_of(second)
    if one & other:
        return True
    return not ((one | other) & {"day", "clock"})
