"""The page of the queues: their counts, their lists, and who sees which."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import AuditEvent
from console.views import queues
from memories.models import LoggedSearch
from resources.models import RefusedUpload, Resource
from store.models import Memory
from tests.conftest import Person
from tests.console.people import remember
from tests.console.test_access import VIEW, operator_client
from webhooks.models import Webhook, WebhookDelivery

pytestmark = pytest.mark.django_db
URL = "/admin/memory/queues/"


def fill(person: Person) -> None:
    now, user = timezone.now(), {"user_id": person.owner.user_pk}
    soon, later, old = (remember(person.owner, text) for text in ("a trial", "a contract", "an old address"))
    Memory.objects.filter(pk=soon.row).update(expires_at=now + timedelta(days=6))
    Memory.objects.filter(pk=later.row).update(expires_at=now + timedelta(days=8))
    Memory.objects.filter(pk=old.row).update(state="superseded", state_since=now)
    file = {"content_type": "pdf", "mime_type": "application/pdf", **user}
    Resource.objects.create(session_id="resource:1", status="failed", error_message="One cause.", **file)
    Resource.objects.create(session_id="resource:2", status="extracted", reading={"is_partial": True}, **file)
    for days in (1, 8):
        RefusedUpload.objects.create(at=now - timedelta(days=days), status=415, reason="x", **user)
        LoggedSearch.objects.create(
            app_id="default", project_id="default", at=now - timedelta(days=days), interface="rest", method="hybrid",
            scopes="resources", top_k=8, has_filters=False, hits=0, ms=1, query_chars=3, **user,
        )  # fmt: skip
    for status in ("failed", "delivered"):
        webhook = Webhook.objects.create(url=f"https://{status}.example.com", **user)
        WebhookDelivery.objects.create(webhook=webhook, event_type="x", status=status, next_try_at=None, **user)


def test_each_queue_counts_what_its_list_shows(admin_client: Client, alice: Person) -> None:
    fill(alice)
    found = admin_client.get(URL).context["queues"]
    assert [one.waiting for one in found] == [1] * 7
    for one in found:
        page = admin_client.get(one.url).context
        assert not page["filters"].problems
        assert len(page["rows"] if "rows" in page else page["items"]) == 1, one.url
    assert AuditEvent.objects.filter(action="queue.list").count() == 1


def test_counts_end_at_a_limit(admin_client: Client, alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(alice)
    monkeypatch.setattr(queues, "MOST", 0)
    page = admin_client.get(URL)
    assert {one.waiting for one in page.context["queues"]} == {None}
    assert "0+" in page.content.decode()


def test_operators_see_the_queues_of_their_rights(alice: Person) -> None:
    fill(alice)
    found: Any = operator_client(VIEW).get(URL).context["queues"]
    assert [str(one.label) for one in found] == ["Superseded memories", "Memories that expire within 7 days"]
