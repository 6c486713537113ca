"""`/api/v1/memories`: bodies, responses, ETags and errors as specified."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from accounts.audit import Actor
from profiles import services
from profiles.models import ProfileMemory, ProfileRevision
from profiles.schemas import MODELS, Kind
from tests.conftest import Person
from tests.profiles.documents import FULL

BASE = "/api/v1/memories"
USER = f"{BASE}/user"
KINDS = pytest.mark.parametrize("kind", ["user", "work"])

pytestmark = pytest.mark.django_db


def send(person: Person, method: str, path: str, body: Any, **headers: str) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return person.client.generic(method, path, data, "application/json", headers=headers)


def put(person: Person, kind: Kind, content: Any, **headers: str) -> Any:
    return send(person, "PUT", f"{BASE}/{kind}", {"content": content}, **headers)


@KINDS
def test_a_new_user_has_the_default_document(alice: Person, kind: Kind) -> None:
    answer = alice.client.get(f"{BASE}/{kind}")
    assert (answer.status_code, answer.json()) == (200, MODELS[kind]().model_dump())


@KINDS
def test_a_complete_document_is_returned_as_written(alice: Person, bob: Person, kind: Kind) -> None:
    written = put(alice, kind, FULL[kind])
    assert (written.status_code, written.json()) == (200, FULL[kind])
    read = alice.client.get(f"{BASE}/{kind}")
    assert (read.json(), read.headers["ETag"]) == (FULL[kind], written.headers["ETag"])
    assert bob.client.get(f"{BASE}/{kind}").json() == MODELS[kind]().model_dump()


@pytest.mark.parametrize("path", [BASE, f"{BASE}/"])
def test_both_documents_can_be_read_together(alice: Person, path: str) -> None:
    put(alice, "work", FULL["work"])
    answer = alice.client.get(path)
    assert answer.json() == {"user_memory": MODELS["user"]().model_dump(), "work_memory": FULL["work"]}
    assert answer.headers["ETag"] == '"0-1"'


def test_patch_changes_only_the_given_fields(alice: Person) -> None:
    put(alice, "user", {"occupation": "architect", "people": [{"name": "Ana", "meta": {}}]})
    body = {"content": {"timezone": "UTC", "people": [{"name": "Bo"}]}, "merge_lists": True, "agent_id": "main"}
    answer = send(alice, "PATCH", USER, body).json()
    assert (answer["occupation"], answer["timezone"]) == ("architect", "UTC")
    assert [(person["name"], person["meta"]["source"]) for person in answer["people"]] == [
        ("Ana", None),
        ("Bo", "agent_inferred"),
    ]


def test_reads_take_two_statements(alice: Person, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    put(alice, "user", FULL["user"])
    alice.client.get(USER)
    for path in (USER, f"{BASE}/", f"{BASE}/user/history", f"{BASE}/user/history/1", f"{BASE}/prompt?agent=router"):
        with django_assert_num_queries(2):
            assert alice.client.get(path).status_code == 200
    with django_assert_num_queries(1):
        assert alice.client.get(f"{BASE}/schema/user").status_code == 200


def test_a_disabled_document_is_null_and_cannot_be_written(alice: Person) -> None:
    put(alice, "user", FULL["user"])
    services.set_disabled(alice.user_pk, "user", True, actor=Actor.operator("olga"))
    answer = alice.client.get(USER)
    assert (answer.status_code, answer.content, answer.headers["Content-Type"]) == (200, b"null", "application/json")
    assert alice.client.get(f"{BASE}/").json()["user_memory"] is None
    assert alice.client.get(f"{BASE}/user/history/1").json()["content"] is None
    assert alice.client.get(f"{BASE}/prompt", {"agent": "router"}).json()["prompt"] == ""
    assert put(alice, "user", {}).status_code == 409
    assert send(alice, "PATCH", USER, {"content": {}}).status_code == 409
    assert send(alice, "POST", f"{BASE}/user/restore/1", {}).status_code == 409


def test_only_a_stale_etag_is_412(alice: Person) -> None:
    first_etag = alice.client.get(USER).headers["ETag"]
    current_etag = put(alice, "user", {"occupation": "architect"}, **{"If-Match": first_etag}).headers["ETag"]
    stale = {"If-Match": first_etag}
    for method, path, body in (
        ("PUT", USER, {"content": {}}),
        ("PATCH", USER, {"content": {}}),
        ("POST", f"{BASE}/user/restore/1", {}),
        ("GET", USER, {}),
        ("GET", f"{BASE}/", {}),
    ):
        answer = send(alice, method, path, body, **stale)
        assert (answer.status_code, answer.json()["code"]) == (412, "precondition_failed")
    for etags in (current_etag, f'"other", {current_etag}', "*"):
        assert send(alice, "PATCH", USER, {"content": {}}, **{"If-Match": etags}).status_code == 200
    assert send(alice, "PATCH", USER, {"content": {}}, **{"If-Match": f"W/{current_etag}"}).status_code == 412


def test_what_the_client_has_already_is_304_and_never_overwritten(alice: Person) -> None:
    put(alice, "user", {"occupation": "architect"})
    for path in (USER, f"{BASE}/"):
        etag = alice.client.get(path).headers["ETag"]
        for etags in (etag, f"W/{etag}", f'"other", {etag}', "*"):
            answer = send(alice, "GET", path, {}, **{"If-None-Match": etags})
            assert (answer.status_code, answer.content, answer.headers["ETag"]) == (304, b"", etag)
        assert send(alice, "GET", path, {}, **{"If-None-Match": '"other"'}).status_code == 200
    etag = alice.client.get(USER).headers["ETag"]
    for method, path, body in (
        ("PUT", USER, {"content": {}}),
        ("PATCH", USER, {"content": {}}),
        ("POST", f"{BASE}/user/restore/1", {}),
    ):
        for etags in ("*", etag, f"W/{etag}"):
            assert send(alice, method, path, body, **{"If-None-Match": etags}).status_code == 412
    assert alice.client.get(USER).json()["occupation"] == "architect"
    assert send(alice, "PATCH", USER, {"content": {}}, **{"If-None-Match": '"other"'}).status_code == 200


def test_the_history_names_the_agent_that_wrote(alice: Person) -> None:
    put(alice, "user", {"occupation": "architect"})
    send(alice, "PATCH", USER, {"content": {"timezone": "UTC"}, "agent_id": "helper"})
    changes = alice.client.get(f"{BASE}/user/history").json()["changes"]
    assert [(change["by"], change["agent_id"]) for change in changes] == [("key", "helper"), ("key", None)]
    assert alice.client.get(f"{BASE}/user/history/2").json()["agent_id"] == "helper"


def test_the_history_is_read_page_by_page_and_a_version_restored(alice: Person, bob: Person) -> None:
    for occupation in ("architect", "baker", "carpenter"):
        put(alice, "user", {"occupation": occupation})
    history = f"{BASE}/user/history"
    first = alice.client.get(history, {"limit": 2}).json()["changes"]
    assert [(change["version"], change["action"], change["by"]) for change in first] == [
        (3, "write", "key"),
        (2, "write", "key"),
    ]
    rest = alice.client.get(history, {"before": 2}).json()["changes"]
    assert [change["version"] for change in rest] == [1]
    version = alice.client.get(f"{history}/1").json()
    assert (version["version"], version["content"]["occupation"]) == (1, "architect")
    restored = send(alice, "POST", f"{BASE}/user/restore/1", {})
    assert (restored.json()["occupation"], restored.headers["ETag"]) == ("architect", '"user-4"')
    assert bob.client.get(history).json() == {"changes": []}
    for path in (f"{history}/1", f"{BASE}/user/history/{10**30}", f"{BASE}/play/history/1"):
        assert bob.client.get(path).status_code == 404
    assert send(bob, "POST", f"{BASE}/user/restore/1", {}).status_code == 404


@KINDS
def test_the_json_schema_is_returned(alice: Person, kind: Kind) -> None:
    schema = alice.client.get(f"{BASE}/schema/{kind}").json()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["properties"].keys() == FULL[kind].keys()
    assert alice.client.get(f"{BASE}/schema/play").status_code == 404


def test_each_agent_gets_only_its_document(alice: Person) -> None:
    put(alice, "user", FULL["user"])
    put(alice, "work", FULL["work"])
    router = alice.client.get(f"{BASE}/prompt", {"agent": "router"}).json()
    worker = alice.client.get(f"{BASE}/prompt", {"agent": "worker", "language": "en", "max_tokens": 120}).json()
    assert router["prompt"].startswith("<!-- USER_MEMORY_START -->\n")
    assert router["language"] == "zh"
    assert worker["prompt"].endswith("\n<!-- WORK_MEMORY_END -->")
    assert "Metric units only." in worker["prompt"]
    assert worker["estimated_tokens"] <= 120
    assert alice.client.get(f"{BASE}/prompt", {"agent": "driver"}).status_code == 422
    assert alice.client.get(f"{BASE}/prompt").status_code == 422


@pytest.mark.parametrize(
    ("method", "body", "status", "fields"),
    [
        ("PUT", {}, 422, ["content"]),
        ("PUT", {"content": None}, 422, ["content"]),
        ("PUT", {"content": {"shoe_size": 43}}, 422, ["content.shoe_size"]),
        ("PUT", {"content": {}, "merge_lists": True}, 422, ["merge_lists"]),
        ("PUT", {"content": {"people": [{"name": "Ana", "$remove": True}]}}, 422, ["content.people.0.$remove"]),
        ("PATCH", {"content": {"shoe_size": None}}, 422, ["content.shoe_size"]),
        ("PATCH", {"content": {"people": [{"name": "Ana", "$remove": True}]}}, 422, ["content.people.0.$remove"]),
        ("PATCH", {"content": {"people": [{"name": None}]}, "merge_lists": True}, 422, ["content.people.0.name"]),
        ("PATCH", {"content": {"places": [{"name": "P", "preference": "x"}]}}, 422, ["content.places.0.preference"]),
        ("PATCH", {"content": []}, 422, ["content"]),
        ("PATCH", [], 400, []),
        ("PATCH", b"{", 400, []),
    ],
)
def test_an_invalid_body_is_refused_by_field(
    alice: Person, method: str, body: Any, status: int, fields: list[str]
) -> None:
    answer = send(alice, method, USER, body)
    assert (answer.status_code, [error["field"] for error in answer.json()["errors"]]) == (status, fields)
    assert alice.client.get(USER).headers["ETag"] == '"user-0"'


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize(
    ("content", "status"),
    [
        ({"interests": ["x" * 1000] * 1000}, 413),
        ({"people": [{"name": "Ana", "notes": "字" * 90_000}] * 3}, 413),
        ({"people": [{"name": "Ana", "notes": "x" * 100_001}]}, 422),
        ({"interests": ["x"] * 501}, 422),
        ({"people": [{"name": str(number)} for number in range(20_000)]}, 422),
    ],
)
def test_too_large_documents_are_refused(alice: Person, method: str, content: Any, status: int) -> None:
    body = json.dumps({"content": content}, ensure_ascii=False).encode()
    assert send(alice, method, USER, body).status_code == status


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize("depth", [30, 60, 70, 100_000])
@pytest.mark.parametrize("bomb", [('{"preferences":', "}"), ('{"people":[', "]}"), ("[", "]")])
def test_too_deep_nesting_is_refused(alice: Person, method: str, depth: int, bomb: tuple[str, str]) -> None:
    opening, closing = bomb
    body = f'{{"content": {opening * depth}{{}}{closing * depth}}}'.encode()
    assert send(alice, method, USER, body).status_code in {413, 422}


def test_patches_cannot_exceed_the_size_limit(alice: Person) -> None:
    for number in range(5):
        person = {"name": str(number), "notes": "x" * 100_000}
        answer = send(alice, "PATCH", USER, {"content": {"people": [person]}, "merge_lists": True})
        assert answer.status_code == 200
    person["name"] = "one more"
    answer = send(alice, "PATCH", USER, {"content": {"people": [person]}, "merge_lists": True})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert len(alice.client.get(USER).json()["people"]) == 5


def test_it_needs_a_key(client: Client) -> None:
    assert client.get(USER).status_code == 401


def test_a_stored_document_with_wrong_fields_is_read_without_them(alice: Person) -> None:
    """An import, or another program, may have stored them."""
    put(alice, "user", {"occupation": "potter", "interests": ["tea"]})
    bad = {"occupation": "potter", "interests": 5, "people": {}, "unknown": 1, "timezone": "nowhere"}
    ProfileMemory.objects.update(content=bad)
    ProfileRevision.objects.update(content=bad)
    for path in ("/api/v1/memories/", "/api/v1/memories/user", "/api/v1/memories/user/history/1"):
        answer = alice.client.get(path)
        assert answer.status_code == 200, answer.content
        assert "potter" in answer.content.decode()
    assert alice.client.get("/api/v1/memories/prompt", {"agent": "coding"}).status_code < 500
    assert send(alice, "PATCH", f"{BASE}/user", {"content": {"interests": ["cake"]}}).json()["interests"] == ["cake"]
