"""The slots that questions in English ask for, and whether they ask for what was."""

import re
from collections.abc import Iterator
from typing import Final

from core.patterns import lazy_pattern
from store.text.nouns_en import name_of, noun_slot, relation_of_noun
from store.text.slot_words import DIETS
from store.text.slots import GROUP, PERSONAL, SPEAKER, USES, Slot
from store.text.statements_en import PROJECT, expanded

I = re.IGNORECASE  # noqa: E741


_ASK_FILLER = lazy_pattern(
    (
        r"\b(?:now|currently|right now|at the moment|these days|nowadays|today|still|again|actually|presently|before"
        r"|previously|formerly|originally|earlier|in the past|back then|at first|initially|ever|please|first)\b"
    ),
    I,
)
_ASK_LEAD = lazy_pattern(
    r"^(?:(?:hey|hi|so|ok|okay|and|please|do you (?:know|remember)|can you (?:tell me|remind me)|could you "
    r"(?:tell me|remind me)|tell me|remind me|i forgot|remember"
    r"|what do you know about|(?:of )?what do you remember about)[\s,:]+)+",
    I,
)
_WHO = r"(?P<s>i|we|the user|user|my [\w ]+?|our [\w ]+?|the [\w ]+?|[A-Z]\w+(?: [A-Z]\w+)?)"
_DO = r"(?:do|does|did|am|is|are|was|were|had|have)"
_QUESTIONS: Final = tuple(
    (lazy_pattern(pattern, I), relations.split("|"))
    for pattern, relations in (
        ((
            rf"where {_DO} {_WHO} (?:(?:use to|used to) )?(?:live|living|reside|stay|based|located|move(?:d)?(?: to)?"
            rf"|moving)\b"
        ), "home|address"),
        ((
            rf"(?:in )?(?:which|what) (?:city|town|country|place|state|neighbou?rhood|street) {_DO} {_WHO} (?:(?:use"
            rf" to|used to) )?(?:live|living|reside|based|move)"
        ), "home|address"),
        (rf"what is {_WHO}(?:'s)? (?:current )?(?:home|city|hometown)$", "home"),
        (rf"where {_DO} {_WHO} (?:(?:use to|used to) )?(?:work|working|employed)\b", "employer|job"),
        ((
            rf"(?:who|whom|(?:for )?(?:which|what) (?:company|employer|firm|organi[sz]ation)) {_DO} {_WHO} (?:(?:use"
            rf" to|used to) )?(?:work|working)\b"
        ), "employer"),
        (rf"what {_DO} {_WHO} (?:(?:use to|used to) )?do(?: for (?:a living|work))?$", "job|employer"),
        (rf"what (?:kind of )?(?:work|job) {_DO} {_WHO} (?:do|have)$", "job|employer"),
        (rf"how old (?:am|is|are|was|were) {_WHO}$", "age"),
        (rf"how tall (?:am|is|are) {_WHO}$", "height"),
        (rf"how (?:much (?:do|does|did) {_WHO} weigh|heavy (?:am|is) \w+)", "weight"),
        ((
            rf"(?:what|which)(?: kind of| type of)?(?: car| vehicle)? {_DO} {_WHO} (?:(?:use to|used to) )?(?:drive"
            rf"|driving|own)\b"
        ), "car"),
        ((
            rf"(?:who|whom) (?:am|is|was|are) {_WHO} (?:married to|dating|engaged to|with|seeing|together with)$"
        ), "partner"),
        (rf"{_DO} {_WHO} (?:still )?(?:a |an )?(?:{DIETS}|eat(?:ing)? (?:meat|fish|dairy|eggs))", "diet"),
        (rf"what (?:kind of )?diet {_DO} {_WHO} (?:follow|on|have|eat)", "diet"),
        (rf"(?:am|is|are|was) {_WHO} (?:still )?(?:single|married|divorced|engaged)", "marital status|partner"),
        (rf"how much rent {_DO} {_WHO} pay|how much {_DO} (?P<s2>\w+) pay (?:for|in) rent", "rent"),
        (rf"how much (?:money )?{_DO} {_WHO} (?:earn|make)\b", "salary"),
        ((
            rf"(?:which|what) (?:gym|fitness studio) {_DO} {_WHO} (?:go to|use|train)|where {_DO} (?P<s2>\w+) (?:work"
            rf" out|train|exercise)|where {_DO} \w+ go to the gym"
        ), "gym"),
        (rf"(?:which|what) bank {_DO} {_WHO} (?:use|have)|where {_DO} (?P<s2>\w+) bank", "bank"),
        ((
            rf"(?:who|where|with whom|with which company) (?:am|is|are|was) {_WHO} insured|(?:which|what) (?:health"
            rf" )?insur(?:ance|er) {_DO} (?P<s2>\w+) have"
        ), "insurance"),
        ((
            rf"(?:where|(?:which|what) (?:school|university|college)) {_DO} {_WHO} (?:study|go to$|go to (?:school"
            rf"|university|college)|attend)"
        ), "school"),
        (rf"(?:who|whom) {_DO} {_WHO} report to", "boss"),
        (rf"{_DO} {_WHO} (?:still )?(?:work|employed) (?:at|for)", "employer|job"),
        (rf"{_DO} {_WHO} (?:still )?live in", "home"),
        (rf"what shoe size {_DO} {_WHO}", "shoe size"),
        (rf"{_DO} {_WHO} (?:still )?drive", "car"),
    )
)  # fmt: skip
_ASK_TOOL = lazy_pattern(
    (
        rf"(?:which|what)(?: kind of| type of)? (?P<kind>[\w /-]+?) {_DO} {_WHO} (?:(?:use to|used to) )?(?:use|using"
        rf"|run|running|run on|write in|code in|written in|work with|deploy (?:to|on|with)|host on|store|listen on|on"
        rf"|have|prefer)\b(?P<what> for .+| in .+)?"
    ),
    I,
)
_ASK_USE = lazy_pattern(
    (
        rf"(?:what|which (?:tool|app|software|service|program)) {_DO} {_WHO} (?:(?:use to|used to) )?(?:use|using)"
        rf"(?P<what> (?:for|as|in|on) .+)?$"
    ),
    I,
)
_ASK_WHEN = lazy_pattern(
    (
        rf"(?:when|what time|at what time|what day|on (?:what|which) day|which day|where|how much|on what date)"
        rf" {_DO} {_WHO} (?P<verb>start|begin|open|close|end|leave|depart|cost|run|expire|arrive|take place|happen"
        rf"|wake up|get up|go to bed|start work|finish work)s?$"
    ),
    I,
)
_ASK_NOUN = lazy_pattern(
    r"(?:(?:what|which|who|when|where|how (?:much|high|long|big|large|many)|what time|at what time|what day|on "
    r"(?:what|which) day|what date|which day|in which room|which room|what kind of|what colou?r)\s*"
    r"(?:is|are|was|were|'s|will)\s+(?:now\s+)?(?P<noun>.+?)(?:\s+(?:called|named|set to|set|due|scheduled(?:"
    r" for)?|at|on|held|in|be|planned(?: for)?|again|running on|like|supposed to be|before .+|used to be))*$"
    r"|(?P<plain>(?:my|our|the)\s+.+?)$|(?:what|which) (?P<kind>[\w ]+?) (?:is|are|was) (?P<of>my|our|the) "
    r"(?P<owner>[\w ]+?)(?: on| in| at)?$)",
    I,
)


