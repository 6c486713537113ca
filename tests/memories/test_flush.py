"""`POST /memories/flush`."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.conftest import Person
from tests.memories.calls import call, say, search


def flush(person: Person, session_id: str = "chat:c1", *, status: int = 200, **fields: Any) -> dict[str, Any]:
    return call(person, "post", "/memories/flush", status=status, session_id=session_id, **fields)


def test_it_returns_the_documented_fields(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red", "the car is blue", flush=False)
    answer = flush(alice)
    assert answer["session_id"] == "chat:c1"
    assert answer["backend"]["request_id"]
    data = answer["backend"]["data"]
    assert data.pop("searchable_at").endswith("+00:00")
    assert data == {"status": "extracted", "memory_count": 2}
    found = search(alice, "car", conversation_id="c1")["results"]
    assert {result["memory_type"] for result in found} == {"episode"}


@pytest.mark.parametrize("session_id", ["chat:c1", "chat:never", "memory_edit:alice"])
def test_a_session_without_new_messages_is_no_extraction(alice: Person, session_id: str) -> None:
    say(alice, "chat:c1", "the car is red")
    data = flush(alice, session_id)["backend"]["data"]
    assert data == {"status": "no_extraction", "memory_count": 0, "searchable_at": None}


@pytest.mark.parametrize("session_id", ["resource:bob:r_1", "memory_edit:bob"])
def test_a_session_that_names_another_user_is_404(alice: Person, session_id: str) -> None:
    flush(alice, session_id, status=404)


def test_another_user_cannot_flush_the_session(alice: Person, bob: Person, client: Client) -> None:
    say(alice, "chat:c1", "the car is red", flush=False)
    assert flush(bob)["backend"]["data"]["status"] == "no_extraction"
    (result,) = search(alice, "car", conversation_id="c1")["results"]
    assert result["memory_type"] == "unprocessed_message"
    assert client.post("/memories/flush", {"session_id": "chat:c1"}, "application/json").status_code == 401


def test_a_session_of_another_project_is_another_session(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red", flush=False)
    assert flush(alice, project_id="other")["backend"]["data"]["status"] == "no_extraction"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"session_id": None}, "session_id"),
        ({"session_id": "a\nb"}, "session_id"),
        ({"app_id": ""}, "app_id"),
        ({"x": 1}, "x"),
    ],
)
def test_an_invalid_field_is_named(alice: Person, fields: dict[str, Any], field: str) -> None:
    problem = call(alice, "post", "/memories/flush", status=422, **{"session_id": "chat:c1", **fields})
    assert [error["field"] for error in problem["errors"]] == [field]
