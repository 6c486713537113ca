"""Out of EverOS, into this database."""

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
from tests.engines.everos.conftest import NOON
from tests.operations.moves.conftest import ACTOR, World
from tests.resources.forms import stored_resource
from tests.store.index_state import assert_consistent
from tests.stub_upstream import Fault

pytestmark = pytest.mark.django_db(transaction=True)


def move(world: World) -> None:
    """And look that everything is in order."""
    outcome = world.move("embedded")
    assert outcome.is_ok, (outcome.failures, outcome.verified)
    world.engine("embedded")
    assert_consistent(world.owner)


def test_what_was_said_is_found_here_word_for_word(world: World) -> None:
    world.say("chat:1", "the bicycle is red", "我喜欢绿茶")
    get_engine().add(world.owner, "chat:1", [Message("main", "assistant", NOON + 9, (ContentItem("text", "noted"),))])
    get_engine().flush(world.owner, "chat:1")
    move(world)
    assert world.found("bicycle") == ["the bicycle is red"]
    assert world.found("绿茶") == ["我喜欢绿茶"]
    row = world.memory("noted")
    assert (row.agent_id, row.category, row.created_at_ms) == ("main", "full_context_assistant", NOON + 9)
    assert not Memory.objects.filter(origin="upstream").exists()


def test_what_waits_for_a_flush_still_waits(world: World) -> None:
    world.say("chat:1", "the bicycle is red")
    waiting = Message("alice", "user", NOON + 50, (ContentItem("text", "the car is blue"),))
    get_engine().add(world.owner, "chat:1", [waiting])
    move(world)
    assert set(Memory.objects.values_list("text", "memory_type")) == {
        ("the bicycle is red", "episode"),
        ("the car is blue", "unprocessed_message"),
    }
    assert get_engine().flush(world.owner, "chat:1").memory_count == 1


def test_a_message_said_again_is_still_the_same(world: World) -> None:
    world.say("chat:1", "the bicycle is red")
    move(world)
    world.say("chat:1", "the bicycle is red")
    assert world.found("bicycle") == ["the bicycle is red"]


def test_what_was_deleted_stays_gone_with_all_that_it_was_made_of(world: World) -> None:
    world.say("chat:1", "the bicycle is red", "the car is blue")
    world.say("chat:1", "the house is green", at=NOON + 1000)
    world.delete("bicycle")
    move(world)
    assert world.found("bicycle car house") == ["the house is green"]
    assert Tombstone.objects.filter(undone_at=None, row__isnull=False).count() == 2
    decisions.restore(world.person.user_pk, MemoryRef(world.memory("car").memory_id), actor=ACTOR)
    assert world.found("car") == ["the car is blue"]


def test_a_correction_of_one_message_stands_on_that_message(world: World) -> None:
    world.say("chat:1", "the bicycle is red")
    world.correct("bicycle", "the bicycle is yellow", category="user_memory_fact", importance=0.7)
    move(world)
    assert world.found("bicycle red") == ["the bicycle is yellow"]
    row = world.memory("yellow")
    assert (row.category, row.importance, row.origin) == ("user_memory_fact", 0.7, "embedded")
    override = decisions.undo_override(world.person.user_pk, MemoryRef(row.memory_id), actor=ACTOR)
    assert override.original_text == "the bicycle is red"
    assert world.found("red") == ["the bicycle is red"]


def test_a_correction_of_several_messages_stands_for_all_of_them(world: World) -> None:
    world.say("chat:1", "the bicycle is red", "the car is blue")
    world.correct("bicycle", "both are yellow")
    old_id = world.memory("yellow").memory_id
    move(world)
    assert world.found("bicycle car red blue yellow") == ["both are yellow"]
    assert world.memory("yellow").memory_id == old_id
    assert set(Tombstone.objects.values_list("row__text", flat=True)) == {"the bicycle is red", "the car is blue"}


def test_a_category_alone_leaves_the_words(world: World) -> None:
    world.say("chat:1", "the bicycle is red")
    world.correct("bicycle", category="user_memory_preference")
    move(world)
    row = world.memory("bicycle")
    assert (row.text, row.category) == ("the bicycle is red", "user_memory_preference")


def test_a_deleted_correction_is_both(world: World) -> None:
    world.say("chat:1", "the bicycle is red")
    world.correct("bicycle", "the bicycle is yellow")
    world.delete("yellow")
    move(world)
    assert world.found("bicycle red yellow") == []
    decisions.restore(world.person.user_pk, MemoryRef(world.memory("yellow").memory_id), actor=ACTOR)
    assert world.found("bicycle") == ["the bicycle is yellow"]


def test_a_deleted_session_stays_deleted(world: World) -> None:
    world.say("chat:1", "the bicycle is red")
    decisions.delete_session(world.owner, "chat:1", actor=ACTOR)
    move(world)
    assert world.found("bicycle") == []
    decisions.restore_session(world.owner, "chat:1", actor=ACTOR)
    assert world.found("bicycle") == ["the bicycle is red"]


