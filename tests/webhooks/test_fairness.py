"""Receivers that hang delay the deliveries of their user only, at the first try and at every retry."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from core.background import tasks
from core.background.tasks import Round
from tests.conftest import Person, make_person
from tests.server import wait_until
from tests.webhooks.calls import create
from tests.webhooks.receiver import Answer, Receiver, Request, running_receiver
from webhooks.models import Webhook, WebhookDelivery
from webhooks.services import delivery
from webhooks.tasks import deliver_webhooks

pytestmark = pytest.mark.django_db(transaction=True)

OTHERS, HOOKS = 20, 10


@pytest.fixture
def hanging() -> Iterator[Receiver]:
    """A receiver that does not answer before the end of the test."""
    ended = threading.Event()

    def hang(_: Request) -> Answer:
        ended.wait(60)
        return 200, {}

    with running_receiver() as running:
        running.answer = hang
        yield running
        ended.set()
        assert tasks.wait_until_idle(60)


def happen(person: Person) -> None:
    """Make an event due for all webhooks of a user, without starting its delivery."""
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(webhook=one, user_id=person.user_pk, event_type="memory.added")
        for one in Webhook.objects.filter(user_id=person.user_pk)
    )


def seconds_of_a_delivery(person: Person, receiver: Receiver) -> float:
    before, began = len(receiver.requests), time.monotonic()
    happen(person)
    deliver_webhooks.call(Round())
    wait_until(lambda: len(receiver.requests) > before, seconds=30)
    return time.monotonic() - began


def test_a_delivery_takes_a_second_beside_twenty_users_whose_receivers_hang(
    alice: Person, receiver: Receiver, hanging: Receiver
) -> None:
    threads = threading.active_count()  # other tests may have left some
    create(alice, receiver)
    for number in range(OTHERS):
        user = make_person(f"other{number}").user_pk
        Webhook.objects.bulk_create(
            Webhook(user_id=user, url=hanging.url, secret=Webhook.objects.get(user_id=alice.user_pk).secret)
            for _ in range(HOOKS)
        )
        WebhookDelivery.objects.bulk_create(
            WebhookDelivery(webhook=one, user_id=user, event_type="memory.added")
            for one in Webhook.objects.filter(user_id=user)
        )
    deliver_webhooks.call(Round())
    wait_until(lambda: len(hanging.requests) >= OTHERS, seconds=30)
    assert seconds_of_a_delivery(alice, receiver) <= 1.0
    assert len(hanging.requests) <= 2 * OTHERS  # two threads of each user
    assert threading.active_count() - threads < 64 + 2 * 64  # of the gateway, and of the receivers in this process


def test_receivers_that_did_not_answer_share_some_threads(
    alice: Person, bob: Person, receiver: Receiver, hanging: Receiver
) -> None:
    """However many they are, at a retry."""
    create(alice, receiver)
    secret = Webhook.objects.get().secret
    Webhook.objects.bulk_create(Webhook(user_id=bob.user_pk, url=hanging.url, secret=secret) for _ in range(HOOKS))
    for number in range(40):
        Webhook.objects.create(user_id=make_person(f"other{number}").user_pk, url=hanging.url, secret=secret)
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(webhook=one, user_id=one.user_id, event_type="memory.added", sequence=1, attempts=1)
        for one in Webhook.objects.exclude(user_id=alice.user_pk)
    )
    turns = Counter(one.user_id.int % delivery.SILENT_GROUPS for one in Webhook.objects.exclude(user_id=alice.user_pk))
    calls = sum(min(number, 2) for number in turns.values())  # a group may have got one user or none
    deliver_webhooks.call(Round())
    wait_until(lambda: len(hanging.requests) >= calls, seconds=10)
    assert seconds_of_a_delivery(alice, receiver) <= 1.0
    time.sleep(0.5)
    assert len(hanging.requests) == calls
