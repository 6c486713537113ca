"""The tools with the stub of EverOS: memories that they store are in the gateway and found with those of EverOS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engines.registry import get_engine
from tests.agents.tools.conftest import Agent
from tests.conftest import Person
from tests.memories.calls import say
from tests.stub_upstream import StubUpstream

pytestmark = pytest.mark.django_db


@pytest.fixture
def upstream(settings: Any) -> Iterator[StubUpstream]:
    with StubUpstream() as running:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = running.url
        yield running


def test_a_memory_is_stored_recalled_updated_and_forgotten(upstream: StubUpstream, agent: Agent, bob: Person) -> None:
    assert get_engine().label == "remote"
    for text, query in (("The tax number is 4711", "tax number"), ("爱丽丝对花生过敏", "花生")):
        memory_id = agent.store(text)
        assert agent.use("memory_store", text=f"{text}.", importance=0.9) == {"action": "updated", "id": memory_id}
        [memory] = agent.recall(query, limit=1)
        assert (memory["id"], memory["importance"]) == (memory_id, 0.9)
        assert Agent(bob).recall(query) == []
        assert agent.use("memory_forget", memoryId=memory_id)["action"] == "deleted"
        assert agent.recall(query) == []


def test_memories_of_everos_are_recalled_and_forgotten_by_id(
    upstream: StubUpstream, agent: Agent, alice: Person
) -> None:
    say(alice, "chat:c1", "My payment runs through Hamburg")
    own = agent.store("Payment reminders go to the assistant")
    found = agent.ids("payment")
    assert own in found
    assert len(found) == 2
    for memory_id in found:
        assert agent.use("memory_forget", memoryId=memory_id)["action"] == "deleted"
    assert agent.recall("payment") == []


def test_scores_are_comparable_with_those_of_the_embedded_engine(
    upstream: StubUpstream, agent: Agent, alice: Person
) -> None:
    """`memory_forget` by query applies the same thresholds to memories of both."""
    for number, text in enumerate(("My payment runs through Hamburg", "The zeppelin lands on Friday")):
        say(alice, f"chat:c{number}", text)
    scores = {memory["text"]: memory["score"] for memory in agent.recall("payment Hamburg zeppelin")}
    assert [round(score, 2) for text, score in sorted(scores.items()) if "payment" in text] == [0.67]
    assert agent.use("memory_forget", query="carburettor") == {"found": 0}
    assert agent.use("memory_forget", query="The zeppelin lands on Friday")["action"] == "deleted"
