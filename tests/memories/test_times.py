"""Days of messages and of questions: `yesterday`, time zones, and texts that name a day."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from accounts.audit import Actor
from profiles import services
from store.models import Memory
from tests.conftest import Person
from tests.memories.calls import call, search, texts

ANYWHERE = {"scope": ["all_user_memory"]}


def ms(written: str) -> int:
    moment = datetime.fromisoformat(written)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def say(person: Person, *said: tuple[str, str], timezone: str | None = None) -> dict[str, Any]:
    """Add messages, each as (time, text)."""
    messages = [
        {"sender_id": person.user_id, "role": "user", "timestamp": ms(at), "content": text} for at, text in said
    ]
    fields = {} if timezone is None else {"timezone": timezone}
    return call(person, "post", "/memories/add", session_id="chat:c1", messages=messages, **fields)


def found(person: Person, query: str, now: str = "2026-06-10T09:00:00+00:00", **fields: Any) -> list[str]:
    return texts(search(person, query, now=now, **ANYWHERE, **fields))


def profile(person: Person, timezone: str) -> None:
    services.patch(person.user_pk, "user", {"timezone": timezone}, actor=Actor.command("tests"))


TOLD = [
    ("2026-06-09T12:00", "I repaired the roof."),
    ("2026-06-03T12:00", "我去看了牙医。"),
    ("2026-05-10T12:00", "Ich habe das Boot gestrichen."),
    ("2026-04-12T12:00", "I painted the fence."),
    ("2025-08-02T12:00", "I learned to dive."),
    ("2026-01-15T12:00", "Tax papers were sent."),
]


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("What did I do yesterday?", 0),
        ("What did we talk about yesterday?", 0),
        ("昨天说了什么", 0),
        ("Was war gestern?", 0),
        ("last week", 1),
        ("上周我做了什么？", 1),
        ("Was war letzte Woche?", 1),
        ("a month ago", 2),
        ("What did I do two months ago?", 3),
        ("两个月前我做了什么", 3),
        ("Was habe ich vor zwei Monaten gemacht?", 3),
        ("What did I do last summer?", 4),
        ("去年我做了什么", 4),
    ],
)
def test_a_time_in_a_question_finds_what_was_said_then(alice: Person, query: str, answer: int) -> None:
    say(alice, *TOLD)
    assert found(alice, query)[0] == TOLD[answer][1]


def test_a_time_in_a_message_is_found_by_its_date(alice: Person) -> None:
    say(
        alice,
        ("2026-06-08T12:00", "Tomorrow I fly to Porto."),
        ("2026-06-01T12:00", "I bought a suitcase."),
        ("2026-06-02T12:00", "下周三我去看牙医。"),
        ("2026-06-03T12:00", "Der Vertrag endet am 5.7."),
    )
    assert found(alice, "What is on 9 June 2026?")[0] == "Tomorrow I fly to Porto."
    assert found(alice, "2026年6月10日有什么安排")[0] == "下周三我去看牙医。"
    assert found(alice, "Was ist am 5. Juli 2026?")[0] == "Der Vertrag endet am 5.7."


@pytest.mark.parametrize(
    "query", ["What did I do on 1 June 2026?", "2026年6月1日我做了什么", "Was war am 1. Juni 2026?", "01.06.2026"]
)
@pytest.mark.parametrize("zone", ["Asia/Shanghai", "China Standard Time", "+08:00", "Shanghai"])
def test_a_message_is_of_the_day_where_it_was_written(alice: Person, query: str, zone: str) -> None:
    assert "warnings" not in say(
        alice, ("2026-06-01T07:00:00+08:00", "I signed the lease."), ("2026-06-01T07:00:00+00:00", "x"), timezone=zone
    )
    assert "I signed the lease." in found(alice, query)
    assert "I signed the lease." not in found(alice, "What did I do on 31 May 2026?")


def test_the_zone_of_the_profile_decides_without_one_in_the_request(alice: Person) -> None:
    profile(alice, "Asia/Shanghai")
    say(alice, ("2026-06-09T23:30", "I signed the lease."))
    assert found(alice, "9 June 2026") == []
    assert found(alice, "10 June 2026") == ["I signed the lease."]
    assert Memory.objects.get().payload["utc_offset"] == 480


def test_the_zone_of_the_profile_decides_on_what_yesterday_means(alice: Person) -> None:
    say(alice, ("2026-06-09T12:00", "I repaired the roof."))
    now = {"now": "2026-06-10T20:00:00+00:00"}  # the 11th in Tokyo
    assert texts(search(alice, "yesterday", timezone="UTC", **now, **ANYWHERE)) == ["I repaired the roof."]
    assert texts(search(alice, "yesterday", timezone="Tokyo", **now, **ANYWHERE)) == []


def test_a_disabled_profile_is_not_read(alice: Person) -> None:
    profile(alice, "Asia/Shanghai")
    assert services.time_zone_of(alice.user_pk) == "Asia/Shanghai"
    services.set_disabled(alice.user_pk, "user", True, actor=Actor.command("tests"))
    assert services.time_zone_of(alice.user_pk) == ""


def test_the_zone_of_the_installation_decides_without_others(alice: Person) -> None:
    with override_settings(MEMORY_GATEWAY_TIME_ZONE="Asia/Shanghai"):
        say(alice, ("2026-06-01T07:00:00+08:00", "I signed the lease."))
        assert found(alice, "1 June 2026") == ["I signed the lease."]


def test_a_row_in_utc_holds_no_zone(alice: Person) -> None:
    say(alice, ("2026-06-01T07:00", "I signed the lease."))
    assert Memory.objects.get().payload == {"role": "user"}


@pytest.mark.parametrize("zone", ["Mars/Olympus", "+99:00", "?", "local"])
def test_an_unknown_zone_is_no_error(alice: Person, zone: str) -> None:
    answer = say(alice, ("2026-06-09T12:00", "I repaired the roof."), timezone=zone)
    assert [warning["field"] for warning in answer["warnings"]] == ["timezone"]
    answer = search(alice, "yesterday", now="2026-06-10T09:00:00+00:00", timezone=zone, **ANYWHERE)
    assert texts(answer) == ["I repaired the roof."]
    assert "time zone" in answer["meta"]["hint"]


def test_a_query_without_a_time_reads_no_profile(alice: Person) -> None:
    say(alice, ("2026-06-09T12:00", "I repaired the roof."))
    with CaptureQueriesContext(connection) as statements:
        search(alice, "roof", include_profile=False, **ANYWHERE)
    assert not [one for one in statements if "profilememory" in one["sql"]]


@pytest.mark.parametrize("now", ["9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00+00:00"])
@pytest.mark.parametrize("zone", ["+14:00", "-12:00"])
def test_the_ends_of_the_calendar_are_no_error(alice: Person, now: str, zone: str) -> None:
    say(alice, ("2026-06-09T12:00", "I repaired the roof."))
    for query in ("last year", "tomorrow", "last week", "in 3 days", "yesterday", "two months ago"):
        search(alice, query, now=now, timezone=zone, filters={"timestamp": {"lte": "9999-12-31"}}, **ANYWHERE)


NIGHT = [("2026-05-31T12:00", "before"), ("2026-06-01T00:00", "midnight"), ("2026-06-01T23:59:59.999", "evening"),
         ("2026-06-02T00:00", "after")]  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"gte": "2026-06-01", "lte": "2026-06-01"}, {"midnight", "evening"}),
        ({"lte": "2026-06-01"}, {"before", "midnight", "evening"}),
        ({"lt": "2026-06-01"}, {"before"}),
        ({"gt": "2026-06-01"}, {"after"}),
        ("2026-06-01", {"midnight", "evening"}),
        ({"ne": "2026-06-01"}, {"before", "after"}),
        ({"in": ["2026-06-01", "2026-05-31"]}, {"before", "midnight", "evening"}),
        ({"gte": "2026-06"}, {"midnight", "evening", "after"}),
        ({"gte": "1960-01-01", "lte": "1971-01-01"}, set()),
        ({"lte": "yesterday"}, {"before", "midnight", "evening"}),
        ({"gte": "today"}, {"after"}),
        ({"gte": "2026-06-01T00:00:01", "lte": "2026-06-01T23:59:59.999"}, {"evening"}),
        ({"gte": "2026-06-02T00:00:00Z"}, {"after"}),
        ({"gte": ms("2026-06-02T00:00")}, {"after"}),
    ],
)
def test_filters_take_days_and_words(alice: Person, condition: Any, expected: set[str]) -> None:
    say(alice, *((at, f"{name} word") for at, name in NIGHT))
    answer = search(alice, "word", now="2026-06-02T12:00:00+00:00", filters={"timestamp": condition}, **ANYWHERE)
    assert {text.split()[0] for text in texts(answer)} == expected


def test_days_of_filters_are_those_of_the_zone(alice: Person) -> None:
    say(alice, ("2026-05-31T20:00", "dawn in Shanghai"))
    filters = {"OR": [{"timestamp": {"gte": "2026-06-01", "lte": "2026-06-01"}}]}
    assert texts(search(alice, "dawn", filters=filters, timezone="Asia/Shanghai", **ANYWHERE)) == ["dawn in Shanghai"]
    assert texts(search(alice, "dawn", filters=filters, timezone="UTC", **ANYWHERE)) == []


@pytest.mark.parametrize("value", ["soon", "2026-13-01", "the day after I moved", "", True, None, {"a": 1}])
def test_a_filter_that_is_no_time_is_refused(alice: Person, value: Any) -> None:
    answer = search(alice, "word", status=422, filters={"timestamp": {"gte": value}}, **ANYWHERE)
    assert answer["errors"][0]["field"] == "filters.timestamp"
