"""Moves from EverOS to the embedded engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from accounts.models import AuditEvent
from engines.registry import get_engine
from memories import queries
from memories.models import Override, Tombstone
from memories.queries import trash as trash_of
from memories.services import decisions
from memories.services.lookup import MemoryRef
from operations.models import Job, UnmatchedDecision
from resources import services
from store.models import Memory, Session
from store.types import ContentItem, Message
from tests.operations.moves.conftest import ACTOR, TwoEngineGateway
from tests.remote.conftest import NOON
from tests.resources.forms import stored_resource
from tests.store.index_state import assert_consistent
from tests.stub_upstream import Fault

pytestmark = pytest.mark.django_db(transaction=True)


def move(gateway: TwoEngineGateway) -> None:
    """Move to the embedded engine, and assert that the move is complete and consistent."""
    outcome = gateway.move("embedded")
    assert outcome.is_ok, (outcome.failures, outcome.verified)
    gateway.use_engine("embedded")
    assert_consistent(gateway.owner)


def test_messages_are_moved_verbatim(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red", "我喜欢绿茶")
    get_engine().add(gateway.owner, "chat:1", [Message("main", "assistant", NOON + 9, (ContentItem("text", "noted"),))])
    get_engine().flush(gateway.owner, "chat:1")
    move(gateway)
    assert gateway.search_texts("bicycle") == ["the bicycle is red"]
    assert gateway.search_texts("绿茶") == ["我喜欢绿茶"]
    row = gateway.find_memory("noted")
    assert (row.agent_id, row.category, row.created_at_ms) == ("main", "full_context_assistant", NOON + 9)
    assert not Memory.objects.filter(origin="upstream").exists()


def test_messages_are_moved_as_their_senders_made_them(gateway: TwoEngineGateway) -> None:
    call = {"id": "call_7", "type": "function", "function": {"name": "trains", "arguments": "{}"}}
    text = (ContentItem("text", text="the bicycle is red"),)
    messages = [
        Message("main", "system", NOON, text),
        Message("bob", "user", NOON + 1, text, sender_name="Bob", is_participant=True),
        Message("main", "assistant", NOON + 2, text, tool_calls=(call,)),
        Message("main", "tool", NOON + 3, text, tool_call_id="call_7"),
    ]
    get_engine().add(gateway.owner, "chat:1", messages)
    get_engine().flush(gateway.owner, "chat:1")
    move(gateway)
    moved = Memory.objects.order_by("created_at_ms")
    assert [(row.sender_id, row.category, row.payload) for row in moved] == [
        ("main", "full_context_system", {"role": "system"}),
        ("bob", "full_context_others", {"role": "user", "sender_name": "Bob", "is_participant": True}),
        ("main", "full_context_tool", {"role": "assistant", "tool_calls": [call]}),
        ("main", "full_context_tool_result", {"role": "tool", "tool_call_id": "call_7"}),
    ]


def test_unflushed_messages_stay_unflushed(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    waiting = Message("alice", "user", NOON + 50, (ContentItem("text", "the car is blue"),))
    get_engine().add(gateway.owner, "chat:1", [waiting])
    move(gateway)
    assert set(Memory.objects.values_list("text", "memory_type")) == {
        ("the bicycle is red", "episode"),
        ("the car is blue", "unprocessed_message"),
    }
    assert get_engine().flush(gateway.owner, "chat:1").memory_count == 1


def test_a_repeated_message_is_recognized_after_the_move(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    move(gateway)
    gateway.add_and_flush("chat:1", "the bicycle is red")
    assert gateway.search_texts("bicycle") == ["the bicycle is red"]


def test_a_deletion_applies_to_all_messages_of_the_memory(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    gateway.add_and_flush("chat:1", "the house is green", at=NOON + 1000)
    gateway.delete("bicycle")
    move(gateway)
    assert gateway.search_texts("bicycle car house") == ["the house is green"]
    assert Tombstone.objects.filter(undone_at=None, row__isnull=False).count() == 2
    decisions.restore(gateway.person.user_pk, MemoryRef(gateway.find_memory("car").memory_id), actor=ACTOR)
    assert gateway.search_texts("car") == ["the car is blue"]


def test_an_override_of_one_message_is_moved_to_it(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.override("bicycle", "the bicycle is yellow", category="user_memory_fact", importance=0.7)
    move(gateway)
    assert gateway.search_texts("bicycle red") == ["the bicycle is yellow"]
    row = gateway.find_memory("yellow")
    assert (row.category, row.importance, row.origin) == ("user_memory_fact", 0.7, "embedded")
    override = decisions.undo_override(gateway.person.user_pk, MemoryRef(row.memory_id), actor=ACTOR)
    assert override.original_text == "the bicycle is red"
    assert gateway.search_texts("red") == ["the bicycle is red"]


def test_an_override_of_several_messages_replaces_them(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    gateway.override("bicycle", "both are yellow")
    old_id = gateway.find_memory("yellow").memory_id
    move(gateway)
    assert gateway.search_texts("bicycle car red blue yellow") == ["both are yellow"]
    assert gateway.find_memory("yellow").memory_id == old_id
    assert set(Tombstone.objects.values_list("row__text", flat=True)) == {"the bicycle is red", "the car is blue"}


def test_an_overridden_category_keeps_the_text(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.override("bicycle", category="user_memory_preference")
    move(gateway)
    row = gateway.find_memory("bicycle")
    assert (row.text, row.category) == ("the bicycle is red", "user_memory_preference")


def test_a_deleted_override_stays_deleted_and_overridden(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.override("bicycle", "the bicycle is yellow")
    gateway.delete("yellow")
    move(gateway)
    assert gateway.search_texts("bicycle red yellow") == []
    decisions.restore(gateway.person.user_pk, MemoryRef(gateway.find_memory("yellow").memory_id), actor=ACTOR)
    assert gateway.search_texts("bicycle") == ["the bicycle is yellow"]


def test_a_deleted_session_stays_deleted(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    decisions.delete_session(gateway.owner, "chat:1", actor=ACTOR)
    move(gateway)
    assert gateway.search_texts("bicycle") == []
    decisions.restore_session(gateway.owner, "chat:1", actor=ACTOR)
    assert gateway.search_texts("bicycle") == ["the bicycle is red"]


def test_a_file_is_read_by_the_embedded_engine(gateway: TwoEngineGateway) -> None:
    resource = stored_resource(gateway.person, "The quarterly report speaks of tea. ")
    services.ingest(resource.resource_id)
    move(gateway)
    [text] = gateway.search_texts("quarterly")
    assert text.startswith("The quarterly report")
    assert gateway.find_memory("quarterly").payload["filename"] == "notes.txt"


def test_the_memories_of_an_unreadable_file_are_moved_unchanged(gateway: TwoEngineGateway, storage: Path) -> None:
    resource = stored_resource(gateway.person, "The quarterly report speaks of tea. ")
    services.ingest(resource.resource_id)
    original = gateway.find_memory("quarterly")
    gateway.delete("quarterly")
    (storage / resource.storage_path).unlink()
    move(gateway)
    kept = gateway.find_memory("quarterly")
    assert (kept.memory_id, kept.origin) == (original.memory_id, "embedded")
    assert gateway.search_texts("quarterly") == []
    assert not UnmatchedDecision.objects.exists()
    decisions.restore(gateway.person.user_pk, MemoryRef(kept.memory_id), actor=ACTOR)
    assert len(gateway.search_texts("quarterly")) == 1


def test_a_decision_without_a_match_hides_similar_memories(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "my aunt has green tea with milk every day", "Rome is far away")
    gateway.add_and_flush("chat:1", "the house is old", at=NOON + 1000)
    first = gateway.find_memory("aunt")
    replayed = "green tea with milk was what the lady of the house would always take at five in the afternoon"
    Memory.objects.filter(pk=first.pk).update(text=replayed, original_text=replayed)
    Memory.objects.filter(memory_type="episode", is_covered=False).update(batch_id="")
    gateway.delete("lady")
    outcome = gateway.move("embedded")
    gateway.use_engine("embedded")
    assert outcome.counts["unmatched"] == 1
    found = UnmatchedDecision.objects.get()
    assert (found.memory_id, found.session_id) == (first.memory_id, "chat:1")
    assert found.hides == [gateway.find_memory("aunt").memory_id]
    assert sorted(gateway.search_texts("aunt tea lady Rome house")) == ["Rome is far away", "the house is old"]
    reasons = set(Tombstone.objects.values_list("reason", flat=True))
    assert any("could not match" in reason for reason in reasons)
    decisions.restore(gateway.person.user_pk, MemoryRef(gateway.find_memory("aunt").memory_id), actor=ACTOR)
    assert len(gateway.search_texts("aunt")) == 1


def test_memories_of_a_moved_session_are_not_found_in_everos(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.delete("bicycle")
    gateway.move("embedded")
    gateway.use_engine("upstream")
    assert gateway.search_texts("bicycle") == []


def test_decisions_apply_to_hits_of_everos_from_before_the_move(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    old = gateway.find_memory("bicycle")
    gateway.delete("bicycle")
    move(gateway)
    decided = queries.decisions(gateway.owner, [old.memory_id], ["chat:1"])
    assert decided.is_deleted(old.memory_id, "chat:1")
    assert [item.memory_id for item in trash_of(gateway.owner, None, 10)] == [gateway.find_memory("bicycle").memory_id]


def test_a_new_session_does_not_reuse_the_engine_session_id_of_a_moved_one(gateway: TwoEngineGateway) -> None:
    """For example a new user with the user id of an erased one."""
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.delete("bicycle")
    move(gateway)
    Session.objects.all().delete()
    gateway.use_engine("upstream")
    gateway.add_and_flush("chat:1", "the car is blue")
    assert Session.objects.get().engine_session_id != "chat:1"
    assert gateway.search_texts("bicycle car") == ["alice said: the car is blue"]


def test_a_second_move_finds_nothing_to_do(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.delete("bicycle")
    move(gateway)
    before = list(Memory.objects.values_list("pk", "memory_id", "hidden_at"))
    again = gateway.move("embedded")
    assert (again.counts["sessions"], again.is_ok) == (0, True)
    assert list(Memory.objects.values_list("pk", "memory_id", "hidden_at")) == before


def test_a_move_does_not_call_the_upstream(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.stub.fault("*", Fault(reset=True), times=100)
    calls = len(gateway.stub.requests)
    move(gateway)
    assert len(gateway.stub.requests) == calls
    assert gateway.search_texts("bicycle") == ["the bicycle is red"]


def test_a_move_is_counted_and_audited(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    gateway.delete("bicycle")
    outcome = gateway.move("embedded")
    job = Job.objects.get()
    assert (job.status, job.done, job.total) == ("done", 1, 1)
    assert outcome.counts == {
        "sessions": 1, "messages": 2, "made": 2, "replaced": 1, "stayed": 0, "carried": 1, "kept": 0, "unmatched": 0,
    }  # fmt: skip
    event = AuditEvent.objects.get(action="job.move")
    assert event.detail["into"] == "embedded"
    assert not Session.objects.filter(engine_session_id="chat:1").exists()
    assert not Override.objects.exists()
