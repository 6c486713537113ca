"""GET /resources."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils.dateparse import parse_datetime
from pytest_django import DjangoAssertNumQueries

from resources.models import Resource
from tests.conftest import Person
from tests.resources.forms import stored_resource

pytestmark = pytest.mark.django_db

DOCUMENTED = ["resource_id", "user_id", "filename", "content_type", "mime_type", "uri", "session_id", "status"]
DOCUMENTED += ["title", "description", "created_at", "updated_at"]


def test_without_uploads_the_list_is_empty(alice: Person) -> None:
    assert alice.client.get("/resources").json() == {"resources": []}


def test_it_returns_the_documented_fields(alice: Person) -> None:
    resource = stored_resource(alice, title="合同文件", status="extracted")
    (item,) = Client().get("/resources", alice.credentials).json()["resources"]
    others = ["deleted_at", "error_message", "size_bytes", "sha256", "app_id", "project_id", "remote", "reading"]
    assert list(item) == [*DOCUMENTED, *others]
    assert item["remote"] == {"state": "off", "since": None, "detail": None}
    assert item["uri"] == f"resource://alice/{resource.resource_id}"
    assert item["session_id"] == f"resource:alice:{resource.resource_id}"
    assert (item["user_id"], item["filename"], item["status"]) == ("alice", "notes.txt", "extracted")
    assert (item["content_type"], item["mime_type"]) == ("text", "text/plain")
    assert (item["title"], item["description"], item["error_message"]) == ("合同文件", None, None)
    assert item["created_at"].endswith("+00:00")
    assert parse_datetime(item["created_at"]) == resource.created_at.replace(microsecond=0)


def test_a_failed_resource_has_an_error_message(alice: Person) -> None:
    stored_resource(alice, status="failed", error_message="The PDF is encrypted.")
    (item,) = alice.client.get("/resources").json()["resources"]
    assert (item["status"], item["error_message"]) == ("failed", "The PDF is encrypted.")


def test_a_pending_resource_is_listed_as_ingesting(alice: Person) -> None:
    stored_resource(alice, status="pending")
    assert alice.client.get("/resources").json()["resources"][0]["status"] == "ingesting"


def test_the_list_has_all_scopes_newest_first(alice: Person) -> None:
    created = [stored_resource(alice, app_id=f"app{number}") for number in range(3)]
    assert listed(alice) == [resource.resource_id for resource in reversed(created)]


def test_the_list_can_be_restricted_to_a_scope(alice: Person) -> None:
    wanted = stored_resource(alice, app_id="shop", project_id="p1")
    stored_resource(alice, app_id="shop")
    stored_resource(alice)
    assert listed(alice, app_id="shop", project_id="p1") == [wanted.resource_id]


def test_resources_of_others_and_deleted_ones_are_not_listed(alice: Person, bob: Person) -> None:
    stored_resource(bob)
    stored_resource(alice, state="trashed")
    stored_resource(alice, state="purged")
    assert listed(alice) == []


def test_pages_list_every_resource_once(alice: Person) -> None:
    created = [stored_resource(alice).resource_id for _ in range(5)]
    Resource.objects.update(created_at="2026-06-10T10:00:00.123456+00:00")  # only the ids differ
    seen: list[str] = []
    cursor: dict[str, str] = {}
    for size in (2, 2, 1):
        page = alice.client.get("/resources", {"limit": "2", **cursor}).json()
        assert len(page["resources"]) == size
        seen += [item["resource_id"] for item in page["resources"]]
        cursor = {"cursor": page["next_cursor"]}
    assert cursor == {"cursor": None}
    assert seen == sorted(created, reverse=True)


def test_without_a_limit_there_is_no_cursor(alice: Person) -> None:
    stored_resource(alice)
    assert list(alice.client.get("/resources").json()) == ["resources"]


def test_a_cursor_without_a_limit_is_refused(alice: Person) -> None:
    problem = alice.client.get("/resources", {"cursor": "MTox"}).json()
    assert problem["errors"] == [{"field": "limit", "message": "is required with cursor"}]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("limit", "0"),
        ("limit", "1001"),
        ("limit", "x"),
        ("cursor", "x"),
        ("cursor", "é"),
        ("cursor", "MToA"),
        ("cursor", "OTk5OTk5OTk5OTk5OTk5OTk5OTk6cl8wMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMA=="),
        ("cursor", "OTk5OTk5OTk5OTk5OTk5OTk5OTpy"),
        ("app_id", "a/b"),
        ("color", "red"),
    ],
)
def test_an_invalid_parameter_is_named(alice: Person, field: str, value: str) -> None:
    response = alice.client.get("/resources", {"limit": "5", field: value})
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == field


def test_it_needs_a_key(alice: Person) -> None:
    assert Client().get("/resources").status_code == 401


def test_it_takes_two_statements_for_any_number_of_resources(
    alice: Person, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(7):
        stored_resource(alice)
    alice.client.get("/resources")  # records the use of the key, once a minute
    with django_assert_num_queries(2):
        assert len(listed(alice)) == 7
    with django_assert_num_queries(2):
        alice.client.get("/resources", {"limit": "3"})


def listed(person: Person, **query: str) -> list[str]:
    return [item["resource_id"] for item in person.client.get("/resources", query).json()["resources"]]
