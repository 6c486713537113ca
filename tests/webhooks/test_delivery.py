"""Deliveries: signed, retried with backoff, in order or marked, to allowed addresses only."""

from __future__ import annotations

import itertools
import random
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from django.utils import timezone

from accounts.models import AuditEvent
from core.background import tasks
from core.background.leases import take
from core.background.tasks import Round
from core.events import publish
from memory_gateway_client import verify_webhook
from operations.tasks import clean_up
from tests.conftest import Person
from tests.memories.calls import call
from tests.store.test_fetching import tls_contexts
from tests.webhooks.calls import create, deliver, only_delivery
from tests.webhooks.receiver import Answer, Receiver, Request, running_receiver
from webhooks.models import Webhook, WebhookDelivery
from webhooks.services import delivery
from webhooks.tasks import deliver_webhooks

pytestmark = pytest.mark.django_db(transaction=True)

STATUS = WebhookDelivery.Status


def happen(person: Person, number: int = 1) -> None:
    for count in range(number):
        with transaction.atomic():
            publish("memory.deleted", person.user_pk, memory_ids=[f"m{count}"])


class Clock:
    """A clock that a test sets forward."""

    def __init__(self) -> None:
        self.now = timezone.now()

    def __call__(self) -> Any:
        return self.now

    def pass_(self, **time: float) -> None:
        self.now += timedelta(**time)


def test_a_delivery(alice: Person, receiver: Receiver) -> None:
    webhook = create(alice, receiver)
    happen(alice)
    before = timezone.now().timestamp()
    assert deliver(webhook) == 1
    [request] = receiver.requests
    sent = only_delivery()
    assert request.path == "/hook/?tenant=7"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["webhook-id"] == sent.delivery_id
    assert int(before) <= int(request.headers["webhook-timestamp"]) <= timezone.now().timestamp()
    assert request.is_signed_by(webhook["secret"])
    assert verify_webhook(webhook["secret"], request.headers, request.body).id == sent.delivery_id
    assert request.event == {
        "type": "memory.deleted",
        "timestamp": sent.created_at.isoformat(timespec="seconds"),
        "sequence": 1,
        "data": {"user_id": "alice", "memory_ids": ["m0"]},
    }
    assert (sent.status, sent.status_code, sent.attempts, sent.next_try_at) == (STATUS.DELIVERED, 204, 1, None)
    assert deliver(webhook) == 0


def test_a_failing_receiver_gets_every_event(alice: Person, receiver: Receiver) -> None:
    receive_all(alice, receiver, 100)


@pytest.mark.torture
def test_a_failing_receiver_gets_every_one_of_many_events(alice: Person, receiver: Receiver) -> None:
    receive_all(alice, receiver, 1000)


def receive_all(alice: Person, receiver: Receiver, number: int) -> None:
    chances, clock = random.Random(7), Clock()

    def answer(_: Request) -> Answer:
        return (500 if chances.random() < 0.3 else 200), {}

    receiver.answer = answer
    webhook = create(alice, receiver)
    happen(alice, number)
    clock.now = timezone.now()
    for _ in range(30):
        while delivery.deliver(UUID(webhook["webhook_id"]), clock=clock):
            pass
        clock.pass_(hours=12)
    assert set(WebhookDelivery.objects.values_list("status", flat=True)) == {STATUS.DELIVERED}
    assert all(request.is_signed_by(webhook["secret"]) for request in receiver.requests)
    by_sequence = {request.event["sequence"]: request for request in receiver.requests}
    assert sorted(by_sequence) == list(range(1, number + 1))
    assert [by_sequence[one].event["data"]["memory_ids"] for one in sorted(by_sequence)] == [
        [f"m{count}"] for count in range(number)
    ]
    assert len(receiver.requests) > number
    for sequence in by_sequence:  # every try has the same id and the same body
        tries = [request for request in receiver.requests if request.event["sequence"] == sequence]
        assert len({(request.headers["webhook-id"], request.body) for request in tries}) == 1


