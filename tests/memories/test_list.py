"""`GET /memories`."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.conftest import Person
from tests.memories.calls import NOON_MS, call, id_of, say


def listed(person: Person, **query: Any) -> list[str]:
    return [memory["text"] for memory in call(person, "get", "/memories", **query)["memories"]]


def test_a_memory_is_listed_with_all_its_fields(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    answer = call(alice, "get", "/memories")
    assert answer == {
        "memories": [
            {
                "id": id_of("the car is red"),
                "memory_type": "episode",
                "session_id": "chat:c1",
                "app_id": "default",
                "project_id": "default",
                "text": "the car is red",
                "category": "full_context_user",
                "importance": None,
                "sender_id": "alice",
                "sender_name": None,
                "role": "user",
                "tool_calls": None,
                "tool_call_id": None,
                "agent_id": "",
                "timestamp_ms": NOON_MS,
                "override_id": None,
                "deleted_at": None,
                "state": "live",
            }
        ],
        "next_cursor": None,
    }


def test_the_list_shows_overrides_and_no_deleted_memories(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red", "the car is old")
    override_id = call(alice, "patch", f"/memories/{id_of('the car is red')}", override_text="blue")["override_id"]
    call(alice, "delete", f"/memories/{id_of('the car is old')}")
    (memory,) = call(alice, "get", "/memories")["memories"]
    assert (memory["text"], memory["override_id"]) == ("blue", override_id)


def test_pages_list_every_memory_once(alice: Person) -> None:
    texts = [f"number {number}" for number in range(7)]
    say(alice, "chat:c1", *texts)
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 3}
    while True:
        answer = call(alice, "get", "/memories", **query)
        seen += [memory["text"] for memory in answer["memories"]]
        if answer["next_cursor"] is None:
            break
        query["cursor"] = answer["next_cursor"]
    assert seen == texts[::-1]


def test_each_filter_restricts_the_list(alice: Person) -> None:
    say(alice, "chat:c1", "first")
    say(alice, "chat:c2", "second", flush=False)
    assert listed(alice, session_id="chat:c2") == ["second"]
    assert listed(alice, memory_type="unprocessed_message") == ["second"]
    assert listed(alice, category="full_context_user", session_id="chat:c1") == ["first"]
    assert listed(alice, agent_id="helper") == []
    assert listed(alice, since_ms=NOON_MS + 1) == []
    assert listed(alice, until_ms=NOON_MS) == []
    assert listed(alice, project_id="other") == []


def test_the_list_has_only_memories_of_the_caller(alice: Person, bob: Person, client: Client) -> None:
    say(alice, "chat:c1", "of alice")
    assert listed(bob) == []
    assert client.get("/memories").status_code == 401


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("limit", "0"),
        ("limit", "101"),
        ("limit", "x"),
        ("cursor", "x"),
        ("cursor", "MTox!"),
        ("cursor", "OTk5OTk5OTk5OTk5OTk5OTk5OTo5OTk5OTk5OTk5OTk5OTk5OTk5"),
        ("memory_type", "dream"),
        ("category", "mine"),
        ("session_id", ""),
        ("session_id", "a\x00b"),
        ("agent_id", "a b"),
        ("since_ms", "-1"),
        ("until_ms", "99999999999999999999"),
        ("color", "red"),
    ],
)
def test_an_invalid_field_is_named(alice: Person, field: str, value: str) -> None:
    problem = call(alice, "get", "/memories", status=422, **{field: value})
    assert [error["field"] for error in problem["errors"]] == [field]


def test_a_list_takes_three_statements(alice: Person) -> None:
    say(alice, "chat:c1", *(f"number {number}" for number in range(30)))
    listed(alice)
    with CaptureQueriesContext(connection) as queries:
        assert len(listed(alice)) == 20
    assert len(queries) == 3  # authentication, memories, overrides


def test_a_parameter_given_twice_with_different_values_is_refused(alice: Person) -> None:
    """Otherwise one of the values would be ignored silently."""
    for path in (
        "/memories?app_id=a&app_id=b",
        "/sessions?limit=1&limit=2",
        "/resources?user_id=alice&app_id=a&app_id=b",
    ):
        problem = alice.client.get(path)
        assert problem.status_code == 422, path
        assert "given twice" in problem.json()["detail"]
    assert alice.client.get("/memories?limit=1&limit=1").status_code == 200
    assert alice.client.get("/sessions?deleted=maybe").json()["detail"] == "deleted: must be true or false"
