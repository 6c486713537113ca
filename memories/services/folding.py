"""Show each fact once: fold equal memories, leave out acknowledgments, and put repeated questions last."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from memories.services.scoped_hits import Copy, ScopedHit
from store.text.same_fact import is_same_fact
from store.text.wording import is_acknowledgment, is_open_question, normalized, only_asks, raw_words, tells_nothing

MAX_COPIES: Final = 20
MAX_WORDINGS: Final = 2
"""The most wordings of one fact among the first results."""
FIRST_RESULTS: Final = 10
_MIN_SHARED: Final = 4
"""Wordings of one fact have at least a fourth of the words of the shorter one in common, by their beginnings."""
_MAX_CHARS: Final = 400
"""Longer texts are neither wordings of one fact nor questions that repeat a query."""


def fold(found: Sequence[ScopedHit], query: str) -> list[ScopedHit]:
    """Return the hits without copies and acknowledgments; questions that repeat the query come last.

    Of several wordings of one fact, two are among the first ten; the others follow after these.
    """
    answers: list[ScopedHit] = []
    echoes: list[ScopedHit] = []
    messages = (one for one in found if not one.hit.role or one.hit.is_passage or not is_acknowledgment(one.hit.text))
    for one in fold_copies(messages):
        (echoes if _is_echo(one, query) else answers).append(one)
    return [*_spread(answers, query), *echoes]


def fold_copies(found: Iterable[ScopedHit]) -> list[ScopedHit]:
    """Return one hit for all of the same text, sender and role, with the others as its copies."""
    first: dict[tuple[object, ...], ScopedHit] = {}
    copies: dict[tuple[object, ...], list[Copy]] = {}
    for one in found:
        hit = one.hit
        is_pending = hit.memory_type == "unprocessed_message"
        # The speaker of a narrative that only the remote holds is not known.
        is_known = bool(hit.text and hit.sender_id)
        key = (normalized(hit.text), hit.sender_id, hit.role, hit.is_passage, is_pending) if is_known else (id(one),)
        if first.setdefault(key, one) is not one:
            copies.setdefault(key, []).append(Copy(hit.memory_id, hit.session_id, hit.created_at_ms))
    return [one._replace(copies=tuple(copies.get(key, ())[:MAX_COPIES])) for key, one in first.items()]


def _is_echo(one: ScopedHit, query: str) -> bool:
    """Return True for a text that tells nothing that the query does not: a question, or a reply without an answer."""
    return _is_short(one) and tells_nothing(one.hit.text, query, is_reply=one.hit.role == "assistant")


def _is_short(one: ScopedHit) -> bool:
    return len(one.hit.text) <= _MAX_CHARS and not one.hit.is_passage


def _spread(found: list[ScopedHit], query: str) -> list[ScopedHit]:
    """Return the hits with at most two wordings of one fact among the first ten, and questions after statements."""
    facts = _facts(found, query)
    shown: list[ScopedHit] = []
    later: list[ScopedHit] = []
    places = Counter[int]()
    for index, one in enumerate(found):
        if len(shown) >= FIRST_RESULTS:
            later += found[index:]
            break
        places[facts[index]] += 1
        (later if places[facts[index]] > MAX_WORDINGS else shown).append(one)
    if is_open_question(query):
        shown.sort(key=lambda one: _is_short(one) and only_asks(one.hit.text, query))
    return [*shown, *later]


def _facts(found: Sequence[ScopedHit], query: str) -> list[int]:
    """Return for each hit the place of the first one that tells the same fact, be it by way of a third."""
    raw = {one.hit.memory_id: raw_words(one.hit.text) for one in found if one.hit.sender_id and _is_short(one)}
    facts = list(range(len(found)))
    for place, one in enumerate(found[: 2 * FIRST_RESULTS]):
        for other in range(place):
            if facts[other] != facts[place] and _is_wording(one, found[other], raw, query):
                first, last = sorted((facts[other], facts[place]))
                facts = [first if fact == last else fact for fact in facts]
    return facts


def _is_wording(one: ScopedHit, other: ScopedHit, raw: Mapping[str, frozenset[str]], query: str) -> bool:
    return _may_be_wording(one, other, raw) and is_same_fact(one.hit.text, other.hit.text, query)


def _may_be_wording(one: ScopedHit, other: ScopedHit, raw: Mapping[str, frozenset[str]]) -> bool:
    """Return False for hits of two speakers, and for texts with too few words in common."""
    words, others = raw.get(one.hit.memory_id), raw.get(other.hit.memory_id)
    if words is None or others is None or (one.hit.sender_id, one.hit.role) != (other.hit.sender_id, other.hit.role):
        return False
    return len(words & others) * _MIN_SHARED >= min(len(words), len(others))
