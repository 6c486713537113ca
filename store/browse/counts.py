"""Counts of memories: totals, facets, dashboards."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import UUID

from django.db.models import Count as CountOf
from django.db.models import QuerySet

from accounts.models import MemoryUser
from store.browse import rollup_queries, word_condition
from store.browse.rollup_queries import ALL_TIME_MS, Tally
from store.browse.selection import Selection, rows_of
from store.browse.top_sessions import labeled, sessions_of_all_time, top_sessions
from store.categories import label, tab_of

BANDS = ((0.0, 0.34), (0.34, 0.67), (0.67, 1.0))
Top = Literal["users", "agents", "sessions"]
TOPS: tuple[Top, ...] = ("users", "agents", "sessions")


@dataclass(frozen=True, slots=True)
class Count:
    """The number of memories of a value. `user_id` is set for sessions: two users' `chat:c1` are two sessions."""

    key: str
    label: str
    count: int
    user_id: str = ""


@dataclass(frozen=True, slots=True)
class Facets:
    """The values that memories can be filtered by, most frequent first."""

    agents: list[Count]
    sessions: list[Count]
    categories: list[Count]
    origins: list[Count]


@dataclass(frozen=True, slots=True)
class Dashboard:
    """The figures of the live memories between the first and the last edge.

    `buckets[n]` counts the memories between edge n and edge n + 1 by category. `importance_bands` are (from, to,
    count); memories without importance are in no band. `top_…` lists are cut off at the limit, `unique_…` counts are
    not; agents without a name are in neither.
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


def count(selection: Selection, *, at_most: int | None = None, among: QuerySet[Any] | None = None) -> int:
    """Return how many memories are selected.

    The rollups are summed if they cover all conditions; else the rows are counted, up to `at_most` unless the selection
    has words that few memories contain. `among` restricts them to the row ids that this query yields.
    """
    if among is None and rollup_queries.is_rolled_up(selection):
        return sum(row.memories for row in rollup_queries.tally(selection, ALL_TIME_MS))
    begins_with_words = bool(selection.words) and (
        word_condition.are_in_few(selection.words, word_condition.COUNTED)
        or (selection.user_pk is not None and word_condition.is_cheap_for_a_user())
    )
    if at_most is not None and selection.words and not begins_with_words and among is None:
        # Of very many memories with the words, the first ones mostly reach the limit, at a fraction of the cost.
        wordless = rows_of(replace(selection, words=()), begins_with_words=True)
        first = word_condition.first_holding(selection.words, word_condition.COUNTED)
        found = wordless.filter(word_condition.in_texts(selection.words), pk__in=first)[:at_most].count()
        if found == at_most:
            return found
    rows = rows_of(selection, begins_with_words=begins_with_words)
    if among is not None:
        rows = rows.filter(pk__in=among)
    return (rows if at_most is None or begins_with_words else rows[:at_most]).count()


def count_in_others(words: tuple[str, ...], user_pk: UUID, *, at_most: int) -> int:
    """Return how many memories of other users contain words, up to `at_most`. One SQL statement.

    Of words in more than 50,000 memories, only so many of these are looked at.
    """
    first = word_condition.first_holding(words, word_condition.COUNTED)
    rows = rows_of(Selection(), begins_with_words=True).filter(word_condition.in_texts(words), pk__in=first)
    return rows.exclude(user=user_pk)[:at_most].count()


def counts_by_category(selection: Selection) -> dict[str, int]:
    """Return how many memories with words are selected, by category; nothing if very many contain the words."""
    if not word_condition.are_in_few(selection.words, word_condition.COUNTED):
        return {}
    rows = rows_of(selection, begins_with_words=True).values_list("category")
    return dict(rows.annotate(number=CountOf("pk")).order_by())


def facets(selection: Selection, *, limit: int = 200, with_sessions: bool = True) -> Facets:
    """Return the counts of the selection's user, agent and scope at any time. Three statements, one without sessions.

    Its other conditions are ignored, so that a filter can be changed for another.
    """
    base = Selection(
        user_pk=selection.user_pk,
        app_id=selection.app_id,
        project_id=selection.project_id,
        agent_id=selection.agent_id,
    )
    tallies = rollup_queries.tally(base, ALL_TIME_MS)
    return Facets(
        agents=_top_counts(_agents(tallies), limit),
        sessions=_session_counts(sessions_of_all_time(base, limit)) if with_sessions else [],
        categories=[
            Count(name, str(label(name)), number) for name, number in _sum_by(tallies, "category").most_common()
        ],
        origins=_top_counts(_sum_by(tallies, "origin"), limit),
    )


def dashboard(
    selection: Selection, edges_ms: Sequence[int], *, limit: int = 10, tops: Collection[Top] = TOPS
) -> Dashboard:
    """Return the dashboard's figures in a constant number of SQL statements, for up to sixty edges.

    `edges_ms` are Unix milliseconds. `tops` names the wanted lists: others are empty and 0. Raises: ValueError for
    fewer than two edges, or unsorted ones.
    """
    if len(edges_ms) < 2 or list(edges_ms) != sorted(set(edges_ms)):
        raise ValueError("a dashboard needs two edges or more, in rising order")
    tallies = rollup_queries.tally(selection, edges_ms)
    by_category, agents = _sum_by(tallies, "category"), _agents(tallies)
    by_tab: Counter[str] = Counter()
    for category, number in by_category.items():
        by_tab[tab_of(category)] += number
    unwanted: tuple[list[Any], int] = ([], 0)
    users, unique_users = rollup_queries.top_users(selection, edges_ms, limit) if "users" in tops else unwanted
    sessions, unique_sessions = top_sessions(selection, edges_ms, limit) if "sessions" in tops else unwanted
    bands = [sum(row.low for row in tallies), sum(row.mid for row in tallies), sum(row.high for row in tallies)]
    weight = sum(row.weight for row in tallies)
    return Dashboard(
        total=by_category.total(),
        by_category=dict(by_category.most_common()),
        by_tab=dict(by_tab),
        buckets=_buckets(tallies, edges_ms),
        importance_bands=[(low, high, number) for (low, high), number in zip(BANDS, bands, strict=True)],
        average_importance=weight / 1_000_000 / sum(bands) if sum(bands) else None,
        top_users=_user_counts(users),
        top_agents=_top_counts(agents, limit) if "agents" in tops else [],
        top_sessions=_session_counts(sessions),
        unique_users=unique_users,
        unique_agents=len(agents) if "agents" in tops else 0,
        unique_sessions=unique_sessions,
    )


def _sum_by(tallies: Iterable[Tally], name: Literal["category", "agent_id", "origin"]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for row in tallies:
        counted[getattr(row, name)] += row.memories
    return +counted


def _agents(tallies: Iterable[Tally]) -> Counter[str]:
    """Sum up by agent, without memories that name no agent."""
    agents = _sum_by(tallies, "agent_id")
    del agents[""]
    return agents


def _buckets(tallies: Iterable[Tally], edges_ms: Sequence[int]) -> list[dict[str, int]]:
    buckets: list[Counter[str]] = [Counter() for _ in edges_ms[1:]]
    for row in tallies:
        buckets[bisect_right(edges_ms, row.at_ms) - 1][row.category] += row.memories
    return [dict(+bucket) for bucket in buckets]


def _top_counts(counted: Counter[str], limit: int) -> list[Count]:
    top = sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:limit]
    return [Count(name, name, number) for name, number in top]


def _user_counts(found: Iterable[tuple[str, int]]) -> list[Count]:
    numbers = {UUID(owner): number for owner, number in found}
    names = MemoryUser.objects.filter(pk__in=numbers).values_list("pk", "user_id")
    counts = [Count(str(pk), user_id, numbers[pk]) for pk, user_id in names]
    return sorted(counts, key=lambda item: (-item.count, item.label))


def _session_counts(found: Sequence[tuple[int, int]]) -> list[Count]:
    named = labeled([row for row, _ in found])
    counts = [(*named[row], number) for row, number in found if row in named]
    return [Count(session_id, session_id, number, user_id) for session_id, user_id, number in counts]
