"""`POST /memories` and `/memories/bulk`: one call stores a fact, and what a person deleted never comes back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from accounts.audit import Actor
from accounts.models import IdempotencyKey
from memories.api.schemas.facts import MAX_FACTS
from memories.services import decisions
from memories.services.lookup import MemoryRef
from operations.cleanup import purge
from store.derived_memories import supersede
from store.models import Attribute, ExternalId, Memory, Session
from tests.conftest import Person

pytestmark = pytest.mark.django_db

ACTOR = Actor.command("tests")
TEXT, NOTES = "I prefer green tea.", "memory_edit:alice"
METADATA = {"source": "crm", "level": {"n": 2, "list": ["a"]}}


def post(
    person: Person, path: str = "/memories", *, expect: int | None = None, headers: Any = None, **body: Any
) -> Any:
    response = person.client.post(path, body, "application/json", headers=headers or {})
    assert expect is None or response.status_code == expect, response.content
    return response


def store(person: Person, text: str, expect: int | None = None, headers: Any = None, **body: Any) -> dict[str, Any]:
    return dict(post(person, text=text, expect=expect, headers=headers, **body).json())


def found(person: Person, query: str) -> list[dict[str, Any]]:
    body = {"query": query, "scope": ["all_user_memory"], "include_profile": False}
    return list(person.client.post("/memories/search", body, "application/json").json()["results"])


def get(person: Person, memory_id: str) -> Any:
    return person.client.get(f"/memories/{memory_id}")


def delete(person: Person, memory_id: str) -> None:
    assert person.client.delete(f"/memories/{memory_id}").status_code == 200


def test_one_call_stores_a_fact_that_search_finds(alice: Person, bob: Person) -> None:
    response = post(alice, text=" I prefer green tea. ", expect=201)
    answer = response.json()
    memory = answer["memory"]
    assert (memory["text"], memory["category"], memory["importance"]) == (
        "I prefer green tea.",
        "user_memory_fact",
        0.7,
    )
    assert (memory["session_id"], memory["sender_id"], memory["memory_type"]) == (
        "memory_edit:alice",
        "alice",
        "episode",
    )
    assert (answer["action"], answer["similar"], answer["replaces"]) == ("created", [], [])
    assert not {"tags", "metadata", "external_id", "expires_at"} & memory.keys()
    read = alice.client.get(response["Location"])
    assert read.json()["memory"] == memory
    assert read["ETag"] == response["ETag"]
    assert [one["id"] for one in found(alice, "green tea")] == [memory["id"]]
    assert found(bob, "green tea") == []
    assert get(bob, memory["id"]).status_code == 404


def test_all_fields_are_stored_and_returned(alice: Person) -> None:
    ends = (timezone.now() + timedelta(days=2)).replace(microsecond=0)
    body = {
        "category": "user_memory_decision",
        "importance": 0.25,
        "tags": ["b", " a ", "b"],
        "metadata": METADATA,
        "external_id": "crm-1",
        "created_at": "2026-01-02T03:04:05+08:00",
        "expires_at": ends.isoformat(),
        "agent_id": "coder",
        "session_id": "chat:c1",
        "app_id": "app",
        "project_id": "p",
    }
    memory = store(alice, "We use PostgreSQL.", expect=201, **body)["memory"]
    expected = body | {"tags": ["b", "a"]}
    del expected["created_at"]
    assert {name: memory[name] for name in expected} == expected
    assert memory["timestamp_ms"] == 1_767_294_245_000
    assert set(Attribute.objects.values_list("name", flat=True)) >= {"tags", "metadata.source", "metadata.level.list"}
    listed = alice.client.get("/memories?app_id=app&project_id=p").json()["memories"]
    assert listed == [memory]


def test_an_equal_text_is_the_same_fact_and_a_similar_one_is_named(alice: Person) -> None:
    first = store(alice, "I prefer green tea in the morning.", expect=201)["memory"]["id"]
    again = store(alice, "i prefer  green tea in the morning", expect=200, tags=["drinks"])
    assert (again["action"], again["memory"]["id"], again["memory"]["tags"]) == ("updated", first, ["drinks"])
    assert store(alice, "i prefer  green tea in the morning", expect=200)["action"] == "unchanged"
    other = store(alice, "I prefer green tea in the evening.", expect=201)
    assert [one["id"] for one in other["similar"]] == [first]
    assert other["similar"][0]["text"] == "i prefer  green tea in the morning"


def test_a_newer_statement_names_what_it_replaces(alice: Person) -> None:
    older = store(alice, "My phone number is 555-0101.", created_at="2026-01-01T00:00:00Z")["memory"]["id"]
    newer = store(alice, "My phone number is 555-0202.", created_at="2026-06-01T00:00:00Z")
    assert newer["replaces"] == [older]


def test_an_external_id_updates_its_memory_and_keeps_its_history(alice: Person) -> None:
    first = store(alice, "Lives in Oslo.", external_id="crm-1", metadata={"v": 1}, tags=["x"])["memory"]
    assert store(alice, "Lives in Oslo.", external_id="crm-1", expect=200)["action"] == "unchanged"
    changed = store(alice, "Lives in Bergen.", external_id="crm-1", metadata={"v": 2}, expect=200)
    assert (changed["action"], changed["memory"]["id"]) == ("updated", first["id"])
    assert (changed["memory"]["metadata"], changed["memory"]["tags"]) == ({"v": 2}, ["x"])
    document = get(alice, first["id"]).json()
    assert [one.get("text") for one in document["history"]] == ["Lives in Oslo.", "Lives in Bergen."]
    assert [one["text"] for one in found(alice, "Bergen")] == ["Lives in Bergen."]
    assert found(alice, "Oslo") == []
    other = store(alice, "Lives in Bergen.", external_id="crm-2", expect=201)
    assert other["memory"]["id"] != first["id"]
    assert [one["id"] for one in other["similar"]] == [first["id"]]


def test_a_text_that_was_sent_before_leaves_the_correction_of_a_person(alice: Person) -> None:
    memory_id = store(alice, "Lives in Oslo.", external_id="1")["memory"]["id"]
    alice.client.patch(f"/memories/{memory_id}", {"override_text": "Lives in Paris."}, "application/json")
    answer = store(alice, "Lives in Oslo.", external_id="1", expect=200)
    assert (answer["action"], answer["memory"]["text"]) == ("unchanged", "Lives in Paris.")
    assert store(alice, "Lives in Rome.", external_id="1")["memory"]["text"] == "Lives in Rome."


def test_external_ids_are_of_one_user_app_and_project(alice: Person, bob: Person) -> None:
    ids = {
        store(alice, "A", external_id="1", expect=201)["memory"]["id"],
        store(bob, "B", external_id="1", expect=201)["memory"]["id"],
        store(alice, "C", external_id="1", app_id="x", expect=201)["memory"]["id"],
        store(alice, "D", external_id="1", project_id="x", expect=201)["memory"]["id"],
    }
    assert len(ids) == 4


def trash(person: Person, memory_id: str) -> None:
    delete(person, memory_id)


def purge_memory(person: Person, memory_id: str) -> None:
    delete(person, memory_id)
    purge.purge_trash(older_than=timedelta(0), actor=ACTOR)


def trash_session(person: Person, _memory_id: str) -> None:
    assert person.client.delete(f"/sessions/memory_edit:{person.user_id}").status_code == 200


def purge_session(person: Person, memory_id: str) -> None:
    trash_session(person, memory_id)
    purge.purge_trash(older_than=timedelta(0), actor=ACTOR)


@pytest.mark.parametrize("remove", [trash, purge_memory, trash_session, purge_session])
def test_what_a_person_deleted_is_never_stored_again(alice: Person, remove: Any) -> None:
    secret = f"secret{uuid4().hex}"
    memory_id = store(alice, secret, external_id="1", metadata={"k": secret})["memory"]["id"]
    remove(alice, memory_id)
    before = Memory.objects.count()
    for text in (secret, "Something else"):
        refused = post(alice, text=text, external_id="1", expect=409).json()
        assert refused["code"] == "deleted_by_person"
    bulk = post(alice, "/memories/bulk", memories=[{"text": secret, "external_id": "1"}], expect=200).json()["results"]
    assert [(one["status"], one["code"]) for one in bulk] == [(409, "deleted_by_person")]
    assert Memory.objects.count() == before
    assert found(alice, secret) == []
    if remove in {purge_memory, purge_session}:
        assert not Attribute.objects.exists()
        assert secret not in str(list(Memory.objects.values()) + list(ExternalId.objects.values()))


def test_a_restored_memory_is_changed_again(alice: Person) -> None:
    memory_id = store(alice, "Tea", external_id="1")["memory"]["id"]
    delete(alice, memory_id)
    alice.client.post(f"/memories/{memory_id}/restore", {}, "application/json")
    assert store(alice, "Coffee", external_id="1", expect=200)["memory"]["id"] == memory_id


def test_an_expired_memory_begins_a_new_life(alice: Person) -> None:
    memory_id = store(alice, "Parked on level 3", external_id="1")["memory"]["id"]
    Memory.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    new = store(alice, "Parked on level 4", external_id="1", expect=201)["memory"]["id"]
    assert new != memory_id
    assert store(alice, "Parked on level 5", external_id="1", expect=200)["memory"]["id"] == new


def test_a_superseded_memory_that_changes_is_current_again(alice: Person) -> None:
    memory = store(alice, "Lives in Oslo.", external_id="1")["memory"]
    newer = Memory.objects.get(memory_id=store(alice, "Moved to Bergen.")["memory"]["id"])
    supersede([Memory.objects.get(memory_id=memory["id"])], newer, timezone.now())
    assert store(alice, "Lives in Oslo.", external_id="1", expect=200)["action"] == "unchanged"
    assert found(alice, "Oslo") == []
    assert store(alice, "Lives in Rome.", external_id="1", expect=200)["memory"]["id"] == memory["id"]
    assert [one["id"] for one in found(alice, "Rome")] == [memory["id"]]


@pytest.mark.parametrize(
    ("count", "deleted", "purged"), [(30, 6, 2), pytest.param(1000, 100, 20, marks=pytest.mark.torture)]
)
def test_a_nightly_sync_brings_nothing_back(alice: Person, count: int, deleted: int, purged: int) -> None:
    facts = [{"text": f"Fact number {number}", "external_id": f"e{number}"} for number in range(count)]

    def sync() -> list[Any]:
        parts = [facts[start : start + MAX_FACTS] for start in range(0, count, MAX_FACTS)]
        sent = [post(alice, "/memories/bulk", memories=part, expect=200).json()["results"] for part in parts]
        return [one for part in sent for one in part]

    results = sync()
    assert {(one["status"], one["action"]) for one in results} == {(201, "created")}
    for one in results[:deleted]:
        delete(alice, one["id"])
    for one in results[:purged]:
        purge.purge_memory(
            [decisions.delete(alice.user_pk, MemoryRef(one["id"]), actor=ACTOR).tombstone_id], actor=ACTOR
        )
    for _ in range(3):
        again = sync()
        assert [one["status"] for one in again] == [409] * deleted + [200] * (count - deleted)
        assert {one.get("action") for one in again[deleted:]} == {"unchanged"}
    live = Memory.objects.filter(state="live").values_list("text", flat=True)
    assert sorted(live) == sorted(one["text"] for one in facts[deleted:])


def test_each_fact_of_a_bulk_request_has_its_own_result(alice: Person) -> None:
    facts = [{"text": "Tea"}, {"text": ""}, {"text": "x", "nonsense": 1}, {}, {"text": "tea."}, {"text": "Milk"}]
    results = post(alice, "/memories/bulk", memories=facts, expect=200).json()["results"]
    assert [one["status"] for one in results] == [201, 422, 422, 422, 200, 201]
    assert [one["errors"][0]["field"] for one in results[1:3]] == ["text", "nonsense"]
    assert results[4]["id"] == results[0]["id"]


@pytest.mark.parametrize("memories", [[], [{"text": "x"}] * 501, ["x"], {"text": "x"}, None])
def test_a_bulk_request_has_1_to_500_facts(alice: Person, memories: Any) -> None:
    assert (
        post(alice, "/memories/bulk", memories=memories, expect=422).json()["errors"][0]["field"].startswith("memories")
    )


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"text": ""}, "text"),
        ({"text": " \u200b "}, "text"),
        ({"text": "<relevant-memories>\n1. x\n</relevant-memories>"}, "text"),
        ({"text": "x" * 8001}, "text"),
        ({"category": "nonsense"}, "category"),
        ({"importance": 1.5}, "importance"),
        ({"tags": ["x"] * 33}, "tags"),
        ({"tags": [" "]}, "tags"),
        ({"tags": [1]}, "tags.0"),
        ({"metadata": []}, "metadata"),
        ({"metadata": {"k": "x" * 16_384}}, "metadata"),
        ({"metadata": {"a": {"b": {"c": {}}}}}, "metadata"),
        ({"metadata": {"": 1}}, "metadata"),
        ({"metadata": {"k": list(range(1001))}}, "metadata"),
        ({"external_id": " "}, "external_id"),
        ({"external_id": "x" * 256}, "external_id"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"expires_at": 5}, "expires_at"),
        ({"created_at": "yesterday"}, "created_at"),
        ({"created_at": "20260610"}, "created_at"),  # a date, and no Unix time of 1970
        ({"created_at": "1950-01-01T00:00:00Z"}, "created_at"),
        ({"session_id": ""}, "session_id"),
        ({"agent_id": "a b"}, "agent_id"),
    ],
)
def test_a_wrong_value_is_refused_by_its_field(alice: Person, body: dict[str, Any], field: str) -> None:
    answer = post(alice, expect=422, **{"text": "Tea", **body}).json()
    assert [one["field"] for one in answer["errors"]] == [field]
    assert not Memory.objects.exists()


def test_metadata_of_three_levels_and_16_kib_is_kept(alice: Person) -> None:
    metadata = {"a": {"b": {"c": 1}}, "k": "x" * 16_300}
    assert store(alice, "Tea", metadata=metadata, expect=201)["memory"]["metadata"] == metadata


def test_the_session_of_another_user_does_not_exist(alice: Person, bob: Person) -> None:
    post(alice, text="Tea", session_id=f"memory_edit:{bob.user_id}", expect=404)
    assert not Session.objects.exists()


def test_an_etag_guards_an_update(alice: Person) -> None:
    post(alice, text="A", external_id="1", headers={"If-Match": '"x"'}, expect=412)
    etag = post(alice, text="A", external_id="1", headers={"If-None-Match": "*"}, expect=201)["ETag"]
    post(alice, text="B", external_id="1", headers={"If-None-Match": "*"}, expect=412)
    changed = post(alice, text="B", external_id="1", headers={"If-Match": etag}, expect=200)
    assert changed["ETag"] != etag
    refused = post(alice, text="C", external_id="1", headers={"If-Match": etag}, expect=412)
    assert refused.json()["current"]["memory"]["text"] == "B"


def test_a_repeated_key_gives_the_same_memory_and_keeps_no_text(alice: Person) -> None:
    first = post(alice, text="The garden code", headers={"Idempotency-Key": "k"}, expect=201)
    again = post(alice, text="The garden code", headers={"Idempotency-Key": "k"}, expect=201)
    assert again["Idempotent-Replayed"] == "true"
    assert again.json() == first.json()
    assert Memory.objects.count() == 1
    assert "garden" not in str(list(IdempotencyKey.objects.values()))


def test_masked_values_are_stored_nowhere(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_REDACT = frozenset({"emails", "cards"})
    mail = "ann.secret@example.com"
    answer = store(
        alice, f"Write to {mail}", metadata={"to": mail, mail: 1}, tags=[mail], external_id=f"crm:{mail}", expect=201
    )
    assert answer["redacted"] == {"email": 4}
    assert mail not in str(answer)
    assert mail not in str(list(Memory.objects.values()) + [bytes(one.value) for one in Attribute.objects.all()])
    assert store(alice, "Other", external_id=f"crm:{mail}", expect=200)["action"] == "updated"


def test_recalled_memories_are_no_part_of_metadata(alice: Person) -> None:
    block = "<relevant-memories>\n1. old\n</relevant-memories>\nnew"
    assert store(alice, block, metadata={"k": block})["memory"]["metadata"] == {"k": "new"}
