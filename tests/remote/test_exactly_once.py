"""Every acknowledged message ends up in EverOS exactly once, under faults and concurrent calls."""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections

from core.errors import EngineUnavailable
from engines.attached import AttachedEngine
from store.models import Session
from tests.conftest import Person, make_person
from tests.remote.conftest import NOON, make_engine, message_of
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
def test_under_faults_each_message_is_in_exactly_one_memory(stub: StubUpstream, alice: Person, seed: int) -> None:
    rng = random.Random(seed)
    engine = make_engine(stub, attempts=2)
    for number in range(MESSAGES):
        session_id = f"chat:{number % SESSIONS}"
        message = message_of(alice.owner, f"fact-{number}", NOON + number // 10)
        repeat_until_done(stub, rng, lambda s=session_id, m=message: engine.add(alice.owner, s, [m]))
        if rng.random() < 0.2:
            repeat_until_done(stub, rng, lambda s=session_id: engine.flush(alice.owner, s))
    for number in range(SESSIONS):
        repeat_until_done(stub, rng, lambda s=f"chat:{number}": engine.flush(alice.owner, s))
    facts = Counter(fact for episode in stub.store.episodes for fact in re.findall(r"fact-\d+", episode["episode"]))
    assert facts == Counter(f"fact-{number}" for number in range(MESSAGES))


def repeat_until_done(stub: StubUpstream, rng: random.Random, call: Callable[[], Any]) -> None:
    """Repeat a call after every temporary failure, as callers do. A third of the calls meets a fault."""
    for _ in range(MAX_ATTEMPTS):
        stub.heal("*")
        if rng.random() < 0.3:
            stub.fault("*", rng.choice(FAULTS))
        try:
            call()
        except EngineUnavailable:
            continue
        return
    pytest.fail("the call never succeeded")


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
        [lambda p=person: engine.add(p.owner, "chat:1", [message_of(p.owner, p.user_id)]) for person in users]
    )
    assert len(set(Session.objects.values_list("engine_session_id", flat=True))) == len(users)
    assert all(len(buffer) == 1 for buffer in stub.store.buffers.values())


@pytest.mark.django_db(transaction=True)
def test_concurrent_messages_with_equal_times_are_all_stored(stub: StubUpstream, alice: Person) -> None:
    engine = make_engine(stub, timeout_seconds=60)  # the messages are sent one after the other
    texts = [f"text {number}" for number in range(8)]
    run_concurrently(
        [lambda t=text: engine.add(alice.owner, "chat:1", [message_of(alice.owner, t)]) for text in texts + texts]
    )
    [buffer] = stub.store.buffers.values()
    assert sorted(message["content"][0]["text"] for message in buffer.values()) == texts
