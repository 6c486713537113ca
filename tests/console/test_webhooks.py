"""The pages of webhooks: state, status code and next try of deliveries, which operators can send again."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEvent, MemoryUser
from tests.conftest import Person
from webhooks.models import Webhook, WebhookDelivery
from webhooks.services import signing

pytestmark = pytest.mark.django_db

STATUS = WebhookDelivery.Status


def make(person: Person, **fields: Any) -> Webhook:
    user = MemoryUser.objects.get(pk=person.user_pk)
    values = {"url": "https://hooks.example.com/x", "secret": signing.sealed(signing.new_secret()), **fields}
    return Webhook.objects.create(user=user, **values)


def failed(webhook: Webhook, **fields: Any) -> WebhookDelivery:
    values = {"status": STATUS.FAILED, "attempts": 8, "status_code": 503, "next_try_at": None, **fields}
    return WebhookDelivery.objects.create(webhook=webhook, user=webhook.user, event_type="memory.deleted", **values)


def test_the_list_counts_what_was_not_delivered(admin_client: Client, alice: Person, bob: Person) -> None:
    webhook, other = make(alice), make(bob, is_enabled=False)
    failed(webhook)
    for _ in range(2):
        failed(webhook, status=STATUS.PENDING, next_try_at=timezone.now())
    failed(webhook, status=STATUS.DELIVERED)
    rows = admin_client.get(reverse("console:webhooks")).context["rows"]
    assert [(row["webhook"], row["counts"]) for row in rows] == [(other, {}), (webhook, {"failed": 1, "pending": 2})]
    only = admin_client.get(reverse("console:webhooks"), {"user": "alice"}).context["rows"]
    assert [row["webhook"] for row in only] == [webhook]


def test_the_list_takes_the_same_statements_for_any_number(admin_client: Client, alice: Person) -> None:
    counts = []
    for number in (1, 5):
        for _ in range(number):
            failed(make(alice))
        admin_client.get(reverse("console:webhooks"))  # the first view has its own event
        with CaptureQueriesContext(connection) as queries:
            admin_client.get(reverse("console:webhooks"))
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_a_failed_delivery_is_sent_again(admin_client: Client, alice: Person) -> None:
    webhook = make(alice)
    delivery = failed(webhook)
    page = admin_client.get(reverse("console:webhook", args=[webhook.pk]), {"state": "failed"}).content.decode()
    assert "503" in page
    assert signing.opened(webhook.secret) not in page
    assert webhook.secret not in page
    address = reverse("console:webhook-send", args=[webhook.pk])
    answer = admin_client.post(address, {"delivery": delivery.delivery_id})
    assert answer.status_code == 302
    again = WebhookDelivery.objects.get()
    assert (again.status, again.attempts, again.delivery_id) == (STATUS.PENDING, 0, delivery.delivery_id)
    assert again.next_try_at is not None
    assert again.next_try_at <= timezone.now()
    assert AuditEvent.objects.get(action="webhook.send_again").user_id == "alice"


def test_only_own_deliveries_of_an_enabled_webhook_are_sent_again(admin_client: Client, alice: Person) -> None:
    disabled, other = make(alice, is_enabled=False), make(alice)
    delivery = failed(disabled)
    for webhook, status in ((disabled, 409), (other, 404)):
        address = reverse("console:webhook-send", args=[webhook.pk])
        assert admin_client.post(address, {"delivery": delivery.delivery_id}).status_code == status
    assert WebhookDelivery.objects.get().status == STATUS.FAILED


def test_an_unknown_webhook_gives_a_404_page(admin_client: Client) -> None:
    assert admin_client.get(reverse("console:webhook", args=[uuid4()])).status_code == 404
