"""`memory.admin.dashboard`: totals, kinds, time buckets and importance."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.rpc.dashboard import DAY_MS, HOUR_MS, MAX_SPAN_MS, Bucket, buckets
from tests.agents.rpc.direct import NOON_MS, call, of_operator, of_user, refusal, row
from tests.conftest import Person

ALL_TIME = {"timeFrom": "2026-01-01T00:00:00.000Z", "timeTo": "2026-12-31T23:59:59.999Z"}
BAD_TIMES = "timeFrom and timeTo are required (ISO 8601)"


def dashboard(principal: Any, **params: Any) -> dict[str, Any]:
    answer: dict[str, Any] = call(principal, "memory.admin.dashboard", **{"agentId": "main", **ALL_TIME, **params})
    return answer


@pytest.mark.django_db
def test_it_has_the_specified_fields(alice: Person) -> None:
    row(alice, "a", NOON_MS, importance=0.2, session_id="chat:1")
    row(alice, "b", NOON_MS, importance=0.5, session_id="chat:1", category="user_memory_fact")
    row(alice, "c", NOON_MS + 1, importance=0.9, session_id="chat:2", category="self_improving_errors")
    row(alice, "d", NOON_MS + 2, category="", session_id="chat:1")
    row(alice, "another agent's", NOON_MS, agent_id="helper")
    answer = dashboard(of_user(alice))
    bars = answer.pop("byBucket")
    average = answer["importance"].pop("avg")
    assert answer == {
        "total": 4,
        "timeFromMs": 1767225600000,
        "timeToMs": 1798761599999,
        "byKind": {"user": 1, "self": 1, "full": 1, "other": 1},
        "byCategory": {"full_context_user": 1, "user_memory_fact": 1, "self_improving_errors": 1, "other": 1},
        "topAgents": [{"agentId": "main", "count": 4}],
        "topSessions": [{"sessionId": "chat:1", "count": 3}, {"sessionId": "chat:2", "count": 1}],
        "importance": {"low": 1, "mid": 1, "high": 2},
        "uniqueAgents": 1,
        "uniqueSessions": 2,
    }
    assert average == pytest.approx((0.2 + 0.5 + 0.9 + 0.7) / 4)
    assert [bar["key"] for bar in bars] == [f"2026-{month:02}" for month in range(1, 13)]
    assert bars[5] == {"key": "2026-06", "label": "2026-06", "count": 4}
    assert sum(bar["count"] for bar in bars) == 4


@pytest.mark.django_db
def test_shared_memories_have_a_dashboard(alice: Person) -> None:
    row(alice, "a", NOON_MS, agent_id="")
    row(alice, "a file's", NOON_MS, agent_id="", category="")
    row(alice, "main's", NOON_MS)
    answer = dashboard(of_user(alice), agentId="(shared)")
    assert (answer["total"], answer["byKind"]["full"], answer["byKind"]["other"]) == (2, 1, 1)
    assert answer["topAgents"] == [{"agentId": "(shared)", "count": 2}]
    assert answer["uniqueAgents"] == 1


@pytest.mark.django_db
def test_an_empty_dashboard_has_zeros(alice: Person) -> None:
    answer = dashboard(of_user(alice), agentId="nobody")
    assert (answer["total"], answer["topAgents"], answer["uniqueAgents"]) == (0, [], 0)
    assert answer["importance"] == {"low": 0, "mid": 0, "high": 0, "avg": 0}
    assert answer["byCategory"] == {}
    assert len(answer["byBucket"]) == 12


@pytest.mark.django_db
def test_both_ends_of_the_time_range_are_inclusive(alice: Person) -> None:
    for name, at_ms in (("before", -1), ("first", 0), ("last", 2 * HOUR_MS), ("after", 2 * HOUR_MS + 1)):
        row(alice, name, NOON_MS + at_ms)
    answer = dashboard(of_user(alice), timeFrom=NOON_MS, timeTo=NOON_MS + 2 * HOUR_MS)
    assert answer["total"] == 2
    assert [bar["count"] for bar in answer["byBucket"]] == [1, 1]


@pytest.mark.django_db
def test_it_can_be_restricted_to_a_session(alice: Person) -> None:
    row(alice, "a", NOON_MS, session_id="chat:1")
    row(alice, "b", NOON_MS, session_id="chat:2")
    assert dashboard(of_user(alice), sessionId="chat:1")["total"] == 1
    assert dashboard(of_user(alice), sessionId=" ")["total"] == 2


@pytest.mark.django_db
def test_sessions_of_two_users_with_the_same_id_are_counted_together(alice: Person, bob: Person) -> None:
    for person in (alice, bob):
        row(person, "x", NOON_MS, session_id="chat:c1")
    assert dashboard(of_operator())["topSessions"] == [{"sessionId": "chat:c1", "count": 2}]


@pytest.mark.django_db
def test_missing_and_invalid_parameters_are_refused(alice: Person) -> None:
    principal = of_user(alice)
    beyond = "9999-12-31T23:59:59-12:00"
    bad = (
        {"timeFrom": None},
        {"timeTo": "soon"},
        {"timeTo": []},
        {"timeFrom": True},
        {"timeFrom": 1e20},
        {"timeFrom": beyond},
    )
    for given_times in bad:
        params = {"agentId": "main", **ALL_TIME, **given_times}
        payload = refusal(principal, "memory.admin.dashboard", **params)["payload"]
        assert payload == {"error": BAD_TIMES, "status": 400}
    assert (
        refusal(principal, "memory.admin.dashboard", **ALL_TIME)["payload"]["error"] == "缺少 agentId：请先选择 Agent"
    )
    far = {"timeFrom": "1000-01-01", "timeTo": "3000-01-01"}
    assert refusal(principal, "memory.admin.dashboard", agentId="main", **far)["payload"]["status"] == 400


@pytest.mark.django_db
def test_a_start_after_the_end_is_an_empty_dashboard(alice: Person) -> None:
    row(alice, "x", NOON_MS)
    answer = dashboard(of_user(alice), timeFrom=NOON_MS + 5, timeTo=NOON_MS - 5)
    assert (answer["total"], [bar["count"] for bar in answer["byBucket"]]) == (0, [0])


@pytest.mark.django_db
def test_it_takes_the_same_statements_for_any_number_of_memories(alice: Person, django_assert_num_queries: Any) -> None:
    principal = of_user(alice)
    for number in range(10):
        row(alice, str(number), NOON_MS + number * HOUR_MS)
        if number in {1, 9}:
            with django_assert_num_queries(6):
                dashboard(principal)


# --- time buckets ----------------------------------------------------------------------------------------------------


def test_up_to_two_days_are_divided_into_hours() -> None:
    bars = buckets(NOON_MS + 90_000, NOON_MS + 90_000 + 48 * HOUR_MS)
    assert len(bars) == 48
    assert bars[0] == Bucket("0", "06-11 10:00", NOON_MS + 90_000)
    assert bars[47] == Bucket("47", "06-13 09:00", NOON_MS + 90_000 + 47 * HOUR_MS)


def test_longer_times_are_divided_into_days_or_months() -> None:
    assert len(buckets(NOON_MS, NOON_MS + 48 * HOUR_MS + 1)) == 3
    days = buckets(NOON_MS, NOON_MS + 60 * DAY_MS)
    assert (len(days), days[0].key, days[0].label, days[59].label) == (60, "0", "2026-06-11", "2026-08-09")
    months = buckets(NOON_MS, NOON_MS + 60 * DAY_MS + 1)
    assert [(bar.key, bar.label) for bar in months] == [(name, name) for name in ("2026-06", "2026-07", "2026-08")]


def test_months_are_in_the_time_zone_of_the_server(settings: Any) -> None:
    """The example of the specification, on a server eight hours ahead of UTC: 2025-01 to 2027-01."""
    settings.TIME_ZONE = "Asia/Shanghai"
    months = buckets(1735689600000, 1798761599999)
    assert (len(months), months[0].key, months[-1].key) == (25, "2025-01", "2027-01")
    settings.TIME_ZONE = "UTC"
    assert len(buckets(1735689600000, 1798761599999)) == 24


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Shanghai"])
def test_the_first_and_the_last_times_have_buckets_in_every_zone(settings: Any, zone: str) -> None:
    settings.TIME_ZONE = zone
    for at_ms in (-62_135_596_800_000, 253_402_300_799_999):
        assert buckets(at_ms, at_ms)
        assert buckets(at_ms - 61 * DAY_MS if at_ms > 0 else at_ms, at_ms if at_ms > 0 else at_ms + 61 * DAY_MS)


@given(
    st.integers(min_value=-62_135_596_800_000, max_value=253_402_300_799_999),
    st.integers(min_value=0, max_value=MAX_SPAN_MS),
)
def test_buckets_are_ordered_and_begin_within_the_time_range(since_ms: int, span_ms: int) -> None:
    until_ms = min(since_ms + span_ms, 253_402_300_799_999)
    bars = buckets(since_ms, until_ms)
    starts = [bar.since_ms for bar in bars]
    assert starts[0] == since_ms
    assert starts == sorted(set(starts))
    assert starts[-1] <= until_ms
    assert len({bar.key for bar in bars}) == len(bars) <= 1210
