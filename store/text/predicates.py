"""Tell whether two sentences about the speaker may say values of one thing.

A verb says different things with different complements: "I drive a Volvo" and "I drive home". What happened is no value
of what is so: "I have 2 cats" and "I saw 3 cats".
"""

from functools import lru_cache
from typing import Final, NamedTuple

from core.patterns import lazy_pattern
from store.text.stems import is_irregular_form

_ROLES: Final = {
    "place": """in at on for near outside inside around within between above under behind off over im am bei beim auf an
        für fürs unter über neben""",
    "company": "with without mit ohne",
    "goal": "to into towards nach zu zum zur ins",
    "origin": "from von vom aus",
    "means": "by per via",
    "manner": "home alone away back early late together here there out up down fast hard less more often",
}
_ROLE_OF: Final = {word: role for role, words in _ROLES.items() for word in words.split()}
_GERMAN: Final = frozenset(["ich", "wir", "nutzer", "nutzerin"])
_SPEAKERS: Final = _GERMAN | {"i", "we", "user"}
_IS: Final = frozenset(["am", "are", "is", "was", "were", "be", "been", "bin", "sind", "ist", "war"])
_HAS: Final = frozenset(["have", "has", "habe", "haben", "hat"])
_FILLING_TEXT: Final = """
    now just currently also already only usually always mostly still really finally again the der die jetzt nun
    inzwischen mittlerweile meistens immer nur wieder schon gerade seit kurzem neuerdings heute today
"""
_FILLING: Final = frozenset(_FILLING_TEXT.split())
_PARTICIPLE = lazy_pattern(r"\w{0,4}ge\w{2,}(?:t|en)$")
_TOKEN = lazy_pattern(r"[^\W\u4e00-\u9fff]+(?:'\w+)?")
_HAN_OTHER = lazy_pattern("刚才|看[到见]|听到|[遇见碰]到|在家(?=[工办上])|住(?:酒店|宾馆|旅馆)")
"""Chinese words for what happened, and for a place where a user stays for a short time."""
_SAME: Final = 4
"""Letters that forms of one verb begin with alike."""


class Predicate(NamedTuple):
    """A verb of the speaker, the roles of what follows it, and whether it tells what happened."""

    verb: str
    roles: frozenset[str]
    is_event: bool


def may_be_of_one_thing(older: str, newer: str) -> bool:
    """Return False if a newer text, which says no word of a change, says something of another kind."""
    if other := _HAN_OTHER.search(newer):
        return other[0] in older
    old, new = predicate(older), predicate(newer)
    if old is None or new is None:
        return True
    if old.verb[:_SAME] != new.verb[:_SAME]:
        return not new.is_event
    return new.verb in _IS or not (old.roles and new.roles) or not old.roles.isdisjoint(new.roles)


@lru_cache(maxsize=16_384)
def predicate(text: str) -> Predicate | None:
    """Return what an English or German text says of its speaker, None if it does not begin with that."""
    tokens = [token for token in _TOKEN.findall(text) if token.lower() not in _FILLING]
    place = next((at for at, token in enumerate(tokens[:2]) if token.lower() in _SPEAKERS), None)
    if place is None or len(tokens) < 2:
        return None
    is_german = tokens[place].lower() in _GERMAN
    verb, rest = (tokens[1], tokens[2:]) if place == 0 else (tokens[0], tokens[2:])
    verb = verb.lower()
    if is_german:
        if verb in _HAS | _IS and rest and _PARTICIPLE.match(rest[-1]):
            return Predicate(rest[-1].lower(), _german_roles(rest[:-1]), is_event=True)
        return Predicate(verb, _german_roles(rest), is_event=False)
    if verb in _IS | _HAS and rest and (rest[0].endswith("ing") or _is_past(rest[0])):
        verb, rest = rest[0].lower(), rest[1:]
    return Predicate(verb, _roles(rest), _is_past(verb))


def _is_past(verb: str) -> bool:
    return is_irregular_form(verb) or (verb.endswith("ed") and not verb.endswith("eed"))


def _roles(tokens: list[str]) -> frozenset[str]:
    """Return the roles of the words after a verb: only the first of them may be its object."""
    if not tokens:
        return frozenset()
    roles = {role for token in tokens if (role := _ROLE_OF.get(token.lower()))}
    if tokens[0].lower() not in _ROLE_OF:
        roles.add("manner" if tokens[0].endswith("ly") else "object")
    return frozenset(roles)


def _german_roles(tokens: list[str]) -> frozenset[str]:
    """Return the roles of prepositions, of nouns and numbers without one, and of words without any noun."""
    roles: set[str] = set()
    role = ""
    for token in tokens:
        if found := _ROLE_OF.get(token.lower()):
            role = found
            roles.add(role)
        elif not token.islower():
            roles.add(role or "object")
            role = ""
    return frozenset(roles or ["manner"] if tokens else ())
