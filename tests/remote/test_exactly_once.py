"""Every acknowledged message ends up in EverOS exactly once and in its order, under faults and concurrent calls."""

from __future__ import annotations

import random
import re
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress

import pytest
from django.db import connections

from core.errors import EngineUnavailable
from engines.attached import AttachedEngine
from remote.models import OutboxEntry
from store.models import Session
from tests.conftest import Person, make_person
from tests.remote.conftest import NOON, add_and_send, deliver, make_engine, message_of
from tests.stub_upstream import Fault, StubUpstream

FAULTS = (
    Fault(status=503, body={}),
    Fault(status=429, body={}),
    Fault(status=401, body={}),
    *(Fault(status=status, acts=acts) for status in (500, 502, 503, 504) for acts in (False, True)),
    Fault(reset=True),
    Fault(reset=True, acts=True),
    Fault(truncate=True),
    Fault(status=200, body=b"<html>", content_type="text/html", acts=True),
)
MESSAGES = 60
SESSIONS = 6
MAX_ATTEMPTS = 60


@pytest.mark.parametrize("seed", range(3))
def test_under_faults_each_message_is_in_exactly_one_memory_in_its_order(
    stub: StubUpstream, alice: Person, seed: int
) -> None:
    rng = random.Random(seed)
    engine = make_engine(stub, attempts=2)
    for number in range(MESSAGES):
        session_id = f"chat:{number % SESSIONS}"
        break_some(stub, rng)
        engine.add(alice.owner, session_id, [message_of(alice.owner, f"fact-{number}", NOON + number // 10)])
        if rng.random() < 0.6:
            with suppress(EngineUnavailable):
                deliver(engine, alice.owner, session_id)
        if rng.random() < 0.2:
            flush(engine, stub, rng, alice, session_id)
    for number in range(SESSIONS):
        flush(engine, stub, rng, alice, f"chat:{number}")
    facts: dict[str, list[int]] = defaultdict(list)
    for episode in stub.store.episodes:
        facts[episode["session_id"]] += map(int, re.findall(r"fact-(\d+)", episode["episode"]))
    assert facts == {f"chat:{number}": list(range(number, MESSAGES, SESSIONS)) for number in range(SESSIONS)}
    assert set(OutboxEntry.objects.values_list("state", flat=True)) == {"flushed"}


def break_some(stub: StubUpstream, rng: random.Random) -> None:
    """Let a third of the calls meet a fault."""
    stub.heal("*")
    if rng.random() < 0.3:
        stub.fault("*", rng.choice(FAULTS))


def flush(engine: AttachedEngine, stub: StubUpstream, rng: random.Random, person: Person, session_id: str) -> None:
    """Flush until EverOS derived memories, as callers and the periodic task do."""
    for _ in range(MAX_ATTEMPTS):
        break_some(stub, rng)
        if engine.flush(person.owner, session_id).degraded is None:
            return
    pytest.fail("the flush never succeeded")


def run_concurrently(calls: list[Callable[[], object]]) -> None:
    """Run all calls at the same time, each in a thread with its own connection."""
    start = threading.Barrier(len(calls))
    failures: list[BaseException] = []

    def run(call: Callable[[], object]) -> None:
        start.wait()
        try:
            call()
        except BaseException as error:  # noqa: BLE001  shown by the assertion below
            failures.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.django_db(transaction=True)
def test_users_who_concurrently_start_one_session_id_get_different_sessions(
    engine: AttachedEngine, stub: StubUpstream
) -> None:
    users = [make_person(f"user{number}") for number in range(8)]
    run_concurrently(
        [lambda p=person: add_and_send(engine, p.owner, "chat:1", [message_of(p.owner, p.user_id)]) for person in users]
    )
    assert len(set(Session.objects.values_list("engine_session_id", flat=True))) == len(users)
    assert [len(buffer) for buffer in stub.store.buffers.values()] == [1] * len(users)


@pytest.mark.django_db(transaction=True)
def test_concurrent_messages_with_equal_times_are_all_sent_once(stub: StubUpstream, alice: Person) -> None:
    engine = make_engine(stub, timeout_seconds=60)  # the messages are sent one after the other
    texts = [f"text {number}" for number in range(8)]
    run_concurrently(
        [
            lambda t=text: add_and_send(engine, alice.owner, "chat:1", [message_of(alice.owner, t)])
            for text in texts + texts
        ]
    )
    [buffer] = stub.store.buffers.values()
    assert sorted(message["content"][0]["text"] for message in buffer.values()) == texts
    assert stub.store.dropped == 0
    assert len({message["timestamp"] for message in buffer.values()}) == len(texts)
