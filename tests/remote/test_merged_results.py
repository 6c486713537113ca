"""Results of EverOS are merged with overrides and with memories that only the gateway stores."""

from __future__ import annotations

from typing import Any

import pytest

from engines.attached import AttachedEngine
from engines.embedded.engine import EmbeddedEngine
from store import derived
from store.models import IndexStatistics, Memory, Session
from store.types import Hit, Owner, SearchRequest, Wording
from tests.conftest import Person
from tests.remote.conftest import NOON, message_of
from tests.store.decisions import delete, delete_session, restore
from tests.store.index_state import assert_consistent
from tests.stub_upstream import Fault, StubUpstream

CHAT = "chat:1"


def remember(engine: AttachedEngine, person: Person, text: str, session_id: str = CHAT) -> str:
    """Add and flush a message, and return the id of the resulting memory."""
    engine.add(person.owner, session_id, [message_of(person.owner, text)])
    engine.flush(person.owner, session_id)
    return Memory.objects.get(
        user_id=person.user_pk, memory_type="episode", is_covered=False, text__contains=text
    ).memory_id


def override(engine: AttachedEngine, owner: Owner, memory_id: str, text: str) -> None:
    engine.replace(owner, {memory_id: Wording(text, "", None)})


def search_hits(engine: AttachedEngine, person: Person, query: str, **values: Any) -> list[Hit]:
    [result] = engine.search(person.owner, [SearchRequest(query, **values)])
    return list(result.hits)


def search_texts(engine: AttachedEngine, person: Person, query: str, **values: Any) -> list[str]:
    return [hit.text for hit in search_hits(engine, person, query, **values)]


def create_memory(
    person: Person, memory_id: str, text: str, origin: Memory.Origin, session: Session | None = None, **values: Any
) -> None:
    """Create a memory that EverOS does not have, and index it."""
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
    assert sum(derived.fill()) == 1


@pytest.fixture
def overridden(engine: AttachedEngine, alice: Person) -> str:
    """The id of a memory of green tea, overridden with a text about coffee."""
    memory_id = remember(engine, alice, "I like green tea")
    override(engine, alice.owner, memory_id, "I like coffee from Peru")
    return memory_id


@pytest.mark.parametrize("method", ["keyword", "vector", "hybrid", "agentic"])
def test_an_overridden_memory_is_found_by_its_new_text_only(
    engine: AttachedEngine, alice: Person, overridden: str, method: str
) -> None:
    [hit] = search_hits(engine, alice, "coffee Peru", method=method)
    assert (hit.memory_id, hit.text, hit.session_id) == (overridden, "I like coffee from Peru", CHAT)
    assert hit.raw["episode"] == hit.text
    assert len(hit.legs["keyword"]["matched"]) == 2
    assert hit.score == hit.raw["score"] == 1
    assert "green" not in str(hit)
    assert search_hits(engine, alice, "green tea", method=method) == []


def test_a_memory_that_both_texts_match_is_returned_once_with_the_new_one(
    engine: AttachedEngine, alice: Person, overridden: str
) -> None:
    assert search_texts(engine, alice, "what do I like") == ["I like coffee from Peru"]


def test_the_score_is_the_share_of_matched_query_terms(engine: AttachedEngine, alice: Person, overridden: str) -> None:
    assert [hit.score for hit in search_hits(engine, alice, "coffee from Chile, Kenya and Peru")] == [0.5]


def test_overrides_and_upstream_memories_are_ranked_together(
    engine: AttachedEngine, alice: Person, overridden: str
) -> None:
    remember(engine, alice, "I like cake", "chat:2")
    assert search_texts(engine, alice, "like coffee Peru") == ["I like coffee from Peru", "alice said: I like cake"]
    assert search_texts(engine, alice, "like cake") == ["alice said: I like cake", "I like coffee from Peru"]
    assert search_texts(engine, alice, "like cake", top_k=1) == ["alice said: I like cake"]


def test_a_memory_with_its_original_text_is_ranked_by_everos(
    engine: AttachedEngine, alice: Person, overridden: str
) -> None:
    assert_consistent(alice.owner)
    override(engine, alice.owner, overridden, "alice said: I like green tea")
    assert_consistent(alice.owner)
    assert search_hits(engine, alice, "coffee Peru") == []
    assert search_hits(engine, alice, "green tea")[0].legs["remote"]["rank"] == 1


def test_a_second_override_replaces_the_first(engine: AttachedEngine, alice: Person, overridden: str) -> None:
    override(engine, alice.owner, overridden, "I like cocoa")
    assert_consistent(alice.owner)
    assert search_texts(engine, alice, "cocoa") == ["I like cocoa"]
    assert search_hits(engine, alice, "coffee Peru") == []


def test_a_memory_with_another_category_is_ranked_by_everos(engine: AttachedEngine, alice: Person) -> None:
    memory_id = remember(engine, alice, "I like green tea")
    text = Memory.objects.get(memory_id=memory_id).text
    engine.replace(alice.owner, {memory_id: Wording(text, "preference", 0.5)})
    [hit] = search_hits(engine, alice, "green tea")
    assert (hit.memory_id, hit.legs["remote"]["rank"]) == (memory_id, 1)


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
def test_overridden_memories_obey_sessions_agent_and_filters(
    engine: AttachedEngine, alice: Person, overridden: str, values: dict[str, Any], is_found: bool
) -> None:
    remember(engine, alice, "tea", "chat:2")
    assert len(search_hits(engine, alice, "coffee", **values)) == is_found


