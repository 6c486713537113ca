"""An archive of one engine, taken in by a gateway with the other: nothing is lost and no decision is."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pytest

from memories.models import Override, Tombstone
from memories.services import decisions
from memories.services.lookup import MemoryRef
from tests.conftest import make_person
from tests.everos import EverOS
from tests.operations.moves.conftest import ACTOR, World
from tests.resources.people import eventually
from tests.store.index_state import assert_consistent

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "bicycle house car cat yellow"
KEPT = frozenset({"our cat is old", "the bicycle is yellow", "the house is green"})
DELETED = frozenset({"the car is blue", "no car at all"})
CORRECTED = frozenset({"the bicycle is red"})


def said(world: World) -> set[str]:
    """Which of all that was ever said the hits tell, in whichever words of EverOS around it."""
    told = "\n".join(world.found(QUESTION))
    return {text for text in KEPT | DELETED | CORRECTED if text in told}


def assert_said(world: World) -> None:
    """What was deleted never; what was kept as soon as EverOS's index has it."""
    assert eventually(lambda: said(world) == KEPT), said(world)


def there_and_back(world: World, folder: Path) -> None:
    world.engine("embedded")
    world.say("chat:1", "the bicycle is red", "the car is blue", "the house is green")
    world.say("chat:2", "our cat is old")
    world.say("chat:3", "no car at all")
    world.correct("bicycle", "the bicycle is yellow")
    world.delete("car is blue")
    decisions.delete_session(world.owner, "chat:3", actor=ACTOR)
    assert said(world) == KEPT

    world.engine("upstream")
    world.carry(folder / "first.tar")
    assert said(world) == KEPT
    assert world.move("upstream").is_ok
    assert_said(world)

    world.engine("embedded")
    world.carry(folder / "second.tar")
    assert said(world) == KEPT
    assert world.move("embedded").is_ok
    assert said(world) == KEPT
    assert_consistent(world.owner)

    assert Override.objects.get(undone_at=None).original_text == "the bicycle is red"
    deleted = Tombstone.objects.exclude(memory_id="").get(undone_at=None)
    decisions.restore(world.person.user_pk, MemoryRef(deleted.memory_id), actor=ACTOR)
    decisions.restore_session(world.owner, "chat:3", actor=ACTOR)
    assert said(world) == KEPT | DELETED


def test_there_and_back_again(world: World, tmp_path: Path) -> None:
    there_and_back(world, tmp_path)


@pytest.mark.upstream
def test_with_a_real_everos_between(settings: Any, everos: EverOS, storage: Path, tmp_path: Path) -> None:
    """Under a name of its own: an EverOS remembers earlier runs."""
    there_and_back(World(settings, everos, make_person(f"alice.{secrets.token_hex(4)}")), tmp_path)
