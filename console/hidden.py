"""Why memories are hidden, and which others have to do with it: for the pages that show what nobody else sees."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from console import queries
from memories.models import Tombstone
from store.derived_memories import HIDDEN_AS
from store.types import Owner, StoredMemory

Kind = Literal["deleted", "session", "superseded", "with_source", "reworded"]

_SET_ASIDE: Final = frozenset({"superseded", "with_source", "reworded"})


@dataclass(frozen=True, slots=True)
class Why:
    """`deleted` by a person (`tombstone` says by whom), with its `session`, `superseded` by a newer memory, hidden
    `with_source`: what it was made of is, or `reworded`: what it was made of was corrected. `others` are that newer
    memory, or those sources."""

    kind: Kind
    tombstone: Tombstone | None = None
    others: tuple[StoredMemory, ...] = ()

    @property
    def is_set_aside(self) -> bool:
        """By the gateway: nobody deleted it."""
        return self.kind in _SET_ASIDE


def whys(memories: Collection[StoredMemory]) -> dict[int, Why]:
    """By row; memories that are not hidden are left out. At most two statements."""
    kinds = {memory.row: kind for memory in memories if (kind := _kind(memory))}
    deleted = [row for row, kind in kinds.items() if kind == "deleted"]
    found = Tombstone.objects.filter(row__in=deleted, undone_at__isnull=True) if deleted else ()
    tombstones = {one.row_id: one for one in found}
    named = {memory.row: _named(memory) for memory in memories if memory.row in kinds}
    others = queries.stored_of(pair for pairs in named.values() for pair in pairs)
    return {
        row: Why(kind, tombstones.get(row), tuple(_that_count(kind, named[row], others))) for row, kind in kinds.items()
    }


def _kind(memory: StoredMemory) -> Kind | None:
    if memory.hidden_at is not None:
        kind: Kind = memory.payload.get(HIDDEN_AS, "deleted")
        return kind
    return "session" if memory.is_session_hidden else None


def _named(memory: StoredMemory) -> list[tuple[Owner, str]]:
    """The memories that its record names as the cause."""
    kind, payload = _kind(memory), memory.payload
    ids = [payload.get("superseded_by")] if kind == "superseded" else payload.get("sources", [])
    return [(memory.owner, memory_id) for memory_id in ids if memory_id] if kind in _SET_ASIDE else []


def _that_count(
    kind: Kind, named: Iterable[tuple[Owner, str]], others: Mapping[tuple[Owner, str], StoredMemory]
) -> Iterable[StoredMemory]:
    for pair in named:
        other = others.get(pair)
        if other is not None and (kind != "with_source" or other.hidden_at is not None):
            yield other
