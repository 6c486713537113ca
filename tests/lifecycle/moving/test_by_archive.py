"""An archive of one engine, taken in by a gateway with the other: nothing is lost and no decision is."""

from __future__ import annotations

from pathlib import Path

import pytest

from memories.models import Override, Tombstone
from memories.services import trash
from memories.services.lookup import Which
from tests.engine.index_state import assert_consistent
from tests.lifecycle.moving.conftest import ACTOR, World

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "bicycle house car cat yellow"


def said(world: World) -> list[str]:
    """What is found, without the words that EverOS puts before each."""
    return sorted(text.removeprefix("alice said: ") for text in world.found(QUESTION))


def test_there_and_back_again(world: World, tmp_path: Path) -> None:
    kept = ["our cat is old", "the bicycle is yellow", "the house is green"]
    world.engine("embedded")
    world.say("chat:1", "the bicycle is red", "the car is blue", "the house is green")
    world.say("chat:2", "our cat is old")
    world.say("chat:3", "no car at all")
    world.correct("bicycle", "the bicycle is yellow")
    world.delete("car is blue")
    trash.delete_session(world.owner, "chat:3", actor=ACTOR)
    assert said(world) == kept

    world.engine("upstream")
    world.carry(tmp_path / "first.tar")
    assert said(world) == kept
    assert world.move("upstream").is_ok
    assert said(world) == kept

    world.engine("embedded")
    world.carry(tmp_path / "second.tar")
    assert said(world) == kept
    assert world.move("embedded").is_ok
    assert said(world) == kept
    assert_consistent(world.owner)

    assert Override.objects.get(undone_at=None).original_text == "the bicycle is red"
    deleted = Tombstone.objects.exclude(memory_id="").get(undone_at=None)
    trash.restore(world.person.user_pk, Which(deleted.memory_id), actor=ACTOR)
    trash.restore_session(world.owner, "chat:3", actor=ACTOR)
    assert said(world) == sorted([*kept, "no car at all", "the car is blue"])
