"""The context windows of memories: the messages or passages before and after them in their session."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from django.db import connection

from core.persistence.sql import slots
from store import as_of, cover
from store.models import Memory, owned_by, owner_values
from store.types import Owner, Wording

MAX_NEIGHBORS: Final = 10
_BATCH: Final = 100
_OWNED: Final = "m.user_id = %s AND m.app_id = %s AND m.project_id = %s"
_PLACES: Final = f"""
    SELECT m.memory_id, m.session_id, m.seq, m.created_at_ms, m.id
    FROM store_memory m JOIN store_session s ON s.id = m.session_id
    WHERE {_OWNED} AND s.state = 'live' AND m.memory_id IN ({{slots}})
"""
_SIDE: Final = f"""
    SELECT * FROM (
        SELECT {{number}} AS hit, {{side}} AS side, m.id AS row_id, m.memory_id, m.sender_id, m.text, m.created_at_ms
        FROM store_memory m
        WHERE {_OWNED} AND m.session_id = %s AND (m.seq, m.created_at_ms, m.id) {{beyond}} (%s, %s, %s)
            AND m.state = 'live' AND m.origin <> 'extracted' AND NOT {{left_out}}
        ORDER BY m.seq {{order}}, m.created_at_ms {{order}}, m.id {{order}} LIMIT %s
    ) AS side_{{number}}_{{side}}
"""
_BEFORE: Final = {"side": 0, "beyond": "<", "order": "DESC"}
_AFTER: Final = {"side": 1, "beyond": ">", "order": "ASC"}


class Neighbor(NamedTuple):
    """A live memory before or after another one. `row` is its primary key."""

    row: int
    memory_id: str
    sender_id: str
    text: str
    created_at_ms: int


class ContextWindow(NamedTuple):
    """The memories before and after, both in the order of the session or document."""

    before: tuple[Neighbor, ...]
    after: tuple[Neighbor, ...]


def context_windows(
    owner: Owner, memory_ids: Collection[str], count: int, *, at: datetime | None = None
) -> dict[str, ContextWindow]:
    """Return the `count` memories before and after each of the owner's memories in its session.

    Memories without a session, and those of deleted sessions, are left out. `at`: as it was at that time.
    One SQL statement, and one more per hundred memories; three with `at`.
    """
    if not memory_ids:
        return {}
    if at is not None:
        return _windows_at(owner, memory_ids, count, at)
    owned = owner_values(owner)
    found: dict[str, ContextWindow] = {}
    with connection.cursor() as cursor:
        cursor.execute(_PLACES.format(slots=slots(memory_ids)), [*owned, *memory_ids])
        places = cursor.fetchall()
        for start in range(0, len(places), _BATCH):
            found |= _read_windows(cursor, owned, places[start : start + _BATCH], count)
    return found


def _windows_at(owner: Owner, memory_ids: Collection[str], count: int, at: datetime) -> dict[str, ContextWindow]:
    """Read the whole sessions of the memories: any part may have been stored later."""
    rows = as_of.memories_of(owner, at)
    sessions = Memory.objects.filter(owned_by(owner), memory_id__in=memory_ids).order_by().values("session")
    columns = ("session", "pk", "memory_id", "sender_id", "text", "created_at_ms", "origin")
    found = rows.filter(session__in=sessions).order_by("session", "seq", "created_at_ms", "pk").values_list(*columns)
    windows: dict[str, ContextWindow] = {}
    for _session, of_session in groupby(found, key=itemgetter(0)):
        rows_of = [(Neighbor(*one[1:-1]), one[-1] != Memory.Origin.EXTRACTED) for one in of_session]
        for place, (one, _is_message) in enumerate(rows_of):
            if one.memory_id in memory_ids:
                before = [other for other, is_message in rows_of[:place] if is_message][-count:]
                after = [other for other, is_message in rows_of[place + 1 :] if is_message][:count]
                windows[one.memory_id] = ContextWindow(tuple(before), tuple(after))
    shown = {one.memory_id for window in windows.values() for side in window for one in side}
    former = as_of.wordings(owner, shown, at)
    return {
        memory_id: ContextWindow(*(tuple(_reworded(one, former) for one in side) for side in window))
        for memory_id, window in windows.items()
    }


def _reworded(one: Neighbor, former: Mapping[str, Wording]) -> Neighbor:
    return one._replace(text=former[one.memory_id].text) if one.memory_id in former else one


def _read_windows(
    cursor: Any, owned: list[Any], places: Sequence[Any], count: int
) -> Iterator[tuple[str, ContextWindow]]:
    statements, values, left_out = [], [], cover.is_left_out_sql("m")
    for number, (_, *place) in enumerate(places):
        for side in (_BEFORE, _AFTER):
            statements.append(_SIDE.format(number=number, left_out=left_out, **side))
            values += [*owned, *place, count]
    cursor.execute(" UNION ALL ".join(statements), values)
    sides: list[tuple[list[Neighbor], list[Neighbor]]] = [([], []) for _ in places]
    for number, side, *neighbor in cursor.fetchall():
        sides[number][side].append(Neighbor(*neighbor))
    for (memory_id, *_), (before, after) in zip(places, sides, strict=True):
        yield memory_id, ContextWindow(tuple(reversed(before)), tuple(after))
