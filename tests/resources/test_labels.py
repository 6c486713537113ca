"""Tags and metadata of files: given, returned, changed, found by, exported, and never sent to the remote."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from django.core.exceptions import ValidationError

from accounts.audit import Actor
from core.errors import Conflict
from core.persistence.files import stored_files
from remote.client.content import wire_messages
from resources import services
from resources.models import Resource
from resources.services.ingestion import message_of
from store import attributes
from store.models import Attribute, Memory
from tests.conftest import Person
from tests.resources.forms import stored_resource, upload

pytestmark = pytest.mark.django_db(transaction=True)

LABELS: dict[str, Any] = {"tags": ["contract", "signed"], "metadata": {"year": 2026, "client": {"name": "Acme"}}}
AS_FORM = {name: json.dumps(value) for name, value in LABELS.items()}
PAGES = b"\n\n".join(b"Walnut clause %d. " % number * 60 for number in range(4))


def found(person: Person, **filters: Any) -> list[dict[str, Any]]:
    body = {"query": "walnut clause", "scope": ["resources"], "top_k": 50, "fold": False, "filters": filters}
    response = person.client.post("/memories/search", body, "application/json")
    assert response.status_code == 200, response.content
    return response.json()["results"]


def listed(person: Person, **filters: Any) -> list[dict[str, Any]]:
    response = person.client.get("/memories", {"limit": "50", "filters": json.dumps(filters)})
    assert response.status_code == 200, response.content
    return response.json()["memories"]


def change(person: Person, resource_id: str, status: int = 200, **labels: Any) -> Any:
    response = person.client.patch(f"/resources/{resource_id}", labels, "application/json")
    assert response.status_code == status, response.content
    return response.json()


def test_an_uploaded_file_is_found_by_them_in_every_interface(alice: Person, bob: Person) -> None:
    answer = upload(alice, PAGES, **AS_FORM).json()
    upload(alice, b"Walnut clause of another file.", "other.txt")
    upload(bob, PAGES, **AS_FORM)
    [item] = alice.client.get(f"/resources/{answer['resource_id']}").json()["resources"]
    shown = [{name: one[name] for name in LABELS} for one in (answer, item)]
    assert shown == [LABELS, LABELS]
    passages = Memory.objects.filter(user=alice.user_pk, session__session_id=answer["session_id"]).count()
    assert passages > 3
    for filters in ({"tags": "signed"}, {"metadata.client.name": "Acme"}, {"metadata.year": {"gte": 2026}}):
        for results in (found(alice, **filters), listed(alice, **filters)):
            assert {one["session_id"] for one in results} == {answer["session_id"]}
            assert [(one["tags"], one["metadata"]) for one in results] == [tuple(LABELS.values())] * len(results)
        assert len(listed(alice, **filters)) == passages
        deletion = {"filters": filters, "dry_run": True}
        assert alice.client.post("/memories/delete", deletion, "application/json").json()["count"] == passages
    assert {one["session_id"] for one in found(alice, tags={"none": ["signed"]})}.isdisjoint({answer["session_id"]})
    export = b"".join(alice.client.get("/users/me/export").streaming_content)
    archive = alice_archive(export)
    [file] = [one for one in map(json.loads, archive["files.jsonl"].splitlines()) if one.get("tags")]
    assert {name: file[name] for name in LABELS} == LABELS


def alice_archive(content: bytes) -> dict[str, str]:
    with ZipFile(BytesIO(content)) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist() if name.endswith(".jsonl")}


def test_a_change_reaches_every_passage(alice: Person, bob: Person) -> None:
    answer = upload(alice, PAGES, **AS_FORM).json()
    resource_id, session_id = answer["resource_id"], answer["session_id"]
    number = len(listed(alice, session_id=session_id))
    changed = change(alice, resource_id, tags=["paid"])
    assert (changed["tags"], changed["metadata"]) == (["paid"], LABELS["metadata"])
    assert (len(listed(alice, tags="paid")), listed(alice, tags="signed")) == (number, [])
    assert "tags" not in change(alice, resource_id, tags=None, metadata={"year": 2027})
    assert len(listed(alice, **{"metadata.year": 2027})) == number
    assert not Attribute.objects.filter(name="tags").exists()
    assert list(attributes.differences([alice.owner])) == []
    change(alice, resource_id, metadata=None)
    assert (Resource.objects.get().labels, Attribute.objects.exists()) == (None, False)
    change(bob, resource_id, 404, tags=["mine"])
    assert change(alice, resource_id, 422)["errors"]
    assert change(alice, resource_id, 422, tags=[""])["errors"][0]["field"].startswith("tags")


def test_a_change_needs_the_version_that_it_names(alice: Person) -> None:
    resource_id = upload(alice).json()["resource_id"]
    path = f"/resources/{resource_id}"
    etag = alice.client.get(path).headers["ETag"]
    again = alice.client.patch(path, {"tags": ["a"]}, "application/json", headers={"If-Match": etag})
    assert (again.status_code, again.headers["ETag"]) == (200, alice.client.get(path).headers["ETag"])
    refused = alice.client.patch(path, {"tags": ["b"]}, "application/json", headers={"If-Match": etag})
    assert refused.status_code == 412


def test_a_file_that_is_being_read_is_not_changed(alice: Person) -> None:
    resource = stored_resource(alice)
    with pytest.raises(Conflict, match="being read"):
        services.set_labels(alice.user_pk, alice.user_id, resource.pk, {"tags": ["a"]}, actor=Actor.command("tests"))


@pytest.mark.parametrize(
    ("field", "value"),
    [("tags", "contract"), ("tags", '["a", 1]'), ("metadata", '{"a": {"b": {"c": {"d": 1}}}}'), ("metadata", "[]")],
)
def test_a_form_with_others_is_refused(alice: Person, field: str, value: str) -> None:
    response = upload(alice, **{field: value})
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"].startswith(field)
    assert not Resource.objects.exists()


def test_values_to_mask_are_masked(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_REDACT = frozenset({"emails"})
    upload(alice, tags='["ann@example.com"]', metadata='{"by": "ann@example.com", "ann@example.com": 1}')
    assert "ann@" not in json.dumps(Resource.objects.get().labels)


def test_a_purge_removes_them(alice: Person) -> None:
    resource_id = upload(alice, **AS_FORM).json()["resource_id"]
    alice.client.delete(f"/resources/{resource_id}")
    services.purge(resource_id, actor=Actor.command("tests"))
    assert Resource.objects.get().labels is None
    assert not Attribute.objects.exists()


@pytest.mark.parametrize("labels", [{"other": 1}, {"tags": "a"}, {"tags": [""]}, {"metadata": {"": 1}}, {"tags": []}])
def test_a_row_with_others_is_not_stored(alice: Person, labels: Any) -> None:
    resource = stored_resource(alice)
    resource.labels = labels
    with pytest.raises(ValidationError):
        resource.full_clean()


def test_no_remote_gets_them(alice: Person) -> None:
    message = message_of(stored_resource(alice, labels=LABELS))
    assert (list(message.tags), message.metadata) == tuple(LABELS.values())
    item = replace(message.content[0], file=Path(str(stored_files().path(str(message.content[0].file)))))
    [sent] = wire_messages(replace(message, content=(item,)), "alice", 1)
    assert sent.keys() == {"sender_id", "role", "timestamp", "content"}
    assert not any(word in str(sent) for word in ("contract", "signed", "Acme"))
