"""`GET /memories/{memory_id}`."""

from __future__ import annotations

from django.test import Client

from tests.conftest import Person
from tests.memories.calls import call, id_of, say


def test_a_memory_without_decisions_has_no_history(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    answer = call(alice, "get", f"/memories/{id_of('the car is red')}")
    assert (answer["memory"]["text"], answer["history"]) == ("the car is red", [])


def test_the_history_lists_every_decision(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    path = f"/memories/{id_of('the car is red')}"
    override_id = call(alice, "patch", path, override_text="blue", importance=0.5)["override_id"]
    call(alice, "patch", path, override_text="green")
    tombstone_id = call(alice, "delete", path, reason="wrong")["tombstone_id"]
    call(alice, "post", f"{path}/restore")
    call(alice, "delete", f"{path}/override")
    answer = call(alice, "get", path)
    assert (answer["memory"]["text"], answer["memory"]["override_id"]) == ("the car is red", None)
    told = [{name: value for name, value in event.items() if name != "at"} for event in answer["history"]]
    ours = {"override_id": override_id, "category": "full_context_user"}
    assert told == [
        {"action": "original", "by": "", "text": "the car is red", "importance": None, **ours},
        {"action": "override", "by": "key", "text": "blue", "importance": 0.5, **ours},
        {"action": "override", "by": "key", "text": "green", "importance": 0.5, **ours},
        {"action": "delete", "by": "key", "tombstone_id": tombstone_id, "reason": "wrong"},
        {"action": "restore", "by": "key", "tombstone_id": tombstone_id},
        {"action": "override_undo", "by": "key", "override_id": override_id},
    ]


def test_a_deleted_memory_has_the_time_of_its_deletion(alice: Person) -> None:
    say(alice, "chat:c1", "the car is red")
    path = f"/memories/{id_of('the car is red')}"
    call(alice, "delete", path)
    assert call(alice, "get", path)["memory"]["deleted_at"].endswith("+00:00")


def test_another_user_gets_404(alice: Person, charlie: Person, client: Client) -> None:
    say(alice, "chat:c1", "the car is red")
    path = f"/memories/{id_of('the car is red')}"
    call(charlie, "get", path, status=404)
    call(alice, "get", path, app_id="other", status=404)
    call(alice, "get", path, color="red", status=422)
    assert client.get(path).status_code == 401


def test_endpoint_names_are_not_memory_ids(alice: Person) -> None:
    call(alice, "get", "/memories/search", status=405)
    call(alice, "get", "/memories/nonsense", status=404)