def test_retries_end_after_a_day(alice: Person, receiver: Receiver) -> None:
    receiver.answer = lambda _: (503, {})
    webhook, clock = create(alice, receiver), Clock()
    happen(alice)
    clock.now = started = timezone.now()
    waits = []
    while (pending := only_delivery()).next_try_at is not None:
        clock.now = max(clock.now, pending.next_try_at)
        assert delivery.deliver(UUID(webhook["webhook_id"]), clock=clock) == 1
        waits.append(clock.now)
    pauses = [later - earlier for earlier, later in itertools.pairwise(waits)]
    assert len(receiver.requests) == 8
    for pause, delay in zip(pauses, delivery.RETRY_DELAYS, strict=True):
        assert delay <= pause <= delay * 1.1
    assert timedelta(hours=27) < clock.now - started < timedelta(hours=31)
    assert (pending.status, pending.status_code, pending.attempts) == (STATUS.FAILED, 503, 8)


def test_retry_after_is_heeded(alice: Person, receiver: Receiver) -> None:
    receiver.answer = lambda _: (429, {"Retry-After": "3600"})
    webhook = create(alice, receiver)
    happen(alice)
    deliver(webhook)
    left = (only_delivery().next_try_at or timezone.now()) - timezone.now()
    assert timedelta(minutes=59) < left <= timedelta(hours=1)


def test_a_failure_does_not_delay_later_events(alice: Person, receiver: Receiver) -> None:
    receiver.answer = lambda request: (500 if request.event["sequence"] == 1 else 200, {})
    webhook = create(alice, receiver)
    happen(alice, 3)
    assert deliver(webhook) == 3
    assert [request.event["sequence"] for request in receiver.requests] == [1, 2, 3]


def test_redirects_are_not_followed(alice: Person, receiver: Receiver) -> None:
    receiver.answer = lambda _: (307, {"Location": "/elsewhere"})
    webhook = create(alice, receiver)
    happen(alice)
    deliver(webhook)
    assert [request.path for request in receiver.requests] == ["/hook/?tenant=7"]
    assert (only_delivery().status, only_delivery().status_code) == (STATUS.PENDING, 307)


def test_410_disables_the_webhook(alice: Person, receiver: Receiver) -> None:
    receiver.answer = lambda _: (410, {})
    webhook = create(alice, receiver)
    happen(alice, 2)
    assert deliver(webhook) == 1
    assert [one.status for one in WebhookDelivery.objects.order_by("pk")] == [STATUS.FAILED, STATUS.PENDING]
    assert call(alice, "get", f"/webhooks/{webhook['webhook_id']}")["is_enabled"] is False
    assert AuditEvent.objects.get(action="webhook.disable").user_id == "alice"
    receiver.answer = lambda _: (200, {})
    assert deliver(webhook) == 0
    call(alice, "patch", f"/webhooks/{webhook['webhook_id']}", is_enabled=True)
    assert deliver(webhook) == 1


def test_a_receiver_that_cannot_be_reached_ends_the_turn(alice: Person, receiver: Receiver) -> None:
    webhook = create(alice, receiver)
    happen(alice, 3)
    Webhook.objects.update(url="http://127.0.0.1:1/")
    assert deliver(webhook) == 1
    first = WebhookDelivery.objects.order_by("pk")[0]
    assert (first.status, first.status_code, first.error) == (STATUS.PENDING, None, "Connection refused")


def test_a_receiver_that_hangs_ends_the_turn_at_the_deadline(alice: Person, receiver: Receiver) -> None:
    ended = threading.Event()

    def hang(_: Request) -> Answer:
        ended.wait(30)
        return 200, {}

    receiver.answer = hang
    webhook = create(alice, receiver)
    happen(alice, 2)
    assert delivery.deliver(UUID(webhook["webhook_id"]), seconds=0.3) == 1
    ended.set()
    first = WebhookDelivery.objects.order_by("pk")[0]
    assert (first.status, first.status_code, first.error) == (STATUS.PENDING, None, "The response timed out")
    assert delivery.SECONDS == 15


@pytest.mark.parametrize("is_trusted", [True, False])
def test_the_certificate_is_verified(alice: Person, tmp_path: Path, is_trusted: bool) -> None:
    server, client = tls_contexts(tmp_path, "localhost")
    with running_receiver(server) as receiver:
        webhook = create(alice, receiver)
        happen(alice)
        delivery.deliver(UUID(webhook["webhook_id"]), tls=client if is_trusted else None)
        sent = only_delivery()
        assert len(receiver.requests) == is_trusted
        assert sent.status == (STATUS.DELIVERED if is_trusted else STATUS.PENDING)
        assert sent.error == ("" if is_trusted else "The TLS certificate is not valid")


