"""Put what is true now before what was true before, by links between the statements of the hits.

Links are computed for each answer from the texts of its hits, so that one counts only while both memories are live and
the reader may see both. `store.text.statements` finds the statements of a text, `store.text.slots.link_of` says when a
newer one replaces an older one. This module says which sources may replace which, and orders the hits.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from django.utils import timezone

from memories.services.scoped_hits import LinkedMemory, ScopedHit, SearchCommand
from store.text import dates
from store.text.normalize import fold
from store.text.slots import Link, Statement, link_of
from store.text.statements import is_about_first, is_about_past, statements
from store.text.succession import follows, gives_way, may_be_replaced, may_replace
from store.text.times import query_times
from store.types import PARTICIPANT_CATEGORY, Hit

_PERSON, _USER, _IMPORT, _PARTICIPANT, _NO_SOURCE = 5, 4, 3, 1, 0
"""The weights of sources. A lower one never replaces a higher one."""
_FIRST_RESULTS: Final = 10
_OF_ORIGIN: Final = {"panel": _PERSON, "tool": _USER, "embedded": _USER, "extracted": _IMPORT, "upstream": _IMPORT}


class _Said(NamedTuple):
    """The statements of a hit, at its place among the hits, with its source."""

    place: int
    item: ScopedHit
    statements: tuple[Statement, ...]
    speaker: str
    strength: int


class _Replacement(NamedTuple):
    older: _Said
    newer: _Said
    link: Link


def put_current_first(found: Sequence[ScopedHit], command: SearchCommand) -> list[ScopedHit]:
    """Return the hits with newer statements of a slot before older ones, which name them as `superseded_by`.

    The newer one takes the better place of the two, the older one follows. A question about the past gets them the
    other way round, and one that names a date or month as they were ranked.
    """
    said = list(_said(found))
    replacements = _replacements(said, command.query)
    marked = _marked(found, replacements)
    is_past = is_about_past(command.query)
    if not is_past and _names_time(command):
        return marked
    order = list(range(len(found)))
    for group in _groups(replacements):
        newest_first = sorted(group, key=lambda place: (-found[place].hit.created_at_ms, place))
        if is_past:
            _put(order, _past_first(newest_first, command.query))
        else:
            _put(order, newest_first)
    if not is_past:
        _put_statement_first(order, marked, said, command)
    return [marked[place] for place in order]


def replacements(found: Sequence[ScopedHit]) -> dict[str, str]:
    """Return the ids of the newest hits that replace other ones by their statements, by the ids of these."""
    replaced = _replacements(list(_said(found)), "")
    return {older.item.hit.memory_id: newer.item.hit.memory_id for older, newer, link in replaced if link.is_marked}


def leave_out_replaced(found: Sequence[ScopedHit], command: SearchCommand) -> list[ScopedHit]:
    """Return the hits without those that another of them replaces for certain, if the request asks for no history.

    Call after the answer was cut to its size: what replaces them must be in it.
    """
    if command.history or command.as_of or is_about_past(command.query) or _names_time(command):
        return list(found)
    ids = {item.hit.memory_id for item in found} | {copy.memory_id for item in found for copy in item.copies}
    return [item for item in found if not (item.superseded_by in ids and _is_certain(item))]


def _is_certain(item: ScopedHit) -> bool:
    return any(one.memory_id == item.superseded_by and one.is_newer and one.confidence == "high" for one in item.links)


def _names_time(command: SearchCommand) -> bool:
    """Return True for a question about a day or a span, whose statements need not be those of today."""
    if dates.extract(fold(command.query))[0]:
        return True
    return bool(query_times(command.query, command.now or timezone.now()).tokens)


def _replacements(said: Sequence[_Said], question: str) -> list[_Replacement]:
    """Return for each hit the newest hit that replaces it, if there is one."""
    newest: dict[int, _Replacement] = {}
    told = sorted(
        (one for one in said if one.statements or may_be_replaced(question, one.item.hit.text)),
        key=lambda one: one.item.hit.created_at_ms,
    )
    for place, newer in enumerate(told):
        if newer.statements or may_replace(question, newer.item.hit.text):
            found = (_replacement(older, newer, question) for older in told[:place])
            newest |= {one.older.place: one for one in found if one}
    return list(newest.values())


def _said(found: Sequence[ScopedHit]) -> Iterator[_Said]:
    for place, item in enumerate(found):
        if strength := _strength_of(item):
            yield _Said(place, item, statements(item.hit.text), _speaker_of(item.hit), strength)


def _is_of_participant(hit: Hit) -> bool:
    return hit.category == PARTICIPANT_CATEGORY


def _strength_of(item: ScopedHit) -> int:
    """Return how much the source of a hit counts, 0 for assistants, tools and files, which replace nothing."""
    hit = item.hit
    if hit.is_passage or hit.memory_type not in {"episode", "unprocessed_message"}:
        return _NO_SOURCE
    if _is_of_participant(hit):
        return _PARTICIPANT
    if hit.role not in {"", "user"} or (
        hit.category.startswith("full_context_") and hit.category != "full_context_user"
    ):
        return _NO_SOURCE
    if item.override_id is not None:
        return _PERSON
    return _IMPORT if hit.is_imported else _OF_ORIGIN.get(hit.origin, _IMPORT)


def _speaker_of(hit: Hit) -> str:
    """Return who says "I" in a hit: empty for the user, of whom facts speak too."""
    return hit.sender_id if _is_of_participant(hit) else ""


def _replacement(older: _Said, newer: _Said, question: str) -> _Replacement | None:
    """Return how the newer of two hits replaces the older one, None for two that have nothing in common."""
    if older.speaker != newer.speaker or newer.strength < older.strength or older.item.hit.is_kept:
        return None
    if older.item.hit.created_at_ms == newer.item.hit.created_at_ms:
        return None
    links = [link for new in newer.statements for old in older.statements if (link := link_of(old, new))]
    if not links and (one := follows(question, older.item.hit.text, newer.item.hit.text)):
        links = [one]
    if not links:
        return None
    link = min(links, key=lambda one: (one.confidence != "high", not one.is_marked))
    if newer.strength == _PARTICIPANT:
        link = link._replace(confidence="low")
    return _Replacement(older, newer, link)


def _marked(found: Sequence[ScopedHit], replacements: Sequence[_Replacement]) -> list[ScopedHit]:
    marked = list(found)
    for older, newer, link in replacements:
        older_id, newer_id = older.item.hit.memory_id, newer.item.hit.memory_id
        if link.is_marked:
            marked[older.place] = marked[older.place]._replace(superseded_by=newer_id)
        for place, other, is_newer in ((older.place, newer_id, True), (newer.place, older_id, False)):
            named = LinkedMemory(other, is_newer, link.relation, link.rule, link.confidence)
            marked[place] = marked[place]._replace(links=(*marked[place].links, named))
    return marked


def _groups(replacements: Sequence[_Replacement]) -> list[set[int]]:
    """Return the places that links connect, in sets."""
    groups: list[set[int]] = []
    for older, newer, _link in replacements:
        joined = {older.place, newer.place}
        apart = []
        for group in groups:
            if group & joined:
                joined |= group
            else:
                apart.append(group)
        groups = [*apart, joined]
    return groups


def _past_first(newest_first: list[int], query: str) -> list[int]:
    """Return the places with the statement before the present one first, or with the very first one."""
    if is_about_first(query):
        return newest_first[::-1]
    return [*newest_first[1:], newest_first[0]]


def _put_statement_first(
    order: list[int], found: Sequence[ScopedHit], said: Sequence[_Said], command: SearchCommand
) -> None:
    """Put a statement before a first hit that doubts or plans about the same, is of others, or has a weaker source."""
    if not order:
        return
    of_place = {one.place: one for one in said}
    first, known = found[order[0]], of_place.get(order[0])
    strength = known.strength if known else _NO_SOURCE
    for place in order[1:_FIRST_RESULTS]:
        other = of_place.get(place)
        if other is None or other.strength < strength or first.hit.is_passage:
            continue
        if any(link.memory_id == first.hit.memory_id for link in found[place].links):
            continue
        is_weaker = other.strength >= _USER and strength < _IMPORT
        if not is_weaker and (
            known is None or other.speaker != known.speaker or other.item.hit.created_at_ms >= first.hit.created_at_ms
        ):
            continue
        if gives_way(command.query, first.hit.text, other.item.hit.text, is_weaker=is_weaker):
            order.remove(place)
            order.insert(0, place)
            return


def _put(order: list[int], wanted: Sequence[int]) -> None:
    """Put the wanted places in that order, from the best of them on, unless they are in it already."""
    present = [place for place in order if place in wanted]
    if present == list(wanted):
        return
    start = order.index(present[0])
    rest = [place for place in order[start:] if place not in wanted]
    order[start:] = [*wanted, *rest]
