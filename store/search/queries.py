"""The plain statements of the embedded engine: what search waits for beside the index itself."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import orjson

from core import sql
from store.owned import owner_values
from store.types import MemoryType, Owner

_ROWS = """
    SELECT CAST(m.payload AS text), m.id, m.memory_id, s.session_id, m.chunk_index, m.memory_type, m.category,
        m.sender_id, m.speaker, m.text, m.created_at_ms{vector}
    FROM store_memory m LEFT JOIN store_session s ON s.id = m.session_id {embedding}
    WHERE {plus}m.user_id = %s AND m.app_id = %s AND m.project_id = %s AND s.deleted_at IS NULL AND {shown} AND {which}
"""
_PLUS = {"sqlite": "+", "postgresql": ""}
"""Keeps SQLite from walking all of the user's memories, or an upstream's, in an index to find a few by their ids."""
_EMBEDDING = "LEFT JOIN store_embedding e ON e.memory_id = m.id AND e.space_id = %s"
_IS_SHOWN = "m.hidden_at IS NULL AND s.hidden_at IS NULL"
_REWORDED = "{plus}m.origin = 'upstream' AND m.is_indexed AND m.memory_id IN ({slots})"


class Row(NamedTuple):
    """A memory with its text and, where it was asked for, its vector: half-precision floats, empty or None for none."""

    payload: dict[str, Any]
    pk: int
    memory_id: str
    session_id: str | None
    chunk_index: int | None
    memory_type: MemoryType
    category: str
    sender_id: str
    speaker: str
    text: str
    created_at_ms: int
    vector: bytes | None = None


def rows(owner: Owner, pks: Collection[int], *, with_hidden: bool = False, space: int | None = None) -> dict[int, Row]:
    """The owner's live memories by row id, or hidden ones too, with their vectors of a space where one is named.

    One statement, none for an empty collection.
    """
    if not pks:
        return {}
    return _fetch(owner, f"m.id IN ({_slots(pks)})", pks, with_hidden=with_hidden, space=space)


def rows_and_reworded(
    owner: Owner, pks: Collection[int], memory_ids: Collection[str], *, with_hidden: bool = False
) -> dict[int, Row]:
    """The same, and besides those of these memories of an upstream that say here what their user put in the place of
    its words. One statement, none if nothing is asked for."""
    if not pks and not memory_ids:
        return {}
    reworded = _REWORDED.format(plus=_PLUS[sql.vendor()], slots=_slots(memory_ids))
    which = f"(m.id IN ({_slots(pks)}) OR ({reworded}))"
    return _fetch(owner, which, [*pks, *memory_ids], with_hidden=with_hidden)


def _fetch(
    owner: Owner, which: str, values: Collection[int | str], *, with_hidden: bool, space: int | None = None
) -> dict[int, Row]:
    statement = _ROWS.format(
        vector="" if space is None else ", e.vector",
        embedding="" if space is None else _EMBEDDING,
        plus=_PLUS[sql.vendor()],
        which=which,
        shown="TRUE" if with_hidden else _IS_SHOWN,
    )
    found = sql.rows(statement, [*([] if space is None else [space]), *owner_values(owner), *values])
    return {row[1]: Row(orjson.loads(row[0]), *row[1:]) for row in found}


def _slots(values: Collection[int | str]) -> str:
    return sql.slots(values) or "NULL"
