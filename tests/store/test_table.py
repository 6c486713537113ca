"""What people decide about memories: hidden ones are found nowhere, reworded ones by their new words alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from engines.embedded.engine import EmbeddedEngine
from store.models import IndexStatistics, Memory
from store.types import ContentItem, ListRequest, Message, Owner, SearchRequest, Wording
from tests.conftest import Person

NOON_MS = 1_781_172_177_000
NOW = datetime(2026, 6, 11, 12, tzinfo=UTC)


@pytest.fixture
def engine() -> EmbeddedEngine:
    return EmbeddedEngine()


def say(engine: EmbeddedEngine, person: Person, *texts: str, session_id: str = "chat:c1", flush: bool = True) -> None:
    messages = [
        Message(person.user_id, "user", NOON_MS + number, (ContentItem("text", text=text),))
        for number, text in enumerate(texts)
    ]
    engine.add(person.owner, session_id, messages)
    if flush:
        engine.flush(person.owner, session_id)


def found(engine: EmbeddedEngine, owner: Owner, query: str, top_k: int = 100) -> list[str]:
    (result,) = engine.search(owner, [SearchRequest(query, method="keyword", top_k=top_k)])
    return [hit.text for hit in result.hits]


def id_of(text: str) -> str:
    return Memory.objects.get(text=text).memory_id


def listed(engine: EmbeddedEngine, owner: Owner, **conditions: object) -> list[str]:
    return [memory.text for memory in engine.list(owner, ListRequest(**conditions)).memories]  # type: ignore[arg-type]


def test_a_hidden_memory_is_neither_found_nor_listed_until_it_is_shown_again(
    engine: EmbeddedEngine, alice: Person
) -> None:
    say(engine, alice, "the red car", "the blue car")
    engine.hide(alice.owner, [id_of("the red car")], NOW)
    assert found(engine, alice.owner, "car") == ["the blue car"] == listed(engine, alice.owner)
    engine.hide(alice.owner, [id_of("the red car")], None)
    assert sorted(found(engine, alice.owner, "car")) == ["the blue car", "the red car"]


def test_hidden_hits_make_room_for_others(engine: EmbeddedEngine, alice: Person) -> None:
    say(engine, alice, *(f"car car car {number}" for number in range(5)), "one car among many other things")
    for number in range(5):
        engine.hide(alice.owner, [id_of(f"car car car {number}")], NOW)
    assert found(engine, alice.owner, "car", top_k=1) == ["one car among many other things"]


def test_a_hidden_session_is_hidden_whole_and_leaves_single_decisions_alone(
    engine: EmbeddedEngine, alice: Person
) -> None:
    say(engine, alice, "the red car", "the blue car")
    say(engine, alice, "the green car", session_id="chat:c2")
    engine.hide(alice.owner, [id_of("the red car")], NOW)
    assert engine.hide_sessions(alice.owner, ["chat:c1"], NOW) == {"chat:c1"}
    assert found(engine, alice.owner, "car") == ["the green car"] == listed(engine, alice.owner)
    engine.hide_sessions(alice.owner, ["chat:c1"], None)
    assert sorted(found(engine, alice.owner, "car")) == ["the blue car", "the green car"]


def test_a_session_that_is_not_there_cannot_be_hidden(engine: EmbeddedEngine, alice: Person, bob: Person) -> None:
    say(engine, alice, "the red car")
    assert engine.hide_sessions(bob.owner, ["chat:c1"], NOW) == set()
    engine.delete(alice.owner, "chat:c1")
    assert engine.hide_sessions(alice.owner, ["chat:c1"], NOW) == set()


def test_what_is_hidden_before_the_flush_stays_hidden_after_it(engine: EmbeddedEngine, alice: Person) -> None:
    say(engine, alice, "the red car", flush=False)
    engine.hide(alice.owner, [id_of("the red car")], NOW)
    engine.flush(alice.owner, "chat:c1")
    assert found(engine, alice.owner, "car") == []


def test_other_words_are_found_and_the_old_ones_no_more(engine: EmbeddedEngine, alice: Person) -> None:
    say(engine, alice, "the red car", "the blue bicycle")
    engine.replace(alice.owner, {id_of("the red car"): Wording("a green submarine", "user_fact", 0.5)})
    assert found(engine, alice.owner, "submarine") == ["a green submarine"]
    assert found(engine, alice.owner, "red") == found(engine, alice.owner, "car") == []
    memory = Memory.objects.get(text="a green submarine")
    assert (memory.category, memory.importance) == ("user_fact", 0.5)


def test_the_old_words_stand_nowhere_in_what_is_found(engine: EmbeddedEngine, alice: Person) -> None:
    say(engine, alice, "the red car")
    engine.replace(alice.owner, {id_of("the red car"): Wording("a green submarine", "", None)})
    (result,) = engine.search(alice.owner, [SearchRequest("submarine", method="keyword")])
    assert "red car" not in str(result.hits[0])


def test_the_statistics_follow_the_words(engine: EmbeddedEngine, alice: Person) -> None:
    say(engine, alice, "one two three four five")
    memory_id = id_of("one two three four five")
    before = IndexStatistics.objects.values("documents", "tokens").get(user=alice.user_pk)
    engine.replace(alice.owner, {memory_id: Wording("six", "", None)})
    after = IndexStatistics.objects.values("documents", "tokens").get(user=alice.user_pk)
    assert after["documents"] == before["documents"] == 1
    assert after["tokens"] < before["tokens"]
    assert Memory.objects.get(memory_id=memory_id).token_count == after["tokens"]
    engine.replace(alice.owner, {memory_id: Wording("one two three four five", "", None)})
    assert IndexStatistics.objects.values("documents", "tokens").get(user=alice.user_pk) == before


def test_decisions_are_the_owners(engine: EmbeddedEngine, alice: Person, bob: Person) -> None:
    say(engine, alice, "the red car")
    engine.hide(bob.owner, [id_of("the red car")], NOW)
    with pytest.raises(KeyError):
        engine.replace(bob.owner, {id_of("the red car"): Wording("x", "", None)})
    assert found(engine, alice.owner, "car") == ["the red car"]
    assert engine.find(bob.user_pk, id_of("the red car")) == []


def test_pages_go_through_everything_once_newest_first(engine: EmbeddedEngine, alice: Person) -> None:
    say(engine, alice, *(f"number {number}" for number in range(7)))
    Memory.objects.update(created_at_ms=NOON_MS)  # also where times are equal
    seen: list[str] = []
    after = None
    while True:
        page = engine.list(alice.owner, ListRequest(limit=3, after=after))
        seen += [memory.text for memory in page.memories]
        if (after := page.following) is None:
            break
    assert seen == [f"number {number}" for number in reversed(range(7))]


def test_a_list_is_narrowed_by_each_condition(engine: EmbeddedEngine, alice: Person, bob: Person) -> None:
    say(engine, alice, "flushed")
    say(engine, alice, "pending", session_id="chat:c2", flush=False)
    say(engine, bob, "of bob")
    answer = Message("helper", "assistant", NOON_MS + 5, (ContentItem("text", text="of the helper"),))
    engine.add(alice.owner, "chat:c1", [answer])
    owner = alice.owner
    assert set(listed(engine, owner)) == {"flushed", "pending", "of the helper"}
    assert listed(engine, owner, session_id="chat:c2") == ["pending"]
    assert listed(engine, owner, memory_type="episode") == ["flushed"]
    assert listed(engine, owner, agent_id="helper") == ["of the helper"]
    assert listed(engine, owner, category="full_context_assistant") == ["of the helper"]
    assert listed(engine, owner, since_ms=NOON_MS + 5) == ["of the helper"]
    assert set(listed(engine, owner, until_ms=NOON_MS + 5)) == {"flushed", "pending"}
    assert listed(engine, Owner(owner.user_pk, owner.user_id, "default", "other")) == []


def test_what_was_deleted_for_good_is_not_found_by_its_id(engine: EmbeddedEngine, alice: Person) -> None:
    say(engine, alice, "the red car")
    memory_id = id_of("the red car")
    (memory,) = engine.find(alice.user_pk, memory_id)
    assert (memory.text, memory.session_id, memory.owner) == ("the red car", "chat:c1", alice.owner)
    engine.delete(alice.owner, "chat:c1")
    assert engine.find(alice.user_pk, memory_id) == []


def test_the_record_of_what_an_upstream_was_given_is_no_memory_of_its_own(
    engine: EmbeddedEngine, alice: Person
) -> None:
    say(engine, alice, "waits for a flush", "sent without an answer", "flushed", flush=False)
    Memory.objects.update(origin=Memory.Origin.UPSTREAM)
    Memory.objects.filter(text="sent without an answer").update(batch_id="sending:1")
    Memory.objects.filter(text="flushed").update(batch_id="flush-1")
    assert set(listed(engine, alice.owner)) == {"waits for a flush", "sent without an answer"}


def test_lists_take_one_statement(engine: EmbeddedEngine, alice: Person, django_assert_num_queries: object) -> None:
    say(engine, alice, *(f"number {number}" for number in range(7)))
    with django_assert_num_queries(1):  # type: ignore[operator]
        assert len(listed(engine, alice.owner)) == 7
