"""The facts that rank each memory, in binary pages of 256 per user and scope.

A page changes in the transaction of its memories. It carries the number of its layout. Pages of another are not read:
the next search or write of the owner writes them again from the rows.

Ours, because a search weighs every memory of a user: it reads blobs instead of rows. Not chosen: a cache, which writes
of other processes would make stale.

A removal reads all pages of the owner; a new field writes all again. `python -m benchmarks engine` measures it.
"""

import struct
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from store import cover
from store.index.keyword import IndexEntry
from store.models import FactPage, IndexStatistics, Memory, owned_by, owner_values
from store.types import Owner

PAGE_ROWS: Final = 256
ORIGINS: Final[Mapping[str, int]] = {
    Memory.Origin.EMBEDDED: 0,
    Memory.Origin.REMOTE: 1,
    Memory.Origin.PANEL: 2,
    Memory.Origin.TOOL: 3,
    Memory.Origin.EXTRACTED: 4,
}
"""The number of each origin in a page. A new origin gets the next number, whatever its place among the others."""


ROLES: Final[Mapping[str, int]] = {"user": 1, "assistant": 2, "tool": 3, "system": 4}
"""The number of the role of a message in a page, 0 for other memories. A new role gets the next number."""
NO_IMPORTANCE: Final = -1.0


class Field(NamedTuple):
    """A field of each record: its numpy type, the columns that `value` reads, and `value` of a memory.

    The value of a field that `is_name` is a text; the record has its position in the names of the page.
    """

    name: str
    dtype: str
    columns: tuple[str, ...]
    value: Callable[[Memory], Any]
    is_name: bool = False


FIELDS: Final = (
    Field("pk", "<i8", ("id",), attrgetter("id")),
    Field("session", "<i8", ("session",), lambda one: one.session_id or 0),
    Field("at", "<i8", ("created_at_ms",), attrgetter("created_at_ms")),
    Field("seq", "<i4", ("seq",), attrgetter("seq")),
    Field("length", "<i4", ("token_count",), attrgetter("token_count")),
    Field("speaker", "<u4", ("speaker",), attrgetter("speaker"), is_name=True),
    Field("sender", "<u4", ("sender_id",), attrgetter("sender_id"), is_name=True),
    Field("agent", "<u4", ("agent_id",), attrgetter("agent_id"), is_name=True),
    Field("origin", "u1", ("origin",), lambda one: ORIGINS[one.origin]),
    Field("category", "<u4", ("category",), attrgetter("category"), is_name=True),
    Field(
        "importance",
        "<f4",
        ("importance",),
        lambda one: NO_IMPORTANCE if one.importance is None else one.importance,
    ),
    Field("role", "u1", ("payload",), lambda one: ROLES.get(str(one.payload.get("role")), 0)),
    Field(
        "is_turn",
        "?",
        ("chunk_index", "origin"),
        lambda one: one.chunk_index is None and one.origin != Memory.Origin.EXTRACTED,
    ),
    Field(
        "cover",
        "u1",
        ("is_covered", "is_replaced", "origin", "text", "original_text", "sources"),
        cover.kind_of,
    ),
)
"""The fields that a search reads of each memory. After a change here, all pages are written again."""
FACTS: Final = np.dtype([(field.name, field.dtype) for field in FIELDS])
NAMED: Final = tuple(field.name for field in FIELDS if field.is_name)
_CODES: Final = {"<i8": "q", "<i4": "i", "<u4": "I", "<f4": "f", "u1": "B", "?": "?"}
_FACT: Final = struct.Struct("<" + "".join(_CODES[field.dtype] for field in FIELDS))
"""A record of `FACTS`. For a few records it is faster than numpy."""
COLUMNS: Final = frozenset(column for field in FIELDS for column in field.columns)
"""The columns of a memory that its facts are packed from."""


def layout_of(fields: np.dtype[Any], named: Sequence[str], origins: Mapping[str, int]) -> int:
    """Return the number of a layout, which is computed so that no change is forgotten."""
    numbers = sorted((str(origin), number) for origin, number in origins.items())
    return zlib.crc32(repr((fields.descr, named, numbers)).encode())


LAYOUT: Final = layout_of(FACTS, NAMED, ORIGINS)
Facts = npt.NDArray[np.void]

