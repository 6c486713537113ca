"""Flushing: "extracted" is said of what was seen, and "nothing" only of nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.errors import EngineRefused, EngineUnavailable, OutcomeUnknown
from engines.everos.adapter import EverOSEngine
from store.models import Memory, Session
from tests.conftest import Person
from tests.engines.everos.conftest import NOON, make_client, make_engine, no_wait, told
from tests.stub_upstream import Fault, StubUpstream

NOTHING_FOUND = Fault(body={"request_id": "x", "data": {"episodes": []}})
NOTHING_LISTED = Fault(body={"request_id": "x", "data": {"episodes": [], "total_count": 0}})


def add(engine: EverOSEngine, person: Person, text: str = "I like tea", session_id: str = "chat:1") -> None:
    engine.add(person.owner, session_id, [told(person.owner, text)])


def episodes(person: Person) -> list[Memory]:
    return list(Memory.objects.filter(user_id=person.user_pk, memory_type="episode"))


def test_what_was_made_is_copied_and_counted(engine: EverOSEngine, alice: Person) -> None:
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


def test_the_copy_names_the_callers_session_not_the_engines(engine: EverOSEngine, alice: Person, bob: Person) -> None:
    for person in (alice, bob):
        add(engine, person)
    engine.flush(bob.owner, "chat:1")
    assert episodes(bob)[0].payload["session_id"] == "chat:1"
    assert not episodes(alice)


def test_an_unknown_session_makes_no_call(engine: EverOSEngine, stub: StubUpstream, alice: Person) -> None:
    assert engine.flush(alice.owner, "chat:never").status == "no_extraction"
    assert not stub.requests


def test_a_strangers_session_is_not_flushed(
    engine: EverOSEngine, stub: StubUpstream, alice: Person, charlie: Person
) -> None:
    add(engine, alice)
    assert engine.flush(charlie.owner, "chat:1").status == "no_extraction"
    assert not stub.calls("flush")


def test_a_second_flush_extracts_nothing(engine: EverOSEngine, alice: Person) -> None:
    add(engine, alice)
    engine.flush(alice.owner, "chat:1")
    assert engine.flush(alice.owner, "chat:1").status == "no_extraction"


def test_it_waits_until_the_memories_can_be_found(engine: EverOSEngine, stub: StubUpstream, alice: Person) -> None:
    add(engine, alice)
    stub.fault("get", NOTHING_LISTED, times=3)
    assert engine.flush(alice.owner, "chat:1").memory_count == 1
    assert len(stub.calls("get")) == 5  # three in vain, the one that shows it, and one that shows no more


def test_it_waits_until_a_search_finds_what_the_list_shows(
    engine: EverOSEngine, stub: StubUpstream, alice: Person
) -> None:
    add(engine, alice)
    stub.fault("search", NOTHING_FOUND, times=2)
    stub.fault("search", Fault(status=503, body={}))
    result = engine.flush(alice.owner, "chat:1")
    assert result.searchable_at_ms
    assert result.memory_count == 1
    asked = stub.calls("search")
    assert len(asked) == 4
    assert {body["query"] for body in asked} == {"alice said: I like tea"}


def test_what_no_search_finds_in_time_is_not_said_to_be_findable(stub: StubUpstream, alice: Person) -> None:
    engine = make_engine(stub, timeout_seconds=0.6)
    add(engine, alice)
    stub.fault("search", NOTHING_FOUND, times=1000)
    result = engine.flush(alice.owner, "chat:1")
    assert (result.status, result.memory_count, result.searchable_at_ms) == ("extracted", 1, None)


def two_episodes(engine: EverOSEngine, stub: StubUpstream, person: Person) -> Fault:
    """Two messages of which EverOS makes an episode each at the next flush; a listing that shows the first alone."""
    for number in range(2):
        engine.add(person.owner, "chat:1", [told(person.owner, f"fact {number}", NOON + number * 1000)])
        if number == 0:
            stub.store.flush({"session_id": "chat:1"})
    first = {"episodes": list(stub.store.episodes), "total_count": 1}
    return Fault(body={"request_id": "x", "data": first})


def test_it_waits_for_the_last_of_several_memories(engine: EverOSEngine, stub: StubUpstream, alice: Person) -> None:
    stub.fault("get", two_episodes(engine, stub, alice), times=4)
    result = engine.flush(alice.owner, "chat:1")
    assert result.memory_count == len(episodes(alice)) == 2
    assert result.searchable_at_ms
    assert len(stub.calls("get")) == 6


def test_what_does_not_show_in_time_leaves_the_flush_open_and_is_looked_for(
    engine: EverOSEngine, stub: StubUpstream, alice: Person
) -> None:
    only_first = two_episodes(engine, stub, alice)
    stub.fault("get", only_first, times=1000)
    result = engine.flush(alice.owner, "chat:1")
    assert (result.status, result.memory_count, result.searchable_at_ms) == ("extracted", 1, None)
    assert engine.look_again(alice.owner, Session.objects.get()) == 0
    assert Session.objects.get().searchable_at is None
    stub.heal("get")
    assert engine.look_again(alice.owner, Session.objects.get()) == 1
    assert Session.objects.get().searchable_at is not None
    assert len(episodes(alice)) == 2


def test_what_never_shows_is_looked_for_as_long_as_it_may_be_under_way(stub: StubUpstream, alice: Person) -> None:
    now = [datetime(2026, 11, 20, tzinfo=UTC)]
    engine = EverOSEngine(make_client(stub), clock=lambda: now[0], sleep=no_wait)
    stub.fault("get", two_episodes(engine, stub, alice), times=1000)
    engine.flush(alice.owner, "chat:1")
    now[0] += timedelta(minutes=7)
    engine.look_again(alice.owner, Session.objects.get())
    assert Session.objects.get().searchable_at == now[0]


def test_after_a_failure_a_part_of_the_memories_is_not_all(
    engine: EverOSEngine, stub: StubUpstream, alice: Person
) -> None:
    """Its caller would never flush again, and what came later would be in no list."""
    only_first = two_episodes(engine, stub, alice)
    stub.fault("flush", Fault(acts=True, reset=True))
    with pytest.raises(OutcomeUnknown):
        engine.flush(alice.owner, "chat:1")
    stub.fault("get", only_first, times=1000)
    with pytest.raises(OutcomeUnknown):
        engine.flush(alice.owner, "chat:1")
    stub.heal("get")
    assert engine.flush(alice.owner, "chat:1").memory_count == 2


def test_what_is_said_while_a_flush_waits_is_the_next_ones(stub: StubUpstream, alice: Person) -> None:
    def go_on_talking(_seconds: float) -> None:
        later.add(alice.owner, "chat:1", [told(alice.owner, "and cake", NOON + 60_000)])

    later = make_engine(stub)
    engine = EverOSEngine(make_client(stub), sleep=go_on_talking)
    add(engine, alice)
    stub.fault("get", NOTHING_LISTED, times=1)
    assert engine.flush(alice.owner, "chat:1").memory_count == 1
    stub.fault("get", NOTHING_LISTED, times=1)
    again = engine.flush(alice.owner, "chat:1")
    assert (again.status, again.memory_count) == ("extracted", 1)


def test_what_an_add_extracted_already_counts(engine: EverOSEngine, stub: StubUpstream, alice: Person) -> None:
    add(engine, alice)
    stub.store.flush({"session_id": "chat:1"})
    assert engine.flush(alice.owner, "chat:1").status == "extracted"


def test_a_lost_buffer_is_a_failure(stub: StubUpstream, alice: Person) -> None:
    engine = make_engine(stub, attempts=2, timeout_seconds=1.0)
    add(engine, alice)
    stub.store.loses_next_flush = True
    with pytest.raises(EngineRefused, match="lost"):
        engine.flush(alice.owner, "chat:1")
    assert len(stub.calls("add")) == 1


def test_a_lost_buffer_is_a_failure_also_for_a_later_flush(stub: StubUpstream, alice: Person) -> None:
    now = [datetime(2026, 11, 20, tzinfo=UTC)]
    engine = EverOSEngine(make_client(stub, timeout_seconds=1.0), clock=lambda: now[0], sleep=no_wait)
    add(engine, alice)
    stub.store.loses_next_flush = True
    for _ in range(2):  # the first fails, the second cannot know whether it goes on
        with pytest.raises(OutcomeUnknown):
            engine.flush(alice.owner, "chat:1")
    now[0] += timedelta(minutes=7)
    with pytest.raises(EngineRefused, match="lost"):
        engine.flush(alice.owner, "chat:1")
    assert engine.flush(alice.owner, "chat:1").status == "no_extraction"


def test_a_flush_that_answered_into_the_void_is_verified_not_repeated(stub: StubUpstream, alice: Person) -> None:
    engine = make_engine(stub, attempts=2)
    add(engine, alice)
    stub.fault("flush", Fault(acts=True, reset=True))
    result = engine.flush(alice.owner, "chat:1")
    assert (result.status, result.memory_count) == ("extracted", 1)
    assert len(stub.store.episodes) == len(stub.calls("add")) == 1


def test_a_later_flush_verifies_what_an_earlier_one_did(
    engine: EverOSEngine, stub: StubUpstream, alice: Person
) -> None:
    add(engine, alice)
    stub.fault("flush", Fault(acts=True, reset=True))
    with pytest.raises(OutcomeUnknown):
        engine.flush(alice.owner, "chat:1")
    assert engine.flush(alice.owner, "chat:1").status == "extracted"
    assert len(stub.store.episodes) == 1


def test_a_flush_that_never_arrived_leaves_nothing_open(
    engine: EverOSEngine, stub: StubUpstream, alice: Person
) -> None:
    engine.add(alice.owner, "chat:1", [told(alice.owner, "I like tea")])
    engine.flush(alice.owner, "chat:1")
    stub.fault("flush", Fault(status=503, body={}))
    with pytest.raises(EngineUnavailable):
        engine.flush(alice.owner, "chat:1")
    assert engine.flush(alice.owner, "chat:1").status == "no_extraction"


def test_a_buffer_that_the_upstream_put_aside_is_refused(
    engine: EverOSEngine, stub: StubUpstream, alice: Person
) -> None:
    add(engine, alice)
    stub.fault("flush", Fault(status=422, body={"error": {"code": "INVALID_INPUT", "message": "quarantine"}}))
    with pytest.raises(EngineRefused):
        engine.flush(alice.owner, "chat:1")


def test_agents_words_alone_make_no_episode_and_no_wait(
    engine: EverOSEngine, stub: StubUpstream, alice: Person
) -> None:
    engine.add(alice.owner, "chat:1", [told(alice.owner, "hi", role="assistant", sender_id="main")])
    result = engine.flush(alice.owner, "chat:1")
    assert (result.status, result.memory_count) == ("extracted", 0)
    assert len(stub.calls("get")) == 1


def test_more_than_a_page_of_memories_is_copied(engine: EverOSEngine, stub: StubUpstream, alice: Person) -> None:
    for number in range(130):
        engine.add(alice.owner, "chat:1", [told(alice.owner, f"fact {number}", 1_781_172_177_000 + number)])
        stub.store.flush({"session_id": "chat:1"})
    assert engine.flush(alice.owner, "chat:1").memory_count == 130
    assert len(episodes(alice)) == 130


def test_an_extraction_that_shows_late_is_said_to_be_not_findable_yet(stub: StubUpstream, alice: Person) -> None:
    engine = make_engine(stub, timeout_seconds=0.6)
    add(engine, alice)
    stub.fault("get", NOTHING_LISTED, times=1000)
    result = engine.flush(alice.owner, "chat:1")
    assert (result.status, result.memory_count, result.searchable_at_ms) == ("extracted", 0, None)
    assert Session.objects.get().searchable_at is None


def test_what_a_killed_flush_had_copied_already_counts(engine: EverOSEngine, stub: StubUpstream, alice: Person) -> None:
    """Killed after the copies were made and before the flush was noted: nothing new comes, and nothing was lost."""
    engine.add(alice.owner, "chat:1", [told(alice.owner, "I like green tea")])
    assert engine.flush(alice.owner, "chat:1").memory_count == 1
    Session.objects.update(searchable_at=None)
    Memory.objects.update(batch_id="")
    again = engine.flush(alice.owner, "chat:1")
    assert (again.status, again.memory_count) == ("extracted", 1)
    assert Session.objects.get().searchable_at is not None
    assert not Memory.objects.filter(batch_id="").exists()


def test_a_flush_killed_while_it_was_noted_is_verified_at_once(
    stub: StubUpstream, engine: EverOSEngine, alice: Person
) -> None:
    """What waits and whether the flush is open is noted together: half of it would be in doubt for minutes."""
    add(engine, alice)
    times = iter([datetime.now(UTC)])

    def clock() -> datetime:
        for now in times:
            return now
        raise KeyboardInterrupt  # the process ends when it asks the second time

    killed = EverOSEngine(make_client(stub), clock=clock, sleep=no_wait)
    with pytest.raises(KeyboardInterrupt):
        killed.flush(alice.owner, "chat:1")
    assert engine.flush(alice.owner, "chat:1").status == "extracted"
    assert Session.objects.get().searchable_at is not None


def test_a_flush_with_nothing_to_flush_leaves_nothing_in_doubt(
    engine: EverOSEngine, stub: StubUpstream, alice: Person
) -> None:
    add(engine, alice)
    engine.flush(alice.owner, "chat:1")
    stub.fault("flush", Fault(acts=True, reset=True))
    with pytest.raises(OutcomeUnknown):
        engine.flush(alice.owner, "chat:1")
    assert engine.flush(alice.owner, "chat:1").status == "no_extraction"
    assert Session.objects.get().searchable_at is not None


def test_agents_words_that_a_failed_flush_lost_are_not_passed_over(stub: StubUpstream, alice: Person) -> None:
    engine = make_engine(stub, attempts=2, timeout_seconds=1.0)
    engine.add(alice.owner, "chat:1", [told(alice.owner, "hi", role="assistant", sender_id="main")])
    stub.store.loses_next_flush = True
    with pytest.raises(EngineRefused, match="lost"):
        engine.flush(alice.owner, "chat:1")
