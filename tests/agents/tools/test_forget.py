from __future__ import annotations

import pytest

from memories.models import Tombstone
from tests.agents.tools.conftest import Agent
from tests.conftest import Person
from tests.memories.calls import id_of, say, upload

pytestmark = pytest.mark.django_db


@pytest.mark.django_db(transaction=True)
def test_every_recalled_id_can_be_forgotten(agent: Agent, alice: Person, storage: object) -> None:
    say(alice, "chat:c1", "My payment runs through Hamburg")
    upload(alice)
    agent.store("Payment reminders go to the assistant")
    recalled_ids = agent.ids("payment Hamburg")
    assert len(recalled_ids) >= 3
    for memory_id in recalled_ids:
        assert agent.use("memory_forget", memoryId=memory_id) == {"action": "deleted", "id": memory_id}
        assert agent.text == f"Memory {memory_id} forgotten."
    assert agent.recall("payment Hamburg") == []


@pytest.mark.parametrize("id_format", ["[id: {}]", " id:{} ", '"{}"', "({})"])
def test_an_id_may_be_given_with_its_delimiters(agent: Agent, id_format: str) -> None:
    memory_id = agent.store("The tax number is 4711")
    assert agent.use("memory_forget", memoryId=id_format.format(memory_id)) == {"action": "deleted", "id": memory_id}


@pytest.mark.parametrize("memory_id", ["00000000-0000-4000-8000-000000000000", "1234abcd", "x" * 5000, "é%/.."])
def test_an_unknown_id_is_not_found(agent: Agent, memory_id: str) -> None:
    assert agent.use("memory_forget", memoryId=memory_id) == {"action": "not_found", "id": memory_id}


def test_copies_are_forgotten_too(agent: Agent, alice: Person) -> None:
    for number, text in enumerate(["The tax number is 4711.", "the tax  number is 4711", "The tax number is 4711"]):
        say(alice, f"chat:c{number}", text)
    say(alice, "chat:c4", "The tax number is 4712")
    memory_id = id_of("The tax number is 4711.")
    answer = agent.use("memory_forget", memoryId=memory_id)
    assert answer == {"action": "deleted", "id": memory_id, "copies": [
        id_of("the tax  number is 4711"), id_of("The tax number is 4711"),
    ]}  # fmt: skip
    assert agent.text == f"Memory {memory_id} and 2 copies forgotten."
    assert agent.ids("tax number") == {id_of("The tax number is 4712")}


def test_a_query_forgets_the_copies_of_its_match(agent: Agent, alice: Person) -> None:
    for number in range(2):
        say(alice, f"chat:c{number}", f"The tax number is 4711{'.' * number}")
    answer = agent.use("memory_forget", query="The tax number is 4711")
    assert (answer["action"], answer["rows"], len(answer["copies"])) == ("deleted", 2, 1)
    assert "and 1 copy" in agent.text
    assert agent.recall("tax number") == []


def test_a_forgotten_memory_cannot_be_forgotten_again(agent: Agent) -> None:
    memory_id = agent.store("The tax number is 4711")
    agent.use("memory_forget", memoryId=memory_id)
    assert agent.use("memory_forget", memoryId=memory_id)["action"] == "not_found"
    assert Tombstone.objects.count() == 1


def test_memories_of_other_users_and_agents_cannot_be_forgotten(agent: Agent, alice: Person, bob: Person) -> None:
    memory_id = agent.store("The tax number is 4711")
    for other in (Agent(bob), Agent(alice, "other")):
        assert other.use("memory_forget", memoryId=memory_id)["action"] == "not_found"
        assert other.use("memory_forget", query="The tax number is 4711") == {"found": 0}
    assert agent.ids("tax number") == {memory_id}


def test_a_query_that_clearly_matches_one_memory_forgets_it(agent: Agent) -> None:
    memory_id = agent.store("爱丽丝对花生过敏")
    agent.store("爱丽丝住在汉堡")
    assert agent.use("memory_forget", query="爱丽丝对花生过敏") == {"action": "deleted", "rows": 1, "id": memory_id}
    assert "花生" in agent.text
    assert memory_id in agent.text
    assert memory_id not in agent.ids("花生过敏")


def test_a_query_that_matches_several_memories_returns_candidates(agent: Agent) -> None:
    ids = {agent.store("Alice drinks green tea"), agent.store("Alice drinks black tea")}
    details = agent.use("memory_forget", query="Alice drinks tea")
    assert details["action"] == "candidates"
    assert {candidate["id"] for candidate in details["candidates"]} == ids
    assert set(details["candidates"][0]) == {"id", "text", "category", "score"}
    assert all(memory_id in agent.text for memory_id in ids)
    assert not Tombstone.objects.exists()


def test_one_word_of_a_long_memory_returns_a_candidate(agent: Agent) -> None:
    agent.store("The warranty of the coffee machine in the office kitchen ends in March 2027")
    details = agent.use("memory_forget", query="coffee")
    assert details["action"] == "candidates"


def test_a_partial_match_is_a_candidate(agent: Agent) -> None:
    memory_id = agent.store("Alice prefers oat milk")
    details = agent.use("memory_forget", query="please forget whatever I said about milk yesterday evening")
    assert [candidate["id"] for candidate in details["candidates"]] == [memory_id]


def test_no_match_and_no_argument_are_different_results(agent: Agent) -> None:
    assert agent.use("memory_forget", query="anything") == {"found": 0}
    for arguments in ({}, {"query": " ", "memoryId": ""}, {"query": None}):
        assert agent.use("memory_forget", **arguments) == {"error": "missing_param"}


def test_a_message_can_be_forgotten_by_its_text(agent: Agent, alice: Person) -> None:
    say(alice, "chat:c1", "Fridays are for the budget")
    memory_id = id_of("Fridays are for the budget")
    assert agent.use("memory_forget", query="Fridays are for the budget")["id"] == memory_id
