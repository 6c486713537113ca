from __future__ import annotations

import time
from typing import Any

import pytest

from accounts.models import AuditEvent
from core.errors import DeletedByPerson, InvalidInput
from memories.models import OverrideRevision
from memories.services.hygiene import without_recalled_memories
from store.models import Memory
from tests.agents.tools.conftest import Agent
from tests.conftest import Person
from tests.memories.calls import say

pytestmark = pytest.mark.django_db


def test_a_new_memory_has_its_agent_and_session(agent: Agent) -> None:
    details = agent.use("memory_store", text="  The tax number is 4711  ")
    assert details["action"] == "created"
    memory = Memory.objects.get(memory_id=details["id"])
    assert (memory.text, memory.category, memory.importance) == ("The tax number is 4711", "user_memory_fact", 0.7)
    assert (memory.agent_id, memory.origin) == ("main", "tool")
    assert memory.session is not None
    assert memory.session.session_id == "agent:main:main"
    assert agent.text == f'Stored: "The tax number is 4711" [id: {details["id"]}]'


def test_a_long_text_is_stored_completely_and_previewed(agent: Agent) -> None:
    memory_id = agent.store("word " * 1500)
    assert len(agent.text) < 200
    assert len(Memory.objects.get(memory_id=memory_id).text) == 7499


@pytest.mark.parametrize(
    "repeated_text",
    ["The tax number is 4711", "the  TAX number\nis 4711.", "Ｔｈｅ tax number is ４７１１！"],
)
def test_the_same_text_in_another_spelling_updates_the_memory(agent: Agent, repeated_text: str) -> None:
    first = agent.store("The tax number is 4711")
    assert agent.use("memory_store", text=repeated_text, importance=0.2) == {"action": "updated", "id": first}
    assert agent.text.startswith("Updated: ")
    memory = Memory.objects.get()
    assert (memory.memory_id, memory.text, memory.importance) == (first, repeated_text, 0.2)
    assert list(OverrideRevision.objects.order_by("number").values_list("text", flat=True)) == [
        "The tax number is 4711",
        repeated_text,
    ]
    assert agent.ids("tax number") == {first}


def test_storing_an_identical_text_again_changes_nothing(agent: Agent) -> None:
    first = agent.store("爱丽丝对花生过敏。")
    assert agent.use("memory_store", text="爱丽丝对花生过敏。") == {"action": "updated", "id": first}
    assert not OverrideRevision.objects.exists()


def test_similar_texts_are_separate_memories(agent: Agent) -> None:
    texts = ["Alice likes tea", "Alice likes no tea", "Alice likes green tea", "爱丽丝喜欢茶", "爱丽丝不喜欢茶"]
    assert len({agent.store(text) for text in texts}) == len(texts)


def test_memories_of_other_tabs_and_agents_and_messages_are_not_updated(agent: Agent, alice: Person) -> None:
    text = "Restart the worker after a deployment"
    say(alice, "chat:c1", text)
    ids = {
        agent.store(text),
        agent.store(text, category="self_improving_learnings"),
        Agent(alice, "other").store(text),
    }
    assert len(ids) == 3
    assert agent.store(text, category="user_memory_decision") in ids  # the same tab
    assert Memory.objects.count() == 4


def test_storing_a_forgotten_text_creates_a_new_memory(agent: Agent) -> None:
    first = agent.store("The tax number is 4711")
    agent.use("memory_forget", memoryId=first)
    assert agent.use("memory_store", text="The tax number is 4711")["action"] == "created"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<relevant-memories>\n1. old\n</relevant-memories>\nNew fact", "New fact"),
        ("Before <knowledge-context source='x'>a\nb</knowledge-context> after", "Before  after"),
        ("Said <RELEVANT-MEMORIES >x</ relevant-memories > twice <relevant-memories>y</relevant-memories>.", None),
        ("Fact. <relevant-memories>\n1. cut off in the mid", "Fact."),
        ("Fact.</relevant-memories>", "Fact."),
        ("A<relevant-memories>x<knowledge-context>y</knowledge-context>z</relevant-memories>B", "AB"),
        ("a < b, relevant-memories and <b>bold</b> stay", "a < b, relevant-memories and <b>bold</b> stay"),
    ],
)
def test_framed_memories_are_not_stored(agent: Agent, text: str, expected: str | None) -> None:
    stored = Memory.objects.get(memory_id=agent.store(text)).text
    assert stored == (expected if expected is not None else "Said  twice .")


