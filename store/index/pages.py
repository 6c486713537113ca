"""The facts that rank each indexed memory, in pages of 256 per user and scope: a search reads few rows."""

import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson
from django.db import connection
from django.db.backends.utils import CursorWrapper

from store.models import Memory, owner_values
from store.types import Owner

PAGE_ROWS: Final = 256
ORIGINS: Final = tuple(Memory.Origin.values)
FACTS: Final = np.dtype([
    ("pk", "<i8"), ("session", "<i8"), ("at", "<i8"), ("seq", "<i4"), ("length", "<i4"),
    ("speaker", "<u4"), ("sender", "<u4"), ("agent", "<u4"), ("origin", "u1"), ("is_turn", "?"),
])  # fmt: skip
_FACT: Final = struct.Struct("<qqqiiIIIB?")
"""A record of `FACTS`. For a few records it is faster than numpy."""
NAMED: Final = ("speaker", "sender", "agent")
"""The fields that are indexes into the names of their page."""
Facts = npt.NDArray[np.void]

_OF_OWNER = "WHERE user_id = %s AND app_id = %s AND project_id = %s"
_LAST = f"SELECT number, facts, names FROM store_factpage {_OF_OWNER} ORDER BY number DESC LIMIT 1"
_ALL = f"SELECT number, facts, names FROM store_factpage {_OF_OWNER} ORDER BY number"
_WRITE = """
    INSERT INTO store_factpage (user_id, app_id, project_id, number, facts, names) VALUES (%s, %s, %s, %s, %s, %s)
    ON CONFLICT (user_id, app_id, project_id, number) DO UPDATE SET facts = excluded.facts, names = excluded.names
"""
_LAST_OF_MANY = """
    SELECT found.user_id, found.app_id, found.project_id, page.number, page.facts, page.names
    FROM unnest(%s::uuid[], %s::text[], %s::text[]) AS found (user_id, app_id, project_id) CROSS JOIN LATERAL (
        SELECT number, facts, names FROM store_factpage p
        WHERE p.user_id = found.user_id AND p.app_id = found.app_id AND p.project_id = found.project_id
        ORDER BY number DESC LIMIT 1
    ) page
"""
_WRITE_MANY = """
    INSERT INTO store_factpage (user_id, app_id, project_id, number, facts, names)
    SELECT * FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::int[], %s::bytea[], %s::text[])
    ON CONFLICT (user_id, app_id, project_id, number) DO UPDATE SET facts = excluded.facts, names = excluded.names
"""
_DELETE = f"DELETE FROM store_factpage {_OF_OWNER} AND number = %s"


def add(cursor: CursorWrapper, owner: Owner, with_lengths: Iterable[tuple[Memory, int]]) -> None:
    """Add saved memories of one owner, each with the length of its text in tokens; ignore memories of others."""
    owned = owner_values(owner)
    key = (owner.user_pk, owner.app_id, owner.project_id)
    rows = [row for row in with_lengths if (row[0].user_id, row[0].app_id, row[0].project_id) == key]
    cursor.execute(_LAST, owned)
    for page in _filled(cursor.fetchone(), rows):
        cursor.execute(_WRITE, [*owned, *page])


def add_groups(cursor: CursorWrapper, groups: Sequence[tuple[Owner, Sequence[tuple[Memory, int]]]]) -> None:
    """Add saved memories of many owners, each owner once, by two statements (PostgreSQL)."""
    owners = [(owner.user_pk, owner.app_id, owner.project_id) for owner, _rows in groups]
    cursor.execute(_LAST_OF_MANY, [list(column) for column in zip(*owners, strict=True)])
    last = {row[:3]: row[3:] for row in cursor.fetchall()}
    with_last = ((key, last.get(key), rows) for key, (_owner, rows) in zip(owners, groups, strict=True))
    pages = [(*key, *page) for key, of, rows in with_last for page in _filled(of, rows)]
    cursor.execute(_WRITE_MANY, [list(column) for column in zip(*pages, strict=True)])


def _filled(last: tuple[Any, ...] | None, rows: Sequence[tuple[Memory, int]]) -> Iterator[tuple[int, bytes, str]]:
    """Yield the pages of an owner that change when rows are appended: number, facts and names."""
    number, facts, packed_names = last or (0, b"", "[]")
    facts, rest = bytes(facts), sorted(rows, key=lambda row: row[0].id)
    places = {name: place for place, name in enumerate(orjson.loads(packed_names))}
    while rest:
        if len(facts) >= PAGE_ROWS * FACTS.itemsize:
            number, facts, places = number + 1, b"", {}
        room = PAGE_ROWS - len(facts) // FACTS.itemsize
        facts += _pack(rest[:room], places)
        rest = rest[room:]
        yield number, facts, orjson.dumps(list(places)).decode()


def remove(owner: Owner, pks: Collection[int]) -> None:
    """Remove memories (by row id)."""
    owned, removed = owner_values(owner), np.fromiter(pks, "<i8")
    with connection.cursor() as cursor:
        cursor.execute(_ALL, owned)
        for number, packed, names in cursor.fetchall():
            facts = np.frombuffer(packed, FACTS)
            remaining = facts[~np.isin(facts["pk"], removed)]
            if not len(remaining):
                cursor.execute(_DELETE, [*owned, number])
            elif len(remaining) < len(facts):
                used = _compact_names(remaining, orjson.loads(names))
                cursor.execute(_WRITE, [*owned, number, remaining.tobytes(), orjson.dumps(used).decode()])


def clear() -> None:
    """Remove the memories of all users."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM store_factpage")


def _compact_names(facts: Facts, names: Sequence[str]) -> list[str]:
    """Return the names in use, and change the indexes in `facts` accordingly."""
    used, places = np.unique(np.stack([facts[field] for field in NAMED]), return_inverse=True)
    for field, column in zip(NAMED, places.reshape(len(NAMED), -1), strict=True):
        facts[field] = column
    return [names[place] for place in used]


def _pack(with_lengths: Iterable[tuple[Memory, int]], places: dict[str, int]) -> bytes:
    """Return the packed records of memories; add names that are new to `places`, the index of each name."""
    packed = b""
    for one, length in with_lengths:
        named = [places.setdefault(name, len(places)) for name in (one.speaker, one.sender_id, one.agent_id)]
        is_turn = one.chunk_index is None and one.origin != Memory.Origin.EXTRACTED
        packed += _FACT.pack(
            one.id, one.session_id or 0, one.created_at_ms, one.seq, length,
            *named, ORIGINS.index(one.origin), is_turn,
        )  # fmt: skip
    return packed
