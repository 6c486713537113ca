"""Show each fact once: fold equal memories, leave out acknowledgements, and put repeated questions last."""

from collections.abc import Iterable, Sequence
from typing import Final

from memories.services.scoped_hits import Copy, ScopedHit
from store.text.wording import (
    is_acknowledgement,
    is_no_answer,
    is_same_fact,
    names_in,
    normalized,
    repeats_question,
    wording,
)

MAX_COPIES: Final = 20
MAX_WORDINGS: Final = 2
"""The most wordings of one fact among the first results."""
FIRST_RESULTS: Final = 10
_MAX_CHARS: Final = 400
"""Longer texts are neither wordings of one fact nor questions that repeat a query."""


def fold(found: Sequence[ScopedHit], query: str) -> list[ScopedHit]:
    """Return the hits without copies and acknowledgements; questions that repeat the query come last.

    Of several wordings of one fact, two are among the first ten; the others follow after these.
    """
    folded = fold_copies(one for one in found if not _is_empty(one))
    echoes = {one.hit.memory_id for one in folded if _is_echo(one, query)}
    answers = [one for one in folded if one.hit.memory_id not in echoes]
    return [*_spread(answers), *(one for one in folded if one.hit.memory_id in echoes)]


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


def _is_empty(one: ScopedHit) -> bool:
    return bool(one.hit.role) and not one.hit.is_passage and is_acknowledgement(one.hit.text)


def _is_echo(one: ScopedHit, query: str) -> bool:
    """Return True for a question that repeats the query, and for the assistant's reply that it does not know."""
    if not _is_short(one):
        return False
    return repeats_question(one.hit.text, query) or (one.hit.role == "assistant" and is_no_answer(one.hit.text))


def _is_short(one: ScopedHit) -> bool:
    return len(one.hit.text) <= _MAX_CHARS and not one.hit.is_passage


def _spread(found: list[ScopedHit]) -> list[ScopedHit]:
    """Return the hits with at most two wordings of one fact among the first ten."""
    if len(found) <= MAX_WORDINGS:
        return found
    short = {
        index: one for index, one in enumerate(found) if len(one.hit.text) <= _MAX_CHARS and not one.hit.is_passage
    }
    names = frozenset(name for one in short.values() for name in names_in(one.hit.text))
    shown: list[ScopedHit] = []
    later: list[ScopedHit] = []
    for index, one in enumerate(found):
        if len(shown) >= FIRST_RESULTS:
            return [*shown, *later, *found[index:]]
        is_repeated = _is_short(one) and sum(_is_wording(one, other, names) for other in shown) >= MAX_WORDINGS
        (later if is_repeated else shown).append(one)
    return [*shown, *later]


def _is_wording(one: ScopedHit, other: ScopedHit, names: frozenset[str]) -> bool:
    is_of_one_speaker = (one.hit.sender_id, one.hit.role) == (other.hit.sender_id, other.hit.role)
    if not (one.hit.sender_id and is_of_one_speaker and _is_short(other)):
        return False
    return is_same_fact(wording(one.hit.text), wording(other.hit.text), names)
