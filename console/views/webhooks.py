"""The pages of webhooks: the list, and a webhook with its deliveries, which can be sent again."""

from collections.abc import Collection
from uuid import UUID

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts import tenants
from accounts.admin_base import actor_of
from accounts.audit import record
from console import cases
from console.access import page, record_list, render
from console.filters import DeliveryFilters, WebhookFilters
from console.keyset import newest_first
from console.queues import failing
from core.errors import existing
from webhooks.models import Webhook, WebhookDelivery
from webhooks.services import configuration

VIEW_WEBHOOKS, CHANGE_WEBHOOKS = "webhooks.view_webhook", "webhooks.change_webhook"


@page(VIEW_WEBHOOKS, reach="lists")
def webhooks(request: HttpRequest) -> HttpResponseBase:
    filters = WebhookFilters(reverse("console:webhooks"), request.GET)
    found = failing() if filters.cleaned_data["state"] else tenants.reachable(Webhook.objects.all())
    found = found.select_related("user")
    if user_id := filters.cleaned_data["user"]:
        found = found.filter(user__user_id=user_id)
    shown = newest_first(found, filters, time="created_at")
    record_list(request, "webhook.list", filters, (one.user.user_id for one in shown.rows))
    counts = _undelivered_counts([one.pk for one in shown.rows])
    context = {
        "title": _("Webhooks"),
        "filters": filters,
        **shown._asdict(),
        "rows": [{"webhook": one, "counts": counts[one.pk]} for one in shown.rows],
    }
    return render(request, "console/webhooks.html", context)


@page(VIEW_WEBHOOKS, reach="webhook")
def webhook(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    found = existing(Webhook.objects.select_related("user").filter(pk=pk), _("There is no such webhook."))
    filters = DeliveryFilters(reverse("console:webhook", args=[pk]), request.GET)
    deliveries = WebhookDelivery.objects.filter(webhook=found)
    if state := filters.cleaned_data["state"]:
        deliveries = deliveries.filter(status=state)
    user_id = found.user.user_id
    record(actor_of(request), "webhook.view", str(pk), user_id=user_id)
    context = {
        **cases.context(request, "webhook", pk),
        "title": _("Webhook"),
        "webhook": found,
        "filters": filters,
        "states": filters.links("state", [("", _("All")), *WebhookDelivery.Status.choices]),
        **newest_first(deliveries, filters)._asdict(),
    }
    return render(request, "console/webhook.html", context)


@page(CHANGE_WEBHOOKS, "POST", reach="webhook")
def send_again(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Send a delivery again, with the same id."""
    configuration.send_again(pk, request.POST.get("delivery", ""), actor=actor_of(request))
    messages.success(request, _("The delivery is sent again."))
    return redirect("console:webhook", pk=pk)


def _undelivered_counts(webhook_pks: Collection[UUID]) -> dict[UUID, dict[str, int]]:
    """Return how many pending and failed deliveries these webhooks have, by status. One statement."""
    undelivered = WebhookDelivery.objects.filter(webhook_id__in=webhook_pks).exclude(
        status=WebhookDelivery.Status.DELIVERED
    )
    counts: dict[UUID, dict[str, int]] = {pk: {} for pk in webhook_pks}
    for row in undelivered.order_by().values("webhook_id", "status").annotate(count=Count("pk")):
        counts[row["webhook_id"]][row["status"]] = row["count"]
    return counts
