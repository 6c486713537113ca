"""`POST /memories/delete`: a dry run, a deletion of what it counted, and one undo."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.audit import Actor
from accounts.models import AuditEvent
from accounts.services import issue_key
from memories.models import Tombstone
from memories.services.manual import NewFact, Source, store_fact
from operations import filtered_deletion, jobs
from operations.models import Job
from store.models import Memory, State
from tests.conftest import Person

pytestmark = pytest.mark.django_db

ACTOR = Actor.command("tests")
DRAFTS = {"tags": ["draft"]}


def keep(person: Person, text: str, **labels: Any) -> str:
    """Store a fact; return its id."""
    return store_fact(person.owner, NewFact(text, **labels), Source("tool", ACTOR)).memory.memory_id


def request(person: Person, filters: Any = DRAFTS, **fields: Any) -> Any:
    return person.client.post("/memories/delete", {"filters": filters, **fields}, "application/json")


def dry_run(person: Person, filters: Any = DRAFTS, **fields: Any) -> int:
    answer = request(person, filters, dry_run=True, **fields)
    assert answer.status_code == 200, answer.content
    return int(answer.json()["count"])


def live(person: Person) -> set[str]:
    return set(Memory.objects.filter(user=person.user_pk, state=State.LIVE).values_list("memory_id", flat=True))


@pytest.fixture
def drafts(alice: Person, bob: Person) -> list[str]:
    """Store two drafts of Alice, another memory of hers, and a draft of Bob; return the ids of Alice's drafts."""
    found = [keep(alice, f"Draft {number} of the speech", tags=["draft"]) for number in (1, 2)]
    keep(alice, "Alice drinks tea", category="user_memory_preference")
    keep(bob, "Bob's draft", tags=["draft"])
    return found


def test_a_dry_run_counts_and_deletes_nothing(alice: Person, drafts: list[str]) -> None:
    answer = request(alice, dry_run=True).json()
    assert [one["id"] for one in answer.pop("memories")] == drafts[::-1]
    assert answer == {
        "deletion_id": None,
        "status": "dry_run",
        "count": 2,
        "deleted": 0,
        "by_category": {"user_memory_fact": 2},
    }
    assert len(live(alice)) == 3
    event = AuditEvent.objects.get(action="memory.preview")
    assert (event.user_id, event.detail) == ("alice", {"count": 2})
    assert "draft" not in event.subject_id


def test_what_was_counted_is_deleted_and_one_undo_restores_it(alice: Person, bob: Person, drafts: list[str]) -> None:
    count = dry_run(alice)
    answer = request(alice, expected_count=count, reason="outdated").json()
    assert answer | {"deletion_id": ""} == {"deletion_id": "", "status": "deleted", "count": 2, "deleted": 2}
    assert live(alice).isdisjoint(drafts)
    assert len(live(bob)) == 1
    assert set(Tombstone.objects.values_list("reason", flat=True)) == {"outdated"}
    address = f"/memories/delete/{answer['deletion_id']}"
    assert alice.client.get(address).json() == answer
    undone = alice.client.post(f"{address}/undo", {}, "application/json").json()
    assert undone == {**answer, "status": "undone"}
    assert live(alice) >= set(drafts)
    again = alice.client.post(f"{address}/undo", {}, "application/json")
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


def test_an_undo_of_nothing_changes_nothing(alice: Person, drafts: list[str]) -> None:
    nothing = {"tags": ["absent"]}
    answer = request(alice, nothing, expected_count=dry_run(alice, nothing)).json()
    assert (answer["status"], answer["count"], answer["deleted"]) == ("deleted", 0, 0)
    undone = alice.client.post(f"/memories/delete/{answer['deletion_id']}/undo", {}, "application/json")
    assert (undone.status_code, undone.json()) == (200, answer)
    assert len(live(alice)) == 3


def test_an_undo_leaves_what_a_person_deleted_again(alice: Person, drafts: list[str]) -> None:
    deletion_id = request(alice, expected_count=dry_run(alice)).json()["deletion_id"]
    alice.client.post(f"/memories/{drafts[0]}/restore", {}, "application/json")
    alice.client.delete(f"/memories/{drafts[0]}")
    alice.client.post(f"/memories/delete/{deletion_id}/undo", {}, "application/json")
    assert drafts[0] not in live(alice)
    assert drafts[1] in live(alice)


def test_another_number_than_that_of_the_dry_run_is_refused_with_the_present_one(
    alice: Person, drafts: list[str]
) -> None:
    count = dry_run(alice)
    keep(alice, "Draft 3 of the speech", tags=["draft"])
    for expected in (count, 3, 0):
        refused = request(alice, expected_count=expected)
        assert (refused.status_code, refused.json()["code"], refused.json()["count"]) == (409, "count_changed", 3)
    assert len(live(alice)) == 4


