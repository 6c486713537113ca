"""`PATCH /memories/{memory_id}` and `DELETE /memories/{memory_id}/override`."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import AuditEvent
from memories.models import Override
from tests.conftest import Person
from tests.memories.calls import call, id_of, say, search, texts, upload

EVERYWHERE = {"scope": ["all_user_memory"]}


def correct(person: Person, memory_id: str, *, status: int = 200, **fields: Any) -> dict[str, Any]:
    return call(person, "patch", f"/memories/{memory_id}", status=status, **fields)


def test_a_correction_answers_as_documented(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    answer = correct(alice, memory_id, session_id="chat:c1", override_text="the car is blue")
    override = Override.objects.get()
    assert answer == {"memory_id": memory_id, "override_id": override.override_id, "status": "active"}
    assert override.override_id.startswith("o_")


def test_the_new_words_are_found_and_the_old_ones_stand_nowhere(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    correct(alice, memory_id, override_text="the submarine is yellow")
    answer = search(alice, "submarine", **EVERYWHERE, explain=True)
    assert [(result["id"], result["text"]) for result in answer["results"]] == [(memory_id, "the submarine is yellow")]
    assert "car is red" not in str(answer)
    assert texts(search(alice, "red car", **EVERYWHERE)) == []


def test_search_says_what_was_replaced_and_by_which_correction(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    override_id = correct(alice, id_of("the car is red"), override_text="a red lorry, and no car")["override_id"]
    answer = search(alice, "red", **EVERYWHERE, explain=True)
    assert answer["results"][0]["explain"]["override_id"] == override_id
    assert answer["meta"]["scopes"]["all_user_memory"]["replaced"] == 1


def test_new_words_that_hold_the_old_ones_come_as_they_were_given(alice: Person) -> None:
    say(alice, "chat:c1", "red")
    correct(alice, id_of("red"), override_text="red and red")
    (result,) = search(alice, "red", **EVERYWHERE)["results"]
    assert (result["text"], result["raw"]["episode"]) == ("red and red", "red and red")


def test_a_second_correction_goes_on_with_the_first(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    first = correct(alice, memory_id, override_text="the car is blue")
    second = correct(alice, memory_id, override_text="the car is green")
    assert first == second
    assert texts(search(alice, "car", **EVERYWHERE)) == ["the car is green"]


def test_the_same_correction_twice_is_one_revision(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    for _ in range(2):
        correct(alice, memory_id, override_text="the car is blue")
    assert Override.objects.get().revisions.count() == 2  # the engine's own words, and these


def test_category_and_importance_are_corrected_alone(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    correct(alice, memory_id, category="user_memory_fact", importance=0.9)
    memory = call(alice, "get", f"/memories/{memory_id}")["memory"]
    assert (memory["text"], memory["category"], memory["importance"]) == ("the car is red", "user_memory_fact", 0.9)


@pytest.mark.django_db(transaction=True)
def test_a_passage_of_a_document_is_corrected_too(alice: Person, storage: Any) -> None:
    upload(alice)
    (hit,) = search(alice, "thirty days", scope=["resources"])["results"]
    correct(alice, hit["id"], session_id=hit["session_id"], override_text="Payment within sixty days.")
    (hit,) = search(alice, "sixty", scope=["resources"])["results"]
    assert hit["text"] == "Payment within sixty days."
    assert [file["name"] for file in hit["attachments"]] == ["contract.txt"]


def test_what_is_not_flushed_yet_is_corrected_for_good(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red", flush=False)
    correct(alice, id_of("the car is red"), override_text="the car is blue")
    say(alice, "chat:c1", "something else")
    assert texts(search(alice, "car", **EVERYWHERE)) == ["the car is blue"]


def test_undoing_gives_the_engines_words_back(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    for text in ("the car is blue", "the car is green"):
        override_id = correct(alice, memory_id, override_text=text, category="user_memory_fact")["override_id"]
    answer = call(alice, "delete", f"/memories/{memory_id}/override")
    assert answer == {"memory_id": memory_id, "override_id": override_id, "status": "undone"}
    assert texts(search(alice, "red car", **EVERYWHERE)) == ["the car is red"]
    assert texts(search(alice, "green", **EVERYWHERE)) == []
    assert call(alice, "get", f"/memories/{memory_id}")["memory"]["category"] == "full_context_user"


def test_there_is_nothing_to_undo_twice(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    call(alice, "delete", f"/memories/{memory_id}/override", status=404)
    correct(alice, memory_id, override_text="the car is blue")
    call(alice, "delete", f"/memories/{memory_id}/override")
    call(alice, "delete", f"/memories/{memory_id}/override", status=404)
    assert correct(alice, memory_id, override_text="the car is green")["status"] == "active"


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
def test_a_wrong_field_is_refused_by_its_name(alice: Person, fields: dict[str, Any], field: str) -> None:
    say(alice, "chat:c1", "the car is red")
    problem = correct(alice, id_of("the car is red"), **fields, status=422)
    assert [error["field"] for error in problem["errors"]] == [field]


def test_a_stranger_corrects_nothing(alice: Person, charlie: Person, client: Client) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    correct(charlie, memory_id, override_text="x", status=404)
    call(charlie, "delete", f"/memories/{memory_id}/override", status=404)
    assert client.patch(f"/memories/{memory_id}", {"override_text": "x"}, "application/json").status_code == 401
    assert texts(search(alice, "car", **EVERYWHERE)) == ["the car is red"]


@pytest.mark.parametrize("session_id", ["chat:c2", "resource:bob:r_1", "memory_edit:alice"])
def test_another_session_than_the_memorys_has_no_such_memory(alice: Person, session_id: str) -> None:
    say(alice, "chat:c1", "the car is red")
    correct(alice, id_of("the car is red"), session_id=session_id, override_text="x", status=404)


@pytest.mark.parametrize("memory_id", ["nonsense", "a/b", "%00", "x" * 300, "%F0%9F%90%88"])
def test_an_unknown_id_is_not_found(alice: Person, memory_id: str) -> None:
    correct(alice, memory_id, override_text="x", status=404)


def test_a_deleted_memory_is_restored_before_it_is_corrected(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    memory_id = id_of("the car is red")
    call(alice, "delete", f"/memories/{memory_id}")
    correct(alice, memory_id, override_text="x", status=409)


def test_the_trail_says_who_corrected_and_never_what(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    correct(alice, id_of("the car is red"), override_text="the car is blue")
    event = AuditEvent.objects.get(action="memory.override")
    assert (event.user_id, event.subject_id, event.actor_kind) == ("alice", id_of("the car is blue"), "key")
    assert "blue" not in str(event.detail)


@pytest.mark.django_db(transaction=True)
def test_what_is_deleted_for_good_leaves_no_wording_behind(alice: Person, storage: Any) -> None:
    resource = upload(alice)
    (hit,) = search(alice, "thirty days", scope=["resources"])["results"]
    correct(alice, hit["id"], override_text="Payment within sixty days.")
    call(alice, "delete", f"/resources/{resource['resource_id']}")
    assert not Override.objects.exists()