def test_no_user_finds_another_users_override(
    engine: AttachedEngine, alice: Person, bob: Person, overridden: str
) -> None:
    remember(engine, bob, "tea")
    assert search_hits(engine, bob, "coffee Peru") == []
    other = Owner(alice.user_pk, alice.user_id, "default", "another")
    assert engine.search(other, [SearchRequest("coffee Peru")])[0].hits == ()


def test_memories_of_panel_and_tools_are_found_with_those_of_everos(engine: AttachedEngine, alice: Person) -> None:
    remember(engine, alice, "my bicycle is red")
    session = Session.objects.get(session_id=CHAT)
    create_memory(alice, "p1", "the bicycle stands in the cellar", Memory.Origin.PANEL)
    create_memory(alice, "t1", "the bicycle has eight gears", Memory.Origin.TOOL, session, agent_id="main")
    found = {hit.memory_id for hit in search_hits(engine, alice, "bicycle")}
    assert {"p1", "t1"} < found
    assert len(found) == 3
    assert "p1" not in {hit.memory_id for hit in search_hits(engine, alice, "bicycle", session_ids=(CHAT,))}
    assert [hit.memory_id for hit in search_hits(engine, alice, "bicycle", agent_id="main")] == ["t1"]


def test_memories_of_the_embedded_engine_are_found_before_the_move(engine: AttachedEngine, alice: Person) -> None:
    EmbeddedEngine().add(alice.owner, "chat:before", [message_of(alice.owner, "my bicycle is red")])
    assert search_texts(engine, alice, "bicycle") == ["my bicycle is red"]


def test_a_hidden_memory_is_not_found_by_its_new_text(engine: AttachedEngine, alice: Person, overridden: str) -> None:
    delete(alice.owner, overridden)
    assert search_hits(engine, alice, "coffee") == []
    restore(alice.owner, overridden)
    delete_session(alice.owner, CHAT)
    assert search_hits(engine, alice, "coffee") == []


def test_deleting_a_session_removes_its_index_entries(engine: AttachedEngine, alice: Person, overridden: str) -> None:
    remember(engine, alice, "I like cake", "chat:2")
    engine.delete(alice.owner, CHAT)
    assert_consistent(alice.owner)
    assert IndexStatistics.objects.get().documents == 2  # a message and its memory
    assert search_hits(engine, alice, "coffee") == []


def test_overrides_survive_a_rebuild_of_the_index(engine: AttachedEngine, alice: Person, overridden: str) -> None:
    remember(engine, alice, "I like cake", "chat:2")
    derived.empty_keywords()
    assert sum(derived.fill()) == 4  # messages and their memories
    assert_consistent(alice.owner)
    assert search_texts(engine, alice, "coffee") == ["I like coffee from Peru"]
    assert derived.pending_count() == 0


def test_the_embedded_engine_finds_overrides_too(alice: Person, overridden: str) -> None:
    [result] = EmbeddedEngine().search(alice.owner, [SearchRequest("coffee")])
    assert [hit.memory_id for hit in result.hits] == [overridden]


# --- `SearchResult.stopped_at` ----------------------------------------------------------------------------------------


def stopped_at(engine: AttachedEngine, person: Person, query: str = "tea", **values: Any) -> int | None:
    return engine.search(person.owner, [SearchRequest(query, **values)])[0].stopped_at


def test_stopped_at_is_none_if_fewer_hits_than_top_k_exist(engine: AttachedEngine, alice: Person) -> None:
    for number in range(3):
        remember(engine, alice, f"tea {number}", f"chat:{number}")
    assert stopped_at(engine, alice, top_k=4) is None
    assert stopped_at(engine, alice, top_k=3) == 3
    assert stopped_at(engine, alice, top_k=2) == 2


def test_stopped_at_counts_the_hits_of_all_batches(engine: AttachedEngine, alice: Person) -> None:
    session_ids = tuple(f"chat:{number}" for number in range(6))
    for session_id in session_ids:
        remember(engine, alice, f"tea in {session_id}", session_id)
    assert stopped_at(engine, alice, session_ids=session_ids, top_k=5) == 5
    assert stopped_at(engine, alice, session_ids=session_ids, top_k=6) is None


def test_stopped_at_is_the_limit_of_everos_if_the_gateway_filters(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    common = {"user_id": "alice", "app_id": "default", "project_id": "default", "session_id": None, "score": 0.5}
    told_at = {"timestamp": "2026-11-20T08:42:18Z", "type": "Conversation", "episode": "tea"}
    episodes = [{**common, **told_at, "id": f"alice_ep_{number}"} for number in range(100)]
    stub.fault("search", Fault(body={"request_id": "x", "data": {"episodes": episodes}}))
    [result] = engine.search(alice.owner, [SearchRequest("tea", top_k=8, filters={"type": "Other"})])
    assert (result.hits, result.stopped_at) == ((), 100)
