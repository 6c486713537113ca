"""What stands beside memories in their sessions: the turns before and after, the passages around a passage."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from django.db import connection

from core.sql import slots
from store.owned import owner_values
from store.types import Owner

MAX_NEIGHBOURS: Final = 10
_AT_ONCE: Final = 100
_OWNED: Final = "m.user_id = %s AND m.app_id = %s AND m.project_id = %s"
_PLACES: Final = f"""
    SELECT m.memory_id, m.session_id, m.seq, m.created_at_ms, m.id FROM store_memory m
    WHERE {_OWNED} AND m.session_id IS NOT NULL AND m.memory_id IN ({{slots}})
"""
# What an upstream was given is a record of it once flushed; the memories made of it stand here too.
_IS_RECORD: Final = (
    "m.origin = 'upstream' AND m.memory_type = 'unprocessed_message' AND m.batch_id <> ''"
    " AND substr(m.batch_id, 1, 8) <> 'sending:'"
)
_SIDE: Final = f"""
    SELECT * FROM (
        SELECT {{number}} AS hit, {{side}} AS side, m.memory_id, m.sender_id, m.text, m.created_at_ms
        FROM store_memory m
        WHERE {_OWNED} AND m.session_id = %s AND (m.seq, m.created_at_ms, m.id) {{beyond}} (%s, %s, %s)
            AND m.hidden_at IS NULL AND m.origin <> 'extracted' AND NOT ({_IS_RECORD})
        ORDER BY m.seq {{order}}, m.created_at_ms {{order}}, m.id {{order}} LIMIT %s
    ) AS side_{{number}}_{{side}}
"""
_BEFORE: Final = {"side": 0, "beyond": "<", "order": "DESC"}
_AFTER: Final = {"side": 1, "beyond": ">", "order": "ASC"}


class Neighbour(NamedTuple):
    """A live memory beside another."""

    memory_id: str
    sender_id: str
    text: str
    created_at_ms: int


class Surroundings(NamedTuple):
    """Both in the order in which they were said or stand in the document."""

    before: tuple[Neighbour, ...]
    after: tuple[Neighbour, ...]


def surroundings(owner: Owner, memory_ids: Collection[str], count: int) -> dict[str, Surroundings]:
    """The `count` memories before and after each of the owner's memories in its session.

    One statement, and one more for each hundred memories.
    """
    if not memory_ids or not count:
        return {}
    owned = owner_values(owner)
    found: dict[str, Surroundings] = {}
    with connection.cursor() as cursor:
        cursor.execute(_PLACES.format(slots=slots(memory_ids)), [*owned, *memory_ids])
        places = cursor.fetchall()
        for start in range(0, len(places), _AT_ONCE):
            found |= _around(cursor, owned, places[start : start + _AT_ONCE], count)
    return found


def _around(cursor: Any, owned: list[Any], places: Sequence[Any], count: int) -> Iterator[tuple[str, Surroundings]]:
    statements, values = [], []
    for number, (_, *place) in enumerate(places):
        for side in (_BEFORE, _AFTER):
            statements.append(_SIDE.format(number=number, **side))
            values += [*owned, *place, count]
    cursor.execute(" UNION ALL ".join(statements), values)
    sides: list[tuple[list[Neighbour], list[Neighbour]]] = [([], []) for _ in places]
    for number, side, *neighbour in cursor.fetchall():
        sides[number][side].append(Neighbour(*neighbour))
    for (memory_id, *_), (before, after) in zip(places, sides, strict=True):
        yield memory_id, Surroundings(tuple(reversed(before)), tuple(after))