@pytest.mark.parametrize("url", ["https://10.0.0.7/", "https://169.254.169.254/latest", "http://192.168.0.1/"])
def test_private_addresses_are_not_called(alice: Person, receiver: Receiver, url: str) -> None:
    webhook = create(alice, receiver)
    happen(alice)
    Webhook.objects.update(url=url)  # as if the name resolved differently now
    assert deliver(webhook) == 1
    sent = only_delivery()
    assert (sent.status, sent.status_code, receiver.requests) == (STATUS.PENDING, None, [])
    assert sent.error.startswith("The address must")


def test_loopback_is_not_called_once_the_gateway_has_a_token(alice: Person, receiver: Receiver, settings: Any) -> None:
    webhook = create(alice, receiver)
    happen(alice)
    settings.MEMORY_GATEWAY_PROVISIONING_TOKEN = "a token"
    deliver(webhook)
    assert receiver.requests == []
    Webhook.objects.update(url=receiver.url.replace("http:", "https:"))
    WebhookDelivery.objects.update(next_try_at=timezone.now())
    deliver(webhook)
    assert only_delivery().error.startswith("The address must not be in a private network")


def test_both_secrets_sign_until_the_grace_ends(alice: Person, receiver: Receiver) -> None:
    webhook = create(alice, receiver)
    address = f"/webhooks/{webhook['webhook_id']}/rotate-secret"
    rotated = call(alice, "post", address, grace_seconds=3600)
    happen(alice)
    deliver(webhook)
    assert receiver.requests[0].is_signed_by(webhook["secret"])
    assert receiver.requests[0].is_signed_by(rotated["secret"])
    Webhook.objects.update(previous_secret_expires_at=timezone.now())
    happen(alice)
    deliver(webhook)
    assert not receiver.requests[1].is_signed_by(webhook["secret"])
    assert receiver.requests[1].is_signed_by(rotated["secret"])
    newest = call(alice, "post", address, grace_seconds=0)
    happen(alice)
    deliver(webhook)
    assert not receiver.requests[2].is_signed_by(rotated["secret"])
    assert receiver.requests[2].is_signed_by(newest["secret"])


def test_the_periodic_task_delivers_and_users_have_their_own_receivers(
    alice: Person, bob: Person, receiver: Receiver
) -> None:
    create(alice, receiver)
    create(bob, receiver)
    happen(alice, 2)
    happen(bob)
    deliver_webhooks.call(Round())
    assert tasks.wait_until_idle(30)
    assert sorted(request.event["data"]["user_id"] for request in receiver.requests) == ["alice", "alice", "bob"]


def test_a_delivery_that_a_crash_interrupted_is_sent_again(alice: Person, receiver: Receiver) -> None:
    webhook, clock = create(alice, receiver), Clock()

    happen(alice)
    WebhookDelivery.objects.update(sequence=1)
    [taken] = take(WebhookDelivery.objects.all(), 1, delivery.LEASE)  # and then another machine fails
    WebhookDelivery.objects.update(lease_holder="elsewhere:1:a")
    assert (taken.lease_holder != "", deliver(webhook)) == (True, 0)
    clock.pass_(minutes=2)
    assert delivery.deliver(UUID(webhook["webhook_id"]), clock=clock) == 1
    assert len(receiver.requests) == 1


def test_one_process_at_a_time_delivers_a_webhook(alice: Person, receiver: Receiver) -> None:
    webhook, clock = create(alice, receiver), Clock()
    happen(alice, 2)
    take(Webhook.objects.all(), 1, delivery.LEASE)
    Webhook.objects.update(lease_holder="elsewhere:1:a")
    assert deliver(webhook) == 0
    clock.pass_(minutes=2)  # the other machine has failed
    assert delivery.deliver(UUID(webhook["webhook_id"]), clock=clock) == 2
    assert not Webhook.objects.exclude(lease_holder="").exists()


def test_old_deliveries_are_removed(alice: Person, receiver: Receiver) -> None:
    create(alice, receiver)
    happen(alice, 2)
    old = WebhookDelivery.objects.order_by("pk")[0]
    WebhookDelivery.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=31))
    clean_up(Round())
    assert [one.pk for one in WebhookDelivery.objects.all()] == [old.pk + 1]
