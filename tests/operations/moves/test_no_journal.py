"""`MEMORY_GATEWAY_FULL_CONTEXT_MEMORY=false`: what was said in a chat is kept until EverOS has it, and no longer."""

from __future__ import annotations

from typing import Any

import pytest

from store.models import Memory
from tests.operations.moves.conftest import World

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = "the meeting is on Tuesday"


def journal() -> list[Memory]:
    return list(Memory.objects.filter(memory_type="unprocessed_message"))


@pytest.mark.parametrize("is_kept", [True, False])
def test_words_stay_only_where_they_are_wanted(world: World, settings: Any, is_kept: bool) -> None:
    settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY = is_kept
    world.engine("upstream")
    world.say("chat:1", WORDS)
    assert [WORDS in f"{row.text} {row.payload}" for row in journal()] == [is_kept]


def test_the_same_message_is_still_sent_once(world: World, settings: Any) -> None:
    settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY = False
    world.engine("upstream")
    for _ in range(2):
        world.say("chat:1", WORDS)
    assert len(world.stub.calls("add")) == 1


def test_without_words_the_memories_move_as_they_are(world: World, settings: Any) -> None:
    settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY = False
    world.engine("upstream")
    world.say("chat:1", WORDS)
    world.move("embedded")
    world.engine("embedded")
    assert [WORDS in text for text in world.found("meeting Tuesday")] == [True]
