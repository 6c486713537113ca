"""Whatever the upstream does in between: what was acknowledged is there in the end, once."""

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
from engines.everos.adapter import EverOSEngine
from store.models import Session
from tests.conftest import Person, make_person
from tests.engines.everos.conftest import NOON, make_engine, told
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
MOST_TRIES = 60


@pytest.mark.parametrize("seed", range(3))
def test_under_faults_each_message_ends_up_in_exactly_one_memory(stub: StubUpstream, alice: Person, seed: int) -> None:
    dice = random.Random(seed)
    engine = make_engine(stub, attempts=2)
    for number in range(MESSAGES):
        session_id = f"chat:{number % SESSIONS}"
        message = told(alice.owner, f"fact-{number}", NOON + number // 10)
        until_done(stub, dice, lambda s=session_id, m=message: engine.add(alice.owner, s, [m]))
        if dice.random() < 0.2:
            until_done(stub, dice, lambda s=session_id: engine.flush(alice.owner, s))
    for number in range(SESSIONS):
        until_done(stub, dice, lambda s=f"chat:{number}": engine.flush(alice.owner, s))
    remembered = Counter(
        fact for episode in stub.store.episodes for fact in re.findall(r"fact-\d+", episode["episode"])
    )
    assert remembered == Counter(f"fact-{number}" for number in range(MESSAGES))


def until_done(stub: StubUpstream, dice: random.Random, call: Callable[[], Any]) -> None:
    """As a caller would: again after every temporary failure. A third of the calls goes wrong."""
    for _ in range(MOST_TRIES):
        stub.heal("*")
        if dice.random() < 0.3:
            stub.fault("*", dice.choice(FAULTS))
        try:
            call()
        except EngineUnavailable:
            continue
        return
    pytest.fail("it never came through")


def together(calls: list[Callable[[], object]]) -> None:
    """All at the same moment, each in a thread with a connection of its own."""
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
def test_users_who_open_one_conversation_id_at_the_same_moment_get_different_sessions(
    engine: EverOSEngine, stub: StubUpstream
) -> None:
    people = [make_person(f"user{number}") for number in range(8)]
    together([lambda p=person: engine.add(p.owner, "chat:1", [told(p.owner, p.user_id)]) for person in people])
    assert len(set(Session.objects.values_list("engine_session_id", flat=True))) == len(people)
    assert all(len(buffer) == 1 for buffer in stub.store.buffers.values())


@pytest.mark.django_db(transaction=True)
def test_messages_of_one_moment_sent_at_the_same_moment_are_all_kept(stub: StubUpstream, alice: Person) -> None:
    engine = make_engine(stub, timeout_seconds=60)  # they go out one after the other
    texts = [f"text {number}" for number in range(8)]
    together([lambda t=text: engine.add(alice.owner, "chat:1", [told(alice.owner, t)]) for text in texts + texts])
    [buffer] = stub.store.buffers.values()
    assert sorted(message["content"][0]["text"] for message in buffer.values()) == texts
