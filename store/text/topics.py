"""Recognize statements about a person's health, money, religion … by lexicons.

A topic needs a statement about the person, not only a word: "I take insulin", not "insulin was found in 1921". The
lexicons (`topic_words_en`, `_de`, `_zh`) have terms of several kinds:

- `am`: what one is: "I'm …", "I was …";
- `my`: what one has, after "my" or "our";
- `have`: what one has, takes or uses: "I have …";
- `i`: what one does: "I …";
- `about`, `any`: terms in a sentence that speaks of "I", "my", "we".

They catch words, not meanings.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Final, Literal, get_args

from store.text.normalize import UNSPACED, fold
from store.text.topic_words_de import WORDS as GERMAN
from store.text.topic_words_en import WORDS as ENGLISH
from store.text.topic_words_zh import WORDS as CHINESE

Topic = Literal["health", "money", "religion", "politics", "sexuality", "location", "family", "work"]
TOPICS: Final[tuple[Topic, ...]] = get_args(Topic)
Speaker = Literal["user", "other", "note"]
"""The voice of a text: the person ("I"), an assistant to them ("you"), or a note about them ("the user", a name)."""

_SENTENCE: Final = re.compile(r"(?<=[.!?;。！？；])(?<!\b[DdMS][rt]\.)\s+|(?<=[。！？；])|\n+")
_APOSTROPHES: Final = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "`": "'"})
_UNSPACED: Final = re.compile(f"[{UNSPACED}]")
_GAP: Final = r"(?: [\w-]+)"
_SOME: Final = r"(?:,? [\w'-]+)"

# Who a sentence is about, by who says it: subjects and possessives of English, German and Chinese.
_ENGLISH: Final[Mapping[Speaker, tuple[str, str]]] = {
    "user": (r"i|we|(?:the )?user", r"my|our|(?:the )?user's"),
    "other": (r"i|we|you|(?:the )?user", r"my|our|your|(?:the )?user's"),
    "note": (r"[\w-]+", r"my|our|your|his|her|their|[\w-]+'s?"),
}
_GERMAN: Final[Mapping[Speaker, tuple[str, str]]] = {
    "user": (r"ich|wir|(?:der |die )?(?:be)?nutzer(?:in)?", r"mein\w{0,2}|unser\w{0,2}"),
    "other": (
        r"ich|wir|du|ihr|sie|(?:der |die )?(?:be)?nutzer(?:in)?",
        r"mein\w{0,2}|unser\w{0,2}|dein\w{0,2}|ihr\w{0,2}",
    ),
    "note": (r"[\w-]+", r"(?:m|d|s)?ein\w{0,2}|unser\w{0,2}|ihr\w{0,2}|[\w-]+s"),
}
_CHINESE: Final[Mapping[Speaker, str]] = {
    "user": "(?<!自)我(?![国军方党省市县])|咱|俺|本人|用户",
    "other": "(?<!自)我(?![国军方党省市县])|咱|俺|你|您|用户",
    "note": "",
}
_MARKS: Final[Mapping[Speaker, re.Pattern[str]]] = {
    "user": re.compile(
        r"\b(?:i|we|my|our|me|us|mine|ours|user|mum|mom|dad|grandma|grandpa|ich|wir|mir|mich|uns|mein\w{0,2}|unser\w{0,2}"
        r"|\w*nutzer\w*)\b"
    ),
    "other": re.compile(
        r"\b(?:i|we|my|our|me|us|mine|ours|you|your|user|ich|wir|mir|mich|uns|mein\w{0,2}|unser\w{0,2}|du|dir|dich|dein\w{0,2}"
        r"|sie|ihnen|ihr\w{0,2}|\w*nutzer\w*)\b"
    ),
    "note": re.compile(""),
}


def topics_of(text: str, wanted: Collection[str] = TOPICS, *, speaker: Speaker = "user") -> set[Topic]:
    """Return those of the wanted topics about which the text says something of the person."""
    left, found = [topic for topic in TOPICS if topic in wanted], set[Topic]()
    for sentence in _SENTENCE.split(text.translate(_APOSTROPHES)) if left else ():
        folded = fold(sentence)
        patterns = _patterns_for(folded, speaker)
        told = {topic for topic in left if any(one.search(folded) for of in patterns for one in of(topic, speaker))}
        if "location" in left and _places(speaker).search(sentence):
            told.add("location")
        found |= told
        left = [topic for topic in left if topic not in told]
        if not left:
            break
    return found


_OfTopic = Callable[[Topic, Speaker], Sequence[re.Pattern[str]]]


def _patterns_for(folded: str, speaker: Speaker) -> list[_OfTopic]:
    """Return the lexicons that can tell something of a sentence; none without a person in it."""
    found: list[_OfTopic] = [_english, _german] if _MARKS[speaker].search(folded) else []
    return [_chinese, *found] if _UNSPACED.search(folded) else found


def _alternatives(terms: str, *, ending: str = "") -> str:
    """Return the pattern of terms separated by commas; `~` is any letters, other signs are of regular expressions."""
    written = re.sub(r"\|\s+", "|", " ".join(terms.split()))
    found = (term.strip() for term in re.split(r",(?![\d.])", written))
    return "|".join(term.replace("~", r"\w*") + ending for term in found if term)


def _compiled(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in patterns if pattern)


@cache
def _english(topic: Topic, speaker: Speaker) -> Sequence[re.Pattern[str]]:
    subject, owner = _ENGLISH[speaker]
    words = {kind: _alternatives(terms, ending="(?:s|es)?") for kind, terms in ENGLISH[topic].items()}
    verbs = _of_third_person(_alternatives(ENGLISH[topic]["i"]))
    be = (
        r"(?:'m|'re| am| are| was| were|(?:'ve| have|'s| has)(?: \w+)? been| became| become| get| got| feel| felt"
        r"|(?: \w+)? identify as| consider (?:myself|ourselves)| turned out| turned|'d been| is|'s| remains)"
    )
    has = (
        r"(?:have|has|had|'ve|got|gotten|need|needed|take|takes|took|taking|use|uses|using|wear|wears|on|get|gets"
        r"|getting|own)"
    )
    found = [
        rf"\b(?:{subject}){be}{_GAP}{{0,3}} (?:{words['am']})\b" if words["am"] else "",
        rf"\b(?:{owner}){_GAP}{{0,1}} (?:{words['my']})\b",
        rf"\b(?:{subject})(?: \w+|'\w+){{0,2}} ?{has}{_SOME}{{0,4}} (?:{words['have']})\b" if words["have"] else "",
        rf"\b(?:{subject})(?:'\w+)?{_SOME}{{0,2}} (?:{verbs})\b" if verbs else "",
        rf"\b(?:{words['about']})\b" if words["about"] else "",
        rf"\b(?:{words['any']})\b" if words["any"] else "",
    ]
    if speaker == "note":  # "Allergic to nuts", "Lives in Lyon"
        found += [
            rf"^(?:{words['am']})\b" if words["am"] else "",
            rf"^(?:{verbs})\b" if verbs else "",
        ]
    return _compiled(*found)


def _of_third_person(verbs: str) -> str:
    return "|".join(re.sub(r"^([a-z]{3,})(?= |$)", r"\1(?:s|es)?", verb) for verb in verbs.split("|"))


@cache
def _german(topic: Topic, speaker: Speaker) -> Sequence[re.Pattern[str]]:
    subject, owner = _GERMAN[speaker]
    ending = "(?:e|en|er|es|s|n|in|innen)?"
    words = {kind: _alternatives(terms, ending=ending) for kind, terms in GERMAN[topic].items()}
    be = r"(?:bin|sind|war|waren|wurde|wurden|werde|werden|ist|bist|wird)"
    return _compiled(
        rf"\b(?:(?:{subject}) {be}|{be} (?:{subject})){_SOME}{{0,4}} (?:{words['am']})\b",
        rf"\b(?:{owner}){_GAP}{{0,1}} (?:{words['my']})\b",
        rf"\b(?:{words['any']})\b"
        if speaker == "note"
        else rf"^(?=.*\b(?:{_OF_GERMAN[speaker]})\b).*\b(?:{words['any']})\b",
    )


_OF_GERMAN: Final = {
    "user": r"ich|wir|mir|mich|uns|mein\w{0,2}|unser\w{0,2}|\w*nutzer\w*",
    "other": r"ich|wir|mir|mich|uns|mein\w{0,2}|unser\w{0,2}|\w*nutzer\w*|du|dir|dich|dein\w{0,2}|sie|ihnen|ihr\w{0,2}",
}


@cache
def _chinese(topic: Topic, speaker: Speaker) -> Sequence[re.Pattern[str]]:
    mark, words = _CHINESE[speaker], {kind: "|".join(terms.split()) for kind, terms in CHINESE[topic].items()}
    if not mark:
        return _compiled(rf"{words['any']}|{words['my']}")
    return _compiled(
        rf"(?:{mark})[^。！？；]{{0,16}}(?:{words['any']})",
        rf"(?:{mark})们?(?:的|家)?[^,，。]{{0,4}}(?:{words['my']})",
    )


@cache
def _places(speaker: Speaker) -> re.Pattern[str]:
    """Return the pattern of being, going and having been where a name with a capital letter is."""
    subject = {"user": "I|[Ww]e", "other": "I|[Ww]e|[Yy]ou", "note": r"[\w-]+"}[speaker]
    return re.compile(
        rf"\b(?:{subject})(?:'m|'re| am| are| is| was| were)(?: \w+){{0,3}} (?:in|at|to|from|near) (?:the )?[A-Z]\w+"
        rf"|\b(?:{subject})(?:'\w+)?(?: \w+){{0,2}} (?:move|moved|moving|go|went|going|gone|travel\w*|fly|flying|flew"
        r"|drive|driving|drove|trip|visit\w*|been|relocat\w*|heading|headed|return\w*)(?: \w+){0,3}"
        r" (?:to|from|in|back to) (?:the )?[A-Z]\w+"
        rf"|\b(?:{subject})(?:'\w+)?(?: \w+){{0,2}} visit(?:ed|ing)? [A-Z]\w+"
    )
