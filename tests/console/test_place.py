"""The page that a passage comes from: who sees it, what is recorded, and what is left of it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from PIL import Image

from accounts.audit import Actor
from accounts.models import AuditEvent
from documents import rendering
from operations import erase
from resources.services import deletion
from store.models import Memory
from tests import bombs, scans
from tests.conftest import Person
from tests.resources.forms import upload

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not rendering.is_available(), reason="the extra `ocr` is not installed"),
]
ACTOR = Actor.command("tests")
PDF = bombs.pages_pdf(["The first page.", "Payment is due within thirty days."])


def passage(person: Person, data: bytes = PDF, filename: str = "contract.pdf") -> tuple[str, Memory]:
    """Upload a file. Return its id and its last passage."""
    resource_id = upload(person, data, filename).json()["resource_id"]
    memory = Memory.objects.filter(user_id=person.user_pk).order_by("pk").last()
    assert memory is not None
    return resource_id, memory


def results(person: Person, query: str) -> list[Any]:
    body = {**person.credentials, "query": query, "raw": False}
    answer = Client().post("/memories/search", body, content_type="application/json")
    return answer.json()["results"]  # type: ignore[no-any-return]


def test_results_name_the_place(alice: Person) -> None:
    passage(alice)
    [hit] = [one for one in results(alice, "payment due") if "Payment" in one["text"]]
    assert hit["place"] == {
        "page": 2, "heading": None, "box": None, "second": None, "until_second": None, "start": None, "end": None,
    }  # fmt: skip
    assert hit["raw"] == {}
    upload(alice, b"Just words about tea.", "tea.txt")
    assert results(alice, "tea")[0]["place"] is None


def test_a_passage_and_a_hit_lead_to_the_page_with_the_mark(alice: Person, admin_client: Client) -> None:
    resource_id, memory = passage(alice)
    address = f"/admin/memory/m/{memory.pk}/place/"
    pages = (f"m/{memory.pk}/", f"resources/{resource_id}/", "search/?q=payment&user=alice&scope=resources")
    for page in pages:
        assert address in admin_client.get(f"/admin/memory/{page}").content.decode(), page
    page = admin_client.get(address)
    assert f'src="{address}image/"' in page.content.decode()
    assert "img-src" not in page["Content-Security-Policy"], "the policy of the panel is enough for the image"
    AuditEvent.objects.all().delete()
    image = admin_client.get(f"{address}image/")
    assert (image.status_code, image["Content-Type"]) == (200, "image/jpeg")
    assert image["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert "no-store" in image["Cache-Control"]
    assert image["X-Content-Type-Options"] == "nosniff"
    assert image["Content-Disposition"].startswith("attachment")
    [event] = AuditEvent.objects.all()
    assert (event.action, event.subject_id, event.user_id) == ("resource.page", resource_id, "alice")
    assert event.detail == {"page": 2}


def test_a_picture_is_shown_without_a_page(alice: Person, admin_client: Client) -> None:
    _resource_id, memory = passage(alice, scans.png(Image.new("RGB", (30, 20), "blue")), "photo.png")
    address = f"/admin/memory/m/{memory.pk}/place/"
    assert address in admin_client.get(f"/admin/memory/m/{memory.pk}/").content.decode()
    assert admin_client.get(f"{address}image/").status_code == 200


@pytest.mark.parametrize("permissions", [("view_memory",), ("view_resource",), ()])
def test_both_permissions_are_needed(alice: Person, permissions: tuple[str, ...]) -> None:
    _resource_id, memory = passage(alice)
    operator = User.objects.create_user("reader", is_staff=True)
    operator.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(operator)
    for page in ("place/", "place/image/"):
        assert client.get(f"/admin/memory/m/{memory.pk}/{page}").status_code == 403
    assert "/place/" not in client.get(f"/admin/memory/m/{memory.pk}/").content.decode()


def test_without_a_session_nothing_is_shown(alice: Person) -> None:
    _resource_id, memory = passage(alice)
    assert Client().get(f"/admin/memory/m/{memory.pk}/place/image/").status_code == 302


def test_deleted_and_erased_files_have_no_image(alice: Person, bob: Person, admin_client: Client) -> None:
    resource_id, memory = passage(alice)
    _other, kept = passage(bob)
    address = f"/admin/memory/m/{memory.pk}/place/image/"
    deletion.delete_as(alice.user_pk, "alice", resource_id, actor=ACTOR)
    assert admin_client.get(address).status_code == 404
    deletion.restore_as(alice.user_pk, "alice", resource_id, actor=ACTOR)
    assert admin_client.get(address).status_code == 200
    erase.erase(alice.user_pk, actor=ACTOR)
    assert admin_client.get(address).status_code == 404
    assert admin_client.get(f"/admin/memory/m/{kept.pk}/place/image/").status_code == 200


def test_other_memories_and_damaged_files_have_no_image(alice: Person, admin_client: Client, storage: Any) -> None:
    _resource_id, note = passage(alice, b"Just words.", "notes.txt")
    assert admin_client.get(f"/admin/memory/m/{note.pk}/place/").status_code == 404
    assert "/place/" not in admin_client.get(f"/admin/memory/m/{note.pk}/").content.decode()
    _resource_id, memory = passage(alice)
    [path] = storage.rglob("*.pdf")
    path.write_bytes(b"%PDF-1.7 damaged")
    assert admin_client.get(f"/admin/memory/m/{memory.pk}/place/image/").status_code == 422


def test_another_users_resource_is_not_shown_by_a_forged_payload(
    alice: Person, bob: Person, admin_client: Client
) -> None:
    resource_id, _memory = passage(alice)
    _own, forged = passage(bob)
    forged.payload["resource_id"] = resource_id
    forged.save()
    assert admin_client.get(f"/admin/memory/m/{forged.pk}/place/image/").status_code == 404