_OF_OWNER = "WHERE user_id = %s AND app_id = %s AND project_id = %s"
_LAST = f"SELECT number, facts, names, layout FROM store_factpage {_OF_OWNER} ORDER BY number DESC LIMIT 1"
_ALL = f"SELECT number, facts, names, layout FROM store_factpage {_OF_OWNER} ORDER BY number"
_COLUMNS = "user_id, app_id, project_id, number, facts, names, layout"
_REPLACE = """
    ON CONFLICT (user_id, app_id, project_id, number)
    DO UPDATE SET facts = excluded.facts, names = excluded.names, layout = excluded.layout
"""
_WRITE = f"INSERT INTO store_factpage ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, {LAYOUT}) {_REPLACE}"
_DELETE = f"DELETE FROM store_factpage {_OF_OWNER} AND number = %s"
_DELETE_ALL = f"DELETE FROM store_factpage {_OF_OWNER}"


def add(cursor: CursorWrapper, owner: Owner, entries: Mapping[Memory, IndexEntry]) -> None:
    """Add saved memories of one owner; ignore memories of others."""
    owned = owner_values(owner)
    key = (owner.user_pk, owner.app_id, owner.project_id)
    rows = [one for one in entries if (one.user_id, one.app_id, one.project_id) == key]
    cursor.execute(_LAST, owned)
    last = cursor.fetchone()
    if last and last[-1] != LAYOUT:
        last = _rewrite(cursor, owner, besides={row.id for row in rows})
    for page in _filled(last, rows):
        cursor.execute(_WRITE, [*owned, *page])


def _filled(last: tuple[Any, ...] | None, rows: Sequence[Memory]) -> Iterator[tuple[int, bytes, str]]:
    """Yield the pages of an owner that change when rows are appended: number, facts and names."""
    number, facts, packed_names, _layout = last or (0, b"", "[]", LAYOUT)
    facts, rest = bytes(facts), sorted(rows, key=attrgetter("id"))
    places = {name: place for place, name in enumerate(orjson.loads(packed_names))}
    while rest:
        if len(facts) >= PAGE_ROWS * FACTS.itemsize:
            number, facts, places = number + 1, b"", {}
        room = PAGE_ROWS - len(facts) // FACTS.itemsize
        facts += _pack(rest[:room], places)
        rest = rest[room:]
        yield number, facts, orjson.dumps(list(places)).decode()


def remove(cursor: CursorWrapper, owner: Owner, entries: Mapping[int, IndexEntry]) -> None:
    """Remove memories (by row id)."""
    owned, removed = owner_values(owner), np.fromiter(entries, "<i8")
    cursor.execute(_ALL, owned)
    pages = cursor.fetchall()
    if any(page[-1] != LAYOUT for page in pages):
        _rewrite(cursor, owner)
        cursor.execute(_ALL, owned)
        pages = cursor.fetchall()
    for number, packed, names, _layout in pages:
        facts = np.frombuffer(packed, FACTS)
        remaining = facts[~np.isin(facts["pk"], removed)]
        if not len(remaining):
            cursor.execute(_DELETE, [*owned, number])
        elif len(remaining) < len(facts):
            used = _compact_names(remaining, orjson.loads(names))
            cursor.execute(_WRITE, [*owned, number, remaining.tobytes(), orjson.dumps(used).decode()])


def update(owner: Owner, saved: Collection[int]) -> None:
    """Write the facts of saved memories (by row id) again. Call inside the transaction that changes them.

    The rows are read under the lock: another process may have changed other columns since the caller read them.
    """
    if not saved:
        return
    owned, written = owner_values(owner), frozenset(saved)
    list(IndexStatistics.objects.select_for_update().filter(owned_by(owner)))  # the lock of all writers of the pages
    with connection.cursor() as cursor:
        cursor.execute(_ALL, owned)
        pages = cursor.fetchall()
        if any(page[-1] != LAYOUT for page in pages):
            _rewrite(cursor, owner)
            return
        for number, packed, names, _layout in pages:
            facts = np.frombuffer(packed, FACTS).copy()
            if held := written.intersection(pks := facts["pk"].tolist()):
                rows = Memory.objects.only(*COLUMNS).in_bulk(held)
                changed = [place for place, pk in enumerate(pks) if pk in rows]
                places = {name: place for place, name in enumerate(orjson.loads(names))}
                facts[changed] = np.frombuffer(_pack((rows[pks[place]] for place in changed), places), FACTS)
                cursor.execute(_WRITE, [*owned, number, facts.tobytes(), orjson.dumps(list(places)).decode()])


