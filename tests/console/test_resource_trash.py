"""Operators move files to the trash, restore them and purge them."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.expiry import lower
from operations import jobs
from operations.models import Job
from resources.models import Resource
from store.models import Memory, Session
from tests.conftest import Person
from tests.console.test_access_of_data_pages import operator_client
from tests.memories.calls import call, search, upload
from tests.portal.visits import visit
from tests.resources.forms import files_below, stored_resource

pytestmark = pytest.mark.django_db(transaction=True)


def content(client: Client, path: str) -> str:
    page = client.get(f"/admin/memory/{path}").content.decode()
    return page[page.index('id="content"') :]


def test_a_file_is_moved_to_the_trash_and_restored(admin_client: Client, alice: Person, storage: Path) -> None:
    resource_id = upload(alice)["resource_id"]
    address = f"/admin/memory/resources/{resource_id}/"
    question = content(admin_client, f"resources/{resource_id}/delete/")
    assert "You can restore it for 30 days, until it is purged." in question
    assert "cannot be undone" not in question
    assert admin_client.post(f"{address}delete/").status_code == 302
    assert search(alice, scope=["all_user_memory"])["results"] == []
    assert "contract.txt" not in content(admin_client, "resources/")
    assert "In trash" in content(admin_client, "resources/?state=deleted")
    assert admin_client.get(f"{address}content/").status_code == 404
    page = content(admin_client, f"resources/{resource_id}/")
    assert "The file is in the trash with its memories." in page
    assert "thirty days" not in page
    assert "contract.txt" in content(admin_client, "trash/?kind=resources&user=alice")
    assert "contract.txt" not in content(admin_client, "trash/?kind=resources&user=bob")
    memory = Memory.objects.first()
    assert memory
    assert "The resource of this memory is in the trash." in content(admin_client, f"m/{memory.pk}/")
    admin_client.post(reverse("console:trash-resources"), {"do": "restore", "id": resource_id})
    assert search(alice, scope=["all_user_memory"])["results"]
    assert "contract.txt" not in content(admin_client, "trash/?kind=resources")


@pytest.mark.parametrize(
    ("state", "badge", "notice"),
    [("trashed", "In trash", "The file is in the trash"), ("purged", "Deleted", "The file was permanently deleted.")],
)
def test_the_status_of_a_deleted_file_is_not_shown(
    admin_client: Client, alice: Person, storage: Path, state: str, badge: str, notice: str
) -> None:
    kept = stored_resource(alice, status="failed", error_message="It is damaged.")
    deleted = stored_resource(alice, status="failed", error_message="It is lost.", state=state)
    failed, gone = (content(admin_client, f"resources/?state={name}") for name in ("failed", "deleted"))
    assert (kept.pk in failed, deleted.pk in failed) == (True, False)
    assert (kept.pk in gone, deleted.pk in gone, "It is lost." in gone) == (False, True, False)
    page = content(admin_client, f"resources/{deleted.pk}/")
    assert (notice in page, badge in page) == (True, True)
    assert not any(text in page for text in ("It is lost.", "Try again", "Re-ingest", "Download", "Delete…"))


def test_ticked_files_are_moved_to_the_trash(admin_client: Client, alice: Person, storage: Path) -> None:
    ids = [upload(alice, f"{number}.txt", f"Number {number}.")["resource_id"] for number in range(3)]
    answer = admin_client.post(reverse("console:resource-trash"), {"id": [*ids[:2], "r_none"]}, follow=True)
    assert "2 resources moved to trash." in answer.content.decode()
    assert [item["resource_id"] for item in call(alice, "get", "/resources")["resources"]] == ids[2:]
    assert "No rows are selected" in admin_client.post(reverse("console:resource-trash"), follow=True).content.decode()


def test_a_file_that_was_uploaded_again_is_not_restored(admin_client: Client, alice: Person, storage: Path) -> None:
    first = upload(alice)["resource_id"]
    call(alice, "delete", f"/resources/{first}")
    second = upload(alice)["resource_id"]
    answer = admin_client.post(reverse("console:trash-resources"), {"do": "restore", "id": first}, follow=True)
    assert f"contract.txt: The same file was added again as {second}." in answer.content.decode()
    assert Resource.objects.get(pk=first).state == "trashed"


def test_an_expired_file_says_so_and_is_left_to_the_user(admin_client: Client, alice: Person, storage: Path) -> None:
    call(alice, "put", "/users/me/expiry", days={"tag:draft": 1})
    here, resource_id = visit(alice), upload(alice, tags='["draft"]')["resource_id"]
    assert "<dt>Expires</dt>" in content(admin_client, f"resources/{resource_id}/")
    session = Session.objects.get(kind="resource")
    Session.objects.update(expires_at=timezone.now())
    lower(alice.user_pk, timezone.now())
    assert search(alice, scope=["all_user_memory"])["results"] == []
    assert "contract.txt" in content(admin_client, "trash/?kind=resources&user=alice")
    answer = admin_client.post(reverse("console:trash-resources"), {"do": "restore", "id": resource_id}, follow=True)
    assert "contract.txt has expired: the user restores it with a new time." in answer.content.decode()
    assert Resource.objects.get().state == "trashed"
    assert here.post(f"/portal/files/{resource_id}/restore").status_code == 302
    assert search(alice, scope=["all_user_memory"])["results"]
    session.refresh_from_db()
    assert (session.state, session.expires_at) == ("live", None)


def test_files_are_purged_after_a_preview(admin_client: Client, alice: Person, storage: Path) -> None:
    first, second = (upload(alice, f"{word}.txt", f"One {word}.")["resource_id"] for word in ("walnut", "almond"))
    for resource_id in (first, second):
        call(alice, "delete", f"/resources/{resource_id}")
    purge = {"do": "purge", "id": [first, second]}
    remover = operator_client("resources.delete_resource", "resources.view_resource")
    assert remover.post(reverse("console:trash-resources"), purge).status_code == 403
    preview = admin_client.post(reverse("console:trash-resources"), purge).content.decode()
    assert "Purge 2 resources<" in preview
    assert len(files_below(storage)) == 2
    admin_client.post(reverse("console:trash-resources"), {**purge, "confirmed": "1"})
    call(alice, "post", f"/resources/{second}/restore")  # before the worker begins
    assert jobs.run_now(Job.objects.get()).result == {"purged": 1, "left": 1}
    assert len(files_below(storage)) == 1
    assert list(Memory.objects.values_list("text", flat=True)) == ["One almond."]
    assert admin_client.post(reverse("console:trash-resources"), {"do": "drop", "id": first}).status_code == 302


def test_files_in_the_trash_need_the_permission_to_view_files(alice: Person) -> None:
    viewer = operator_client("store.view_memory")
    assert "kind=resources" not in content(viewer, "trash/")
    assert viewer.get("/admin/memory/trash/?kind=resources").status_code == 403


def test_a_session_is_not_restored_before_its_file(admin_client: Client, alice: Person, storage: Path) -> None:
    resource = upload(alice)
    tombstone = call(alice, "delete", f"/sessions/{resource['session_id']}")["tombstone_id"]
    call(alice, "delete", f"/resources/{resource['resource_id']}")
    data = {"do": "restore", "id": tombstone}
    answer = admin_client.post(reverse("console:trash-sessions"), data, follow=True).content.decode()
    assert "Sessions of resources in the trash were not restored: restore the resources." in answer
    assert "0 sessions restored" in answer
