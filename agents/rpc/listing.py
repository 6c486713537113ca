"""Numbered pages of memories, and of whole turns."""

from __future__ import annotations

from typing import Any

from store import browse
from store.browse import Selection
from store.browse.selection import of_turns
from store.table import stored
from store.types import StoredMemory


def rows(selection: Selection, *, page: int, size: int, oldest_first: bool) -> list[StoredMemory]:
    return browse.offset_page(selection, offset=(page - 1) * size, limit=size, oldest_first=oldest_first)


def whole_turns(selection: Selection, *, page: int, size: int, oldest_first: bool) -> list[StoredMemory]:
    """Return the turns whose head is on the page, each complete, then the page's memories without a turn.

    The head is the newest memory, or the oldest if `oldest_first`. Each memory is on exactly one page, and a page with
    a long turn is longer.
    """
    window = rows(selection, page=page, size=size, oldest_first=oldest_first)
    turns = _turns(selection, {memory.batch_id for memory in window if memory.batch_id})
    heads = {_head(turn, oldest_first=oldest_first).row: turn for turn in turns}
    found = [memory for head in window for memory in heads.get(head.row, ())]
    return found + [memory for memory in window if not memory.batch_id]


def _turns(selection: Selection, batch_ids: set[str]) -> list[list[StoredMemory]]:
    """Return the turns with these batch ids, separated by user and session."""
    turns: dict[Any, list[StoredMemory]] = {}
    if batch_ids:
        for memory in map(stored, of_turns(selection).filter(batch_id__in=batch_ids)):
            turns.setdefault(memory.turn, []).append(memory)
    for turn in turns.values():
        turn.sort(key=lambda memory: (memory.created_at_ms, memory.seq, memory.chunk_index or 0, memory.row))
    return list(turns.values())


def _head(turn: list[StoredMemory], *, oldest_first: bool) -> StoredMemory:
    def at(memory: StoredMemory) -> tuple[int, int]:
        return (memory.created_at_ms, memory.row)

    return min(turn, key=at) if oldest_first else max(turn, key=at)
