"""What ranking knows of each indexed memory, in pages of 256 per user and scope: one read instead of thousands.

A page is one array of records. Whoever writes has counted the user's statistics first, which locks them: pages are
written by one at a time.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson
from django.db import connection
from django.db.backends.utils import CursorWrapper

from core.sql import run
from store.models import Memory
from store.owned import owner_values
from store.types import Owner

PAGE_ROWS: Final = 256
ORIGINS: Final = tuple(Memory.Origin.values)
FACTS: Final = np.dtype([
    ("pk", "<i8"), ("session", "<i8"), ("at", "<i8"), ("seq", "<i4"), ("length", "<i4"),
    ("speaker", "<u4"), ("sender", "<u4"), ("agent", "<u4"), ("origin", "u1"), ("is_turn", "?"),
])  # fmt: skip
_FACT: Final = struct.Struct("<qqqiiIIIB?")
"""A record of `FACTS`: numpy takes longer to begin with a few than to write them."""
NAMED: Final = ("speaker", "sender", "agent")
"""The fields that point into a page's names."""
Facts = npt.NDArray[np.void]

_OF_OWNER = "WHERE user_id = %s AND app_id = %s AND project_id = %s"
_LAST = f"SELECT number, facts, names FROM store_factpage {_OF_OWNER} ORDER BY number DESC LIMIT 1"
_ALL = f"SELECT number, facts, names FROM store_factpage {_OF_OWNER} ORDER BY number"
_WRITE = """
    INSERT INTO store_factpage (user_id, app_id, project_id, number, facts, names) VALUES (%s, %s, %s, %s, %s, %s)
    ON CONFLICT (user_id, app_id, project_id, number) DO UPDATE SET facts = excluded.facts, names = excluded.names
"""
_DELETE = f"DELETE FROM store_factpage {_OF_OWNER} AND number = %s"


def add(cursor: CursorWrapper, owner: Owner, weighed: Iterable[tuple[Memory, int]]) -> None:
    """Notes saved memories, each with the weight of its text; another owner's are none of these pages'."""
    owned = owner_values(owner)
    whose = (owner.user_pk, owner.app_id, owner.project_id)
    rows = [row for row in weighed if (row[0].user_id, row[0].app_id, row[0].project_id) == whose]
    rows.sort(key=lambda row: row[0].id)
    run(cursor, _LAST, owned)
    number, facts, listed = cursor.fetchone() or (0, b"", "[]")
    facts, names = bytes(facts), orjson.loads(listed)
    while rows:
        if len(facts) >= PAGE_ROWS * FACTS.itemsize:
            number, facts, names = number + 1, b"", []
        room = PAGE_ROWS - len(facts) // FACTS.itemsize
        facts += _records(rows[:room], names)
        rows = rows[room:]
        run(cursor, _WRITE, [*owned, number, facts, orjson.dumps(names).decode()])


def remove(owner: Owner, pks: Collection[int]) -> None:
    """Forgets memories (by row id)."""
    owned, gone = owner_values(owner), np.fromiter(pks, "<i8")
    with connection.cursor() as cursor:
        cursor.execute(_ALL, owned)
        for page in cursor.fetchall():
            number, facts, names = _page(page)
            kept = facts[~np.isin(facts["pk"], gone)]
            if not len(kept):
                cursor.execute(_DELETE, [*owned, number])
            elif len(kept) < len(facts):
                names = _used(kept, names)
                cursor.execute(_WRITE, [*owned, number, kept.tobytes(), orjson.dumps(names).decode()])


def clear() -> None:
    """Forgets the memories of all users."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM store_factpage")


def _page(row: Sequence[Any]) -> tuple[int, Facts, list[str]]:
    return row[0], np.frombuffer(row[1], FACTS), orjson.loads(row[2])


def _used(facts: Facts, names: Sequence[str]) -> list[str]:
    """The names that are still pointed at; the records are changed to point into these."""
    used, places = np.unique(np.stack([facts[field] for field in NAMED]), return_inverse=True)
    for field, column in zip(NAMED, places.reshape(len(NAMED), -1), strict=True):
        facts[field] = column
    return [names[place] for place in used]


def _records(weighed: Iterable[tuple[Memory, int]], names: list[str]) -> bytes:
    """`names` grows by those that it lacks."""
    places = {name: place for place, name in enumerate(names)}

    def place_of(name: str) -> int:
        if name not in places:
            places[name] = len(names)
            names.append(name)
        return places[name]

    return b"".join(
        _FACT.pack(
            one.id, one.session_id or 0, one.created_at_ms, one.seq, length,
            place_of(one.speaker), place_of(one.sender_id), place_of(one.agent_id), ORIGINS.index(one.origin),
            one.chunk_index is None and one.origin != Memory.Origin.EXTRACTED,
        )
        for one, length in weighed
    )  # fmt: skip
