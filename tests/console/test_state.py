"""Addresses become filters and filters addresses; what cannot be is said and left away."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.http import QueryDict
from django.utils import timezone, translation
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.filters import DashboardState, ListState
from console.views.lab import LabState
from core.times import to_ms
from store.types import Position
from tests.console.payloads import PAYLOADS

NOW = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)


def read(query: str) -> ListState:
    return ListState.read("/list/", QueryDict(query))


def test_an_address_without_parameters_is_the_whole_user_tab() -> None:
    state = read("")
    selection = state.selection(NOW, None)
    assert (selection.tab, selection.categories, selection.since_ms) == ("user", (), None)
    assert state.url() == "/list/"


def test_what_is_read_is_written_again() -> None:
    query = (
        "tab=self&q=a+b&range=7d&user=u&agent=a&category=self_improving_errors&importance_min=0.3&sort=oldest&after=5.6"
    )
    assert read(query).query == query


def test_a_filter_takes_the_place_in_the_list_back() -> None:
    state = read("user=u&after=5.6")
    assert [chip.url for chip in state.chips()] == ["/list/"]
    assert state.ranges()[1]["url"] == "/list/?range=24h&user=u"


def test_times_are_the_viewers_and_an_end_day_is_whole() -> None:
    with timezone.override("Asia/Shanghai"):
        selection = read("from=2026-11-19&to=2026-11-20").selection(NOW, None)
    assert selection.since_ms == to_ms(datetime(2026, 11, 18, 16, tzinfo=UTC))
    assert selection.until_ms == to_ms(datetime(2026, 11, 20, 16, tzinfo=UTC))


def test_a_range_is_counted_from_now_and_yields_to_times_of_ones_own() -> None:
    assert read("range=24h").selection(NOW, None).since_ms == to_ms(NOW - timedelta(days=1))
    mixed = read("range=24h&from=2026-01-01")
    assert mixed.selection(NOW, None).since_ms == to_ms(datetime(2026, 1, 1, tzinfo=UTC))
    assert not any(one["is_on"] for one in mixed.ranges())


def test_a_day_is_a_place_before_its_first_row() -> None:
    assert read("at=2026-11-18").places()["after"] == Position(to_ms(datetime(2026, 11, 19, tzinfo=UTC)), 0)
    early = read("at=2026-11-18&sort=oldest").places()["after"]
    assert early == Position(to_ms(datetime(2026, 11, 18, tzinfo=UTC)), 0)


@pytest.mark.parametrize(
    "query",
    ["tab=x", "from=yesterday", "importance_min=2", "importance_min=nan", "after=1", "at=2026-13-01", "at=0001-01-01",
     "sort=up", "user=%00", "category=user_memory_fact%27", "from=9999-12-31T23%3A59%2B99%3A00", "to=9999-12-31",
     "to=1999-12-31", "q=" + "x" * 2001],
)  # fmt: skip
def test_what_cannot_be_is_said_and_left_away(query: str) -> None:
    state = read(query)
    assert len(state.problems) == 1
    assert state.query == ""


def test_a_preset_can_be_taken_back() -> None:
    for query, is_on in (("", True), ("range=all", True), ("range=7d", False), ("from=2026-11-01", False)):
        any_time = read(query).ranges()[0]
        assert (any_time["is_on"], "range" in any_time["url"], "from" in any_time["url"]) == (is_on, False, False)


def test_what_cannot_be_is_named_as_the_page_names_it() -> None:
    with translation.override("zh-hans"):
        assert read("importance_min=2").problems == ("权重不低于: 须是 0 到 1 的数",)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(list(ListState.cleaners())), st.text(max_size=40) | st.sampled_from(PAYLOADS)))
def test_no_address_breaks_a_state(given_: dict[str, str]) -> None:
    query = QueryDict(mutable=True)
    query.update(given_)
    for kind in (ListState, DashboardState, LabState):
        state = kind.read("/x/", query)
        assert state.url().startswith("/x/")
        if isinstance(state, ListState):
            state.selection(NOW, None)
            state.places()
            state.chips()


def test_the_dashboard_shows_thirty_days_unless_told_otherwise() -> None:
    state = DashboardState.read("/", QueryDict(""))
    assert state.span(NOW) == (NOW - timedelta(days=30), None)
    assert state.url(range="24h") == "/?range=24h"
    assert re.search("2y", state.ranges()[3]["url"])
