"""Create, change and delete webhooks, rotate their secrets, and test them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts import idempotency
from accounts.audit import Actor, record
from accounts.models import Principal
from accounts.services import lock_caller
from core.background.tasks import enqueue
from core.errors import Conflict, InvalidInput, existing
from core.messages import Translatable as _
from core.network.url_policy import AddressPolicy, BadAddress, may_name_loopback, reachable_addresses
from webhooks.models import TEST_EVENT, Webhook, WebhookDelivery
from webhooks.services import signing

MAX_WEBHOOKS: Final = 10
DEFAULT_GRACE: Final = timedelta(days=1)
MAX_GRACE: Final = timedelta(days=30)
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_SECURE: Final = re.compile(r"https://", re.IGNORECASE)
_SECURE_OR_LOCAL: Final = re.compile(
    r"https://|http://(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]*)?(?:[/?#]|$)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class NewSecret:
    """A webhook with its new secret in plain text, which is never shown again."""

    webhook: Webhook
    plaintext: str = field(repr=False)


def of_user(user_pk: UUID) -> QuerySet[Webhook]:
    return Webhook.objects.filter(user_id=user_pk)


def get(user_pk: UUID, webhook_id: UUID) -> Webhook:
    """Return a user's webhook. Raises: `NotFound`."""
    return _existing(of_user(user_pk), webhook_id)


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


def create(principal: Principal, url: str, events: Sequence[str] = ()) -> NewSecret:
    """Create a webhook of the caller.

    Raises: `InvalidInput` for an address that must not be called, `Conflict` at the limit of webhooks.
    """
    _check(url)
    secret = signing.new_secret()
    with transaction.atomic():
        user = lock_caller(principal.user_pk, principal.user_id)
        if of_user(user.pk).count() >= MAX_WEBHOOKS:
            raise Conflict(_("A user can have at most %(number)s webhooks. Delete one first.", number=MAX_WEBHOOKS))
        webhook = Webhook.objects.create(user=user, url=url, events=list(events), secret=signing.sealed(secret))
        _record(principal, "create", webhook)
        idempotency.keep(webhook_id=str(webhook.pk))
    return NewSecret(webhook, secret)


def change(
    principal: Principal,
    webhook_id: UUID,
    *,
    url: str | None = None,
    events: Sequence[str] | None = None,
    is_enabled: bool | None = None,
) -> Webhook:
    """Change the given parts of a webhook. Pending deliveries go to the new address.

    Raises: `NotFound`, `InvalidInput` for an address that must not be called.
    """
    if url is not None:
        _check(url)
    given = {"url": url, "events": None if events is None else list(events), "is_enabled": is_enabled}
    values = {name: value for name, value in given.items() if value is not None}
    with transaction.atomic():
        webhook = _locked(principal, webhook_id)
        for name, value in values.items():
            setattr(webhook, name, value)
        if values:
            webhook.save(update_fields=values)
            _record(principal, "change", webhook)
            enqueue("deliver_webhooks")
    return webhook


def delete(principal: Principal, webhook_id: UUID) -> None:
    """Delete a webhook with its deliveries. Raises: `NotFound`."""
    with transaction.atomic():
        webhook = _locked(principal, webhook_id)
        _record(principal, "delete", webhook)
        webhook.delete()


def rotate_secret(principal: Principal, webhook_id: UUID, *, grace: timedelta = DEFAULT_GRACE) -> NewSecret:
    """Replace the secret. For `grace`, deliveries are signed by the old and the new one. Raises: `NotFound`."""
    secret = signing.new_secret()
    with transaction.atomic():
        webhook = _locked(principal, webhook_id)
        webhook.previous_secret, webhook.secret = webhook.secret if grace else "", signing.sealed(secret)
        webhook.previous_secret_expires_at = timezone.now() + grace if grace else None
        webhook.save(update_fields=["previous_secret", "secret", "previous_secret_expires_at"])
        _record(principal, "rotate_secret", webhook)
    return NewSecret(webhook, secret)


def test(principal: Principal, webhook_id: UUID) -> WebhookDelivery:
    """Record a delivery of the event `webhook.test`. Raises: `NotFound`, `Conflict` for a disabled webhook."""
    with transaction.atomic():
        webhook = _locked(principal, webhook_id)
        _require_enabled(webhook)
        delivery = WebhookDelivery.objects.create(
            webhook=webhook, user_id=principal.user_pk, event_type=TEST_EVENT, data={"webhook_id": str(webhook.pk)}
        )
        enqueue("deliver_webhooks")
    return delivery


def send_again(webhook_id: UUID, delivery_id: str, *, actor: Actor) -> WebhookDelivery:
    """Send a delivery of any user again, with its retries. Raises: `NotFound`, `Conflict` for a disabled webhook."""
    with transaction.atomic():
        found = WebhookDelivery.objects.select_for_update(of=("self",)).select_related("webhook", "user")
        delivery = existing(
            found.filter(webhook_id=webhook_id, delivery_id=delivery_id), _("There is no such delivery.")
        )
        _require_enabled(delivery.webhook)
        delivery.status, delivery.attempts = WebhookDelivery.Status.PENDING, 0
        delivery.next_try_at = timezone.now()
        delivery.save(update_fields=["status", "attempts", "next_try_at"])
        record(
            actor,
            "webhook.send_again",
            str(delivery.webhook_id),
            user_id=delivery.user.user_id,
            detail={"delivery_id": delivery_id},
        )
        enqueue("deliver_webhooks")
    return delivery


def _locked(principal: Principal, webhook_id: UUID) -> Webhook:
    return _existing(of_user(principal.user_pk).select_for_update(no_key=True), webhook_id)


def _existing(webhooks: QuerySet[Webhook], webhook_id: UUID) -> Webhook:
    return existing(webhooks.filter(pk=webhook_id), _("There is no such webhook."))


def _require_enabled(webhook: Webhook) -> None:
    if not webhook.is_enabled:
        raise Conflict(_("The webhook is disabled. Enable it first."))


def _check(url: str) -> None:
    try:
        reachable(url)
    except BadAddress as error:
        raise InvalidInput.of_field("url", error.message) from None


def _record(principal: Principal, verb: str, webhook: Webhook) -> None:
    """Write an audit event. The URL is left out, because it may contain a secret."""
    record(Actor.key(principal), f"webhook.{verb}", str(webhook.pk), user_id=principal.user_id)


def reachable(url: str) -> list[str]:
    """Return the IP addresses that a webhook may be called at. Connect to these only.

    The gateway calls them from inside the operator's network, so only `https://` at public addresses and at hosts that
    the operator allows are called; a gateway that serves its own machine only also calls that. It is checked again
    before each call. Raises: `BadAddress`.
    """
    policy, is_local = AddressPolicy.from_settings(), may_name_loopback()
    if not (_SECURE_OR_LOCAL if is_local else _SECURE).match(url):
        raise BadAddress(_("must start with https://"))
    if is_local:
        policy = replace(policy, allowed_hosts=policy.allowed_hosts | _LOOPBACK)
    return reachable_addresses(url, policy)
