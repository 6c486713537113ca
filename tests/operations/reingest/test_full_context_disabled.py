"""`MEMORY_GATEWAY_FULL_CONTEXT_MEMORY=false`: the text of messages is kept only until EverOS has it."""

from __future__ import annotations

from typing import Any

import pytest

from remote.models import OutboxEntry
from store.models import Memory
from tests.operations.reingest.conftest import SwitchedGateway

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "the meeting is on Tuesday"


def stored_messages() -> list[str]:
    """Return what is stored of messages: their memories, and their content in the outbox."""
    memories = [row.text for row in Memory.objects.exclude(origin="upstream")]
    return [*memories, *(str(entry.message) for entry in OutboxEntry.objects.all())]


@pytest.mark.parametrize("is_kept", [True, False])
def test_the_text_of_sent_messages_is_kept_only_if_enabled(
    gateway: SwitchedGateway, settings: Any, is_kept: bool
) -> None:
    settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY = is_kept
    gateway.attach()
    gateway.add_and_flush("chat:1", TEXT)
    assert [TEXT in text for text in stored_messages()] == ([True, True] if is_kept else [False])


def test_a_repeated_message_is_still_sent_once(gateway: SwitchedGateway, settings: Any) -> None:
    settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY = False
    gateway.attach()
    for _ in range(2):
        gateway.add_and_flush("chat:1", TEXT)
    assert len(gateway.stub.calls("add")) == 1


def test_without_texts_memories_are_found_after_detaching(gateway: SwitchedGateway, settings: Any) -> None:
    settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY = False
    gateway.attach()
    gateway.add_and_flush("chat:1", TEXT)
    gateway.detach()
    assert [TEXT in text for text in gateway.search_texts("meeting Tuesday")] == [True]
