"""DELETE /resources/{id} moves a resource to the trash, and POST /resources/{id}/restore brings it back."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.audit import Actor
from accounts.models import AuditEvent, Principal
from core.errors import GatewayError
from memories.models import Tombstone
from memories.services.scoped_hits import SearchCommand
from memories.services.search import search as search_memories
from resources.models import Attachment, Resource
from resources.services import delete_as, ingest, purge, restore_as
from store.models import Memory, Session
from tests.conftest import Person
from tests.memories.calls import call, id_of, search, texts
from tests.memories.calls import upload as upload_contract
from tests.memories.engines import ScriptedEngine, hit
from tests.resources.forms import files_below, stored_resource, upload
from tests.server import wait_until

SCOPES = ["resources", "all_user_memory"]


def principal(person: Person) -> Principal:
    return Principal(person.user_pk, person.user_id, person.user_pk)


def delete(person: Person, resource_id: str) -> Resource:
    return delete_as(person.user_pk, person.user_id, resource_id, actor=Actor.command("tests"))


def restore(person: Person, resource_id: str) -> Resource:
    return restore_as(person.user_pk, person.user_id, resource_id, actor=Actor.command("tests"))


def in_trash(person: Person) -> list[str]:
    return [item["resource_id"] for item in call(person, "get", "/resources", deleted="true")["resources"]]


@pytest.mark.django_db(transaction=True)
def test_it_returns_the_documented_fields_and_keeps_the_file(alice: Person, storage: Path) -> None:
    uploaded = upload(alice).json()
    response = Client().delete(f"/resources/{uploaded['resource_id']}", query_params=alice.credentials)
    assert response.status_code == 200
    assert response.json() == {**uploaded, "status": "deleted"}
    assert list(response.json()) == list(uploaded)
    assert len(files_below(storage)) == Attachment.objects.count() == 1
    resource = Resource.objects.get()
    assert (resource.status, resource.state, resource.retry_at) == ("extracted", "trashed", None)
    assert alice.client.get("/resources").json() == {"resources": []}


@pytest.mark.django_db(transaction=True)
def test_a_deleted_resource_is_not_served(alice: Person, storage: Path) -> None:
    resource = upload_contract(alice)
    memory_id = search(alice, scope=SCOPES)["results"][0]["id"]
    path = f"/resources/{resource['resource_id']}"
    call(alice, "delete", path)
    assert call(alice, "get", path) == {"resources": []}
    call(alice, "get", f"{path}/content", status=404)
    assert call(alice, "get", "/memories")["memories"] == []
    assert call(alice, "get", "/sessions")["sessions"] == []
    assert search(alice, scope=SCOPES)["results"] == []
    call(alice, "patch", f"/memories/{memory_id}", override_text="other", status=409)
    assert not Tombstone.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_restore_brings_it_back_as_it_was(alice: Person, storage: Path) -> None:
    resource = upload_contract(alice, title="Contract")
    path = f"/resources/{resource['resource_id']}"
    listed, found = call(alice, "get", "/resources"), search(alice, scope=SCOPES, context=1)["results"]
    memories, content = call(alice, "get", "/memories"), b"".join(alice.client.get(f"{path}/content"))
    call(alice, "delete", path)
    [trashed] = call(alice, "get", "/resources", deleted="true")["resources"]
    assert (trashed["status"], trashed["deleted_at"] is not None) == ("deleted", True)
    assert call(alice, "post", f"{path}/restore") == resource
    restored = call(alice, "get", "/resources")
    restored["resources"][0]["updated_at"] = listed["resources"][0]["updated_at"]
    assert restored == listed
    assert search(alice, scope=SCOPES, context=1)["results"] == found
    assert found[0]["attachments"]
    assert call(alice, "get", "/memories") == memories
    assert b"".join(alice.client.get(f"{path}/content")) == content
    assert in_trash(alice) == []


@pytest.mark.django_db
def test_deletions_and_restores_are_audited(alice: Person) -> None:
    resource = stored_resource(alice)
    call(alice, "delete", f"/resources/{resource.resource_id}")
    call(alice, "post", f"/resources/{resource.resource_id}/restore")
    events = AuditEvent.objects.filter(subject_id=resource.resource_id, user_id="alice").order_by("pk")
    assert list(events.values_list("action", flat=True)) == ["resource.delete", "resource.restore"]


@pytest.mark.django_db
def test_resources_of_others_unknown_and_deleted_ones_are_404(alice: Person, bob: Person, storage: Path) -> None:
    resource = stored_resource(alice)
    address = f"/resources/{resource.resource_id}"
    assert bob.client.delete(address).status_code == 404
    assert alice.client.delete("/resources/r_unknown").status_code == 404
    assert alice.client.delete(address).status_code == 200
    assert alice.client.delete(address).status_code == 404
    assert len(files_below(storage)) == 1


@pytest.mark.django_db
def test_only_the_user_restores_and_only_once(alice: Person, bob: Person) -> None:
    resource = stored_resource(alice)
    path = f"/resources/{resource.resource_id}/restore"
    call(alice, "post", path, status=404)
    call(alice, "delete", f"/resources/{resource.resource_id}")
    call(bob, "post", path, status=404)
    assert in_trash(bob) == []
    assert Client().post(path, content_type="application/json").status_code == 401
    for name in ("r_unknown", "a%00b", "r_" + "0" * 32):
        call(alice, "post", f"/resources/{name}/restore", status=404)
    call(alice, "post", path)
    call(alice, "post", path, status=404)


@pytest.mark.django_db
def test_it_needs_a_key(alice: Person) -> None:
    assert Client().delete(f"/resources/{stored_resource(alice).resource_id}").status_code == 401
    assert Resource.objects.get().status == "pending"


@pytest.mark.django_db
def test_the_trash_has_pages(alice: Person) -> None:
    for _ in range(3):
        delete(alice, stored_resource(alice).resource_id)
    first = call(alice, "get", "/resources", deleted="true", limit=2)
    second = call(alice, "get", "/resources", deleted="true", limit=2, cursor=first["next_cursor"])
    assert len({item["resource_id"] for item in first["resources"] + second["resources"]}) == 3
    assert second["next_cursor"] is None


@pytest.mark.django_db(transaction=True)
def test_a_file_uploaded_meanwhile_prevents_the_restore(alice: Person, storage: Path) -> None:
    first = upload_contract(alice)["resource_id"]
    call(alice, "delete", f"/resources/{first}")
    second = upload_contract(alice)["resource_id"]
    refused = call(alice, "post", f"/resources/{first}/restore", status=409)
    assert second in refused["detail"]
    assert in_trash(alice) == [first]
    assert {item["resource_id"] for item in search(alice, scope=SCOPES)["results"]} == {second}
    call(alice, "delete", f"/resources/{second}")
    call(alice, "post", f"/resources/{first}/restore")
    assert in_trash(alice) == [second]
    assert {item["resource_id"] for item in search(alice, scope=SCOPES)["results"]} == {first}


@pytest.mark.django_db(transaction=True)
def test_a_registration_meanwhile_prevents_the_restore(alice: Person, storage: Path) -> None:
    body = {"filename": "contract.txt", "source_uri": "minio://bucket/contract.txt", "sha256": "0" * 64}
    first, second = [call(alice, "post", "/resources/external", **body)["resource_id"], ""]
    call(alice, "delete", f"/resources/{first}")
    second = call(alice, "post", "/resources/external", **body)["resource_id"]
    assert second in call(alice, "post", f"/resources/{first}/restore", status=409)["detail"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("status", ["pending", "ingesting", "extracted", "empty", "failed"])
def test_a_restore_returns_the_status(alice: Person, storage: Path, status: str) -> None:
    resource = stored_resource(alice, attempts=3, error_message="why" if status == "failed" else "")
    Resource.objects.update(status=status)
    delete(alice, resource.resource_id)
    restored = restore(alice, resource.resource_id)
    assert (restored.status, restored.attempts) == ("pending" if status == "ingesting" else status, 3)
    is_ingested = status in {"extracted", "empty"}
    assert ingest(resource.resource_id).status == (status if is_ingested else "extracted")


@pytest.mark.django_db(transaction=True)
def test_files_in_the_trash_count_toward_the_quota(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_QUOTA_FILES = 1
    resource = stored_resource(alice)
    delete(alice, resource.resource_id)
    refused = upload(alice, b"Another file.")
    assert refused.status_code == 507
    assert "until they are purged" in refused.json()["detail"]
    purge(resource.resource_id, actor=Actor.command("tests"))
    assert upload(alice, b"Another file.").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_memories_deleted_one_by_one_stay_deleted(alice: Person, storage: Path) -> None:
    resource = upload_contract(alice, text="One walnut.")
    memory_id = id_of("One walnut.")
    call(alice, "delete", f"/memories/{memory_id}")
    call(alice, "delete", f"/resources/{resource['resource_id']}")
    call(alice, "post", f"/resources/{resource['resource_id']}/restore")
    assert search(alice, "walnut", scope=SCOPES)["results"] == []
    call(alice, "post", f"/memories/{memory_id}/restore")
    assert texts(search(alice, "walnut", scope=SCOPES)) == ["One walnut."]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("first", ["session", "resource"])
def test_a_session_deleted_too_stays_deleted(alice: Person, storage: Path, first: str) -> None:
    resource = upload_contract(alice)
    paths = {"session": f"/sessions/{resource['session_id']}", "resource": f"/resources/{resource['resource_id']}"}
    call(alice, "delete", paths.pop(first))
    call(alice, "delete", *paths.values())
    call(alice, "post", f"/resources/{resource['resource_id']}/restore")
    assert search(alice, scope=SCOPES)["results"] == []
    call(alice, "post", f"/sessions/{resource['session_id']}/restore")
    assert search(alice, scope=SCOPES)["results"]


@pytest.mark.django_db
def test_a_search_reads_the_state_of_the_resource(alice: Person, bob: Person) -> None:
    """An engine may still return memories of a deleted resource: EverOS deletes nothing."""
    kept, gone = stored_resource(alice), stored_resource(alice)
    delete(alice, gone.resource_id)
    assert not Session.objects.filter(state="live").exists()
    engine = ScriptedEngine([hit("m1", session_id=kept.session_id), hit("m2", session_id=gone.session_id)])
    command = SearchCommand(query="report", scopes=frozenset({"all_user_memory"}))
    with CaptureQueriesContext(connection) as statements:
        answer = search_memories(alice.owner, command, engine=engine)
    assert [item.hit.memory_id for item in answer.results] == ["m1"]
    assert sum("memories_tombstone" in statement["sql"] for statement in statements) == 1
    assert answer.scopes["all_user_memory"].hidden == 1


@pytest.mark.django_db(transaction=True)
def test_deletions_restores_and_ingestions_at_once(alice: Person, storage: Path) -> None:
    """Whatever comes first, the memories are found if and only if the resource is not in the trash."""
    resource_id = stored_resource(alice, "The walnut report. ").resource_id
    stop = threading.Event()
    done = [0, 0, 0]

    def repeat(place: int, change: Any) -> None:
        try:
            while not stop.is_set():
                try:
                    change(alice, resource_id)
                    done[place] += 1
                except GatewayError:  # another thread was first
                    stop.wait(0.01)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(3) as pool:
        changes = enumerate((delete, restore, lambda _, name: ingest(name)))
        running = [pool.submit(repeat, place, change) for place, change in changes]
        try:
            wait_until(lambda: min(done) > 3)
        finally:
            stop.set()
        for future in running:
            future.result(30)
    for _ in range(2):
        ingest(resource_id)
        is_deleted = Resource.objects.get().state == "trashed"
        assert bool(search(alice, "walnut", scope=["all_user_memory"])["results"]) is not is_deleted
        assert bool(call(alice, "get", "/memories")["memories"]) is not is_deleted
        (restore if is_deleted else delete)(alice, resource_id)
    assert Memory.objects.count() == 1
