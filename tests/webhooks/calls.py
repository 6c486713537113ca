"""Calls of the API that tests of webhooks share."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.conftest import Person
from tests.memories.calls import call
from tests.webhooks.receiver import Receiver
from webhooks.models import WebhookDelivery
from webhooks.services import delivery


def create(person: Person, receiver: Receiver, *events: str) -> dict[str, Any]:
    return call(person, "post", "/webhooks", url=receiver.url, events=list(events))


def deliver(webhook: dict[str, Any]) -> int:
    return delivery.deliver(UUID(webhook["webhook_id"]))


def only_delivery() -> WebhookDelivery:
    return WebhookDelivery.objects.select_related("webhook").get()