def empty() -> None:
    """Remove the memories of all users."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM store_factpage")


def rebuild(owner: Owner, *, if_outdated: bool = False) -> int:
    """Write the owner's pages again from the rows; return the number of memories in them. Writers wait meanwhile.

    `if_outdated`: only if one has another layout.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        # The lock that every writer of the pages holds.
        list(IndexStatistics.objects.select_for_update().filter(owned_by(owner)))
        if if_outdated and not FactPage.objects.filter(owned_by(owner)).exclude(layout=LAYOUT).exists():
            return 0
        _rewrite(cursor, owner)
        return Memory.objects.filter(owned_by(owner), is_indexed=True).count()


def differences(owners: Sequence[Owner]) -> Iterator[str]:
    """Compare the pages of some owners with their memories, and the totals of all; yield the differences."""
    of_layout = FactPage.objects.filter(layout=LAYOUT)
    held = sum(len(facts) // FACTS.itemsize for facts in of_layout.values_list("facts", flat=True).iterator())
    indexed = Memory.objects.filter(is_indexed=True).count()
    if held != indexed and not FactPage.objects.exclude(layout=LAYOUT).exists():
        yield f"the pages hold {held:,} memories instead of {indexed:,}"
    for owner in owners:
        written = of_layout.filter(owned_by(owner)).values_list("number", "facts", "names")
        found = _unpacked((number, bytes(facts), names) for number, facts, names in written)
        fresh = _unpacked(_filled(None, _indexed(owner)))
        if wrong := sum(found.get(pk) != fresh.get(pk) for pk in found.keys() | fresh.keys()):
            yield f"{wrong:,} memories of {owner.user_id} have other facts"


def _unpacked(pages: Iterable[tuple[int, bytes, str]]) -> dict[int, tuple[Any, ...]]:
    """Return the facts of pages by row id, with names instead of their places."""
    found: dict[int, tuple[Any, ...]] = {}
    for _number, packed, packed_names in pages:
        names = orjson.loads(packed_names)
        for fact in np.frombuffer(packed, FACTS):
            named = [names[place] if (place := int(fact[field])) < len(names) else None for field in NAMED]
            others = [fact[field].item() for field in FACTS.names or () if field not in NAMED]
            found[int(fact["pk"])] = (*others, *named)
    return found


def _rewrite(cursor: CursorWrapper, owner: Owner, besides: Collection[int] = ()) -> tuple[Any, ...] | None:
    """Write all pages of an owner from the rows, without some (by row id); return the last page."""
    owned = owner_values(owner)
    cursor.execute(_DELETE_ALL, owned)
    last = None
    for page in _filled(None, [row for row in _indexed(owner) if row.id not in besides]):
        cursor.execute(_WRITE, [*owned, *page])
        last = (*page, LAYOUT)
    return last


def _indexed(owner: Owner) -> list[Memory]:
    """Return the owner's indexed memories."""
    return list(Memory.objects.filter(owned_by(owner), is_indexed=True).only(*COLUMNS).iterator())


def _compact_names(facts: Facts, names: Sequence[str]) -> list[str]:
    """Return the names in use, and change the indexes in `facts` accordingly."""
    used, places = np.unique(np.stack([facts[field] for field in NAMED]), return_inverse=True)
    for field, column in zip(NAMED, places.reshape(len(NAMED), -1), strict=True):
        facts[field] = column
    return [names[place] for place in used]


def _pack(memories: Iterable[Memory], places: dict[str, int]) -> bytes:
    """Return the packed records of memories; add names that are new to `places`, the index of each name."""
    packed = b""
    for one in memories:
        values = ((field, field.value(one)) for field in FIELDS)
        packed += _FACT.pack(
            *(places.setdefault(value, len(places)) if field.is_name else value for field, value in values)
        )
    return packed
