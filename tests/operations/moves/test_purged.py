"""What was purged is told by no engine again, whichever way its session goes."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from engines.registry import get_engine
from memories.services import decisions
from memories.services.lookup import MemoryRef
from operations import purge
from operations.moves.plan import EngineName
from resources import services
from store.external import journal
from store.external import staging as upstream_staging
from store.models import Memory, Session
from store.types import ContentItem, Message
from tests.engines.everos.conftest import NOON
from tests.operations.moves.conftest import ACTOR, World
from tests.resources.forms import stored_resource
from tests.store.index_state import assert_consistent

pytestmark = pytest.mark.django_db(transaction=True)


def purge_all() -> None:
    purge.purge_trash(older_than=timedelta(0), actor=ACTOR)


def forget(world: World, text: str) -> None:
    """Deleted, and gone from the trash too."""
    world.delete(text)
    purge_all()


def move(world: World, into: EngineName) -> None:
    """And look that everything is in order."""
    if into == "upstream":
        world.engine(into)
    outcome = world.move(into)
    assert outcome.is_ok, (outcome.failures, outcome.verified)
    world.engine(into)
    assert_consistent(world.owner)


def retell(first: Memory, *texts: str) -> None:
    """Has EverOS put the flush of a memory in other words, as one memory each."""
    for number, text in enumerate(texts):
        row = Memory.objects.get(pk=first.pk)
        row.text, row.payload = text, {**row.payload, "episode": text, "summary": text, "subject": text}
        if number:
            row.pk, row.memory_id = None, f"{row.memory_id}_{number}"
        row.save()


def all_words() -> str:
    """Everything that is remembered, shown or not."""
    return " ".join(f"{row.text} {json.dumps(row.payload)}" for row in Memory.objects.all())


@pytest.mark.parametrize("is_carried", [False, True])
def test_a_move_does_not_tell_it_again(world: World, tmp_path: Path, *, is_carried: bool) -> None:
    world.say("chat:1", "the bicycle is red")
    world.say("chat:1", "the house is green", at=NOON + 1000)
    forget(world, "bicycle")
    assert "bicycle" not in all_words()
    if is_carried:
        world.carry(tmp_path / "all.tar")
    move(world, "embedded")
    assert world.found("bicycle house") == ["the house is green"]
    assert "bicycle" not in all_words()


def test_a_correction_does_not_hide_what_it_was_made_of(world: World) -> None:
    world.say("chat:1", "the bicycle is red", "the car is blue")
    world.correct("bicycle", "both are yellow")
    forget(world, "yellow")
    move(world, "embedded")
    assert world.found("bicycle car yellow") == []
    assert all(word not in all_words() for word in ("bicycle", "car", "yellow"))


def test_words_of_its_own_lead_back_to_all_of_its_flush(world: World) -> None:
    world.say("chat:1", "I met Ada in Rome", "she wants the green one")
    world.say("chat:1", "the house is old", at=NOON + 1000)
    retell(world.memory("Ada"), "a meeting about a purchase")
    forget(world, "purchase")
    move(world, "embedded")
    assert world.found("Ada Rome green house") == ["the house is old"]


def test_what_else_came_of_its_flush_stays(world: World) -> None:
    world.say("chat:1", "my bicycle is red", "the car is blue", "our cat is old")
    retell(world.memory("bicycle"), "alice said: my bicycle is red", "alice has a blue car and a cat of some age")
    forget(world, "bicycle")
    move(world, "embedded")
    assert world.found("bicycle red") == []
    assert set(world.found("car cat")) == {
        "the car is blue", "our cat is old", "alice has a blue car and a cat of some age",
    }  # fmt: skip


def test_what_else_came_of_its_flush_is_told_to_an_upstream_again(world: World) -> None:
    world.say("chat:1", "my bicycle is red", "the car is blue")
    retell(world.memory("bicycle"), "a vehicle of alice's", "something of another colour")
    forget(world, "vehicle")
    assert "bicycle" not in all_words()
    world.say("chat:1", "the house is old", at=NOON + 1000)
    move(world, "embedded")
    move(world, "upstream")
    assert any("another colour" in text for text in world.found("another colour house"))


def test_files_of_its_flush_are_not_read_again(world: World, storage: Path) -> None:
    storage.mkdir(exist_ok=True)
    file = storage / "secret.txt"
    file.write_text("The walnut treaty.")
    item = ContentItem("doc", file=file, name="secret.txt", mime_type="text/plain")
    said = Message("alice", "user", NOON, (ContentItem("text", "look at this paper here"), item))
    get_engine().add(world.owner, "chat:1", [said])
    get_engine().flush(world.owner, "chat:1")
    row = Memory.objects.get(memory_type="episode")
    retell(row, "alice said: look at this paper here", "of a walnut and of peace")
    forget(world, "peace")
    move(world, "embedded")
    assert world.found("walnut treaty") == []


@pytest.mark.parametrize("engine", ["embedded", "upstream"])
def test_the_same_message_again_is_known_on_both_sides(world: World, engine: EngineName) -> None:
    world.say("chat:1", "the bicycle is red")
    world.say("chat:1", "the house is green", at=NOON + 1000)
    forget(world, "bicycle")
    move(world, "embedded")
    if engine == "upstream":
        move(world, "upstream")
    world.say("chat:1", "the bicycle is red")
    assert [text for text in world.found("bicycle house") if "bicycle" in text] == []
    assert "bicycle" not in all_words()


@pytest.mark.parametrize("is_carried", [False, True])
def test_a_purged_session_stays_gone(world: World, tmp_path: Path, *, is_carried: bool) -> None:
    world.say("chat:1", "the bicycle is red")
    world.say("chat:2", "the house is green")
    decisions.delete_session(world.owner, "chat:1", actor=ACTOR)
    purge_all()
    assert "bicycle" not in all_words()
    if is_carried:
        world.carry(tmp_path / "all.tar")
    move(world, "embedded")
    assert world.found("bicycle house") == ["the house is green"]


def test_a_purged_session_leaves_nothing_to_a_move_that_was_broken_off(world: World) -> None:
    world.engine("embedded")
    world.say("chat:1", "the bicycle is red")
    world.engine("upstream")
    session = Session.objects.get()
    staging = upstream_staging.staging_session(world.owner, session, timezone.now())
    message = Message("alice", "user", NOON, (ContentItem("text", "the bicycle is red"),))
    journal.append(staging, [message])
    decisions.delete_session(world.owner, "chat:1", actor=ACTOR)
    purge_all()
    assert "bicycle" not in all_words()


def test_a_file_of_which_something_was_purged_is_not_told_whole_again(world: World, storage: Path) -> None:
    resource = stored_resource(world.person, "The quarterly report speaks of tea. ")
    services.ingest(resource.resource_id)
    forget(world, "quarterly")
    ways: tuple[EngineName, ...] = ("embedded", "upstream", "embedded")
    for name in ways:
        move(world, name)
        assert world.found("quarterly") == []


def test_a_purged_passage_is_not_read_again(world: World, storage: Path) -> None:
    world.engine("embedded")
    text = "\n\n".join(" ".join(f"word{number}x{place}." for place in range(150)) for number in range(6))
    resource = stored_resource(world.person, text)
    services.ingest(resource.resource_id)
    rows = list(Memory.objects.order_by("chunk_index"))
    assert len(rows) > 2
    decisions.delete(world.person.user_pk, MemoryRef(rows[1].memory_id), actor=ACTOR)
    purge_all()
    gone = rows[1].text
    word = gone.split()[len(gone.split()) // 2]
    assert world.move(None).is_ok
    assert Memory.objects.filter(text=gone).count() == 0
    ways: tuple[EngineName, ...] = ("upstream", "embedded")
    for name in ways:
        move(world, name)
        assert word not in all_words()
        assert word not in json.dumps([request.body for request in world.stub.requests])
