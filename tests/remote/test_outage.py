"""EverOS is away, hangs or is replaced: messages wait, users take turns, and everything is sent once it answers."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from engines.attached import AttachedEngine
from remote.models import OutboxEntry
from store.models import Memory, Session
from tests.conftest import Person
from tests.remote.conftest import NOON, Run, message_of
from tests.stub_upstream import Fault, StubUpstream

MESSAGES_OF_AN_ADD = 500
of_many = pytest.mark.parametrize("waiting", [2000, pytest.param(10_000, marks=pytest.mark.torture)])


def say(engine: AttachedEngine, person: Person, session_id: str, *texts: str) -> None:
    messages = [message_of(person.owner, text, NOON + number) for number, text in enumerate(texts)]
    for start in range(0, len(messages), MESSAGES_OF_AN_ADD):
        engine.add(person.owner, session_id, messages[start : start + MESSAGES_OF_AN_ADD])


def senders(stub: StubUpstream) -> list[str]:
    """Return the senders of the calls in their order."""
    return [body["messages"][0]["sender_id"] for body in stub.calls("add")]


def shown(person: Person) -> set[str]:
    return set(Memory.objects.filter(user_id=person.user_pk, is_covered=False).values_list("text", flat=True))


def test_what_was_added_and_flushed_during_an_outage_is_derived_after_it(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, run_deliveries: Run
) -> None:
    stub.fault("*", Fault(status=429), times=10_000)
    for session_id in ("chat:1", "chat:2"):
        say(engine, alice, session_id, f"tea of {session_id}")
        result = engine.flush(alice.owner, session_id)
        assert (result.status, result.memory_count, bool(result.degraded)) == ("extracted", 1, True)
    say(engine, alice, "chat:3", "tea of chat:3")
    assert run_deliveries(timedelta()) == 0
    assert set(OutboxEntry.objects.values_list("state", flat=True)) == {"pending"}
    assert shown(alice) == {f"tea of chat:{number}" for number in (1, 2, 3)}
    stub.heal("*")
    run_deliveries(timedelta(minutes=10))
    assert shown(alice) == {"alice said: tea of chat:1", "alice said: tea of chat:2", "tea of chat:3"}
    states = dict(OutboxEntry.objects.values_list("session__session_id", "state"))
    assert states == {"chat:1": "flushed", "chat:2": "flushed", "chat:3": "buffered"}
    assert Session.objects.filter(searchable_at__isnull=True, flushed_at__isnull=False).count() == 0
    assert engine.flush(alice.owner, "chat:3").memory_count == 1
    assert (len(stub.store.episodes), stub.store.dropped) == (3, 0)


@pytest.mark.slow
@of_many
def test_a_users_first_message_does_not_wait_for_thousands_of_another(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, bob: Person, run_deliveries: Run, waiting: int
) -> None:
    for number in range(20):
        session_id, count = f"chat:{number}", waiting // 20
        say(engine, alice, session_id, *(f"fact {number} {place}" for place in range(count)))
    say(engine, bob, "chat:b", "tea")
    assert OutboxEntry.objects.filter(state="pending").count() == waiting + 1
    run_deliveries(timedelta())
    assert senders(stub)[:3] == ["alice", "bob", "alice"]
    assert set(OutboxEntry.objects.values_list("state", flat=True)) == {"buffered"}
    assert Counter(senders(stub))["bob"] == 1
    assert sum(len(body["messages"]) for body in stub.calls("add")) == waiting + 1
    assert stub.store.dropped == 0


@pytest.mark.slow
@of_many
def test_a_users_first_message_does_not_wait_for_thousands_of_one_session_of_another(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, bob: Person, run_deliveries: Run, waiting: int
) -> None:
    say(engine, alice, "chat:1", *(f"fact {number}" for number in range(waiting)))
    say(engine, bob, "chat:b", "tea")
    run_deliveries(timedelta())
    assert senders(stub)[:3] == ["alice", "bob", "alice"]
    texts = [message["content"][0]["text"] for body in stub.calls("add") for message in body["messages"]]
    assert [text for text in texts if text != "tea"] == [f"fact {number}" for number in range(waiting)]


def test_after_a_failure_other_sessions_of_the_user_wait_for_the_next_round(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, bob: Person, run_deliveries: Run
) -> None:
    """Each of them could take as long as a call may."""
    for number in range(3):
        say(engine, alice, f"chat:{number}", "tea")
        say(engine, bob, f"chat:b{number}", "tea")
    with stub.failing_for(alice.user_id, Fault(status=504)):
        run_deliveries(timedelta())
        assert Counter(senders(stub)) == {"alice": 1, "bob": 3}
    for _ in range(2):  # what is unconfirmed is sent first
        run_deliveries(timedelta(minutes=10))
    assert set(OutboxEntry.objects.values_list("state", flat=True)) == {"buffered"}
    assert stub.store.dropped == 0


def test_messages_for_another_address_are_not_sent_until_it_is_attached_again(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, run_deliveries: Run, settings: Any
) -> None:
    first = settings.MEMORY_GATEWAY_BACKEND_BASE_URL
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = "http://another.invalid"
    say(engine, alice, "chat:1", "tea")
    say(engine, alice, "chat:2", "cake")
    OutboxEntry.objects.filter(session__session_id="chat:2").update(state="unconfirmed", call_id="call")
    before = list(OutboxEntry.objects.order_by("pk").values())
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = first
    run_deliveries(timedelta(days=1))
    for session_id in ("chat:1", "chat:2"):
        engine.flush(alice.owner, session_id)
    assert stub.calls("add") == []
    assert list(OutboxEntry.objects.order_by("pk").values()) == before
    OutboxEntry.objects.update(base_url=first)
    for session_id in ("chat:1", "chat:2"):
        engine.flush(alice.owner, session_id)
    assert shown(alice) == {"alice said: tea", "alice said: cake"}
