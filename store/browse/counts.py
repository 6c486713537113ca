"""How many memories there are of what: totals, facets, dashboards."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from accounts.models import MemoryUser
from store.browse import ledger
from store.browse.ledger import Tally
from store.browse.selection import Selection, rows_of
from store.browse.sessions import labelled, sessions_ever, top_sessions
from store.browse.spans import FIRST_MS, LAST_MS
from store.categories import label, tab_of
from store.models import HourCount
from store.rollups import Slice

BANDS = ((0.0, 0.34), (0.34, 0.67), (0.67, 1.0))
_ALWAYS = (FIRST_MS, LAST_MS)
Top = Literal["users", "agents", "sessions"]
TOPS: tuple[Top, ...] = ("users", "agents", "sessions")


@dataclass(frozen=True, slots=True)
class Count:
    """How many memories something has. `user_id` says whose session it is: two users' `chat:c1` are two."""

    key: str
    label: str
    count: int
    user_id: str = ""


@dataclass(frozen=True, slots=True)
class Facets:
    """What memories can be narrowed by, most first. The key of a user is the UUID."""

    users: list[Count]
    agents: list[Count]
    sessions: list[Count]
    categories: list[Count]
    origins: list[Count]


@dataclass(frozen=True, slots=True)
class Dashboard:
    """The live memories between the first edge and the last. `buckets[n]` lies between edge n and edge n + 1.

    `importance_bands` are (from, to, count); memories without importance are in no band. `top_…` are bounded,
    `unique_…` are not; agents without a name are in neither.
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
    unique_users: int
    unique_agents: int
    unique_sessions: int


def count(selection: Selection, *, at_most: int | None = None) -> int:
    """How many are selected. From the rollups where they know all conditions; else the rows are counted, but only up
    to `at_most`."""
    if ledger.is_rolled_up(selection):
        return sum(row.memories for row in ledger.tally(selection, ledger.by_category(selection), _ALWAYS))
    rows = rows_of(selection)
    return (rows if at_most is None else rows[:at_most]).count()


def facets(selection: Selection, *, limit: int = 200) -> Facets:
    """What there is of the selection's user, agent and scope at any time: its other conditions are left aside, so that
    a filter can be changed for another."""
    base = Selection(
        user_pk=selection.user_pk,
        app_id=selection.app_id,
        project_id=selection.project_id,
        agent_id=selection.agent_id,
    )
    users, _ = ledger.top(base, ledger.by_user(base), _ALWAYS, limit)
    agents, _ = ledger.top(base, ledger.by_agent(base), _ALWAYS, limit)
    by_category = _by_category(ledger.tally(base, ledger.by_category(base), _ALWAYS))
    return Facets(
        users=_users(users),
        agents=[Count(name, name, number) for name, number in agents],
        sessions=_sessions(sessions_ever(base, limit)),
        categories=[Count(name, str(label(name)), number) for name, number in by_category.most_common()],
        origins=_origins(base),
    )


def dashboard(
    selection: Selection, edges_ms: Sequence[int], *, limit: int = 10, tops: Collection[Top] = TOPS
) -> Dashboard:
    """A constant number of statements, for up to sixty edges. `tops` says which are wanted: others are empty and 0.

    Errors: ValueError for fewer than two edges, or edges that do not rise.
    """
    if len(edges_ms) < 2 or list(edges_ms) != sorted(set(edges_ms)):
        raise ValueError("a dashboard needs two edges or more, in rising order")
    tallies = ledger.tally(selection, ledger.by_category(selection), edges_ms)
    by_category = _by_category(tallies)
    nothing: tuple[list[Any], int] = ([], 0)
    by_user, by_agent = ledger.by_user(selection), ledger.by_agent(selection)
    users, unique_users = ledger.top(selection, by_user, edges_ms, limit) if "users" in tops else nothing
    agents, unique_agents = ledger.top(selection, by_agent, edges_ms, limit) if "agents" in tops else nothing
    sessions, unique_sessions = top_sessions(selection, edges_ms, limit) if "sessions" in tops else nothing
    bands = [sum(row.low for row in tallies), sum(row.mid for row in tallies), sum(row.high for row in tallies)]
    weight = sum(row.weight for row in tallies)
    return Dashboard(
        total=by_category.total(),
        by_category=dict(by_category.most_common()),
        by_tab=_by_tab(by_category),
        buckets=_buckets(tallies, edges_ms),
        importance_bands=[(low, high, number) for (low, high), number in zip(BANDS, bands, strict=True)],
        average_importance=weight / 1_000_000 / sum(bands) if sum(bands) else None,
        top_users=_users(users),
        top_agents=[Count(name, name, number) for name, number in agents],
        top_sessions=_sessions(sessions),
        unique_users=unique_users,
        unique_agents=unique_agents,
        unique_sessions=unique_sessions,
    )


def _by_category(tallies: Iterable[Tally]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for row in tallies:
        counted[row.category] += row.memories
    return +counted


def _by_tab(by_category: Counter[str]) -> dict[str, int]:
    counted: Counter[str] = Counter()
    for category, number in by_category.items():
        counted[tab_of(category)] += number
    return dict(counted)


def _buckets(tallies: Iterable[Tally], edges_ms: Sequence[int]) -> list[dict[str, int]]:
    buckets: list[Counter[str]] = [Counter() for _ in edges_ms[1:]]
    for row in tallies:
        buckets[bisect_right(edges_ms, row.at_ms) - 1][row.category] += row.memories
    return [dict(+bucket) for bucket in buckets]


def _users(found: Iterable[tuple[str, int]]) -> list[Count]:
    numbers = {UUID(owner): number for owner, number in found}
    names = MemoryUser.objects.filter(pk__in=numbers).values_list("pk", "user_id")
    counts = [Count(str(pk), user_id, numbers[pk]) for pk, user_id in names]
    return sorted(counts, key=lambda item: (-item.count, item.label))


def _sessions(found: Sequence[tuple[int, int]]) -> list[Count]:
    named = labelled([row for row, _ in found])
    counts = [(*named[row], number) for row, number in found if row in named]
    return [Count(session_id, session_id, number, user_id) for session_id, user_id, number in counts]


def _origins(base: Selection) -> list[Count]:
    """Of a user or of all: agents are left aside."""
    given = {"app_id": base.app_id, "project_id": base.project_id}
    scope = {name: value for name, value in given.items() if value is not None}
    rows = HourCount.objects.filter(slice=Slice.ORIGINS, key=base.user_pk.hex if base.user_pk else "", **scope)
    counted: Counter[str] = Counter()
    for origin, number in rows.values_list("member", "memories"):
        counted[origin] += number
    return [Count(origin, origin, number) for origin, number in (+counted).most_common()]
