"""`DELETE /memories/{memory_id}` and `POST /memories/{memory_id}/restore`."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import AuditEvent
from memories.models import Tombstone
from store.models import Memory
from tests.conftest import Person
from tests.memories.calls import call, id_of, say, search, texts, upload

ALL_MEMORIES = {"scope": ["all_user_memory"]}


def test_it_returns_the_documented_fields(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    answer = call(alice, "delete", f"/memories/{memory_id}", session_id="chat:c1", reason="wrong")
    tombstone = Tombstone.objects.get()
    assert answer == {"memory_id": memory_id, "tombstone_id": tombstone.tombstone_id, "status": "deleted"}
    assert tombstone.tombstone_id.startswith("t_")
    assert tombstone.reason == "wrong"


def test_a_deleted_memory_is_not_found_until_it_is_restored(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red", "the car is blue")
    memory_id = id_of("the car is red")
    tombstone_id = call(alice, "delete", f"/memories/{memory_id}")["tombstone_id"]
    assert texts(search(alice, "car", **ALL_MEMORIES)) == ["the car is blue"]
    answer = call(alice, "post", f"/memories/{memory_id}/restore")
    assert answer == {"memory_id": memory_id, "tombstone_id": tombstone_id, "status": "restored"}
    assert sorted(texts(search(alice, "car", **ALL_MEMORIES))) == ["the car is blue", "the car is red"]


def test_deleted_hits_are_replaced_by_the_next_best(alice: Person) -> None:
    say(alice, "chat:c1", *(f"car car car {number}" for number in range(9)), "a car among many other words of no use")
    for number in range(9):
        call(alice, "delete", f"/memories/{id_of(f'car car car {number}')}")
    answer = search(alice, "car", **ALL_MEMORIES, top_k=1)
    assert texts(answer) == ["a car among many other words of no use"]


def test_deleting_again_returns_the_same_tombstone(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    path = f"/memories/{id_of('the car is red')}"
    assert call(alice, "delete", path) == call(alice, "delete", path)
    assert Tombstone.objects.count() == 1


def test_restoring_a_live_memory_is_404(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    call(alice, "post", f"/memories/{id_of('the car is red')}/restore", status=404)


def test_a_restored_memory_can_be_deleted_again(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    path = f"/memories/{id_of('the car is red')}"
    first = call(alice, "delete", path)
    call(alice, "post", f"{path}/restore")
    call(alice, "post", f"{path}/restore", status=404)
    assert call(alice, "delete", path)["tombstone_id"] != first["tombstone_id"]
    assert texts(search(alice, "car", **ALL_MEMORIES)) == []


def test_a_deletion_before_the_flush_applies_to_the_memory(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red", flush=False)
    call(alice, "delete", f"/memories/{id_of('the car is red')}")
    say(alice, "chat:c1", "the bicycle is blue")
    assert texts(search(alice, "car", **ALL_MEMORIES)) == []


@pytest.mark.django_db(transaction=True)
def test_a_passage_of_a_document_can_be_deleted(alice: Person, storage: Any) -> None:
    upload(alice)
    (hit,) = search(alice, "thirty days", scope=["resources"])["results"]
    call(alice, "delete", f"/memories/{hit['id']}", session_id=hit["session_id"])
    assert search(alice, "thirty days", scope=["resources"])["results"] == []


def test_the_body_is_optional(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    assert alice.client.delete(f"/memories/{id_of('the car is red')}").status_code == 200


def test_another_user_can_neither_delete_nor_restore(alice: Person, charlie: Person, client: Client) -> None:
    say(alice, "chat:c1", "the car is red")
    path = f"/memories/{id_of('the car is red')}"
    call(charlie, "delete", path, status=404)
    assert client.delete(path).status_code == 401
    call(alice, "delete", path)
    call(charlie, "post", f"{path}/restore", status=404)
    assert texts(search(alice, "car", **ALL_MEMORIES)) == []


def test_a_memory_with_another_session_id_is_404(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    call(alice, "delete", f"/memories/{id_of('the car is red')}", session_id="chat:c2", status=404)


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"reason": "x" * 1001}, "reason"), ({"reason": 1}, "reason"), ({"why": "x"}, "why"), ({"app_id": ""}, "app_id")],
)
def test_an_invalid_field_is_named(alice: Person, fields: dict[str, Any], field: str) -> None:
    say(alice, "chat:c1", "the car is red")
    problem = call(alice, "delete", f"/memories/{id_of('the car is red')}", **fields, status=422)
    assert [error["field"] for error in problem["errors"]] == [field]


def test_the_same_id_in_two_scopes_needs_a_scope(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    memory = Memory.objects.get()
    other = Memory.objects.get()
    other.pk, other.project_id, other.session = None, "other", None
    other.save()
    path = f"/memories/{memory.memory_id}"
    problem = call(alice, "delete", path, status=422)
    assert [error["field"] for error in problem["errors"]] == ["app_id"]
    call(alice, "delete", path, project_id="other")
    assert texts(search(alice, "car", **ALL_MEMORIES)) == ["the car is red"]


def test_deletions_and_restores_are_audited(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    path = f"/memories/{id_of('the car is red')}"
    call(alice, "delete", path, reason="a secret reason")
    call(alice, "post", f"{path}/restore")
    events = AuditEvent.objects.filter(subject_type="memory").order_by("pk")
    assert [(event.action, event.user_id) for event in events] == [
        ("memory.delete", "alice"),
        ("memory.restore", "alice"),
    ]
    assert "secret" not in str(list(events.values()))
