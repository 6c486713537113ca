import secrets
import uuid
from typing import Final

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import MemoryUser
from core.background.leases import Claimable
from core.localization import MessageField
from core.network.url_policy import MAX_URI_CHARS

TEST_EVENT: Final = "webhook.test"


def new_delivery_id() -> str:
    return f"msg_{secrets.token_hex(16)}"


class Webhook(Claimable):
    """An address that gets a user's events. The secrets are stored encrypted, because every delivery is signed."""

    id = models.UUIDField(_("ID"), primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="webhooks")
    url = models.CharField(_("URL"), max_length=MAX_URI_CHARS)
    events = models.JSONField(_("events"), default=list, blank=True, help_text=_("Event types; empty for all."))
    is_enabled = models.BooleanField(_("enabled"), default=True)
    secret = models.TextField(_("secret"), editable=False)
    previous_secret = models.TextField(_("previous secret"), blank=True, editable=False)
    previous_secret_expires_at = models.DateTimeField(_("previous secret expires at"), null=True, blank=True)
    last_sequence = models.BigIntegerField(_("last sequence"), default=0, editable=False)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("webhook")
        verbose_name_plural = _("webhooks")
        ordering = ("-created_at",)
        default_permissions = ("view", "change")
        indexes = [models.Index(fields=["created_at"], name="webhook_by_time")]

    def __str__(self) -> str:
        return str(self.pk)


class WebhookDelivery(Claimable):
    """An event to deliver to a webhook: written with the change, numbered and sent by the worker.

    A pending delivery has `next_try_at`.
    """

    class Status(models.TextChoices):
        PENDING = "pending", _("Pending")
        DELIVERED = "delivered", _("Delivered")
        FAILED = "failed", _("Failed")

    delivery_id = models.CharField(
        _("delivery ID"), max_length=40, unique=True, default=new_delivery_id, editable=False
    )
    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="+")
    # Without a constraint: a webhook deleted at the same time must not make the change fail.
    webhook = models.ForeignKey(
        Webhook,
        models.CASCADE,
        verbose_name=_("webhook"),
        related_name="deliveries",
        db_constraint=False,
        db_index=False,
    )
    event_type = models.CharField(_("event"), max_length=32)
    data = models.JSONField(_("data"), default=dict)
    sequence = models.BigIntegerField(_("sequence"), null=True, blank=True)
    status = models.CharField(_("status"), max_length=9, choices=Status, default=Status.PENDING)
    attempts = models.IntegerField(_("attempts"), default=0)
    next_try_at = models.DateTimeField(_("next try at"), null=True, blank=True, default=timezone.now)
    last_tried_at = models.DateTimeField(_("last tried at"), null=True, blank=True)
    status_code = models.SmallIntegerField(_("status code"), null=True, blank=True)
    error = MessageField(_("error"), blank=True)
    created_at = models.DateTimeField(_("created at"), default=timezone.now)

    class Meta:
        verbose_name = _("webhook delivery")
        verbose_name_plural = _("webhook deliveries")
        ordering = ("-id",)
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["webhook", "id"], name="delivery_of_webhook"),
            models.Index(fields=["created_at"], name="delivery_by_time"),
            models.Index(
                fields=["webhook", "next_try_at"], condition=Q(next_try_at__isnull=False), name="delivery_pending"
            ),
            models.Index(fields=["webhook", "status"], condition=~Q(status="delivered"), name="delivery_undelivered"),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.delivery_id}"
