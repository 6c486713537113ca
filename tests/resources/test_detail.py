"""GET /resources/{id}."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from tests.conftest import Person
from tests.resources.forms import stored_resource

pytestmark = pytest.mark.django_db


def test_the_owner_gets_the_resource_in_a_list(alice: Person) -> None:
    resource = stored_resource(alice)
    detail = alice.client.get(f"/resources/{resource.resource_id}").json()
    assert detail == alice.client.get("/resources").json()
    assert detail["resources"][0]["resource_id"] == resource.resource_id


def test_another_user_gets_an_empty_list(alice: Person, charlie: Person) -> None:
    resource = stored_resource(alice)
    answer = charlie.client.get(f"/resources/{resource.resource_id}")
    assert (answer.status_code, answer.json()) == (200, {"resources": []})


@pytest.mark.parametrize("resource_id", ["r_unknown", "%00", "合同", "r" * 500])
def test_an_unknown_id_gets_an_empty_list(alice: Person, resource_id: str) -> None:
    answer = alice.client.get(f"/resources/{resource_id}")
    assert (answer.status_code, answer.json()) == (200, {"resources": []})


def test_a_deleted_resource_gives_an_empty_list(alice: Person) -> None:
    resource = stored_resource(alice, state="trashed")
    assert alice.client.get(f"/resources/{resource.resource_id}").json() == {"resources": []}


def test_it_needs_a_key(alice: Person) -> None:
    assert Client().get(f"/resources/{stored_resource(alice).resource_id}").status_code == 401


def test_it_takes_two_statements(alice: Person, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    resource = stored_resource(alice)
    alice.client.get("/resources")
    with django_assert_num_queries(2):
        alice.client.get(f"/resources/{resource.resource_id}")
