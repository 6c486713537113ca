"""The notice of a deletion undoes this deletion only: what the user deleted before or since stays deleted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from store.models import Memory, Session
from tests.conftest import Person
from tests.console.people import undo_address
from tests.memories.calls import call, id_of, say, search, upload

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "the walnut cake is ready"
Delete = Callable[[], object]


@pytest.fixture(params=["memory", "session", "resource"])
def deletions(request: pytest.FixtureRequest, alice: Person, admin_client: Client, storage: Path) -> list[Delete]:
    """Return the deletion of an item by the operator, and by the user."""
    if request.param == "resource":
        resource_id = upload(alice, text=TEXT)["resource_id"]
        operators, users = reverse("console:resource-delete", args=[resource_id]), f"/resources/{resource_id}"
    else:
        say(alice, "chat:c1", TEXT)
        operators, users = reverse("console:memory-delete", args=[Memory.objects.get().pk]), f"/memories/{id_of(TEXT)}"
    if request.param == "session":
        operators, users = reverse("console:user-session", args=[alice.user_pk]), "/sessions/chat:c1"
    row = Session.objects.get().pk
    return [lambda: admin_client.post(operators, {"session": row}), lambda: alice.client.delete(users)]


def is_found(person: Person) -> bool:
    return bool(search(person, "walnut", scope=["all_user_memory"])["results"])


def notice(client: Client) -> str:
    page = client.get("/admin/memory/list/").content.decode()
    return page[page.index('id="content"') :]


def test_undo_restores_what_the_operator_deleted(deletions: list[Delete], alice: Person, admin_client: Client) -> None:
    deletions[0]()
    assert not is_found(alice)
    admin_client.post(undo := undo_address(admin_client))
    assert is_found(alice)
    assert "Undone." in notice(admin_client)
    admin_client.post(undo)
    assert "Nothing was undone: a later change is kept." in notice(admin_client)


def test_undo_keeps_what_the_user_deleted_since(deletions: list[Delete], alice: Person, admin_client: Client) -> None:
    deletions[0]()
    deletions[1]()
    admin_client.post(undo_address(admin_client))
    assert not is_found(alice)
    assert "Nothing was undone" in notice(admin_client)


def test_a_second_deletion_by_the_operator_does_not_revive_the_first_undo(
    deletions: list[Delete], alice: Person, admin_client: Client
) -> None:
    deletions[0]()
    undo = undo_address(admin_client)
    deletions[1]()
    deletions[0]()
    admin_client.post(undo)
    assert not is_found(alice)


def test_there_is_no_undo_of_what_the_user_deleted_before(
    deletions: list[Delete], alice: Person, admin_client: Client
) -> None:
    deletions[1]()
    deletions[0]()
    page = notice(admin_client)
    assert "Undo" not in page
    assert not is_found(alice)


def test_a_resource_that_was_deleted_twice_is_restored_from_the_trash(
    alice: Person, admin_client: Client, storage: Path
) -> None:
    resource_id = upload(alice, text=TEXT)["resource_id"]
    admin_client.post(reverse("console:resource-delete", args=[resource_id]))
    call(alice, "delete", f"/resources/{resource_id}", status=404)
    admin_client.post(reverse("console:trash-resources"), {"do": "restore", "id": resource_id})
    assert is_found(alice)