_DATE = lazy_pattern(
    r"\b(?:in|on|as of|back in) (?:(?:19|20)\d\d|(?:january|february|march|april|may|june|july|august|september"
    r"|october|november|december)\b.*)$",
    I,
)
_NOT_NOUN = lazy_pattern(r"(?:you|it|that|this|there|i|we|he|she|they|going)\b", I)
_SWITCHED: Final = frozenset({"bank", "gym", "insurance"})
_ALSO: Final = {"job": "employer", "phone": "phone model", "home": "address"}
"""Relations whose questions statements of another one answer too."""


def asked(question: str) -> Iterator[Slot]:
    """Yield the slots that a question asks for."""
    words = _ASK_LEAD.sub("", expanded(question).strip().rstrip("?!. "))
    words = _DATE.sub("", re.sub(r"\bbefore\b.*$", "", words, flags=I))
    words = re.sub(r"\s+", " ", _ASK_FILLER.sub(" ", words)).strip(" ,")
    for rule in (_by_relation, _by_tool, _by_use, _by_time, _by_noun):
        if found := list(rule(words)):
            yield from found
            return


def _by_relation(words: str) -> Iterator[Slot]:
    for pattern, relations in _QUESTIONS:
        if match := pattern.match(words):
            who = match.groupdict().get("s") or match.groupdict().get("s2") or "i"
            for relation in [*relations, *([USES] if relations[0] in _SWITCHED else [])]:
                yield Slot(relation, _asked_subject(who, relation))
            return