def test_a_deletion_needs_a_dry_run_of_the_same_filters_scope_and_ten_minutes(alice: Person, drafts: list[str]) -> None:
    assert request(alice, expected_count=2).status_code == 409
    dry_run(alice, {"tags": {"any": ["draft", "other"]}})
    dry_run(alice, app_id="other")
    assert request(alice, expected_count=2).status_code == 409
    dry_run(alice)
    AuditEvent.objects.filter(action="memory.preview").update(at=timezone.now() - timedelta(minutes=11))
    assert request(alice, expected_count=2).status_code == 409
    dry_run(alice)
    assert request(alice, expected_count=2).status_code == 200


@pytest.mark.parametrize("filters", [{}, {"AND": []}, {"NOT": {}}, {"AND": [{"OR": []}]}, {"NOT": {"AND": []}}])
def test_filters_need_a_condition(alice: Person, drafts: list[str], filters: Any) -> None:
    for fields in ({"dry_run": True}, {"expected_count": 3}):
        refused = request(alice, filters, **fields)
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "filters")
    assert len(live(alice)) == 3


def test_the_count_is_required_and_unknown_fields_are_named(alice: Person) -> None:
    assert request(alice).json()["errors"][0]["field"] == "expected_count"
    assert request(alice, {"tag": "x"}, dry_run=True).json()["errors"][0]["field"].startswith("filters")


def test_too_many_are_refused(alice: Person, drafts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filtered_deletion, "MAX_MEMORIES", 1)
    refused = request(alice, expected_count=dry_run(alice))
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "filters")


def test_other_users_get_404(alice: Person, bob: Person, drafts: list[str]) -> None:
    deletion_id = request(alice, expected_count=dry_run(alice)).json()["deletion_id"]
    assert bob.client.get(f"/memories/delete/{deletion_id}").status_code == 404
    undo = bob.client.post(f"/memories/delete/{deletion_id}/undo", {}, "application/json")
    assert undo.status_code == 404
    assert live(alice).isdisjoint(drafts)


def test_a_large_deletion_is_left_to_a_worker_and_continues(
    alice: Person, drafts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filtered_deletion, "AT_ONCE", 1)
    answer = request(alice, expected_count=dry_run(alice)).json()
    assert (answer["status"], answer["deleted"]) == ("running", 0)
    keep(alice, "Draft 3 of the speech", tags=["draft"])  # the ids are frozen
    jobs.run_now(Job.objects.get(pk=answer["deletion_id"]))
    address = f"/memories/delete/{answer['deletion_id']}"
    assert alice.client.get(address).json() == {**answer, "status": "deleted", "deleted": 2}
    assert len(live(alice)) == 2
    undoing = alice.client.post(f"{address}/undo", {}, "application/json").json()
    assert undoing["status"] == "undoing"
    jobs.run_next()
    assert alice.client.get(address).json()["status"] == "undone"
    assert len(live(alice)) == 4


def with_key(person: Person, **limits: Any) -> Person:
    """Return the user with a client that has a key with these limits."""
    key = issue_key(person.user_pk, actor=ACTOR, **limits).plaintext
    return replace(person, client=Client(headers={"Authorization": f"Bearer {key}"}))


def test_a_key_without_search_learns_no_count(alice: Person, drafts: list[str]) -> None:
    refused = request(with_key(alice, granted=["decide"]), dry_run=True)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert dry_run(with_key(alice, granted=["decide", "search"])) == 2


def test_a_bound_key_sees_its_own_deletions_only(alice: Person, drafts: list[str]) -> None:
    deletion_id = request(alice, expected_count=dry_run(alice)).json()["deletion_id"]
    for limits in ({"agent_id": "coder"}, {"app_id": "default"}):
        bound = with_key(alice, **limits)
        assert bound.client.get(f"/memories/delete/{deletion_id}").status_code == 404
        assert bound.client.post(f"/memories/delete/{deletion_id}/undo", {}, "application/json").status_code == 404
    assert live(alice).isdisjoint(drafts)


def test_a_key_of_an_agent_neither_counts_nor_deletes_what_others_stored(alice: Person) -> None:
    shared = keep(alice, "A shared draft", tags=["draft"])
    own = keep(alice, "A draft of the coder", tags=["draft"], agent_id="coder")
    keep(alice, "A draft of the writer", tags=["draft"], agent_id="writer")
    person = with_key(alice, agent_id="coder")
    assert dry_run(person) == 2
    assert request(person, expected_count=2).json()["deleted"] == 2
    assert live(alice).isdisjoint({shared, own})
    assert len(live(alice)) == 1
