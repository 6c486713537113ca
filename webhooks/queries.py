"""Reads of deliveries."""

from collections.abc import Collection
from uuid import UUID

from django.db.models import Count

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


def undelivered_counts(webhook_pks: Collection[UUID]) -> dict[UUID, dict[str, int]]:
    """Return how many pending and failed deliveries these webhooks have, by status. One statement."""
    undelivered = WebhookDelivery.objects.filter(webhook_id__in=webhook_pks).exclude(
        status=WebhookDelivery.Status.DELIVERED
    )
    counts: dict[UUID, dict[str, int]] = {pk: {} for pk in webhook_pks}
    for row in undelivered.order_by().values("webhook_id", "status").annotate(count=Count("pk")):
        counts[row["webhook_id"]][row["status"]] = row["count"]
    return counts
