"""Record events and deliver them: number them, sign them, send them and retry them with backoff.

A delivery is recorded in the transaction of its change, so that neither exists without the other.

A turn of a webhook sends its due deliveries in the order of their sequence; one process takes it at a time. A failed
delivery does not delay later ones: receivers order by `sequence`. One which a crash interrupts is sent again.
"""

import logging
import random
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import orjson
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.audit import Actor, record
from core.background.leases import take
from core.background.tasks import enqueue, start_here
from core.crypto import Undecryptable
from core.messages import Translatable as _
from core.network.http_client import Deadline, HttpClient, HttpError
from core.network.url_policy import BadAddress, base_and_path
from core.times import isoformat
from webhooks.models import Webhook, WebhookDelivery
from webhooks.services import signing
from webhooks.services.configuration import reachable

logger = logging.getLogger("memory_gateway.webhooks")

SECONDS: Final = 15.0
"""Time limit of one call, from the connection to the head of the response."""
RETRY_DELAYS: Final = (
    timedelta(seconds=5), timedelta(minutes=5), timedelta(minutes=30), timedelta(hours=2), timedelta(hours=5),
    timedelta(hours=10), timedelta(hours=10),
)  # fmt: skip
"""The pauses before the retries: 27.6 hours in all. Up to a tenth more is random."""
KEPT: Final = timedelta(days=30)
LEASE: Final = timedelta(minutes=1)
"""Longer than a turn takes."""
TURN_DELIVERIES: Final = 200
TURN_SECONDS: Final = 30.0
"""The limits of a turn, after which webhooks of other users are served."""
SILENT_GROUPS: Final = 8
"""The groups of receivers that did not answer the last time. A group takes turns as one user does, so that receivers
that hang hold few threads, however many they are."""
_GONE: Final = 410


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call. `status_code` is None without a response; `retry_after` is what the receiver asked for."""

    status_code: int | None
    error: str = ""
    retry_after: timedelta = timedelta(0)


def record_event(*, event_type: str, user_pk: UUID, data: Mapping[str, Any], **_: object) -> None:
    """Record a delivery for each of the user's webhooks that wants the event. One statement if there is none."""
    enabled = Webhook.objects.filter(user_id=user_pk, is_enabled=True).order_by()
    wanted = [pk for pk, events in enabled.values_list("pk", "events") if not events or event_type in events]
    if wanted:
        WebhookDelivery.objects.bulk_create(
            WebhookDelivery(webhook_id=pk, user_id=user_pk, event_type=event_type, data=dict(data)) for pk in wanted
        )
        enqueue("deliver_webhooks")


def due(now: datetime) -> QuerySet[WebhookDelivery]:
    """Return the deliveries of enabled webhooks that are due, in no order."""
    return _pending().filter(next_try_at__lte=now)


def start_due(now: datetime) -> None:
    """Start a turn for each enabled webhook with a due delivery."""
    silent = set(_pending().filter(attempts__gt=0, status_code=None).values_list("webhook_id", flat=True).distinct())
    for webhook_pk, user_pk in due(now).values_list("webhook_id", "user_id").distinct():
        user = f"silent {user_pk.int % SILENT_GROUPS}" if webhook_pk in silent else str(user_pk)
        start_here("deliver_webhook", user=user, webhook_pk=str(webhook_pk))


def deliver(
    webhook_pk: UUID,
    *,
    clock: Callable[[], datetime] = timezone.now,
    tls: ssl.SSLContext | None = None,
    seconds: float = SECONDS,
) -> int:
    """Send due deliveries of a webhook for one turn; return how many calls were made. Each takes at most `seconds`.

    The turn ends early if the receiver does not answer at all, or disables the webhook. None begins while another
    process has one of this webhook.
    """
    enabled = Webhook.objects.select_related("user").filter(pk=webhook_pk, is_enabled=True)
    for webhook in take(enabled, 1, LEASE, now=clock()):
        try:
            return _turn(webhook, clock, tls, seconds)
        finally:
            held = Webhook.objects.filter(pk=webhook_pk, lease_holder=webhook.lease_holder)
            held.update(lease_holder="", leased_until=None)
    return 0


def _turn(webhook: Webhook, clock: Callable[[], datetime], tls: ssl.SSLContext | None, seconds: float) -> int:
    _number(webhook.pk)
    due = webhook.deliveries.filter(next_try_at__lte=clock(), sequence__isnull=False).order_by("sequence")
    ends_at, calls = time.monotonic() + TURN_SECONDS, 0
    for delivery in due[:TURN_DELIVERIES]:
        if time.monotonic() >= ends_at:
            break
        unchanged = WebhookDelivery.objects.filter(pk=delivery.pk, next_try_at=delivery.next_try_at)
        taken = take(unchanged, 1, LEASE, now=clock(), attempts=lambda row: row.attempts + 1, last_tried_at=clock())
        if not taken:
            continue
        if not connection.in_atomic_block:
            connection.close()  # the call may wait long, and many may
        result = _call(webhook, taken[0], clock(), tls, seconds)
        _settle(webhook, taken[0], result, clock())
        calls += 1
        if result.status_code in {None, _GONE}:
            break
    return calls