@pytest.mark.parametrize(
    "part", ["<relevant-memories", "< ", "<relevant-memories>", "</relevant-memories", "x" + " " * 99]
)
def test_removing_framed_memories_takes_linear_time(agent: Agent, part: str) -> None:
    text = part * (1_000_000 // len(part)) + "x"
    started_at = time.process_time()
    assert len(without_recalled_memories(text)) <= len(text)
    assert agent.use("memory_forget", memoryId=text)["action"] == "not_found"
    assert time.process_time() - started_at < 2


def test_storing_a_recall_result_stores_nothing(agent: Agent) -> None:
    agent.store("The tax number is 4711")
    agent.recall("tax number")
    block = agent.text[agent.text.index("<relevant-memories>") :]
    assert agent.use("memory_store", text=block) == {"error": "missing_param"}


def test_a_store_without_text_is_an_error(agent: Agent) -> None:
    for arguments in ({}, {"text": ""}, {"text": None}):
        assert agent.use("memory_store", **arguments) == {"error": "missing_param"}


def test_importance_is_clamped(agent: Agent) -> None:
    for given, expected in ((7, 1.0), (-1, 0.0), ("0.5", 0.5)):
        memory_id = agent.store(f"importance of {given}", importance=given)
        assert Memory.objects.get(memory_id=memory_id).importance == expected


@pytest.mark.parametrize(
    "arguments",
    [
        {"text": 5},
        {"text": "x", "category": "nonsense"},
        {"text": "x", "importance": "very"},
        {"text": "x", "importance": float("nan")},
        {"text": "x\x00"},
        {"text": "\ud800"},
        {"text": "x" * 8001},
    ],
)
def test_invalid_arguments_are_refused(agent: Agent, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        agent.use("memory_store", **arguments)
    assert not Memory.objects.exists()


def test_categories_of_disabled_kinds_are_refused(agent: Agent, settings: Any) -> None:
    settings.MEMORY_GATEWAY_SELF_IMPROVING_MEMORY = settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY = False
    for category, error in (
        ("self_improving_errors", "self_improving_memory_disabled"),
        ("full_context_user", "full_context_memory_disabled"),
    ):
        assert agent.use("memory_store", text="x", category=category) == {"error": error}
    assert agent.use("memory_store", text="x")["action"] == "created"


def test_it_is_audited_without_text(agent: Agent) -> None:
    agent.store("The tax number is 4711")
    event = AuditEvent.objects.get(action="memory.add")
    assert "4711" not in str(event.detail)


def test_a_duplicate_is_found_among_many_similar_memories(agent: Agent, alice: Person) -> None:
    """Ranking alone would put the similar memories, and those of other agents, first."""
    for short, longer in (("Tea.", "tea tea tea"), ("喝茶", "喝茶喝茶喝茶")):
        first = agent.store(short)
        for number in range(25):
            agent.store(f"{longer} {number}")
            Agent(alice, f"helper{number}").store(short)
        assert agent.use("memory_store", text=short) == {"action": "updated", "id": first}


@pytest.mark.parametrize(
    "text", ["🎉", "???", "to be or not to be", "-> <-", "的", "see you on 5 May 2026", "May 2026"]
)
def test_texts_without_keywords_are_updated_too(agent: Agent, text: str) -> None:
    first = agent.store(text)
    agent.store(f"{text} and more of it")
    assert agent.use("memory_store", text=text) == {"action": "updated", "id": first}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("My phone number is 555-0101", "My new phone number is 555-0199"),
        ("The staging database is MySQL", "The staging database is PostgreSQL now"),
        ("我的手机号是13800000001", "我的手机号改成13900000002了"),
        ("Mein Zahnarzt in Bremen heißt Weber", "Mein Zahnarzt in Bremen heißt jetzt Huber"),
    ],
)
def test_a_store_names_similar_memories(agent: Agent, alice: Person, old: str, new: str) -> None:
    older = agent.store(old)
    Agent(alice, "other").store(old)
    agent.store("Alice plays the violin on Sundays")
    stored = agent.use("memory_store", text=new)
    [similar] = stored["similar"]
    assert (similar["id"], similar["text"]) == (older, old)
    assert similar["created_at"].startswith("20")
    assert f"[id: {older}]" in agent.text
    assert "untrusted" in agent.text
    assert agent.use("memory_store", text="Bo owns two canoes")["similar"] == []


