"""The tools with a running EverOS behave as with the embedded engine, in English and Chinese."""

from __future__ import annotations

import secrets
import time
from typing import Any

import pytest

from tests.agents.tools.conftest import Agent
from tests.conftest import Person, make_person
from tests.everos import EverOS
from tests.memories.calls import say

pytestmark = pytest.mark.upstream

TIMEOUT_SECONDS = 60.0


@pytest.fixture
def person(everos: EverOS, settings: Any, db: Any) -> Person:
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = everos.url
    return new_person()


def new_person() -> Person:
    """Create a user that no earlier run has used."""
    return make_person(f"agents.{secrets.token_hex(4)}")


def recall_eventually(agent: Agent, query: str) -> list[dict[str, Any]]:
    """Wait until EverOS has indexed the messages."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not (found := agent.recall(query)) and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


def test_a_memory_is_stored_recalled_updated_and_forgotten(person: Person) -> None:
    agent = Agent(person)
    for text, query in (("The tax number is 4711", "tax number"), ("爱丽丝对花生过敏", "花生")):
        memory_id = agent.store(text)
        assert agent.use("memory_store", text=f"{text}.") == {"action": "updated", "id": memory_id}
        assert [memory["id"] for memory in agent.recall(query, limit=1)] == [memory_id]
        assert agent.use("memory_forget", memoryId=memory_id) == {"action": "deleted", "id": memory_id}
        assert agent.recall(query) == []


def test_messages_are_recalled_by_every_agent_and_forgotten_by_id(person: Person) -> None:
    agent = Agent(person)
    say(person, "chat:c1", "My payment runs through Hamburg")
    [memory] = recall_eventually(agent, "payment Hamburg")
    assert memory["score"] == 1.0
    assert Agent(person, "helper").ids("payment Hamburg") == {memory["id"]}
    assert Agent(new_person()).recall("payment Hamburg") == []
    assert agent.use("memory_forget", query="carburettor") == {"found": 0}
    [candidate] = agent.use("memory_forget", query="payment Hamburg")["candidates"]
    assert agent.use("memory_forget", memoryId=candidate["id"])["action"] == "deleted"
    assert agent.recall("payment Hamburg") == []
