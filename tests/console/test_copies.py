"""The panel's page of a memory changes its copies too, and one undo reverts all."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse

from memories.models import Tombstone
from store.models import Memory, State
from tests.conftest import Person
from tests.memories.calls import say

pytestmark = pytest.mark.django_db

SAID = ["The walnut cake is ready.", "the walnut cake is ready", "The walnut  cake is ready!"]


@pytest.fixture
def rows(alice: Person) -> list[int]:
    for number, text in enumerate(SAID):
        say(alice, f"chat:c{number}", text)
    say(alice, "chat:other", "The almond cake is ready.")
    return list(Memory.objects.filter(text__in=SAID).order_by("pk").values_list("pk", flat=True))


def live() -> int:
    return Memory.objects.filter(state=State.LIVE).count()


def notice(client: Client) -> str:
    return client.get("/admin/memory/list/").content.decode()


def undo_of(page: str) -> str:
    """Return the address of the undo button of a page."""
    found = re.search(r'action="(/admin/memory/undo/[^"]+)"', page)
    assert found
    return unescape(found[1])


def test_a_deletion_includes_copies(rows: list[int], admin_client: Client) -> None:
    admin_client.post(reverse("console:memory-delete", args=[rows[0]]), {"reason": "wrong"})
    page = notice(admin_client)
    assert "Also 2 copies." in page
    assert live() == 1
    admin_client.post(undo_of(page))
    assert live() == 4


def test_a_restore_includes_the_copies_that_were_deleted_with_it(rows: list[int], admin_client: Client) -> None:
    admin_client.post(reverse("console:memory-delete", args=[rows[0]]))
    notice(admin_client)
    admin_client.post(reverse("console:memory-restore", args=[rows[2]]))
    assert "Also 2 copies." in notice(admin_client)
    assert live() == 4
    assert not Tombstone.objects.filter(undone_at__isnull=True).exists()


def test_an_edit_includes_copies(rows: list[int], admin_client: Client) -> None:
    address = reverse("console:memory-edit", args=[rows[0]])
    etag = admin_client.get(address).context["form"].initial["etag"]
    values = {"text": "The walnut cake is eaten.", "category": "full_context_user", "etag": etag}
    admin_client.post(address, values)
    page = notice(admin_client)
    assert "Also 2 copies." in page
    assert set(Memory.objects.filter(pk__in=rows).values_list("text", flat=True)) == {values["text"]}
    admin_client.post(undo_of(page))
    assert sorted(Memory.objects.filter(pk__in=rows).values_list("text", flat=True)) == sorted(SAID)


def test_the_original_texts_of_copies_return(rows: list[int], admin_client: Client) -> None:
    address = reverse("console:memory-edit", args=[rows[0]])
    etag = admin_client.get(address).context["form"].initial["etag"]
    admin_client.post(address, {"text": "The cake is eaten.", "category": "full_context_user", "etag": etag})
    admin_client.post(reverse("console:memory-revert", args=[rows[1]]))
    assert "Also 2 copies." in notice(admin_client)
    assert sorted(Memory.objects.filter(pk__in=rows).values_list("text", flat=True)) == sorted(SAID)


def test_a_memory_without_copies_says_nothing_of_them(alice: Person, admin_client: Client) -> None:
    say(alice, "chat:c1", "The walnut cake is ready.")
    admin_client.post(reverse("console:memory-delete", args=[Memory.objects.get().pk]))
    assert "Also" not in notice(admin_client)
