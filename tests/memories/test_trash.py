"""`GET /memories/trash`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memories.models import Tombstone
from tests.conftest import Person
from tests.memories.calls import call, id_of, purge_resource, say, search, upload


def trash(person: Person, **query: Any) -> list[dict[str, Any]]:
    return list(call(person, "get", "/memories/trash", **query)["trash"])


def test_the_trash_holds_memories_and_sessions_newest_first(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    say(alice, "chat:c2", "the bicycle is blue")
    memory_id = id_of("the car is red")
    first = call(alice, "delete", f"/memories/{memory_id}", reason="wrong")["tombstone_id"]
    second = call(alice, "delete", "/sessions/chat:c2")["tombstone_id"]
    session, memory = trash(alice)
    assert memory.pop("deleted_at").endswith("+00:00")
    assert memory == {
        "tombstone_id": first,
        "kind": "memory",
        "memory_id": memory_id,
        "session_id": "chat:c1",
        "memory_type": "episode",
        "text": "the car is red",
        "reason": "wrong",
        "state": "trashed",
    }
    assert (session["tombstone_id"], session["kind"], session["session_id"]) == (second, "session", "chat:c2")
    assert (session["memory_id"], session["text"]) == (None, None)


def test_restored_memories_are_not_in_the_trash(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    path = f"/memories/{id_of('the car is red')}"
    call(alice, "delete", path)
    call(alice, "post", f"{path}/restore")
    assert trash(alice) == []


@pytest.mark.django_db(transaction=True)
def test_purged_memories_are_not_in_the_trash(alice: Person, storage: Any) -> None:
    resource = upload(alice)
    (hit,) = search(alice, "thirty days", scope=["resources"])["results"]
    call(alice, "delete", f"/memories/{hit['id']}")
    call(alice, "delete", f"/sessions/{resource['session_id']}")
    assert len(trash(alice)) == 2
    purge_resource(alice, resource["resource_id"])
    assert trash(alice) == []


def two_pages(person: Person) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    first = call(person, "get", "/memories/trash", limit=3)
    second = call(person, "get", "/memories/trash", limit=3, cursor=first["next_cursor"])
    assert second["next_cursor"] is None
    return first["trash"], second["trash"]


def test_pages_list_every_deletion_once(alice: Person) -> None:
    texts = [f"number {number}" for number in range(5)]
    say(alice, "chat:c1", *texts)
    for text in texts:
        call(alice, "delete", f"/memories/{id_of(text)}")
    first, second = two_pages(alice)
    assert [item["text"] for item in first + second] == texts[::-1]
    Tombstone.objects.update(created_at=datetime(2026, 6, 11, tzinfo=UTC))  # equal times
    first, second = two_pages(alice)
    assert sorted(item["text"] for item in first + second) == texts


def test_the_trash_has_only_deletions_of_the_caller(alice: Person, bob: Person, client: Client) -> None:
    say(alice, "chat:c1", "the car is red")
    call(alice, "delete", f"/memories/{id_of('the car is red')}")
    assert trash(bob) == [] == trash(alice, project_id="other")
    assert client.get("/memories/trash").status_code == 401


@pytest.mark.parametrize("cursor", ["x", "MTox!", "OTk5OTk5OTk5OTk5OTk5OTk5OTp4"])
def test_an_invalid_cursor_is_refused(alice: Person, cursor: str) -> None:
    call(alice, "get", "/memories/trash", cursor=cursor, status=422)


def test_it_takes_two_statements(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    call(alice, "delete", f"/memories/{id_of('the car is red')}")
    with CaptureQueriesContext(connection) as queries:
        assert trash(alice)
    assert len(queries) == 2