def test_a_memory_is_stored_with_tags_metadata_an_id_and_an_end(agent: Agent, alice: Person) -> None:
    given = {"tags": ["tax", "money"], "metadata": {"year": 2030}, "external_id": "crm-1", "expires_at": "2999-06-30"}
    memory_id = agent.use("memory_store", text="The tax number is 4711", **given)["id"]
    memory = Memory.objects.get(memory_id=memory_id)
    assert {name: memory.payload[name] for name in ("tags", "metadata", "external_id")} == {
        "tags": ["tax", "money"],
        "metadata": {"year": 2030},
        "external_id": "crm-1",
    }
    assert memory.expires_at is not None
    assert memory.expires_at.isoformat() == "2999-07-01T00:00:00+00:00"  # after the day


def test_the_same_external_id_changes_the_memory(agent: Agent) -> None:
    first = agent.use("memory_store", text="The tax number is 4711", external_id="crm-1", tags=["tax"])["id"]
    again = agent.use(
        "memory_store", text="The tax number is 4712", external_id="crm-1", expires_at="2999-01-01T10:00Z"
    )
    assert again == {"action": "updated", "id": first}
    memory = Memory.objects.get()
    assert (memory.text, memory.payload["tags"]) == ("The tax number is 4712", ["tax"])  # those not given stay
    agent.use("memory_store", text="The tax number is 4712", external_id="crm-1", expires_at="never", tags=[])
    memory.refresh_from_db()
    assert (memory.expires_at, memory.payload["tags"]) == (None, ["tax"])


def test_an_external_id_whose_memory_was_deleted_is_refused(agent: Agent) -> None:
    memory_id = agent.use("memory_store", text="The tax number is 4711", external_id="crm-1")["id"]
    agent.use("memory_forget", memoryId=memory_id)
    with pytest.raises(DeletedByPerson):
        agent.use("memory_store", text="The tax number is 4711", external_id="crm-1")
    assert Memory.objects.count() == 1


def test_labels_may_be_text(agent: Agent) -> None:
    memory_id = agent.use("memory_store", text="x is y", tags="a, b，c", metadata='{"k": [1, "2"]}', external_id="")[
        "id"
    ]
    payload = Memory.objects.get(memory_id=memory_id).payload
    assert (payload["tags"], payload["metadata"]) == (["a", "b", "c"], {"k": [1, "2"]})
    assert "external_id" not in payload


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tags", 5),
        ("tags", ["a" * 101]),
        ("tags", ["a", " "]),
        ("metadata", "[1]"),
        ("metadata", "no JSON"),
        ("metadata", {"a": {"b": {"c": {"d": 1}}}}),
        ("external_id", "a" * 256),
        ("external_id", " "),
        ("expires_at", "2001-01-01"),
        ("expires_at", "when pigs fly"),
    ],
)
def test_invalid_labels_are_named(agent: Agent, name: str, value: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        agent.use("memory_store", text="x", **{name: value})
    assert caught.value.errors[0].field.split(".")[0] == name
    assert not Memory.objects.exists()
