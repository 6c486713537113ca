"""`PATCH /memories/{memory_id}` and `DELETE /memories/{memory_id}/override`."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import AuditEvent
from memories.models import Override
from tests.conftest import Person
from tests.memories.calls import call, id_of, purge_resource, say, search, texts, upload

ALL_MEMORIES = {"scope": ["all_user_memory"]}


def override_memory(person: Person, memory_id: str, *, status: int = 200, **fields: Any) -> dict[str, Any]:
    return call(person, "patch", f"/memories/{memory_id}", status=status, **fields)


def test_it_returns_the_documented_fields(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    answer = override_memory(alice, memory_id, session_id="chat:c1", override_text="the car is blue")
    override = Override.objects.get()
    assert answer == {"memory_id": memory_id, "override_id": override.override_id, "status": "active"}
    assert override.override_id.startswith("o_")


def test_searches_find_the_new_text_and_never_show_the_old_one(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    override_memory(alice, memory_id, override_text="the submarine is yellow")
    answer = search(alice, "submarine", **ALL_MEMORIES, explain=True)
    assert [(result["id"], result["text"]) for result in answer["results"]] == [(memory_id, "the submarine is yellow")]
    assert "car is red" not in str(answer)
    assert texts(search(alice, "red car", **ALL_MEMORIES)) == []


def test_explain_names_the_override_of_a_result(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    override_id = override_memory(alice, id_of("the car is red"), override_text="a red lorry, and no car")[
        "override_id"
    ]
    answer = search(alice, "red", **ALL_MEMORIES, explain=True)
    assert answer["results"][0]["explain"]["override_id"] == override_id
    assert answer["meta"]["scopes"]["all_user_memory"]["replaced"] == 1


def test_an_override_that_contains_the_old_text_is_applied_once(alice: Person) -> None:
    say(alice, "chat:c1", "red")
    override_memory(alice, id_of("red"), override_text="red and red")
    (result,) = search(alice, "red", **ALL_MEMORIES)["results"]
    assert (result["text"], result["raw"]["episode"]) == ("red and red", "red and red")


def test_a_second_override_is_a_revision_of_the_first(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    first = override_memory(alice, memory_id, override_text="the car is blue")
    second = override_memory(alice, memory_id, override_text="the car is green")
    assert first == second
    assert texts(search(alice, "car", **ALL_MEMORIES)) == ["the car is green"]


def test_repeating_an_override_adds_no_revision(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    for _ in range(2):
        override_memory(alice, memory_id, override_text="the car is blue")
    assert Override.objects.get().revisions.count() == 2  # the original and one override


def test_category_and_importance_can_be_overridden_without_text(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    override_memory(alice, memory_id, category="user_memory_fact", importance=0.9)
    memory = call(alice, "get", f"/memories/{memory_id}")["memory"]
    assert (memory["text"], memory["category"], memory["importance"]) == ("the car is red", "user_memory_fact", 0.9)


@pytest.mark.django_db(transaction=True)
def test_a_passage_of_a_document_can_be_overridden(alice: Person, storage: Any) -> None:
    upload(alice)
    (hit,) = search(alice, "thirty days", scope=["resources"])["results"]
    override_memory(alice, hit["id"], session_id=hit["session_id"], override_text="Payment within sixty days.")
    (hit,) = search(alice, "sixty", scope=["resources"])["results"]
    assert hit["text"] == "Payment within sixty days."
    assert [file["name"] for file in hit["attachments"]] == ["contract.txt"]


def test_an_override_of_an_unflushed_message_survives_the_flush(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red", flush=False)
    override_memory(alice, id_of("the car is red"), override_text="the car is blue")
    say(alice, "chat:c1", "something else")
    assert texts(search(alice, "car", **ALL_MEMORIES)) == ["the car is blue"]


def test_undoing_restores_the_original_text(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    for text in ("the car is blue", "the car is green"):
        override_id = override_memory(alice, memory_id, override_text=text, category="user_memory_fact")["override_id"]
    answer = call(alice, "delete", f"/memories/{memory_id}/override")
    assert answer == {"memory_id": memory_id, "override_id": override_id, "status": "undone"}
    assert texts(search(alice, "red car", **ALL_MEMORIES)) == ["the car is red"]
    assert texts(search(alice, "green", **ALL_MEMORIES)) == []
    assert call(alice, "get", f"/memories/{memory_id}")["memory"]["category"] == "full_context_user"


def test_undoing_without_an_override_is_404(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    call(alice, "delete", f"/memories/{memory_id}/override", status=404)
    override_memory(alice, memory_id, override_text="the car is blue")
    call(alice, "delete", f"/memories/{memory_id}/override")
    call(alice, "delete", f"/memories/{memory_id}/override", status=404)
    assert override_memory(alice, memory_id, override_text="the car is green")["status"] == "active"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "override_text"),
        ({"override_text": None}, "override_text"),
        ({"override_text": ""}, "override_text"),
        ({"override_text": " \n"}, "override_text"),
        ({"override_text": 7}, "override_text"),
        ({"override_text": "x" * 100_001}, "override_text"),
        ({"override_text": "x", "category": "mine"}, "category"),
        ({"override_text": "x", "importance": 1.1}, "importance"),
        ({"override_text": "x", "importance": "high"}, "importance"),
        ({"override_text": "x", "session_id": ""}, "session_id"),
        ({"override_text": "x", "text": "x"}, "text"),
    ],
)
def test_an_invalid_field_is_named(alice: Person, fields: dict[str, Any], field: str) -> None:
    say(alice, "chat:c1", "the car is red")
    problem = override_memory(alice, id_of("the car is red"), **fields, status=422)
    assert [error["field"] for error in problem["errors"]] == [field]


def test_another_user_cannot_override(alice: Person, charlie: Person, client: Client) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    override_memory(charlie, memory_id, override_text="x", status=404)
    call(charlie, "delete", f"/memories/{memory_id}/override", status=404)
    assert client.patch(f"/memories/{memory_id}", {"override_text": "x"}, "application/json").status_code == 401
    assert texts(search(alice, "car", **ALL_MEMORIES)) == ["the car is red"]


@pytest.mark.parametrize("session_id", ["chat:c2", "resource:bob:r_1", "memory_edit:alice"])
def test_a_memory_with_another_session_id_is_404(alice: Person, session_id: str) -> None:
    say(alice, "chat:c1", "the car is red")
    override_memory(alice, id_of("the car is red"), session_id=session_id, override_text="x", status=404)


@pytest.mark.parametrize("memory_id", ["nonsense", "a/b", "%00", "x" * 300, "%F0%9F%90%88"])
def test_an_unknown_memory_is_404(alice: Person, memory_id: str) -> None:
    override_memory(alice, memory_id, override_text="x", status=404)


def test_a_deleted_memory_cannot_be_overridden(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    call(alice, "delete", f"/memories/{memory_id}")
    override_memory(alice, memory_id, override_text="x", status=409)


def test_overrides_are_audited_without_text(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    override_memory(alice, id_of("the car is red"), override_text="the car is blue")
    event = AuditEvent.objects.get(action="memory.override")
    assert (event.user_id, event.subject_id, event.actor_kind) == ("alice", id_of("the car is blue"), "key")
    assert "blue" not in str(event.detail)


@pytest.mark.django_db(transaction=True)
def test_a_permanent_deletion_removes_the_overrides(alice: Person, storage: Any) -> None:
    resource = upload(alice)
    (hit,) = search(alice, "thirty days", scope=["resources"])["results"]
    override_memory(alice, hit["id"], override_text="Payment within sixty days.")
    purge_resource(alice, resource["resource_id"])
    assert not Override.objects.exists()


def test_tags_and_metadata_are_replaced_and_found_by_filters(alice: Person, bob: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    before = call(alice, "get", f"/memories/{memory_id}")
    override_memory(alice, memory_id, tags=[" garage ", "garage"], metadata={"plate": "B-17"})
    override_memory(bob, memory_id, status=404, tags=["mine"])
    answer = call(alice, "get", f"/memories/{memory_id}")
    assert answer["memory"] == before["memory"] | {"tags": ["garage"], "metadata": {"plate": "B-17"}}
    found = [
        texts(search(alice, "car", **ALL_MEMORIES, filters=filters))
        for filters in ({"tags": ["garage"]}, {"metadata.plate": "B-17"}, {"metadata.plate": "B-18"})
    ]
    assert found == [["the car is red"], ["the car is red"], []]
    override_memory(alice, memory_id, metadata={"plate": "B-18"})
    override_memory(alice, memory_id, tags=None)
    answer = call(alice, "get", f"/memories/{memory_id}")
    assert answer["memory"] == before["memory"] | {"metadata": {"plate": "B-18"}}
    assert texts(search(alice, "car", **ALL_MEMORIES, filters={"tags": ["garage"]})) == []
    changes = AuditEvent.objects.filter(action="memory.override").order_by("pk")
    assert [event.detail for event in changes] == [
        {"fields": ["metadata", "tags"]},
        {"fields": ["metadata"]},
        {"fields": ["tags"]},
    ]
    override_memory(alice, memory_id, tags=None)
    assert changes.count() == 3


def test_the_new_tags_and_metadata_are_checked_and_masked(alice: Person, settings: Any) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    for fields, name in (({"tags": ["x"] * 33}, "tags"), ({"metadata": {"a": {"b": {"c": {}}}}}, "metadata")):
        assert override_memory(alice, memory_id, status=422, **fields)["errors"][0]["field"].startswith(name)
    settings.MEMORY_GATEWAY_REDACT = frozenset({"secrets"})
    override_memory(alice, memory_id, metadata={"note": "password=hunter2secret"})
    assert "hunter2" not in str(call(alice, "get", f"/memories/{memory_id}"))
    call(alice, "delete", f"/memories/{memory_id}")
    override_memory(alice, memory_id, status=409, tags=["x"])
