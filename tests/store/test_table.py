"""Hidden memories are neither found nor listed; overridden ones are found by their new text only."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.utils import timezone

from core.errors import NotFound
from engines.embedded.engine import EmbeddedEngine
from store.derived_memories import supersede
from store.models import IndexStatistics, Memory
from store.types import ContentItem, ListRequest, Message, Owner, SearchRequest, Wording
from tests.conftest import Person
from tests.store.decisions import delete, delete_session, restore, restore_session

NOON_MS = 1_781_172_177_000
NOW = datetime(2026, 6, 11, 12, tzinfo=UTC)


@pytest.fixture
def engine() -> EmbeddedEngine:
    return EmbeddedEngine()


def add_texts(
    engine: EmbeddedEngine, person: Person, *texts: str, session_id: str = "chat:c1", flush: bool = True
) -> None:
    messages = [
        Message(person.user_id, "user", NOON_MS + number, (ContentItem("text", text=text),))
        for number, text in enumerate(texts)
    ]
    engine.add(person.owner, session_id, messages)
    if flush:
        engine.flush(person.owner, session_id)


def search_texts(engine: EmbeddedEngine, owner: Owner, query: str, top_k: int = 100) -> list[str]:
    (result,) = engine.search(owner, [SearchRequest(query, method="keyword", top_k=top_k)])
    return [hit.text for hit in result.hits]


def id_of(text: str) -> str:
    return Memory.objects.get(text=text).memory_id


def list_texts(engine: EmbeddedEngine, owner: Owner, **conditions: object) -> list[str]:
    return [memory.text for memory in engine.list(owner, ListRequest(**conditions)).memories]  # type: ignore[arg-type]


def test_a_hidden_memory_is_neither_found_nor_listed_until_it_is_restored(
    engine: EmbeddedEngine, alice: Person
) -> None:
    add_texts(engine, alice, "the red car", "the blue car")
    delete(alice.owner, id_of("the red car"))
    assert search_texts(engine, alice.owner, "car") == ["the blue car"] == list_texts(engine, alice.owner)
    restore(alice.owner, id_of("the red car"))
    assert sorted(search_texts(engine, alice.owner, "car")) == ["the blue car", "the red car"]


def test_hidden_memories_do_not_count_toward_top_k(engine: EmbeddedEngine, alice: Person) -> None:
    add_texts(engine, alice, *(f"car car car {number}" for number in range(5)), "one car among many other things")
    for number in range(5):
        delete(alice.owner, id_of(f"car car car {number}"))
    assert search_texts(engine, alice.owner, "car", top_k=1) == ["one car among many other things"]


def test_restoring_a_session_keeps_its_hidden_memories_hidden(engine: EmbeddedEngine, alice: Person) -> None:
    add_texts(engine, alice, "the red car", "the blue car")
    add_texts(engine, alice, "the green car", session_id="chat:c2")
    delete(alice.owner, id_of("the red car"))
    delete_session(alice.owner, "chat:c1")
    assert search_texts(engine, alice.owner, "car") == ["the green car"] == list_texts(engine, alice.owner)
    restore_session(alice.owner, "chat:c1")
    assert sorted(search_texts(engine, alice.owner, "car")) == ["the blue car", "the green car"]


def test_a_missing_session_cannot_be_hidden(engine: EmbeddedEngine, alice: Person, bob: Person) -> None:
    add_texts(engine, alice, "the red car")
    with pytest.raises(NotFound):
        delete_session(bob.owner, "chat:c1")
    engine.delete(alice.owner, "chat:c1")
    with pytest.raises(NotFound):
        delete_session(alice.owner, "chat:c1")


def test_a_memory_hidden_before_the_flush_stays_hidden(engine: EmbeddedEngine, alice: Person) -> None:
    add_texts(engine, alice, "the red car", flush=False)
    delete(alice.owner, id_of("the red car"))
    engine.flush(alice.owner, "chat:c1")
    assert search_texts(engine, alice.owner, "car") == []


def test_an_overridden_memory_is_found_by_its_new_text_only(engine: EmbeddedEngine, alice: Person) -> None:
    add_texts(engine, alice, "the red car", "the blue bicycle")
    engine.replace(alice.owner, {id_of("the red car"): Wording("a green submarine", "user_fact", 0.5)})
    assert search_texts(engine, alice.owner, "submarine") == ["a green submarine"]
    assert search_texts(engine, alice.owner, "red") == search_texts(engine, alice.owner, "car") == []
    memory = Memory.objects.get(text="a green submarine")
    assert (memory.category, memory.importance) == ("user_fact", 0.5)


def test_hits_do_not_contain_the_overridden_text(engine: EmbeddedEngine, alice: Person) -> None:
    add_texts(engine, alice, "the red car")
    engine.replace(alice.owner, {id_of("the red car"): Wording("a green submarine", "", None)})
    (result,) = engine.search(alice.owner, [SearchRequest("submarine", method="keyword")])
    assert "red car" not in str(result.hits[0])


def test_the_statistics_follow_an_override(engine: EmbeddedEngine, alice: Person) -> None:
    add_texts(engine, alice, "one two three four five")
    memory_id = id_of("one two three four five")
    before = IndexStatistics.objects.values("documents", "tokens").get(user=alice.user_pk)
    engine.replace(alice.owner, {memory_id: Wording("six", "", None)})
    after = IndexStatistics.objects.values("documents", "tokens").get(user=alice.user_pk)
    assert after["documents"] == before["documents"] == 1
    assert after["tokens"] < before["tokens"]
    assert Memory.objects.get(memory_id=memory_id).token_count == after["tokens"]
    engine.replace(alice.owner, {memory_id: Wording("one two three four five", "", None)})
    assert IndexStatistics.objects.values("documents", "tokens").get(user=alice.user_pk) == before


def test_other_users_cannot_hide_or_override_a_memory(engine: EmbeddedEngine, alice: Person, bob: Person) -> None:
    add_texts(engine, alice, "the red car")
    with pytest.raises(NotFound):
        delete(bob.owner, id_of("the red car"))
    with pytest.raises(KeyError):
        engine.replace(bob.owner, {id_of("the red car"): Wording("x", "", None)})
    assert search_texts(engine, alice.owner, "car") == ["the red car"]
    assert engine.find(bob.user_pk, id_of("the red car")) == []


def test_pages_list_every_memory_once_newest_first(engine: EmbeddedEngine, alice: Person) -> None:
    add_texts(engine, alice, *(f"number {number}" for number in range(7)))
    Memory.objects.update(created_at_ms=NOON_MS)  # also where times are equal
    seen: list[str] = []
    after = None
    while True:
        page = engine.list(alice.owner, ListRequest(limit=3, after=after))
        seen += [memory.text for memory in page.memories]
        if (after := page.following) is None:
            break
    assert seen == [f"number {number}" for number in reversed(range(7))]


def test_the_trash_lists_what_the_user_deleted(engine: EmbeddedEngine, alice: Person, bob: Person) -> None:
    """Not what the gateway hid, which comes back with its source."""
    add_texts(engine, alice, "deleted", "superseded", "shown")
    delete(alice.owner, id_of("deleted"))
    superseded, newer = (Memory.objects.get(text=text) for text in ("superseded", "shown"))
    supersede([superseded], newer, timezone.now())
    assert list_texts(engine, alice.owner, is_deleted=True) == ["deleted"]
    assert list_texts(engine, bob.owner, is_deleted=True) == []


def test_each_condition_narrows_a_list(engine: EmbeddedEngine, alice: Person, bob: Person) -> None:
    add_texts(engine, alice, "flushed")
    add_texts(engine, alice, "pending", session_id="chat:c2", flush=False)
    add_texts(engine, bob, "of bob")
    reply = Message("helper", "assistant", NOON_MS + 5, (ContentItem("text", text="of the helper"),))
    engine.add(alice.owner, "chat:c1", [reply])
    owner = alice.owner
    assert set(list_texts(engine, owner)) == {"flushed", "pending", "of the helper"}
    assert list_texts(engine, owner, session_id="chat:c2") == ["pending"]
    assert list_texts(engine, owner, memory_type="episode") == ["flushed"]
    assert list_texts(engine, owner, agent_id="helper") == ["of the helper"]
    assert list_texts(engine, owner, category="full_context_assistant") == ["of the helper"]
    assert list_texts(engine, owner, since_ms=NOON_MS + 5) == ["of the helper"]
    assert set(list_texts(engine, owner, until_ms=NOON_MS + 5)) == {"flushed", "pending"}
    assert list_texts(engine, Owner(owner.user_pk, owner.user_id, "default", "other")) == []


def test_a_deleted_memory_is_not_found_by_its_id(engine: EmbeddedEngine, alice: Person) -> None:
    add_texts(engine, alice, "the red car")
    memory_id = id_of("the red car")
    (memory,) = engine.find(alice.user_pk, memory_id)
    assert (memory.text, memory.session_id, memory.owner) == ("the red car", "chat:c1", alice.owner)
    engine.delete(alice.owner, "chat:c1")
    assert engine.find(alice.user_pk, memory_id) == []


def test_purged_rows_are_not_listed(engine: EmbeddedEngine, alice: Person) -> None:
    add_texts(engine, alice, "purged", "kept", flush=False)
    Memory.objects.filter(text="purged").update(state="purged")
    assert list_texts(engine, alice.owner) == ["kept"]


def test_lists_take_one_statement(engine: EmbeddedEngine, alice: Person, django_assert_num_queries: object) -> None:
    add_texts(engine, alice, *(f"number {number}" for number in range(7)))
    with django_assert_num_queries(1):  # type: ignore[operator]
        assert len(list_texts(engine, alice.owner)) == 7
