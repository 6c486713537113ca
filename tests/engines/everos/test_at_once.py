"""Calls of one session at once: whatever is lost of their answers, nothing is told twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from core.errors import OutcomeUnknown
from engines.everos.adapter import EverOSEngine
from tests.conftest import Person
from tests.engines.everos.conftest import NOON, told
from tests.stub_upstream import Fault, StubUpstream

LOST = Fault(reset=True, acts=True)


@pytest.mark.django_db(transaction=True)
def test_a_message_added_beside_a_flush_is_told_once_though_its_answer_is_lost(
    engine: EverOSEngine, stub: StubUpstream, alice: Person
) -> None:
    def add(text: str, timestamp_ms: int) -> None:
        with pytest.raises(OutcomeUnknown):
            engine.add(alice.owner, "chat:1", [told(alice.owner, text, timestamp_ms)])

    stub.fault("add", LOST)
    add("a cat", NOON)
    stub.fault("search", Fault(hang_seconds=0.5))  # while the flush looks for the cat in the buffer
    stub.fault("add", LOST)
    with ThreadPoolExecutor() as executor:
        flushing = executor.submit(own_connection, lambda: engine.flush(alice.owner, "chat:1"))
        while not stub.calls("search"):
            time.sleep(0.01)
        adding = executor.submit(own_connection, lambda: add("a dog", NOON + 1))
        flushing.result()
        adding.result()
    engine.flush(alice.owner, "chat:1")
    told_of = " ".join(episode["episode"] for episode in stub.store.episodes)
    assert (told_of.count("a cat"), told_of.count("a dog")) == (1, 1)


def own_connection(call: Callable[[], object]) -> None:
    try:
        call()
    finally:
        connections.close_all()
