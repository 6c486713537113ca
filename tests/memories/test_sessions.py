"""`GET /sessions`, `DELETE /sessions/{session_id}` and `POST /sessions/{session_id}/restore`."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import AuditEvent
from tests.conftest import Person
from tests.memories.calls import call, id_of, purge_resource, say, search, texts, upload

ALL_MEMORIES = {"scope": ["all_user_memory"]}


def sessions(person: Person, **query: Any) -> list[str]:
    return [session["session_id"] for session in call(person, "get", "/sessions", **query)["sessions"]]


def test_a_session_is_listed_with_all_its_fields(alice: Person) -> None:
    say(alice, "chat:c1", "one", "two")
    say(alice, "chat:c1", "one", "two", "three", flush=False)
    call(alice, "delete", f"/memories/{id_of('one')}")
    (session,) = call(alice, "get", "/sessions")["sessions"]
    assert session.pop("created_at").endswith("+00:00")
    assert session.pop("flushed_at") == session.pop("searchable_at") is not None
    assert session.pop("remote") == {"state": "off", "since": None, "detail": None}
    assert session.pop("state") == "live"
    assert session == {"session_id": "chat:c1", "kind": "chat", "memories": 1, "pending": 1, "deleted_at": None}


def test_pages_list_every_session_once_newest_first(alice: Person) -> None:
    names = [f"chat:c{number}" for number in range(5)]
    for name in names:
        say(alice, name, "x")
    first = call(alice, "get", "/sessions", limit=3)
    second = call(alice, "get", "/sessions", limit=3, cursor=first["next_cursor"])
    assert [session["session_id"] for session in first["sessions"] + second["sessions"]] == names[::-1]
    assert second["next_cursor"] is None


def test_a_deleted_session_is_neither_listed_nor_found(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    say(alice, "chat:c2", "the car is blue")
    deleted = call(alice, "delete", "/sessions/chat:c1", reason="wrong")
    assert (deleted["session_id"], deleted["status"]) == ("chat:c1", "deleted")
    assert texts(search(alice, "car", **ALL_MEMORIES)) == ["the car is blue"]
    assert search(alice, "car", conversation_id="c1")["results"] == []
    assert (sessions(alice), sessions(alice, deleted="true")) == (["chat:c2"], ["chat:c1"])
    restored = call(alice, "post", "/sessions/chat:c1/restore")
    assert restored == {**deleted, "status": "restored"}
    assert len(texts(search(alice, "car", **ALL_MEMORIES))) == 2


def test_restoring_a_session_keeps_single_deletions(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red", "the car is blue")
    call(alice, "delete", f"/memories/{id_of('the car is red')}")
    call(alice, "delete", "/sessions/chat:c1")
    call(alice, "post", "/sessions/chat:c1/restore")
    assert texts(search(alice, "car", **ALL_MEMORIES)) == ["the car is blue"]


def test_deleting_again_returns_the_same_tombstone(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    assert call(alice, "delete", "/sessions/chat:c1") == call(alice, "delete", "/sessions/chat:c1")


def test_restoring_a_live_session_is_404(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    call(alice, "post", "/sessions/chat:c1/restore", status=404)


def test_an_id_may_contain_slashes_and_reserved_characters(alice: Person) -> None:
    say(alice, "a/b c?d#付款", "the car is red")
    call(alice, "delete", "/sessions/a/b%20c%3Fd%23%E4%BB%98%E6%AC%BE")
    assert sessions(alice) == []


def test_another_user_can_neither_delete_nor_restore(alice: Person, charlie: Person, client: Client) -> None:
    say(alice, "chat:c1", "the car is red")
    call(charlie, "delete", "/sessions/chat:c1", status=404)
    assert client.delete("/sessions/chat:c1").status_code == 401
    assert client.get("/sessions").status_code == 401
    call(alice, "delete", "/sessions/chat:c1")
    call(charlie, "post", "/sessions/chat:c1/restore", status=404)
    assert sessions(charlie) == []


@pytest.mark.parametrize("session_id", ["nothing", "memory_edit:bob", "resource:bob:r_1", "%00", "x" * 129])
def test_an_unknown_session_is_404(alice: Person, session_id: str) -> None:
    call(alice, "delete", f"/sessions/{session_id}", status=404)
    call(alice, "post", f"/sessions/{session_id}/restore", status=404)


@pytest.mark.django_db(transaction=True)
def test_the_session_of_a_deleted_resource_is_restored_after_it(alice: Person, storage: Any) -> None:
    resource = upload(alice)
    path = f"/sessions/{resource['session_id']}"
    call(alice, "delete", path)
    call(alice, "delete", f"/resources/{resource['resource_id']}")
    refused = call(alice, "post", f"{path}/restore", status=409)
    assert "Restore the resource first" in refused["detail"]
    call(alice, "post", f"/resources/{resource['resource_id']}/restore")
    assert sessions(alice) == []
    call(alice, "post", f"{path}/restore")
    assert len(sessions(alice)) == 1


@pytest.mark.django_db(transaction=True)
def test_the_session_of_a_purged_resource_cannot_be_restored(alice: Person, storage: Any) -> None:
    resource = upload(alice)
    path = f"/sessions/{resource['session_id']}"
    call(alice, "delete", path)
    purge_resource(alice, resource["resource_id"])
    call(alice, "post", f"{path}/restore", status=404)
    assert sessions(alice) == sessions(alice, deleted="true") == []


def test_deletions_and_restores_are_audited(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    call(alice, "delete", "/sessions/chat:c1")
    call(alice, "post", "/sessions/chat:c1/restore")
    events = AuditEvent.objects.filter(subject_type="session", subject_id="chat:c1").order_by("pk")
    assert [event.action for event in events] == ["session.delete", "session.restore"]


def test_a_list_takes_three_statements(alice: Person) -> None:
    for number in range(5):
        say(alice, f"chat:c{number}", "x")
    sessions(alice)
    with CaptureQueriesContext(connection) as queries:
        assert len(sessions(alice)) == 5
    assert len(queries) == 3  # authentication, sessions, counts


def test_a_session_whose_id_ends_with_restore_is_deleted_and_restored(alice: Person) -> None:
    say(alice, "notes/restore", "the car is red")
    say(alice, "notes", "the bike is blue")
    assert call(alice, "delete", "/sessions/notes/restore")["session_id"] == "notes/restore"
    assert [memory["text"] for memory in call(alice, "get", "/memories")["memories"]] == ["the bike is blue"]
    call(alice, "post", "/sessions/notes/restore/restore")
    assert len(call(alice, "get", "/memories")["memories"]) == 2