def delete_old(now: datetime) -> int:
    """Delete deliveries older than 30 days; return their number."""
    return WebhookDelivery.objects.filter(created_at__lt=now - KEPT).delete()[0]


def body_of(webhook: Webhook, delivery: WebhookDelivery) -> bytes:
    """Return the JSON body, the same for every try."""
    return orjson.dumps(
        {
            "type": delivery.event_type,
            "timestamp": isoformat(delivery.created_at),
            "sequence": delivery.sequence,
            "data": {"user_id": webhook.user.user_id, **delivery.data},
        }
    )


def _pending() -> QuerySet[WebhookDelivery]:
    return WebhookDelivery.objects.filter(next_try_at__isnull=False, webhook__is_enabled=True).order_by()


def _number(webhook_pk: UUID) -> None:
    """Give new deliveries their numbers, here and not when they are recorded, which would make writers wait."""
    with transaction.atomic():
        webhook = Webhook.objects.select_for_update(no_key=True).filter(pk=webhook_pk).first()
        if webhook is None:
            return
        new = list(webhook.deliveries.filter(sequence__isnull=True).order_by("pk")[:TURN_DELIVERIES])
        for sequence, delivery in enumerate(new, webhook.last_sequence + 1):
            delivery.sequence = sequence
        WebhookDelivery.objects.bulk_update(new, ["sequence"])
        Webhook.objects.filter(pk=webhook_pk).update(last_sequence=webhook.last_sequence + len(new))


def _call(
    webhook: Webhook, delivery: WebhookDelivery, now: datetime, tls: ssl.SSLContext | None, seconds: float
) -> Result:
    body = body_of(webhook, delivery)
    try:
        signed = signing.headers(_secrets(webhook, now), delivery.delivery_id, int(now.timestamp()), body)
        headers = {"Content-Type": "application/json", "Connection": "close", **signed}
        found = reachable(webhook.url)
        base_url, path = base_and_path(webhook.url)
        with (
            HttpClient(base_url, headers=headers, addresses=found, tls=tls) as http,
            http.send("POST", path, body, Deadline.after(seconds)) as response,
        ):
            return Result(response.status, "", timedelta(seconds=response.retry_after_seconds() or 0))
    except HttpError as error:
        return Result(None, error.message)
    except ValueError:
        return Result(None, _("The address cannot be called. Change it."))
    except BadAddress as error:
        return Result(None, _("The address %(cause)s.", cause=error.message))
    except Undecryptable:
        return Result(None, _("The secret cannot be decrypted. Rotate it."))


def _secrets(webhook: Webhook, now: datetime) -> list[str]:
    expires_at = webhook.previous_secret_expires_at
    has_two = webhook.previous_secret and expires_at is not None and now < expires_at
    return [signing.opened(one) for one in (webhook.secret, *([webhook.previous_secret] if has_two else []))]


def _settle(webhook: Webhook, delivery: WebhookDelivery, result: Result, now: datetime) -> None:
    values: dict[str, Any] = {"status_code": result.status_code, "error": result.error, "next_try_at": None}
    if result.status_code is not None and 200 <= result.status_code < 300:
        values["status"] = WebhookDelivery.Status.DELIVERED
    elif result.status_code == _GONE or delivery.attempts > len(RETRY_DELAYS):
        values["status"] = WebhookDelivery.Status.FAILED
    else:
        delay = RETRY_DELAYS[delivery.attempts - 1] * random.uniform(1.0, 1.1)  # noqa: S311  spreads load
        values["next_try_at"] = now + max(delay, result.retry_after)
    with transaction.atomic():
        # A delivery that is sent again meanwhile by an operator stays pending.
        mine = WebhookDelivery.objects.filter(pk=delivery.pk, lease_holder=delivery.lease_holder)
        released: dict[str, Any] = {"lease_holder": "", "leased_until": None}
        if not mine.filter(next_try_at=delivery.next_try_at).update(**values, **released):
            mine.update(**released)
        if result.status_code == _GONE and Webhook.objects.filter(pk=webhook.pk, is_enabled=True).update(
            is_enabled=False
        ):
            user_id, detail = webhook.user.user_id, {"status_code": _GONE}
            record(Actor.system("webhooks"), "webhook.disable", str(webhook.pk), user_id=user_id, detail=detail)
    if "status" not in values:
        cause = result.error or f"status {result.status_code}"
        logger.info("The delivery %s of a webhook is retried: %s", delivery.delivery_id, cause)
