"""What users put beside an upstream's memories is found with them: new words instead of the old, and their own rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from engines.embedded.engine import EmbeddedEngine
from engines.everos.adapter import EverOSEngine
from store.index import rebuild
from store.models import IndexStatistics, Memory, Session
from store.types import Hit, Owner, SearchRequest, Wording
from tests.conftest import Person
from tests.engines.everos.conftest import NOON, told
from tests.store.index_state import assert_consistent, entries_of
from tests.stub_upstream import Fault, StubUpstream

CHAT = "chat:1"


def remember(engine: EverOSEngine, person: Person, text: str, session_id: str = CHAT) -> str:
    """The id of the memory that came of it."""
    engine.add(person.owner, session_id, [told(person.owner, text)])
    engine.flush(person.owner, session_id)
    return Memory.objects.get(user_id=person.user_pk, memory_type="episode", text__contains=text).memory_id


def reword(engine: EverOSEngine, owner: Owner, memory_id: str, text: str) -> None:
    engine.replace(owner, {memory_id: Wording(text, "", None)})


def ask(engine: EverOSEngine, person: Person, query: str, **values: Any) -> list[Hit]:
    [result] = engine.search(person.owner, [SearchRequest(query, **values)])
    return list(result.hits)


def texts(engine: EverOSEngine, person: Person, query: str, **values: Any) -> list[str]:
    return [hit.text for hit in ask(engine, person, query, **values)]


def write_down(
    person: Person, memory_id: str, text: str, origin: Memory.Origin, session: Session | None = None, **values: Any
) -> None:
    """A memory of our own table, put into the index as a rebuild does."""
    Memory.objects.create(
        user_id=person.user_pk,
        memory_id=memory_id,
        text=text,
        origin=origin,
        session=session,
        memory_type="episode",
        created_at_ms=NOON,
        **values,
    )
    assert sum(rebuild.fill()) == 1


@pytest.fixture
def reworded(engine: EverOSEngine, alice: Person) -> str:
    """A memory of green tea that speaks of coffee now."""
    memory_id = remember(engine, alice, "I like green tea")
    reword(engine, alice.owner, memory_id, "I like coffee from Peru")
    return memory_id


@pytest.mark.parametrize("method", ["keyword", "vector", "hybrid", "agentic"])
def test_a_reworded_memory_is_found_by_its_new_words_and_not_by_the_old(
    engine: EverOSEngine, alice: Person, reworded: str, method: str
) -> None:
    [hit] = ask(engine, alice, "coffee Peru", method=method)
    assert (hit.memory_id, hit.text, hit.session_id) == (reworded, "I like coffee from Peru", CHAT)
    assert hit.raw["episode"] == hit.text
    assert len(hit.legs["keyword"]["matched"]) == 2
    assert hit.score == hit.raw["score"] == 1
    assert "green" not in str(hit)
    assert ask(engine, alice, "green tea", method=method) == []


def test_a_memory_that_old_and_new_words_answer_comes_once_with_the_new(
    engine: EverOSEngine, alice: Person, reworded: str
) -> None:
    assert texts(engine, alice, "what do I like") == ["I like coffee from Peru"]


def test_the_score_is_the_share_of_the_questions_words(engine: EverOSEngine, alice: Person, reworded: str) -> None:
    assert [hit.score for hit in ask(engine, alice, "coffee from Chile, Kenya and Peru")] == [0.5]


def test_words_of_the_user_and_of_the_upstream_come_in_one_order(
    engine: EverOSEngine, alice: Person, reworded: str
) -> None:
    remember(engine, alice, "I like cake", "chat:2")
    assert texts(engine, alice, "like coffee Peru") == ["I like coffee from Peru", "alice said: I like cake"]
    assert texts(engine, alice, "like cake") == ["alice said: I like cake", "I like coffee from Peru"]
    assert texts(engine, alice, "like cake", top_k=1) == ["alice said: I like cake"]


def test_the_upstreams_own_words_given_back_leave_the_index(engine: EverOSEngine, alice: Person, reworded: str) -> None:
    assert_consistent(alice.owner)
    assert len(entries_of(alice.owner)) == 1
    reword(engine, alice.owner, reworded, "alice said: I like green tea")
    assert entries_of(alice.owner) == {}
    assert_consistent(alice.owner)
    assert ask(engine, alice, "coffee Peru") == []
    assert ask(engine, alice, "green tea")[0].legs["upstream"]["rank"] == 1


def test_words_put_over_new_words_are_the_only_ones(engine: EverOSEngine, alice: Person, reworded: str) -> None:
    reword(engine, alice.owner, reworded, "I like cocoa")
    assert_consistent(alice.owner)
    assert texts(engine, alice, "cocoa") == ["I like cocoa"]
    assert ask(engine, alice, "coffee Peru") == []


def test_a_category_alone_leaves_a_memory_to_the_upstream(engine: EverOSEngine, alice: Person) -> None:
    memory_id = remember(engine, alice, "I like green tea")
    text = Memory.objects.get(memory_id=memory_id).text
    engine.replace(alice.owner, {memory_id: Wording(text, "preference", 0.5)})
    assert entries_of(alice.owner) == {}
    assert [hit.memory_id for hit in ask(engine, alice, "green tea")] == [memory_id]


@pytest.mark.parametrize(
    ("values", "is_found"),
    [
        ({"session_ids": (CHAT,)}, True),
        ({"session_ids": ("chat:2",)}, False),
        ({"session_ids": ("chat:2", CHAT)}, True),
        ({"agent_id": "main"}, False),
        ({"filters": {"session_id": CHAT}}, True),
        ({"filters": {"session_id": "chat:2"}}, False),
        ({"filters": {"sender_id": "alice"}}, True),
        ({"filters": {"timestamp": {"gt": NOON}}}, False),
        ({"filters": {"type": "Conversation"}}, True),
    ],
)
def test_the_new_words_are_found_in_the_part_that_is_asked(
    engine: EverOSEngine, alice: Person, reworded: str, values: dict[str, Any], is_found: bool
) -> None:
    remember(engine, alice, "tea", "chat:2")
    assert len(ask(engine, alice, "coffee", **values)) == is_found


def test_nobody_finds_another_users_new_words(engine: EverOSEngine, alice: Person, bob: Person, reworded: str) -> None:
    remember(engine, bob, "tea")
    assert ask(engine, bob, "coffee Peru") == []
    other = Owner(alice.user_pk, alice.user_id, "default", "another")
    assert engine.search(other, [SearchRequest("coffee Peru")])[0].hits == ()


def test_rows_of_panel_and_tool_are_found_beside_the_upstreams(engine: EverOSEngine, alice: Person) -> None:
    remember(engine, alice, "my bicycle is red")
    session = Session.objects.get(session_id=CHAT)
    write_down(alice, "p1", "the bicycle stands in the cellar", Memory.Origin.PANEL)
    write_down(alice, "t1", "the bicycle has eight gears", Memory.Origin.TOOL, session, agent_id="main")
    found = {hit.memory_id for hit in ask(engine, alice, "bicycle")}
    assert {"p1", "t1"} < found
    assert len(found) == 3
    assert "p1" not in {hit.memory_id for hit in ask(engine, alice, "bicycle", session_ids=(CHAT,))}
    assert [hit.memory_id for hit in ask(engine, alice, "bicycle", agent_id="main")] == ["t1"]


def test_what_the_embedded_engine_remembered_is_found_until_it_is_moved(engine: EverOSEngine, alice: Person) -> None:
    EmbeddedEngine().add(alice.owner, "chat:before", [told(alice.owner, "my bicycle is red")])
    assert texts(engine, alice, "bicycle") == ["my bicycle is red"]


def test_a_hidden_memory_is_not_found_by_its_new_words(engine: EverOSEngine, alice: Person, reworded: str) -> None:
    now = datetime(2026, 6, 11, tzinfo=UTC)
    engine.hide(alice.owner, [reworded], now)
    assert ask(engine, alice, "coffee") == []
    engine.hide(alice.owner, [reworded], None)
    engine.hide_sessions(alice.owner, [CHAT], now)
    assert ask(engine, alice, "coffee") == []


def test_a_deleted_session_leaves_nothing_in_the_index(engine: EverOSEngine, alice: Person, reworded: str) -> None:
    remember(engine, alice, "I like cake", "chat:2")
    engine.delete(alice.owner, CHAT)
    assert entries_of(alice.owner) == {}
    assert IndexStatistics.objects.get().documents == 0
    assert ask(engine, alice, "coffee") == []


def test_new_words_outlive_a_rebuild_of_the_index(engine: EverOSEngine, alice: Person, reworded: str) -> None:
    remember(engine, alice, "I like cake", "chat:2")
    rebuild.empty()
    assert_consistent(alice.owner)
    assert texts(engine, alice, "coffee") == ["I like coffee from Peru"]
    assert rebuild.owed() == 0


def test_both_engines_find_the_new_words(alice: Person, reworded: str) -> None:
    [result] = EmbeddedEngine().search(alice.owner, [SearchRequest("coffee")])
    assert [hit.memory_id for hit in result.hits] == [reworded]


# --- where the upstream stopped ---------------------------------------------------------------------------------------


def stopped_at(engine: EverOSEngine, person: Person, query: str = "tea", **values: Any) -> int | None:
    return engine.search(person.owner, [SearchRequest(query, **values)])[0].stopped_at


def test_an_answer_with_fewer_than_were_asked_for_is_all_there_is(engine: EverOSEngine, alice: Person) -> None:
    for number in range(3):
        remember(engine, alice, f"tea {number}", f"chat:{number}")
    assert stopped_at(engine, alice, top_k=4) is None
    assert stopped_at(engine, alice, top_k=3) == 3
    assert stopped_at(engine, alice, top_k=2) == 2


def test_what_several_calls_brought_too_much_is_still_to_be_had(engine: EverOSEngine, alice: Person) -> None:
    session_ids = tuple(f"chat:{number}" for number in range(6))
    for session_id in session_ids:
        remember(engine, alice, f"tea in {session_id}", session_id)
    assert stopped_at(engine, alice, session_ids=session_ids, top_k=5) == 5
    assert stopped_at(engine, alice, session_ids=session_ids, top_k=6) is None


def test_an_answer_that_we_narrow_stopped_at_the_upstreams_limit(
    engine: EverOSEngine, stub: StubUpstream, alice: Person
) -> None:
    common = {"user_id": "alice", "app_id": "default", "project_id": "default", "session_id": None, "score": 0.5}
    told_at = {"timestamp": "2026-11-20T08:42:18Z", "type": "Conversation", "episode": "tea"}
    episodes = [{**common, **told_at, "id": f"alice_ep_{number}"} for number in range(100)]
    stub.fault("search", Fault(body={"request_id": "x", "data": {"episodes": episodes}}))
    [result] = engine.search(alice.owner, [SearchRequest("tea", top_k=8, filters={"type": "Other"})])
    assert (result.hits, result.stopped_at) == ((), 100)
