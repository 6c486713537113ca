"""The first steps on the dashboard of an empty database, and demo data by a button."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import AuditEvent, MemoryUser
from core.background import tasks
from store.models import Memory
from tests.conftest import Person
from tests.console.people import remember

pytestmark = pytest.mark.django_db(transaction=True)


def dashboard(client: Client) -> Any:
    return client.get(reverse("console:dashboard"))


def test_an_empty_database_shows_the_first_steps_with_the_address_of_the_gateway(admin_client: Client) -> None:
    page = dashboard(admin_client)
    assert page.context["start"]["has_users"] is False
    text = page.content.decode()
    for part in ("http://testserver/memories/search", "http://testserver/mcp", "Load demo data", "/api/docs/"):
        assert part in text


def test_the_first_steps_disappear_with_the_first_memory(admin_client: Client, alice: Person) -> None:
    assert dashboard(admin_client).context["start"]["has_users"] is True
    remember(alice.owner)
    assert "start" not in dashboard(admin_client).context


def test_the_button_creates_demo_data_once(admin_client: Client, storage: Path) -> None:
    assert admin_client.post(reverse("console:demo")).status_code == 302
    assert tasks.wait_until_idle(30)
    demo = MemoryUser.objects.get(user_id="demo")
    assert Memory.objects.filter(user=demo).count() > 10
    assert AuditEvent.objects.filter(user_id="demo", actor="admin", action="user.create").exists()
    count = Memory.objects.count()
    assert admin_client.post(reverse("console:demo")).status_code == 409
    assert Memory.objects.count() == count
