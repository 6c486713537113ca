"""`find_hidden_hits`: memories that a search omits because they are hidden, and their ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from accounts.audit import Actor
from engines.embedded.engine import EmbeddedEngine
from memories.services import decisions
from memories.services.lookup import MemoryRef
from memories.services.scoped_hits import SCOPES, SearchCommand
from memories.services.search import HiddenHit, find_hidden_hits, search
from store.types import Owner
from tests.conftest import Person
from tests.console.people import remember
from tests.memories.test_search_everos import add_episodes, delete
from tests.remote.conftest import make_engine
from tests.stub_upstream import StubUpstream

ACTOR = Actor.operator("op")


def command(query: str = "tea", **values: Any) -> SearchCommand:
    return SearchCommand(query=query, scopes=frozenset(SCOPES), **values)


def hide(owner: Owner, memory_id: str) -> None:
    decisions.delete(owner.user_pk, MemoryRef(memory_id), reason="old", actor=ACTOR)


def ranks(found: list[HiddenHit]) -> list[tuple[str, int]]:
    return [(one.hit.memory_id, one.rank) for one in found]


@pytest.fixture
def stub() -> Iterator[StubUpstream]:
    with StubUpstream() as running:
        yield running


def test_a_hidden_hit_has_the_rank_it_would_have(alice: Person) -> None:
    best, second = remember(alice.owner, "Tea, tea and tea."), remember(alice.owner, "Tea at four, as ever.")
    assert find_hidden_hits(alice.owner, command()) == []
    hide(alice.owner, best.memory_id)
    assert [one.hit.memory_id for one in search(alice.owner, command()).results] == [second.memory_id]
    (found,) = find_hidden_hits(alice.owner, command())
    assert ranks([found]) == [(best.memory_id, 1)]
    assert found.memory is not None
    assert found.memory.state != "live"
    assert found.hit.legs["keyword"]["matched"] == ["tea"]


def test_hidden_memories_below_top_k_are_not_returned(alice: Person) -> None:
    remember(alice.owner, "Tea, tea and tea.")
    worse = remember(alice.owner, "Tea at four, as ever, or soup, or nothing at all.")
    hide(alice.owner, worse.memory_id)
    assert find_hidden_hits(alice.owner, command(top_k=1)) == []
    assert ranks(find_hidden_hits(alice.owner, command(top_k=2))) == [(worse.memory_id, 2)]


def test_memories_of_a_deleted_session_are_hidden_hits(alice: Person) -> None:
    memory = remember(alice.owner, session_id="chat:gone")
    decisions.delete_session(alice.owner, "chat:gone", actor=ACTOR)
    (found,) = find_hidden_hits(alice.owner, command())
    assert found.memory is not None
    assert (found.hit.memory_id, found.memory.is_session_hidden) == (memory.memory_id, True)


def test_memories_of_other_users_and_purged_ones_are_no_hidden_hits(alice: Person, bob: Person) -> None:
    hide(bob.owner, remember(bob.owner).memory_id)
    remember(alice.owner, session_id="chat:erased")
    decisions.delete_session(alice.owner, "chat:erased", actor=ACTOR)
    EmbeddedEngine().delete(alice.owner, "chat:erased")
    assert find_hidden_hits(alice.owner, command()) == []


def test_a_search_returns_no_hidden_hit(alice: Person) -> None:
    hide(alice.owner, remember(alice.owner).memory_id)
    find_hidden_hits(alice.owner, command())
    assert search(alice.owner, command()).results == ()


def test_deleted_hits_of_everos_are_hidden_hits(alice: Person, stub: StubUpstream) -> None:
    """EverOS does not know deletions: its hits are filtered, and the store is searched with hidden memories."""
    first, *_others = add_episodes(stub, alice, 3)
    delete(alice, first)
    written = remember(alice.owner, "Tea by hand.", origin="panel")
    hide(alice.owner, written.memory_id)
    engine = make_engine(stub)
    found = find_hidden_hits(alice.owner, command(), engine=engine)
    assert {one.hit.memory_id for one in found} == {first, written.memory_id}
    assert {one.hit.memory_id for one in search(alice.owner, command(), engine=engine).results} == set(_others)
