"""The page of a memory shows what replaces it, and takes the decision that nothing does."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse

from store.models import Memory
from tests.conftest import Person
from tests.memories.calls import say

BERLIN, LISBON = "I live in Berlin.", "I moved from Berlin to Lisbon last month."


def page_of(client: Client, text: str) -> str:
    return client.get(reverse("console:memory", args=[Memory.objects.get(text=text).pk])).content.decode()


def test_an_operator_decides_that_a_memory_is_not_replaced(alice: Person, admin_client: Client) -> None:
    say(alice, "chat:c1", BERLIN, LISBON)
    older, newer = page_of(admin_client, BERLIN), page_of(admin_client, LISBON)
    assert "Replaced by" in older
    assert "Not replaced" in older
    assert "Replaces" in newer
    assert "Not replaced" not in newer
    address = reverse("console:memory-keep", args=[Memory.objects.get(text=BERLIN).pk])
    assert admin_client.post(address, {"kept": "1"}).status_code == 302
    kept = page_of(admin_client, BERLIN)
    assert "Replaced by" not in kept
    assert "May be replaced" in kept
    admin_client.post(address, {"kept": "0"})
    assert "Replaced by" in page_of(admin_client, BERLIN)
