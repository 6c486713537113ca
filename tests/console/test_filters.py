"""Parsing filters from addresses and writing them to addresses. Invalid values are reported and ignored."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils import timezone, translation
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from console.filters import DashboardFilters, LabFilters, ListFilters, option_field
from core.times import to_ms
from store.types import Position
from tests.console.payloads import PAYLOADS

NOW = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)


def list_filters(query: str) -> ListFilters:
    return ListFilters("/list/", QueryDict(query))


def test_without_parameters_all_memories_are_listed() -> None:
    filters = list_filters("")
    selection = filters.selection(NOW, None)
    assert (selection.tab, selection.categories, selection.since_ms) == (None, (), None)
    assert filters.url() == "/list/"


def test_filters_survive_a_round_trip_through_the_address() -> None:
    query = (
        "range=7d&user=u&agent=a&tab=self&q=a+b&category=self_improving_errors&importance_min=0.3&sort=oldest&after=5.6"
    )
    assert list_filters(query).url() == f"/list/?{query}"


def test_changing_a_filter_returns_to_the_first_page() -> None:
    filters = list_filters("user=u&after=5.6")
    assert [chip.url for chip in filters.chips()] == ["/list/"]
    assert filters.ranges()[1]["url"] == "/list/?range=24h&user=u"


def test_pages_know_their_rows_except_after_a_jump() -> None:
    first = list_filters("user=u")
    assert first.rows_before == 0
    assert first.further_page(50, after="5.6") == "/list/?user=u&after=5.6&start=50"
    second = list_filters("user=u&after=5.6&start=50")
    assert second.rows_before == 50
    assert second.further_page(-50, before="4.2") == "/list/?user=u&before=4.2&start=0"
    assert second.unpaged() == {"user": "u"}
    for unknown in ("at=2026-11-01", "after=5.6", "before=5.6&start=x"):
        assert list_filters(unknown).rows_before is None
        assert list_filters(unknown).further_page(50, after="5.6") == "/list/?after=5.6"


def test_times_are_in_the_operators_time_zone_and_an_end_day_is_included() -> None:
    with timezone.override("Asia/Shanghai"):
        selection = list_filters("from=2026-11-19&to=2026-11-20").selection(NOW, None)
    assert selection.since_ms == to_ms(datetime(2026, 11, 18, 16, tzinfo=UTC))
    assert selection.until_ms == to_ms(datetime(2026, 11, 20, 16, tzinfo=UTC))


def test_explicit_times_take_precedence_over_a_range() -> None:
    assert list_filters("range=24h").selection(NOW, None).since_ms == to_ms(NOW - timedelta(days=1))
    mixed = list_filters("range=24h&from=2026-01-01")
    assert mixed.selection(NOW, None).since_ms == to_ms(datetime(2026, 1, 1, tzinfo=UTC))
    assert not any(one["is_on"] for one in mixed.ranges())


def test_a_jump_to_a_day_starts_at_its_first_row() -> None:
    assert list_filters("at=2026-11-18").bounds()[0] == Position(to_ms(datetime(2026, 11, 19, tzinfo=UTC)), 0)
    oldest_first = list_filters("at=2026-11-18&sort=oldest").bounds()[0]
    assert oldest_first == Position(to_ms(datetime(2026, 11, 18, tzinfo=UTC)), 0)


@pytest.mark.parametrize(
    "query",
    ["tab=x", "from=yesterday", "importance_min=2", "importance_min=nan", "after=1", "at=2026-13-01", "at=0001-01-01",
     "sort=up", "user=%00", "category=user_memory_fact%27", "from=9999-12-31T23%3A59%2B99%3A00", "to=9999-12-31",
     "to=1999-12-31", "q=" + "x" * 2001],
)  # fmt: skip
def test_invalid_values_are_reported_and_ignored(query: str) -> None:
    filters = list_filters(query)
    assert len(filters.problems) == 1
    assert filters.url() == "/list/"


def test_any_time_is_selected_and_removes_range_and_times() -> None:
    for query, is_on in (("", True), ("range=all", True), ("range=7d", False), ("from=2026-11-01", False)):
        any_time = list_filters(query).ranges()[0]
        assert (any_time["is_on"], "range" in any_time["url"], "from" in any_time["url"]) == (is_on, False, False)


def test_problems_use_the_translated_labels() -> None:
    with translation.override("zh-hans"):
        assert list_filters("importance_min=2").problems == ["最低权重: 确保该值小于或等于1。"]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(list(list_filters("").data)), st.text(max_size=40) | st.sampled_from(PAYLOADS)))
def test_filters_accept_any_address(parameters: dict[str, str]) -> None:
    query = QueryDict(mutable=True)
    query.update(parameters)
    for filters_class in (ListFilters, DashboardFilters, LabFilters):
        filters = filters_class("/x/", query)
        assert filters.url().startswith("/x/")
        if isinstance(filters, ListFilters):
            filters.selection(NOW, None)
            filters.bounds()
            filters.chips()


def test_the_lab_searches_with_what_its_fields_say_within_the_limits_of_the_api() -> None:
    lab = LabFilters("/lab/", QueryDict("q=tea&method=keyword&radius=0.5&conversation=c&reader=coder&resources=1"))
    command = lab.command(uuid4())
    assert (command.query, command.method, command.radius, command.top_k) == ("tea", "keyword", 0.5, 8)
    assert (command.conversation_id, command.reader, command.scopes) == ("c", "coder", {"resources"})
    assert lab.given()["radius"] == 0.5
    assert len(LabFilters("/lab/", QueryDict("q=tea&radius=1.5&method=best")).problems) == 2


class NewParameters(BaseModel):
    min_relevance: float | None = Field(None, ge=0, le=1)
    depth: int = Field(3, ge=1)
    is_fuzzy: bool = True


def test_a_new_parameter_of_the_api_gets_a_field_of_its_kind() -> None:
    fields = {name: option_field(name, info) for name, info in NewParameters.model_fields.items()}
    assert [field.label for field in fields.values()] == ["min_relevance", "depth", "is_fuzzy"]
    assert [fields["min_relevance"].clean(value) for value in ("", "0.3")] == [None, 0.3]
    assert (fields["depth"].initial, fields["depth"].clean("4")) == ("3", 4)
    assert [fields["is_fuzzy"].clean(value) for value in ("", "true", "false")] == [None, True, False]
    for name, value in (("min_relevance", "2"), ("depth", "0"), ("is_fuzzy", "maybe")):
        with pytest.raises(ValidationError):
            fields[name].clean(value)


def test_the_dashboard_shows_thirty_days_by_default() -> None:
    filters = DashboardFilters("/", QueryDict(""))
    assert filters.span(NOW) == (NOW - timedelta(days=30), None)
    assert filters.url(range="24h") == "/?range=24h"
    assert re.search("2y", filters.ranges()[3]["url"])
