from __future__ import annotations

from typing import Any

import pytest

from accounts.audit import Actor
from agents import tools
from agents.tools import Caller
from tests.conftest import Person


class Agent:
    """An agent of a person. Its methods return the details of a result; `text` is the last text for the model."""

    def __init__(self, person: Person, agent_id: str = "main") -> None:
        self.caller = Caller(person.owner, agent_id, Actor.command("tests"))
        self.text = ""

    def use(self, name: str, **arguments: Any) -> dict[str, Any]:
        answer = tools.invoke(self.caller, name, arguments)
        [content] = answer["content"]
        assert content["type"] == "text"
        self.text = content["text"]
        return dict(answer["details"])

    def store(self, text: str, **arguments: Any) -> str:
        return str(self.use("memory_store", text=text, **arguments)["id"])

    def recall(self, query: str, **arguments: Any) -> list[dict[str, Any]]:
        return list(self.use("memory_recall", query=query, **arguments).get("memories", []))

    def ids(self, query: str, **arguments: Any) -> set[str]:
        return {memory["id"] for memory in self.recall(query, **arguments)}


@pytest.fixture
def agent(alice: Person) -> Agent:
    return Agent(alice)
