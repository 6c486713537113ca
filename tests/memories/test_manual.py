"""Memories that operators and agents write: they are found at once and behave like any other memory."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.audit import Actor
from accounts.models import AuditEvent
from core.errors import Conflict, EngineRefused, InvalidInput, NotFound
from engines.embedded.engine import EmbeddedEngine
from memories.services import decisions
from memories.services.lookup import MemoryRef
from memories.services.manual import MAX_TEXT_CHARS, add_by_hand
from store import browse
from store.browse import Selection
from store.models import Memory
from store.types import StoredMemory
from tests.conftest import Person
from tests.store.conftest import search, texts
from tests.store.decisions import delete_session

pytestmark = pytest.mark.django_db

OPERATOR = Actor.operator("olga")


def add_memory(person: Person, text: str = "Prefers tea to coffee", **fields: Any) -> StoredMemory:
    values: dict[str, Any] = {"category": "user_memory_preference", "origin": "panel", "actor": OPERATOR}
    return add_by_hand(person.owner, text=text, **{**values, **fields})


def test_a_manual_memory_has_a_separate_session_and_is_found_at_once(alice: Person, bob: Person) -> None:
    memory = add_memory(alice, "  Prefers tea to coffee\n")
    assert (memory.text, memory.session_id, memory.importance) == ("Prefers tea to coffee", "manual_insert", 1.0)
    assert (memory.memory_type, memory.category, memory.origin) == ("episode", "user_memory_preference", "panel")
    assert texts(search(EmbeddedEngine(), alice.owner, "tea")) == ["Prefers tea to coffee"]
    assert texts(search(EmbeddedEngine(), bob.owner, "tea")) == []
    assert browse.page(Selection(tab="user")).memories == (memory,)


def test_a_chinese_memory_is_found(alice: Person) -> None:
    add_memory(alice, "喜欢喝绿茶,不喝咖啡")
    assert texts(search(EmbeddedEngine(), alice.owner, "绿茶")) == ["喜欢喝绿茶,不喝咖啡"]


def test_a_manual_memory_can_belong_to_an_agent_and_a_session(alice: Person) -> None:
    memory = add_memory(alice, agent_id="main", session_id="session:1", importance=0.7, origin="tool")
    assert (memory.agent_id, memory.session_id, memory.importance, memory.origin) == ("main", "session:1", 0.7, "tool")
    assert add_memory(alice, "another", session_id="session:1").seq == memory.seq + 1


def test_a_manual_memory_can_be_overridden_and_deleted(alice: Person) -> None:
    memory_ref = MemoryRef(add_memory(alice).memory_id)
    decisions.override(
        alice.user_pk, memory_ref, decisions.OverrideValues(text="Prefers coffee after all"), actor=OPERATOR
    )
    assert texts(search(EmbeddedEngine(), alice.owner, "coffee")) == ["Prefers coffee after all"]
    decisions.delete(alice.user_pk, memory_ref, actor=OPERATOR)
    assert browse.count(Selection()) == 0


def test_manual_memories_are_audited_without_text(alice: Person) -> None:
    memory = add_memory(alice)
    event = AuditEvent.objects.get(action="memory.add")
    assert (event.actor, event.user_id, event.subject_id) == ("olga", "alice", memory.memory_id)
    assert "tea" not in str(event.detail)


@pytest.mark.parametrize(
    "fields",
    [
        {"text": " \n "},
        {"text": "x" * (MAX_TEXT_CHARS + 1)},
        {"text": "nul \x00"},
        {"category": "nonsense"},
        {"category": "full_context_memory"},
        {"importance": 1.1},
        {"importance": float("nan")},
        {"agent_id": "no agent"},
    ],
)
def test_invalid_values_are_refused(alice: Person, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        add_memory(alice, **fields)
    assert not Memory.objects.exists()


def test_eight_thousand_characters_are_accepted(alice: Person) -> None:
    assert len(add_memory(alice, "长" * MAX_TEXT_CHARS).text) == MAX_TEXT_CHARS


def test_a_deleted_session_accepts_no_memory(alice: Person) -> None:
    add_memory(alice, session_id="chat:1")
    delete_session(alice.owner, "chat:1")
    with pytest.raises(Conflict):
        add_memory(alice, session_id="chat:1")
    EmbeddedEngine().delete(alice.owner, "chat:1")
    with pytest.raises(EngineRefused):
        add_memory(alice, session_id="chat:1")
    with pytest.raises(NotFound):
        add_memory(alice, session_id="memory_edit:bob")
