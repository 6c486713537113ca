"""Why something is missing from a search: what is hidden, and the place that it would have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from accounts.audit import Actor
from engines.embedded.engine import EmbeddedEngine
from memories.services import decisions
from memories.services.hidden_hits import HiddenHit, find_hidden_hits
from memories.services.lookup import MemoryRef
from memories.services.search import SCOPES, SearchCommand, search
from store.types import Owner
from tests.conftest import Person
from tests.console.people import remember
from tests.engines.everos.conftest import make_engine
from tests.memories.test_search_beside import delete, hold
from tests.stub_upstream import StubUpstream

ACTOR = Actor.operator("op")


def command(query: str = "tea", **values: Any) -> SearchCommand:
    return SearchCommand(query=query, scopes=frozenset(SCOPES), **values)


def hide(owner: Owner, memory_id: str) -> None:
    decisions.delete(owner.user_pk, MemoryRef(memory_id), reason="old", actor=ACTOR)


def places(found: list[HiddenHit]) -> list[tuple[str, int]]:
    return [(one.hit.memory_id, one.rank) for one in found]


@pytest.fixture
def stub() -> Iterator[StubUpstream]:
    with StubUpstream() as running:
        yield running


def test_what_is_hidden_stands_where_it_would_be(alice: Person) -> None:
    best, second = remember(alice.owner, "Tea, tea and tea."), remember(alice.owner, "Tea at four, as ever.")
    assert find_hidden_hits(alice.owner, command()) == []
    hide(alice.owner, best.memory_id)
    assert [one.hit.memory_id for one in search(alice.owner, command()).results] == [second.memory_id]
    (found,) = find_hidden_hits(alice.owner, command())
    assert places([found]) == [(best.memory_id, 1)]
    assert found.memory is not None
    assert found.memory.hidden_at is not None
    assert found.hit.legs["keyword"]["matched"] == ["tea"]


def test_what_would_not_have_been_shown_is_not_missed(alice: Person) -> None:
    remember(alice.owner, "Tea, tea and tea.")
    worse = remember(alice.owner, "Tea at four, as ever, or coffee, or nothing at all.")
    hide(alice.owner, worse.memory_id)
    assert find_hidden_hits(alice.owner, command(top_k=1)) == []
    assert places(find_hidden_hits(alice.owner, command(top_k=2))) == [(worse.memory_id, 2)]


def test_a_memory_goes_with_its_session(alice: Person) -> None:
    memory = remember(alice.owner, session_id="chat:gone")
    decisions.delete_session(alice.owner, "chat:gone", actor=ACTOR)
    (found,) = find_hidden_hits(alice.owner, command())
    assert found.memory is not None
    assert (found.hit.memory_id, found.memory.is_session_hidden) == (memory.memory_id, True)


def test_nobody_elses_is_found_and_nothing_that_is_gone_for_good(alice: Person, bob: Person) -> None:
    hide(bob.owner, remember(bob.owner).memory_id)
    remember(alice.owner, session_id="chat:erased")
    decisions.delete_session(alice.owner, "chat:erased", actor=ACTOR)
    EmbeddedEngine().delete(alice.owner, "chat:erased")
    assert find_hidden_hits(alice.owner, command()) == []


def test_a_search_itself_shows_nothing_hidden(alice: Person) -> None:
    hide(alice.owner, remember(alice.owner).memory_id)
    find_hidden_hits(alice.owner, command())
    assert search(alice.owner, command()).results == ()


def test_an_upstreams_deleted_hits_are_named_too(alice: Person, stub: StubUpstream) -> None:
    """It knows nothing of deletions: its own hits are looked through, those of our index are asked for."""
    first, *_others = hold(stub, alice, 3)
    delete(alice, first)
    written = remember(alice.owner, "Tea by hand.", origin="panel")
    hide(alice.owner, written.memory_id)
    engine = make_engine(stub)
    found = find_hidden_hits(alice.owner, command(), engine=engine)
    assert {one.hit.memory_id for one in found} == {first, written.memory_id}
    assert {one.hit.memory_id for one in search(alice.owner, command(), engine=engine).results} == set(_others)
