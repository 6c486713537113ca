"""Concurrent calls for one session send nothing twice, even if their responses are lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from django.db import connections

from core.errors import OutcomeUnknown
from engines.attached import AttachedEngine
from remote.models import OutboxEntry
from tests.conftest import Person
from tests.remote.conftest import NOON, deliver, message_of
from tests.stub_upstream import Fault, StubUpstream

LOST_RESPONSE = Fault(reset=True, acts=True)


@pytest.mark.django_db(transaction=True)
def test_a_message_sent_during_a_flush_is_sent_once_even_if_its_response_is_lost(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    def add(text: str, timestamp_ms: int) -> None:
        engine.add(alice.owner, "chat:1", [message_of(alice.owner, text, timestamp_ms)])

    def send() -> None:
        with suppress(OutcomeUnknown):  # this or the flush sends the dog
            deliver(engine, alice.owner)

    stub.fault("add", LOST_RESPONSE)
    add("a cat", NOON)
    with pytest.raises(OutcomeUnknown):
        deliver(engine, alice.owner)
    stub.fault("search", Fault(hang_seconds=0.5))  # while the flush looks for the cat in the buffer
    stub.fault("add", LOST_RESPONSE)
    with ThreadPoolExecutor() as executor:
        flushing = executor.submit(with_own_connection, lambda: engine.flush(alice.owner, "chat:1"))
        while not stub.calls("search"):
            time.sleep(0.01)
        add("a dog", NOON + 1)
        sending = executor.submit(with_own_connection, send)
        flushing.result()
        sending.result()
    engine.flush(alice.owner, "chat:1")
    episodes = " ".join(episode["episode"] for episode in stub.store.episodes)
    assert (episodes.count("a cat"), episodes.count("a dog")) == (1, 1)
    assert set(OutboxEntry.objects.values_list("state", flat=True)) == {"flushed"}


def with_own_connection(call: Callable[[], object]) -> None:
    try:
        call()
    finally:
        connections.close_all()
