"""Compare the rollups with counts computed from the rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from django.db.models import Sum

from store.models import IS_LIVE, DayCount, Memory, SessionCount
from store.table import visible

FIELDS = ("owner", "day", "agent_id", "category", "origin", "app_id", "project_id")
SUMS = ("memories", "low", "mid", "high", "weight")
Cells = dict[tuple[Any, ...], tuple[int, ...]]


def assert_rollups_agree() -> None:
    """Assert that the rollups agree with the rows and that no empty cell is stored."""
    assert stored_cells() == expected_cells()
    assert stored_session_counts() == expected_session_counts()
    assert not DayCount.objects.filter(delta=0, memories=0).exists()


def visible_memories() -> list[Memory]:
    return list(visible(Memory.objects.filter(IS_LIVE)))


def stored_cells() -> Cells:
    rows = DayCount.objects.order_by().values_list(*FIELDS).annotate(**{f"sum_{name}": Sum(name) for name in SUMS})
    return {row[: len(FIELDS)]: row[len(FIELDS) :] for row in rows if any(row[len(FIELDS) :])}


def expected_cells() -> Cells:
    cells: defaultdict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for memory in visible_memories():
        for cell in cells_of(memory):
            cells[*cell, memory.app_id, memory.project_id].update(parts_of(memory))
    return {cell: tuple(counted[name] for name in SUMS) for cell, counted in cells.items()}


def parts_of(memory: Memory) -> dict[str, int]:
    importance = memory.importance
    if importance is None:
        return {"memories": 1}
    band = "low" if importance < 0.34 else "mid" if importance < 0.67 else "high"
    return {"memories": 1, band: 1, "weight": round(importance * 1_000_000)}


def cells_of(memory: Memory) -> Iterator[tuple[Any, ...]]:
    for owner in ("", memory.user_id.hex):
        yield owner, memory.created_at_ms // 86_400_000, memory.agent_id, memory.category, memory.origin


def stored_session_counts() -> dict[tuple[Any, ...], int]:
    rows = SessionCount.objects.order_by().values_list("session_row", "of_agent", "agent_id").annotate(Sum("memories"))
    return {tuple(cell): count for *cell, count in rows if count}


def expected_session_counts() -> dict[tuple[Any, ...], int]:
    counted: Counter[tuple[Any, ...]] = Counter()
    for memory in visible_memories():
        if memory.session_id is not None:
            counted[memory.session_id, False, ""] += 1
            counted[memory.session_id, True, memory.agent_id] += 1
    return dict(counted)