def test_a_file_is_read_here(world: World) -> None:
    resource = stored_resource(world.person, "The quarterly report speaks of tea. ")
    services.ingest(resource.resource_id)
    move(world)
    [text] = world.found("quarterly")
    assert text.startswith("The quarterly report")
    assert world.memory("quarterly").payload["filename"] == "notes.txt"


def test_what_cannot_be_read_any_more_stays_as_everos_told_it(world: World, storage: Path) -> None:
    resource = stored_resource(world.person, "The quarterly report speaks of tea. ")
    services.ingest(resource.resource_id)
    told = world.memory("quarterly")
    world.delete("quarterly")
    (storage / resource.storage_path).unlink()
    move(world)
    kept = world.memory("quarterly")
    assert (kept.memory_id, kept.origin) == (told.memory_id, "embedded")
    assert world.found("quarterly") == []
    assert not UnmatchedDecision.objects.exists()
    decisions.restore(world.person.user_pk, MemoryRef(kept.memory_id), actor=ACTOR)
    assert len(world.found("quarterly")) == 1


def test_a_decision_that_fits_nothing_new_holds_back_what_resembles_it(world: World) -> None:
    world.say("chat:1", "my aunt has green tea with milk every day", "Rome is far away")
    world.say("chat:1", "the house is old", at=NOON + 1000)
    first = world.memory("aunt")
    retold = "green tea with milk was what the lady of the house would always take at five in the afternoon"
    Memory.objects.filter(pk=first.pk).update(text=retold, payload={**first.payload, "episode": retold})
    Memory.objects.filter(memory_type="episode").update(batch_id="")
    world.delete("lady")
    outcome = world.move("embedded")
    world.engine("embedded")
    assert outcome.counts["unmatched"] == 1
    found = UnmatchedDecision.objects.get()
    assert (found.memory_id, found.session_id) == (first.memory_id, "chat:1")
    assert found.hides == [world.memory("aunt").memory_id]
    assert sorted(world.found("aunt tea lady Rome house")) == ["Rome is far away", "the house is old"]
    reasons = set(Tombstone.objects.values_list("reason", flat=True))
    assert any("could not match" in reason for reason in reasons)
    decisions.restore(world.person.user_pk, MemoryRef(world.memory("aunt").memory_id), actor=ACTOR)
    assert len(world.found("aunt")) == 1


def test_everos_shows_nothing_of_a_moved_session_any_more(world: World) -> None:
    world.say("chat:1", "the bicycle is red")
    world.delete("bicycle")
    world.move("embedded")
    world.engine("upstream")
    assert world.found("bicycle") == []


def test_a_search_that_asked_everos_before_the_move_shows_nothing_deleted_after_it(world: World) -> None:
    world.say("chat:1", "the bicycle is red")
    old = world.memory("bicycle")
    world.delete("bicycle")
    move(world)
    decided = queries.decisions(world.owner, [old.memory_id], ["chat:1"])
    assert decided.hide(old.memory_id, "chat:1")
    assert [item.memory_id for item in trash_of(world.owner, None, 10)] == [world.memory("bicycle").memory_id]


def test_nobody_comes_to_what_was_left_there_by_the_old_name(world: World) -> None:
    """An erased person's namesake, say."""
    world.say("chat:1", "the bicycle is red")
    world.delete("bicycle")
    move(world)
    Session.objects.all().delete()
    world.engine("upstream")
    world.say("chat:1", "the car is blue")
    assert Session.objects.get().engine_session_id != "chat:1"
    assert world.found("bicycle car") == ["alice said: the car is blue"]


def test_a_second_move_finds_nothing_to_do(world: World) -> None:
    world.say("chat:1", "the bicycle is red")
    world.delete("bicycle")
    move(world)
    before = list(Memory.objects.values_list("pk", "memory_id", "hidden_at"))
    again = world.move("embedded")
    assert (again.counts["sessions"], again.is_ok) == (0, True)
    assert list(Memory.objects.values_list("pk", "memory_id", "hidden_at")) == before


def test_a_move_calls_nothing_of_an_upstream_that_is_gone(world: World) -> None:
    world.say("chat:1", "the bicycle is red")
    world.stub.fault("*", Fault(reset=True), times=100)
    calls = len(world.stub.requests)
    move(world)
    assert len(world.stub.requests) == calls
    assert world.found("bicycle") == ["the bicycle is red"]


def test_a_move_is_counted_and_audited(world: World) -> None:
    world.say("chat:1", "the bicycle is red", "the car is blue")
    world.delete("bicycle")
    outcome = world.move("embedded")
    job = Job.objects.get()
    assert (job.status, job.done, job.total) == ("done", 1, 1)
    assert outcome.counts == {
        "sessions": 1, "messages": 2, "made": 2, "replaced": 1, "stayed": 0, "carried": 1, "kept": 0, "unmatched": 0,
    }  # fmt: skip
    event = AuditEvent.objects.get(action="memories.move")
    assert event.detail["into"] == "embedded"
    assert not Session.objects.filter(engine_session_id="chat:1").exists()
    assert not Override.objects.exists()
