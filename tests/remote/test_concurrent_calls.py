"""Concurrent calls for one session send nothing twice, even if their responses are lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from core.errors import OutcomeUnknown
from engines.attached import AttachedEngine
from tests.conftest import Person
from tests.remote.conftest import NOON, message_of
from tests.stub_upstream import Fault, StubUpstream

LOST_RESPONSE = Fault(reset=True, acts=True)


@pytest.mark.django_db(transaction=True)
def test_a_message_added_during_a_flush_is_sent_once_even_if_its_response_is_lost(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    def add(text: str, timestamp_ms: int) -> None:
        with pytest.raises(OutcomeUnknown):
            engine.add(alice.owner, "chat:1", [message_of(alice.owner, text, timestamp_ms)])

    stub.fault("add", LOST_RESPONSE)
    add("a cat", NOON)
    stub.fault("search", Fault(hang_seconds=0.5))  # while the flush looks for the cat in the buffer
    stub.fault("add", LOST_RESPONSE)
    with ThreadPoolExecutor() as executor:
        flushing = executor.submit(with_own_connection, lambda: engine.flush(alice.owner, "chat:1"))
        while not stub.calls("search"):
            time.sleep(0.01)
        adding = executor.submit(with_own_connection, lambda: add("a dog", NOON + 1))
        flushing.result()
        adding.result()
    engine.flush(alice.owner, "chat:1")
    episodes = " ".join(episode["episode"] for episode in stub.store.episodes)
    assert (episodes.count("a cat"), episodes.count("a dog")) == (1, 1)


def with_own_connection(call: Callable[[], object]) -> None:
    try:
        call()
    finally:
        connections.close_all()
