"""How many memories there are of what: totals, facets, dashboards."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Avg, Q
from django.db.models import Count as CountOf

from engine.browse.selection import Selection, rows_of
from engine.categories import label, tab_of

BANDS = ((0.0, 0.34), (0.34, 0.67), (0.67, 1.0))


@dataclass(frozen=True, slots=True)
class Count:
    """How many memories something has. `user_id` says whose session it is: two users' `chat:c1` are two."""

    key: str
    label: str
    count: int
    user_id: str = ""


@dataclass(frozen=True, slots=True)
class Facets:
    """What the selected memories can be narrowed by, most first. The key of a user is the UUID."""

    users: list[Count]
    agents: list[Count]
    sessions: list[Count]
    categories: list[Count]
    origins: list[Count]


@dataclass(frozen=True, slots=True)
class Dashboard:
    """The live memories between the first edge and the last. `buckets[n]` lies between edge n and edge n + 1.

    `importance_bands` are (from, to, count); memories without importance are in no band. `tops` are bounded,
    `unique_…` are not.
    """

    total: int
    by_category: dict[str, int]
    by_tab: dict[str, int]
    buckets: list[dict[str, int]]
    importance_bands: list[tuple[float, float, int]]
    average_importance: float | None
    top_users: list[Count]
    top_agents: list[Count]
    top_sessions: list[Count]
    unique_users: int = 0
    unique_agents: int = 0
    unique_sessions: int = 0


def count(selection: Selection) -> int:
    return rows_of(selection).count()


def facets(selection: Selection, *, limit: int = 200) -> Facets:
    rows = rows_of(selection)
    return Facets(
        users=[Count(str(pk), name, n) for pk, name, n in _grouped(rows, "user_id", "user__user_id")[:limit]],
        agents=[Count(name, name, n) for name, n in _grouped(rows.exclude(agent_id=""), "agent_id")[:limit]],
        sessions=_sessions(rows)[:limit],
        categories=[Count(name, str(label(name)), n) for name, n in _grouped(rows, "category")],
        origins=[Count(name, name, n) for name, n in _grouped(rows, "origin")],
    )


def dashboard(selection: Selection, edges_ms: Sequence[int], *, limit: int = 10) -> Dashboard:
    """Errors: ValueError for fewer than two edges, or edges that do not rise."""
    if len(edges_ms) < 2 or list(edges_ms) != sorted(set(edges_ms)):
        raise ValueError("a dashboard needs two edges or more, in rising order")
    rows = rows_of(selection).filter(created_at_ms__gte=edges_ms[0], created_at_ms__lt=edges_ms[-1])
    buckets: list[dict[str, int]] = [{} for _ in edges_ms[1:]]
    by_category: dict[str, int] = {}
    for category, at in rows.values_list("category", "created_at_ms"):
        bucket = buckets[bisect_right(edges_ms, at) - 1]
        bucket[category] = bucket.get(category, 0) + 1
        by_category[category] = by_category.get(category, 0) + 1
    by_tab: dict[str, int] = {}
    for category, number in by_category.items():
        by_tab[tab_of(category)] = by_tab.get(tab_of(category), 0) + number
    importance = rows.aggregate(
        average=Avg("importance"),
        low=CountOf("pk", filter=Q(importance__lt=0.34)),
        mid=CountOf("pk", filter=Q(importance__gte=0.34, importance__lt=0.67)),
        high=CountOf("pk", filter=Q(importance__gte=0.67)),
    )
    users = [Count(str(pk), name, n) for pk, name, n in _grouped(rows, "user_id", "user__user_id")]
    agents = [Count(name, name, n) for name, n in _grouped(rows.exclude(agent_id=""), "agent_id")]
    sessions = _sessions(rows)
    return Dashboard(
        total=sum(by_category.values()),
        by_category=by_category,
        by_tab=by_tab,
        buckets=buckets,
        importance_bands=[
            (low, high, importance[name]) for (low, high), name in zip(BANDS, ("low", "mid", "high"), strict=True)
        ],
        average_importance=importance["average"],
        top_users=users[:limit],
        top_agents=agents[:limit],
        top_sessions=sessions[:limit],
        unique_users=len(users),
        unique_agents=len(agents),
        unique_sessions=len(sessions),
    )


def _grouped(rows: Any, *names: str) -> list[Any]:
    return list(rows.values_list(*names).annotate(number=CountOf("pk")).order_by("-number", names[-1]))


def _sessions(rows: Any) -> list[Count]:
    found = _grouped(rows.exclude(session=None), "session_id", "user__user_id", "session__session_id")
    return [Count(session_id, session_id, n, user_id) for _, user_id, session_id, n in found]
