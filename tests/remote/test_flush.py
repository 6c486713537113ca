"""`AttachedEngine.flush` reports memories only when EverOS shows them, and reports none only when there are none.

If EverOS does not answer, the messages are the memories, and it is asked later.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from engines.attached import AttachedEngine
from remote.everos import EverOS
from remote.models import OutboxEntry
from store.models import Memory, Session
from tests.conftest import Person
from tests.remote.conftest import NOON, Run, add_and_send, make_client, make_engine, message_of, no_wait
from tests.stub_upstream import Fault, StubUpstream

NOTHING_FOUND = Fault(body={"request_id": "x", "data": {"episodes": []}})
NOTHING_LISTED = Fault(body={"request_id": "x", "data": {"episodes": [], "total_count": 0}})


def add(engine: AttachedEngine, person: Person, text: str = "I like tea", session_id: str = "chat:1") -> None:
    engine.add(person.owner, session_id, [message_of(person.owner, text)])


def flush_degraded(engine: AttachedEngine, person: Person) -> str:
    """Flush, while only messages can be found; return the cause."""
    result = engine.flush(person.owner, "chat:1")
    assert result.degraded is not None
    assert (result.status, result.memory_count) == ("extracted", OutboxEntry.objects.count())
    return result.degraded


def episodes(person: Person) -> list[Memory]:
    return list(Memory.objects.filter(user_id=person.user_pk, memory_type="episode", is_covered=False))


def test_extracted_memories_are_copied_and_counted(engine: AttachedEngine, alice: Person) -> None:
    add(engine, alice)
    result = engine.flush(alice.owner, "chat:1")
    assert (result.status, result.memory_count) == ("extracted", 1)
    assert result.searchable_at_ms
    [copy] = episodes(alice)
    assert copy.text == "alice said: I like tea"
    assert copy.memory_id.startswith("alice_ep_")
    assert copy.session is not None
    assert copy.session.session_id == "chat:1"
    assert (copy.origin, copy.payload["session_id"]) == ("upstream", "chat:1")


def test_the_copy_names_the_callers_session_not_the_engines(engine: AttachedEngine, alice: Person, bob: Person) -> None:
    for person in (alice, bob):
        add(engine, person)
    engine.flush(bob.owner, "chat:1")
    assert episodes(bob)[0].payload["session_id"] == "chat:1"
    assert not episodes(alice)


def test_an_unknown_session_makes_no_call(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    assert engine.flush(alice.owner, "chat:never").status == "no_extraction"
    assert not stub.requests


def test_the_session_of_another_user_is_not_flushed(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, charlie: Person
) -> None:
    add(engine, alice)
    assert engine.flush(charlie.owner, "chat:1").status == "no_extraction"
    assert not stub.calls("flush")


def test_a_second_flush_extracts_nothing(engine: AttachedEngine, alice: Person) -> None:
    add(engine, alice)
    engine.flush(alice.owner, "chat:1")
    assert engine.flush(alice.owner, "chat:1").status == "no_extraction"


def test_a_flush_waits_until_the_memories_are_listed(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    add(engine, alice)
    stub.fault("get", NOTHING_LISTED, times=3)
    assert engine.flush(alice.owner, "chat:1").memory_count == 1
    assert len(stub.calls("get")) == 5  # three empty, one with the memory, and one that shows no more


def test_a_flush_waits_until_a_search_finds_the_memories(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    add(engine, alice)
    stub.fault("search", NOTHING_FOUND, times=2)
    stub.fault("search", Fault(status=503, body={}))
    result = engine.flush(alice.owner, "chat:1")
    assert result.searchable_at_ms
    assert result.memory_count == 1
    searches = stub.calls("search")
    assert len(searches) == 4
    assert {body["query"] for body in searches} == {"alice said: I like tea"}


def test_memories_that_no_search_finds_in_time_are_reported_as_not_searchable(
    stub: StubUpstream, alice: Person
) -> None:
    engine = make_engine(stub, timeout_seconds=0.6)
    add(engine, alice)
    stub.fault("search", NOTHING_FOUND, times=1000)
    result = engine.flush(alice.owner, "chat:1")
    assert (result.status, result.memory_count, result.searchable_at_ms) == ("extracted", 1, None)


def two_episodes(engine: AttachedEngine, stub: StubUpstream, person: Person) -> Fault:
    """Add two messages that become two episodes with the next flush; return a fault that lists only the first."""
    for number in range(2):
        add_and_send(engine, person.owner, "chat:1", [message_of(person.owner, f"fact {number}", NOON + number * 1000)])
        if number == 0:
            stub.store.flush({"session_id": "chat:1"})
    first = {"episodes": list(stub.store.episodes), "total_count": 1}
    return Fault(body={"request_id": "x", "data": first})


def test_a_flush_waits_for_the_last_of_several_memories(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    stub.fault("get", two_episodes(engine, stub, alice), times=4)
    result = engine.flush(alice.owner, "chat:1")
    assert result.memory_count == len(episodes(alice)) == 2
    assert result.searchable_at_ms
    assert len(stub.calls("get")) == 6


def test_memories_not_listed_in_time_leave_the_flush_open(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    only_first = two_episodes(engine, stub, alice)
    stub.fault("get", only_first, times=1000)
    result = engine.flush(alice.owner, "chat:1")
    assert (result.status, result.memory_count, result.searchable_at_ms) == ("extracted", 1, None)
    assert engine.remote.check_flush(alice.owner, Session.objects.get()) == 0
    assert Session.objects.get().searchable_at is None
    stub.heal("get")
    assert engine.remote.check_flush(alice.owner, Session.objects.get()) == 1
    assert Session.objects.get().searchable_at is not None
    assert len(episodes(alice)) == 2


def test_an_open_flush_ends_when_no_extraction_can_still_run(stub: StubUpstream, alice: Person) -> None:
    now = [datetime(2026, 11, 20, tzinfo=UTC)]
    engine = AttachedEngine(EverOS(make_client(stub), clock=lambda: now[0], sleep=no_wait))
    stub.fault("get", two_episodes(engine, stub, alice), times=1000)
    engine.flush(alice.owner, "chat:1")
    now[0] += timedelta(minutes=7)
    engine.remote.check_flush(alice.owner, Session.objects.get())
    assert Session.objects.get().searchable_at == now[0]


def test_after_a_failure_a_flush_waits_for_all_memories(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    """The caller would not flush again, and the later memories would never be listed."""
    only_first = two_episodes(engine, stub, alice)
    stub.fault("flush", Fault(acts=True, reset=True))
    flush_degraded(engine, alice)
    stub.fault("get", only_first, times=1000)
    flush_degraded(engine, alice)
    stub.heal("get")
    assert engine.flush(alice.owner, "chat:1").memory_count == 2


def test_messages_added_during_a_flush_belong_to_the_next_one(stub: StubUpstream, alice: Person) -> None:
    def add_another_message(_seconds: float) -> None:
        later.add(alice.owner, "chat:1", [message_of(alice.owner, "and cake", NOON + 60_000)])

    later = make_engine(stub)
    engine = AttachedEngine(EverOS(make_client(stub), sleep=add_another_message))
    add(engine, alice)
    stub.fault("get", NOTHING_LISTED, times=1)
    assert engine.flush(alice.owner, "chat:1").memory_count == 1
    stub.fault("get", NOTHING_LISTED, times=1)
    again = engine.flush(alice.owner, "chat:1")
    assert (again.status, again.memory_count) == ("extracted", 1)


def test_memories_that_an_add_extracted_are_counted(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    add(engine, alice)
    stub.store.flush({"session_id": "chat:1"})
    assert engine.flush(alice.owner, "chat:1").status == "extracted"


def test_a_lost_buffer_is_a_failure(stub: StubUpstream, alice: Person) -> None:
    engine = make_engine(stub, attempts=2, timeout_seconds=1.0)
    add(engine, alice)
    stub.store.loses_next_flush = True
    assert "lost" in flush_degraded(engine, alice)
    assert Session.objects.get().searchable_at is not None
    assert [memory.text for memory in episodes(alice)] == ["I like tea"]
    assert len(stub.calls("add")) == 1


def test_a_lost_buffer_is_a_failure_also_for_a_later_flush(stub: StubUpstream, alice: Person) -> None:
    now = [datetime(2026, 11, 20, tzinfo=UTC)]
    engine = AttachedEngine(EverOS(make_client(stub, timeout_seconds=1.0), clock=lambda: now[0], sleep=no_wait))
    add(engine, alice)
    stub.store.loses_next_flush = True
    for _ in range(2):  # the first fails; the second cannot know whether the extraction still runs
        flush_degraded(engine, alice)
    now[0] += timedelta(minutes=7)
    assert "lost" in flush_degraded(engine, alice)
    assert engine.flush(alice.owner, "chat:1").status == "no_extraction"


def test_a_flush_whose_response_is_lost_is_verified_and_not_repeated(stub: StubUpstream, alice: Person) -> None:
    engine = make_engine(stub, attempts=2)
    add(engine, alice)
    stub.fault("flush", Fault(acts=True, reset=True))
    result = engine.flush(alice.owner, "chat:1")
    assert (result.status, result.memory_count) == ("extracted", 1)
    assert len(stub.store.episodes) == len(stub.calls("add")) == 1


def test_a_later_flush_verifies_an_unconfirmed_one(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    add(engine, alice)
    stub.fault("flush", Fault(acts=True, reset=True))
    flush_degraded(engine, alice)
    assert engine.flush(alice.owner, "chat:1").status == "extracted"
    assert len(stub.store.episodes) == 1


def test_a_flush_without_new_messages_that_did_not_arrive_leaves_nothing_open(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    add(engine, alice)
    engine.flush(alice.owner, "chat:1")
    stub.fault("flush", Fault(status=503, body={}))
    result = engine.flush(alice.owner, "chat:1")
    assert (result.status, result.memory_count, bool(result.degraded)) == ("no_extraction", 0, True)
    assert engine.flush(alice.owner, "chat:1").degraded is None


def test_a_flush_that_did_not_arrive_is_sent_again(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, run_deliveries: Run
) -> None:
    add(engine, alice)
    stub.fault("*", Fault(status=503), times=1000)
    flush_degraded(engine, alice)
    assert not stub.store.buffers
    stub.heal("*")
    for minutes in (10, 11):  # the message, then the flush
        run_deliveries(timedelta(minutes=minutes))
    assert [memory.text for memory in episodes(alice)] == ["alice said: I like tea"]
    assert Session.objects.get().searchable_at is not None
    calls = len(stub.requests)
    run_deliveries(timedelta(minutes=20))
    assert len(stub.requests) == calls


def test_a_buffer_that_everos_quarantined_is_not_flushed_again_unasked(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, run_deliveries: Run
) -> None:
    add(engine, alice)
    stub.fault("flush", Fault(status=422, body={"error": {"code": "INVALID_INPUT", "message": "quarantine"}}))
    assert "refused" in flush_degraded(engine, alice)
    run_deliveries(timedelta(minutes=10))
    assert len(stub.calls("flush")) == 1
    assert engine.flush(alice.owner, "chat:1").degraded is None


def test_an_unconfirmed_flush_that_everos_then_refuses_is_not_repeated(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, run_deliveries: Run
) -> None:
    add(engine, alice)
    stub.fault("flush", Fault(status=504))
    flush_degraded(engine, alice)
    stub.fault("flush", Fault(status=422, body={"error": {"code": "INVALID_INPUT", "message": "quarantine"}}), 10)
    for minutes in (10, 20, 30):
        run_deliveries(timedelta(minutes=minutes))
    assert len(stub.calls("flush")) == 2
    assert OutboxEntry.objects.get().state == "buffered"


def test_messages_of_agents_alone_create_no_episode_and_no_wait(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, "hi", role="assistant", sender_id="main")])
    result = engine.flush(alice.owner, "chat:1")
    assert (result.status, result.memory_count) == ("extracted", 0)
    assert len(stub.calls("get")) == 1


def test_more_than_a_page_of_memories_is_copied(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    for number in range(130):
        add_and_send(engine, alice.owner, "chat:1", [message_of(alice.owner, f"fact {number}", NOON + number)])
        stub.store.flush({"session_id": "chat:1"})
    assert engine.flush(alice.owner, "chat:1").memory_count == 130
    assert len(episodes(alice)) == 130


def test_memories_that_are_listed_late_are_reported_as_not_searchable(stub: StubUpstream, alice: Person) -> None:
    engine = make_engine(stub, timeout_seconds=0.6)
    add(engine, alice)
    stub.fault("get", NOTHING_LISTED, times=1000)
    result = engine.flush(alice.owner, "chat:1")
    assert (result.status, result.memory_count, result.searchable_at_ms) == ("extracted", 0, None)
    assert Session.objects.get().searchable_at is None


def test_memories_copied_by_a_killed_flush_are_counted(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    """The process is killed after the memories are copied and before the flush is recorded."""
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, "I like green tea")])
    assert engine.flush(alice.owner, "chat:1").memory_count == 1
    Session.objects.update(searchable_at=None)
    Memory.objects.update(batch_id="")
    OutboxEntry.objects.update(state="buffered", flush_id="")
    again = engine.flush(alice.owner, "chat:1")
    assert (again.status, again.memory_count) == ("extracted", 1)
    assert Session.objects.get().searchable_at is not None
    assert not Memory.objects.filter(batch_id="").exists()


def test_a_flush_killed_while_it_is_recorded_is_verified_immediately(
    stub: StubUpstream, engine: AttachedEngine, alice: Person
) -> None:
    """Pending messages and the open flush are recorded together, or one would stay unconfirmed for minutes."""
    add(engine, alice)
    times = iter([datetime.now(UTC)])

    def clock() -> datetime:
        for now in times:
            return now
        raise KeyboardInterrupt  # the process ends at the second call

    killed = AttachedEngine(EverOS(make_client(stub), clock=clock, sleep=no_wait))
    with pytest.raises(KeyboardInterrupt):
        killed.flush(alice.owner, "chat:1")
    assert engine.flush(alice.owner, "chat:1").status == "extracted"
    assert Session.objects.get().searchable_at is not None


def test_a_flush_without_messages_leaves_nothing_unconfirmed(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    add(engine, alice)
    engine.flush(alice.owner, "chat:1")
    stub.fault("flush", Fault(acts=True, reset=True))
    result = engine.flush(alice.owner, "chat:1")
    assert (result.status, bool(result.degraded)) == ("no_extraction", True)
    result = engine.flush(alice.owner, "chat:1")
    assert (result.status, result.degraded) == ("no_extraction", None)
    assert Session.objects.get().searchable_at is not None


def test_messages_of_agents_lost_by_a_failed_flush_are_reported(stub: StubUpstream, alice: Person) -> None:
    engine = make_engine(stub, attempts=2, timeout_seconds=1.0)
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, "hi", role="assistant", sender_id="main")])
    stub.store.loses_next_flush = True
    assert "lost" in flush_degraded(engine, alice)
