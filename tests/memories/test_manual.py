"""Memories that somebody writes down by hand: found at once under either engine, and memories like any other."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

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
from tests.store.conftest import ask, texts

pytestmark = pytest.mark.django_db

OPERATOR = Actor.operator("olga")


def by_hand(person: Person, text: str = "Prefers tea to coffee", **fields: Any) -> StoredMemory:
    values: dict[str, Any] = {"category": "user_memory_preference", "origin": "panel", "actor": OPERATOR}
    return add_by_hand(person.owner, text=text, **{**values, **fields})


def test_it_is_a_memory_of_its_own_session_found_at_once(alice: Person, bob: Person) -> None:
    memory = by_hand(alice, "  Prefers tea to coffee\n")
    assert (memory.text, memory.session_id, memory.importance) == ("Prefers tea to coffee", "manual_insert", 1.0)
    assert (memory.memory_type, memory.category, memory.origin) == ("episode", "user_memory_preference", "panel")
    assert texts(ask(EmbeddedEngine(), alice.owner, "tea")) == ["Prefers tea to coffee"]
    assert texts(ask(EmbeddedEngine(), bob.owner, "tea")) == []
    assert browse.page(Selection(tab="user")).memories == (memory,)


def test_chinese_is_found_too(alice: Person) -> None:
    by_hand(alice, "喜欢喝绿茶,不喝咖啡")
    assert texts(ask(EmbeddedEngine(), alice.owner, "绿茶")) == ["喜欢喝绿茶,不喝咖啡"]


def test_it_can_be_written_for_an_agent_in_a_session_of_its_own(alice: Person) -> None:
    memory = by_hand(alice, agent_id="main", session_id="session:1", importance=0.7, origin="tool")
    assert (memory.agent_id, memory.session_id, memory.importance, memory.origin) == ("main", "session:1", 0.7, "tool")
    assert by_hand(alice, "another", session_id="session:1").seq == memory.seq + 1


def test_it_is_corrected_and_deleted_like_any_other(alice: Person) -> None:
    which = MemoryRef(by_hand(alice).memory_id)
    decisions.override(alice.user_pk, which, decisions.OverrideValues(text="Prefers coffee after all"), actor=OPERATOR)
    assert texts(ask(EmbeddedEngine(), alice.owner, "coffee")) == ["Prefers coffee after all"]
    decisions.delete(alice.user_pk, which, actor=OPERATOR)
    assert browse.count(Selection()) == 0


def test_the_trail_says_who_but_not_what(alice: Person) -> None:
    memory = by_hand(alice)
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
def test_what_makes_no_sense_is_refused(alice: Person, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        by_hand(alice, **fields)
    assert not Memory.objects.exists()


def test_eight_thousand_characters_are_kept_whole(alice: Person) -> None:
    assert len(by_hand(alice, "长" * MAX_TEXT_CHARS).text) == MAX_TEXT_CHARS


def test_a_deleted_session_takes_nothing(alice: Person) -> None:
    by_hand(alice, session_id="chat:1")
    EmbeddedEngine().hide_sessions(alice.owner, ["chat:1"], timezone.now())
    with pytest.raises(Conflict):
        by_hand(alice, session_id="chat:1")
    EmbeddedEngine().delete(alice.owner, "chat:1")
    with pytest.raises(EngineRefused):
        by_hand(alice, session_id="chat:1")
    with pytest.raises(NotFound):
        by_hand(alice, session_id="memory_edit:bob")
