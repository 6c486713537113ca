"""Reads of deliveries."""

from uuid import UUID

from webhooks.models import WebhookDelivery


def deliveries_page(
    webhook_pk: UUID, status: str | None, before: int | None, limit: int
) -> tuple[list[WebhookDelivery], int | None]:
    """Return a page of deliveries, newest first, and the row that ends it if more follow."""
    found = WebhookDelivery.objects.filter(webhook_id=webhook_pk).order_by("-pk")
    if status is not None:
        found = found.filter(status=status)
    if before is not None:
        found = found.filter(pk__lt=before)
    rows = list(found[: limit + 1])
    return rows[:limit], rows[limit - 1].pk if len(rows) > limit else None
