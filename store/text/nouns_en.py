"""Noun phrases in English: the slot that "my boss's name" or "the deadline of the project" names."""

import re
from typing import Final

from core.patterns import lazy_pattern
from store.text.slot_words import RELATIONS
from store.text.slots import GROUP, PERSONAL, SPEAKER, Slot

I = re.IGNORECASE  # noqa: E741

_NEW = lazy_pattern(
    r"^((?:(?:my|our|the)\s+)?(?:\w+'s\s+)?)(?:brand[- ]new|newest|new|current|latest|updated|actual|present)\s+", I
)
_POSSESSIVE = lazy_pattern(r"^(?P<owner>.+?)'s?\s+(?P<thing>.+)$")
_DETERMINER = lazy_pattern(r"^(?P<word>my|our|the|this|your|an?)\s+", I)
_FORMER = lazy_pattern(r"^((?:my|our|the)\s+)?(?:old|previous|former|original|first|last)\s+", I)
_OF = lazy_pattern(r"(?:the\s+)?(?P<thing>[\w -]+?)\s+of\s+(?P<owner>(?:my|our|the|this|[A-Z]).*)$")
_NAME = lazy_pattern(r"(?P<owner>(?:my|our|the|this)?\s*.+?)(?:'s|')\s+name$", I)
_FAVOURITE = lazy_pattern(r"\bfavou?rite\b", I)


def noun_slot(words: str) -> Slot | None:
    """Return the slot that a noun phrase names: "my boss's name" is the boss of the speaker; None for none."""
    words = _without_name(_NEW.sub(r"\1", _FORMER.sub(r"\1", re.sub(r"\s+", " ", words.strip(" .,!?:;\"'")))))
    if match := _POSSESSIVE.match(words):
        return Slot(relation_of_noun(match["thing"]), name_of(match["owner"]))
    word = "the"
    if match := _DETERMINER.match(words):
        words, word = words[match.end() :], match["word"].lower()
    relation = relation_of_noun(words)
    if word in {"your", "a", "an"} or not relation:
        return None
    is_personal = relation in {"the": _HOUSEHOLD, "our": PERSONAL}.get(word, ())
    return Slot(relation, SPEAKER if word == "my" or is_personal else GROUP)


def _without_name(words: str) -> str:
    """Return "my boss" for "the name of my boss" and "my boss's name", "my sister's age" for "the age of my sister"."""
    if match := _OF.match(words):
        words = match["owner"] if match["thing"].lower() == "name" else f"{match['owner']}'s {match['thing']}"
    words = re.sub(r"^the user's\b", "my", words, flags=I)
    match = _NAME.match(words)
    return match["owner"] if match else words


_HOUSEHOLD: Final = frozenset({"rent", "landlord", "wifi password", "gate code"})


def relation_of_noun(words: str) -> str:
    """Return the relation that a noun phrase without determiner names; itself if it is not known."""
    folded = re.sub(r"\s+", " ", _FAVOURITE.sub("favorite", words.lower()).strip())
    folded = _NEW.sub("", folded)
    return RELATIONS.get(folded) or re.sub(r"(?<=\w) (?:time|date|day)$", "", folded)


def name_of(words: str) -> str:
    """Return another subject in lower case, without its determiner."""
    folded = re.sub(r"^(?:my|our|the)\s+", "", words.lower())
    return re.sub(r"\s+", " ", folded)
