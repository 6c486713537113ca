"""What the rollups should hold, counted plainly from the rows, and what they do hold."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import Sum

from store.models import HourCount, Memory, SessionCount
from store.rollups import Slice
from store.table import visible

FIELDS = ("slice", "key", "span", "start", "member", "category", "app_id", "project_id")
SUMS = ("memories", "low", "mid", "high", "weight")
Cells = dict[tuple[Any, ...], tuple[int, ...]]


def assert_rollups_agree() -> None:
    """Rollups and rows agree, counted anew; no empty cell is left."""
    assert held() == wanted()
    assert sessions_held() == sessions_wanted()
    assert not HourCount.objects.filter(delta=0, memories=0).exists()


def live() -> list[Memory]:
    return list(visible(Memory.objects.filter(hidden_at__isnull=True, session__hidden_at__isnull=True)))


def held() -> Cells:
    rows = HourCount.objects.order_by().values_list(*FIELDS).annotate(**{f"sum_{name}": Sum(name) for name in SUMS})
    return {row[: len(FIELDS)]: row[len(FIELDS) :] for row in rows if any(row[len(FIELDS) :])}


def wanted() -> Cells:
    cells: defaultdict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for memory in live():
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
    hour = memory.created_at_ms // 3_600_000
    owner, agent, category = memory.user_id.hex, memory.agent_id, memory.category

    def spans(of: Slice, key: str, lengths: Iterable[int], member: str, category: str) -> Iterator[tuple[Any, ...]]:
        for span in lengths:
            yield (of.value, key, span, hour // span, member, category)

    yield from spans(Slice.ALL, "", (1, 24, 192), "", category)
    yield from spans(Slice.OF_AGENT, agent, (1, 24, 192), "", category)
    yield from spans(Slice.OF_USER, owner, (1, 24, 192), agent, category)
    yield from spans(Slice.AGENTS, "", (1, 24, 768), agent, "")
    yield from spans(Slice.USERS, "", (1, 24, 768), owner, "")
    yield from spans(Slice.USERS_OF_AGENT, agent, (1, 24, 768), owner, "")
    yield from spans(Slice.ORIGINS, "", (768,), memory.origin, "")
    yield from spans(Slice.ORIGINS, owner, (768,), memory.origin, "")


def sessions_held() -> dict[tuple[Any, ...], int]:
    rows = SessionCount.objects.order_by().values_list("session_row", "of_agent", "agent_id").annotate(Sum("memories"))
    return {tuple(cell): count for *cell, count in rows if count}


def sessions_wanted() -> dict[tuple[Any, ...], int]:
    counted: Counter[tuple[Any, ...]] = Counter()
    for memory in live():
        if memory.session_id is not None:
            counted[memory.session_id, False, ""] += 1
            counted[memory.session_id, True, memory.agent_id] += 1
    return dict(counted)
