"""Record events for delivery in the transaction of their change, so that neither exists without the other."""

from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction

from core.tasks import enqueue
from webhooks.models import Webhook, WebhookDelivery


def record_event(*, event_type: str, user_pk: UUID, data: Mapping[str, Any], **_: object) -> None:
    """Record a delivery for each of the user's webhooks that wants the event. One statement if there is none."""
    enabled = Webhook.objects.filter(user_id=user_pk, is_enabled=True).order_by()
    wanted = [pk for pk, events in enabled.values_list("pk", "events") if not events or event_type in events]
    if wanted:
        WebhookDelivery.objects.bulk_create(
            WebhookDelivery(webhook_id=pk, user_id=user_pk, event_type=event_type, data=dict(data)) for pk in wanted
        )
        transaction.on_commit(partial(enqueue, "deliver_webhooks"))
