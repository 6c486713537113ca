"""`since` and `until` of the MCP tools that recall, search and list."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from store.models import Memory
from tests.agents.mcp.test_tools import Agent
from tests.conftest import Person


@pytest.fixture
def agent(alice: Person) -> Agent:
    found = Agent(alice)
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0)
    for days, text in enumerate(("apples today", "apples yesterday", "apples earlier")):
        memory = found.store(text)
        at = int((noon - timedelta(days)).timestamp() * 1000)
        Memory.objects.filter(memory_id=memory).update(created_at_ms=at)
    return found


def test_a_list_takes_days_and_words(agent: Agent) -> None:
    day = (datetime.now(UTC) - timedelta(1)).date().isoformat()
    assert agent.listed(since="today") == ["apples today"]
    assert agent.listed(since="yesterday", until="yesterday") == ["apples yesterday"]
    assert agent.listed(since=day, until=day) == ["apples yesterday"]
    assert agent.listed(until="vorgestern") == ["apples earlier"]
    assert agent.listed(since=f"{day}T00:00:00Z") == ["apples today", "apples yesterday"]


@pytest.mark.parametrize("tool", ["memory_recall", "memory_search", "memory_list"])
def test_words_that_are_no_time_are_refused(agent: Agent, tool: str) -> None:
    query = {} if tool == "memory_list" else {"query": "apples"}
    assert agent.refused(tool, since="soon", **query) == "invalid_input"
    assert "since" in agent.text