def _by_tool(words: str) -> Iterator[Slot]:
    if match := _ASK_TOOL.match(words):
        kind = relation_of_noun(match["kind"])
        kind = {"phone": "phone model", "language": "code language"}.get(kind, kind)
        subject = _asked_subject(match["s"], kind)
        subject = GROUP if subject in PROJECT else subject
        yield Slot(kind, subject)
        yield Slot(USES, subject)
        if match["what"]:
            yield Slot(f"use {match['what'].strip().lower()}", subject)


def _by_use(words: str) -> Iterator[Slot]:
    if match := _ASK_USE.match(words):
        subject = _asked_subject(match["s"], USES)
        yield Slot(USES, subject)
        if what := (match["what"] or "").strip().lower():
            yield Slot(f"use {what}", subject)
            yield Slot(relation_of_noun(re.sub(r"^(?:for|as|in|on) (?:an? |our |my |the )?", "", what)), subject)


def _by_time(words: str) -> Iterator[Slot]:
    if match := _ASK_WHEN.match(words):
        verb = match["verb"].lower()
        if match["s"].lower() in {"i", "we", "the user", "user"}:
            yield Slot(verb, _asked_subject(match["s"], ""))
        elif slot := noun_slot(match["s"]):
            yield slot
            yield Slot(f"{slot.relation} {verb}s", slot.subject)


def _by_noun(words: str) -> Iterator[Slot]:
    if (match := _ASK_NOUN.match(words)) is None:
        return
    noun = match["noun"] or match["plain"] or f"{match['of']} {match['owner']}"
    slot = None if _NOT_NOUN.match(noun) else noun_slot(noun)
    if slot is None:
        return
    yield slot
    if slot.subject == SPEAKER and slot.relation not in PERSONAL:
        yield Slot(slot.relation, GROUP)
    if also := _ALSO.get(slot.relation):
        yield Slot(also, slot.subject)
    if slot.relation == "status":
        yield Slot(relation_of_noun(slot.subject), GROUP)
    if match["kind"]:
        yield Slot(relation_of_noun(match["kind"]), slot.relation)


def _asked_subject(who: str, relation: str) -> str:
    folded = who.lower()
    if folded in {"i", "the user", "user"}:
        return SPEAKER
    if folded in {"we", "the team", "our team"}:
        return SPEAKER if relation in PERSONAL else GROUP
    return name_of(who)


_PAST = lazy_pattern(
    r"\b(?:before|used? to|previous(?:ly)?|first|original(?:ly)?|former(?:ly)?|earlier|in the past|back then|at"
    r" first|initial(?:ly)?"
    r"|(?<!how )old(?=\s+\w)|ex-?\w*|prior|past|no longer"
    r"|did (?:i|we|the user|(?:my|our|the) \w+) (?:live|work|drive|use|have|own|eat|bank|study|pay|earn|weigh"
    r"|report|call|run|deploy|host|start|cost)"
    r"|(?:was|were) (?:i|we|my|our|the)\b(?!.*\b(?:again|moved|changed|supposed|pushed|rescheduled)\b))\b",
    I,
)
_FIRST_OF_ALL = lazy_pattern(
    r"\b(?:first (?:name|thing|aid|class)|before (?:i|we) (?:go|leave|start|travel|fly|sleep|eat)|last name)\b", I
)


def is_about_past(question: str) -> bool:
    """Return True if a question asks for what was, not for what is."""
    words = _FIRST_OF_ALL.sub(" ", expanded(question))
    return _PAST.search(words) is not None
