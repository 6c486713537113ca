"""`store.browse`: lists, counts and dashboards agree with a plain scan over the rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import MemoryUser
from core.errors import NotFound
from store import browse, rollups
from store.browse import Selection
from store.categories import CATEGORIES, TABS, label, tab_of
from store.models import IS_LIVE, Memory, Session
from store.table import visible
from store.types import Position
from tests.store.conftest import NOON_MS

HOUR, DAY = 3_600_000, 86_400_000
START = NOON_MS // DAY * DAY - 60 * DAY
ROWS = 600

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows() -> list[Memory]:
    """Memories of three users over four months, newest first: some hidden, some in hidden sessions, some in turns."""
    chance = random.Random(7)
    users = [MemoryUser.objects.create(user_id=f"user{number}") for number in range(3)]
    sessions = [
        Session.objects.create(
            user=user, app_id=app, session_id=f"{name}{mark}", engine_session_id=f"{name}{mark}{user.pk}", kind="chat"
        )
        for user in users
        for app, mark in (("default", ""), ("shop", " in shop"))
        for name in ("chat:1", "chat:2", "chat:hidden", "long")
    ]
    Memory.objects.bulk_create(_row(chance, chance.choice(sessions), number) for number in range(ROWS))
    Session.objects.filter(session_id__startswith="chat:hidden").update(state="trashed", state_since=timezone.now())
    ninth = [memory.pk for memory in Memory.objects.all()[::9]]
    Memory.objects.filter(pk__in=ninth).update(state="trashed", state_since=timezone.now())
    if chance.random() < 0.5:
        rollups.settle()
    live = visible(Memory.objects.filter(IS_LIVE))
    return list(live.order_by("-created_at_ms", "-pk"))


def _row(chance: random.Random, session: Session, number: int) -> Memory:
    is_long = session.session_id.startswith("long")
    spread, offset = (120 * DAY, 0) if is_long else (3 * DAY, 40 * DAY)
    return Memory(
        user_id=session.user_id,
        session=session,
        memory_id=f"m{number}",
        memory_type=chance.choice(["episode", "episode", "unprocessed_message"]),
        category=chance.choice([*CATEGORIES, "", ""]),
        agent_id=chance.choice(["", "main", "other"]),
        app_id=session.app_id,
        text=f"text {number}",
        importance=chance.choice([None, 0.1, 0.5, 0.9]),
        origin=chance.choice(["embedded", "embedded", "panel", "tool"]),
        batch_id=chance.choice(["", f"turn-{number // 40}"]),
        seq=number,
        created_at_ms=START + offset + chance.randrange(spread) // 1000 * 1000,
    )


def matches(memory: Memory, selection: Selection) -> bool:
    """Return True if the memory fits the selection."""
    required = {
        "user_id": selection.user_pk, "app_id": selection.app_id, "agent_id": selection.agent_id,
        "memory_type": selection.memory_type, "origin": selection.origin,
    }  # fmt: skip
    at = memory.created_at_ms
    return (
        all(getattr(memory, name) == value for name, value in required.items() if value is not None)
        and (selection.tab is None or memory.category in TABS[selection.tab])
        and (not selection.categories or memory.category in selection.categories)
        and (selection.session_id is None or memory.session.session_id == selection.session_id)  # type: ignore[union-attr]
        and (selection.importance_min is None or (memory.importance or -1) >= selection.importance_min)
        and (selection.since_ms is None or at >= selection.since_ms)
        and (selection.until_ms is None or at < selection.until_ms)
    )


def selections() -> Iterator[Selection]:
    """Yield selections with each condition alone and several together, without a user."""
    period: dict[str, Any] = {"since_ms": START + 5 * DAY + 1234, "until_ms": START + 70 * DAY + 77 * HOUR + 1}
    yield Selection()
    for condition in (
        {"tab": "user"}, {"tab": "full"}, {"tab": "full", "categories": ("full_context_tool", "user_memory_fact")},
        {"categories": ("",)}, {"agent_id": "main"}, {"agent_id": ""}, {"app_id": "shop"}, {"session_id": "long"},
        {"session_id": "nothing"}, {"origin": "panel"}, {"memory_type": "episode"}, {"importance_min": 0.5},
        {"agent_id": "main", "tab": "self"}, {"agent_id": "main", "session_id": "chat:1", "tab": "full"},
    ):  # fmt: skip
        yield Selection(**condition)  # type: ignore[arg-type]
        yield Selection(**condition, **period)  # type: ignore[arg-type]
    yield Selection(**period)


def with_and_without_user(rows: list[Memory]) -> list[Selection]:
    user = rows[0].user_id
    return [*selections(), *(replace(selection, user_pk=user) for selection in selections())]


def ids(memories: Any) -> list[int]:
    return [getattr(memory, "row", None) or memory.pk for memory in memories]


def test_pages_link_in_both_directions_and_in_both_orders(rows: list[Memory]) -> None:
    for selection in with_and_without_user(rows):
        expected = ids(memory for memory in rows if matches(memory, selection))
        assert read_pages(selection, oldest_first=False) == expected, selection
        assert read_pages(selection, oldest_first=True) == expected[::-1], selection


def read_pages(selection: Selection, *, oldest_first: bool) -> list[int]:
    """Return the ids of all pages, and assert that each page links to the one before it."""
    seen: list[list[int]] = []
    at: Position | None = None
    while True:
        page = browse.page(selection, after=at, limit=37, oldest_first=oldest_first)
        back, on = (page.older, page.newer) if oldest_first else (page.newer, page.older)
        assert (back is None) == (not seen or not page.memories)
        if back is not None:
            before = browse.page(selection, before=back, limit=37, oldest_first=oldest_first)
            assert ids(before.memories) == seen[-1]
        seen.append(ids(page.memories))
        if on is None:
            return [row for rows in seen for row in rows]
        at = on


@pytest.mark.slow
def test_pages_do_not_split_turns(rows: list[Memory]) -> None:
    for selection in (Selection(), Selection(tab="full"), Selection(user_pk=rows[0].user_id, agent_id="main")):
        expected = [memory for memory in rows if matches(memory, selection)]
        for oldest_first in (False, True):
            turns, at = [], None
            while True:
                page = browse.turn_page(selection, after=at, limit=5, oldest_first=oldest_first)
                assert len(page.turns) <= 5
                turns += page.turns
                at = page.newer if oldest_first else page.older
                if at is None:
                    break
            assert all(len({memory.turn for memory in turn.memories}) == 1 for turn in turns)
            named = [turn.memories[0].turn for turn in turns if turn.batch_id]
            assert len(named) == len(set(named)) > len({turn.batch_id for turn in turns if turn.batch_id})
            assert Counter(ids(memory for turn in turns for memory in turn.memories)) == Counter(ids(expected))
            for turn in turns:
                assert [memory.created_at_ms for memory in turn.memories] == sorted(
                    memory.created_at_ms for memory in turn.memories
                )
            ends = [turn.memories[0 if oldest_first else -1].created_at_ms for turn in turns]
            assert ends == sorted(ends, reverse=not oldest_first)


def test_pages_can_be_read_by_offset(rows: list[Memory]) -> None:
    for selection in (
        Selection(),
        Selection(tab="full"),
        Selection(agent_id="main", tab="user"),
        Selection(origin="tool"),
    ):
        expected = ids(memory for memory in rows if matches(memory, selection))
        for offset in (0, 10, len(expected) - 5, len(expected), len(expected) + 100):
            page = browse.offset_page(selection, offset=offset, limit=20)
            assert ids(page) == expected[offset : offset + 20]
            page = browse.offset_page(selection, offset=offset, limit=20, oldest_first=True)
            assert ids(page) == expected[::-1][offset : offset + 20]


def test_counts_agree_with_the_rows(rows: list[Memory]) -> None:
    for selection in with_and_without_user(rows):
        expected = sum(matches(memory, selection) for memory in rows)
        assert browse.count(selection) == expected, selection
    assert browse.count(Selection(memory_type="episode"), at_most=10) == 10


EDGES = {
    "of hours": [START + 30 * DAY + number * HOUR for number in range(49)],
    "of days elsewhere": [START + 16 * HOUR + number * DAY for number in range(60)],
    "of odd moments": [START + 999 + number * (DAY + 17) for number in range(40)],
    "of months": [START + number * 30 * DAY for number in range(6)],
    "of one moment": [START + 41 * DAY + 5, START + 41 * DAY + 1005],
    "of all time": [0, 4_000_000_000_000],
}


@pytest.mark.parametrize("name", EDGES)
def test_dashboards_agree_with_the_rows(rows: list[Memory], name: str) -> None:
    edges = EDGES[name]
    for selection in with_and_without_user(rows):
        expected = [m for m in rows if matches(m, selection) and edges[0] <= m.created_at_ms < edges[-1]]
        shown = browse.dashboard(selection, edges, limit=3)
        assert shown.total == len(expected), selection
        assert shown.by_category == dict(Counter(m.category for m in expected))
        assert shown.by_tab == dict(Counter(tab_of(m.category) for m in expected))
        assert shown.buckets == [
            dict(Counter(m.category for m in expected if since <= m.created_at_ms < until))
            for since, until in pairwise(edges)
        ]
        assert_importance(shown, [m.importance for m in expected if m.importance is not None])
        assert_tops(shown, expected)


def assert_importance(shown: browse.Dashboard, weights: list[float]) -> None:
    assert [count for _, _, count in shown.importance_bands] == [
        sum(low <= weight < (high if high < 1 else 2) for weight in weights) for low, high in browse.BANDS
    ]
    assert shown.average_importance == (pytest.approx(sum(weights) / len(weights)) if weights else None)


def assert_tops(shown: browse.Dashboard, expected: list[Memory]) -> None:
    users = Counter(str(m.user_id) for m in expected)
    agents = Counter(m.agent_id for m in expected if m.agent_id)
    sessions = Counter((m.user.user_id, m.session.session_id) for m in expected if m.session)
    assert (shown.unique_users, shown.unique_agents, shown.unique_sessions) == (len(users), len(agents), len(sessions))
    assert [one.count for one in shown.top_users] == [count for _, count in users.most_common(3)]
    assert [one.count for one in shown.top_agents] == [count for _, count in agents.most_common(3)]
    assert [one.count for one in shown.top_sessions] == [count for _, count in sessions.most_common(3)]
    assert all(users[one.key] == one.count for one in shown.top_users)
    assert all(agents[one.key] == one.count for one in shown.top_agents)
    assert all(sessions[one.user_id, one.key] == one.count for one in shown.top_sessions)


def test_facets_count_agents_categories_origins_and_sessions(rows: list[Memory]) -> None:
    facets = browse.facets(Selection())
    assert {one.key: one.count for one in facets.agents} == Counter(m.agent_id for m in rows if m.agent_id)
    assert {one.key: one.count for one in facets.categories} == Counter(m.category for m in rows)
    assert {one.key: one.count for one in facets.origins} == Counter(m.origin for m in rows)
    assert [one.count for one in facets.sessions] == sorted((one.count for one in facets.sessions), reverse=True)
    assert not any(one.key.startswith("chat:hidden") for one in facets.sessions)
    assert len(browse.facets(Selection(), limit=2).sessions) == 2


def test_facets_ignore_every_condition_but_the_user(rows: list[Memory]) -> None:
    user = rows[0].user_id
    facets = browse.facets(Selection(user_pk=user, tab="user", session_id="long"))
    assert sum(one.count for one in facets.sessions) == sum(m.user_id == user for m in rows)


def test_the_trash_is_listed_separately(rows: list[Memory]) -> None:
    hidden = Memory.objects.exclude(state="live").exclude(session__session_id__startswith="chat:hidden")
    page = browse.page(Selection(in_trash=True), limit=ROWS)
    assert set(ids(page.memories)) == set(hidden.values_list("pk", flat=True))
    assert browse.count(Selection(in_trash=True)) == len(page.memories)


def test_memories_are_read_by_row_id_also_from_the_trash(rows: list[Memory]) -> None:
    assert browse.get(rows[3].pk).text == rows[3].text
    hidden = Memory.objects.exclude(state="live")[0]
    assert browse.get(hidden.pk).state != "live"
    assert ids(browse.get_many([rows[5].pk, 10**9, rows[2].pk])) == [rows[5].pk, rows[2].pk]
    with pytest.raises(NotFound):
        browse.get(10**9)


def test_selections_round_trip_through_json() -> None:
    for selection in selections():
        whole = replace(selection, user_pk=UUID(int=7))
        assert Selection.from_json(whole.as_json()) == whole


def test_edges_must_increase() -> None:
    for edges in ([], [1], [2, 1], [1, 1]):
        with pytest.raises(ValueError, match="edges"):
            browse.dashboard(Selection(), edges)


def test_categories_have_names_and_tabs() -> None:
    assert {tab_of(category) for category in CATEGORIES} == {"user", "self", "full"}
    assert tab_of("") == tab_of("full_context_memory") == ""
    assert str(label("user_memory_fact")) == "Fact"
    assert label("from elsewhere") == "from elsewhere"


STATEMENTS = {
    "page": (2, 2, lambda selection: browse.page(selection, limit=20)),
    "turn_page": (3, 3, lambda selection: browse.turn_page(selection, limit=5)),
    "offset_page": (3, 3, lambda selection: browse.offset_page(selection, offset=10, limit=20)),
    "count": (1, 1, browse.count),
    "facets": (3, 3, browse.facets),
    "dashboard": (7, 5, lambda selection: browse.dashboard(selection, EDGES["of odd moments"])),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_number_of_statements_does_not_depend_on_the_number_of_rows(rows: list[Memory], name: str) -> None:
    with_tabs, with_one_tab, call = STATEMENTS[name]
    for selection in (Selection(), Selection(tab="full"), Selection(agent_id="main", user_pk=rows[0].user_id)):
        with CaptureQueriesContext(connection) as statements:
            call(selection)  # type: ignore[operator]
        expected = with_tabs if selection.tab is None else with_one_tab
        assert len(statements) == expected, [statement["sql"] for statement in statements]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite takes the index of agents and categories")
def test_postgresql_knows_which_categories_an_agent_has(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attname FROM pg_statistic_ext JOIN pg_attribute ON attrelid = stxrelid AND attnum = ANY (stxkeys) "
            "WHERE stxname = 'store_memory_agent_category' ORDER BY attname"
        )
        assert cursor.fetchall() == [("agent_id",), ("category",)]
