"""Searches with EverOS, which does not know users' decisions: deleted hits are replaced by further requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.audit import Actor
from engines.attached import AttachedEngine
from memories.models import Tombstone
from memories.services import decisions
from memories.services.decisions import OverrideValues
from memories.services.lookup import MemoryRef
from memories.services.scoped_hits import SearchCommand
from memories.services.search import SearchAnswer, search
from store.models import Memory
from tests.conftest import Person
from tests.remote.conftest import make_engine, message_of
from tests.stub_upstream import StubUpstream

ACTOR = Actor.command("tests")


@pytest.fixture
def stub() -> Iterator[StubUpstream]:
    with StubUpstream() as running:
        yield running


@pytest.fixture
def engine(stub: StubUpstream) -> AttachedEngine:
    return make_engine(stub)


def add_episodes(stub: StubUpstream, person: Person, count: int) -> list[str]:
    """Add equal memories about tea to EverOS and return their ids."""
    ids = [f"{person.user_id}_ep_{number:03d}" for number in range(count)]
    stub.store.episodes += [
        {
            "id": memory_id,
            "user_id": person.user_id,
            "app_id": "default",
            "project_id": "default",
            "session_id": None,
            "timestamp": "2026-11-20T08:42:18Z",
            "sender_ids": [person.user_id],
            "episode": "tea",
            "type": "Conversation",
        }
        for memory_id in ids
    ]
    return ids


def delete(person: Person, *memory_ids: str) -> None:
    Tombstone.objects.bulk_create(
        Tombstone(user_id=person.user_pk, app_id="default", project_id="default", memory_id=memory_id)
        for memory_id in memory_ids
    )


def search_all(engine: AttachedEngine, person: Person, query: str = "tea", **values: Any) -> SearchAnswer:
    command = SearchCommand(query=query, scopes=frozenset({"all_user_memory"}), **values)
    return search(person.owner, command, engine=engine)


def add_digests(stub: StubUpstream, person: Person, text: str) -> None:
    """Add a profile of the person and a skill of their agent, which EverOS derives from all messages."""
    scope = {"app_id": "default", "project_id": "default"}
    stub.store.profiles.append(
        {"id": person.user_id, "user_id": person.user_id, "profile_data": {"summary": text}, **scope}
    )
    agent = f"main+{person.user_pk.hex}"
    stub.store.agent_skills.append({"id": f"{agent}_skill", "agent_id": agent, "name": "", "content": text, **scope})


def finds_in_digests(engine: AttachedEngine, person: Person, text: str) -> list[bool]:
    """Return True for each search that finds the text: the person's and their agent's."""
    answers = (search_all(engine, person, agent_id=agent_id) for agent_id in (None, "main"))
    return [text in str([found.hit for found in answer.results]) for answer in answers]


def ids_of(answer: SearchAnswer) -> list[str]:
    return [found.hit.memory_id for found in answer.results]


def requested_top_k(stub: StubUpstream) -> list[int]:
    return [body["top_k"] for body in stub.calls("search")]


def test_deleted_hits_are_replaced_by_further_requests(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    ids = add_episodes(stub, alice, 40)
    delete(alice, *ids[:9])
    answer = search_all(engine, alice, top_k=4)
    assert ids_of(answer) == ids[9:13]
    assert requested_top_k(stub) == [4, 8, 16]
    report = answer.scopes["all_user_memory"]
    assert (report.asked, report.found, report.hidden, report.exhausted) == (16, 16, 9, False)


def test_without_missing_hits_there_is_no_second_request(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    ids = add_episodes(stub, alice, 5)
    assert ids_of(search_all(engine, alice, top_k=5)) == ids
    delete(alice, ids[0])
    assert ids_of(search_all(engine, alice, top_k=8)) == ids[1:]
    assert requested_top_k(stub) == [5, 8]


def test_a_hundred_deleted_hits_exhaust_everos(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    ids = add_episodes(stub, alice, 120)
    delete(alice, *ids[:99])
    answer = search_all(engine, alice, top_k=60)
    assert ids_of(answer) == ids[99:100]
    assert requested_top_k(stub) == [60, 100]
    assert answer.scopes["all_user_memory"].exhausted


def test_only_the_scope_with_missing_hits_is_requested_again(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    engine.add(alice.owner, "chat:c1", [message_of(alice.owner, "tea")])
    engine.flush(alice.owner, "chat:c1")
    ids = add_episodes(stub, alice, 3)
    delete(alice, ids[0])
    command = SearchCommand(
        query="tea", scopes=frozenset({"current_chat", "all_user_memory"}), conversation_id="c1", top_k=2
    )
    stub.requests.clear()
    answer = search(alice.owner, command, engine=engine)
    assert {scope: report.asked for scope, report in answer.scopes.items()} == {
        "current_chat": 2,
        "all_user_memory": 4,
    }
    assert [("filters" in body, body["top_k"]) for body in stub.calls("search")][2:] == [(False, 4)]
    assert set(ids[1:]) < set(ids_of(answer))


def test_each_request_takes_the_same_statements(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    ids = add_episodes(stub, alice, 40)
    delete(alice, *ids[:9])
    with CaptureQueriesContext(connection) as queries:
        search_all(engine, alice, top_k=4)
    # three requests, each with: data of erased users, copies, controls, memories of the store, decisions
    assert len(queries) == 3 * 5


def test_memories_of_the_store_take_two_more_statements(engine: AttachedEngine, alice: Person) -> None:
    engine.add(alice.owner, "chat:c1", [message_of(alice.owner, "I like green tea")])
    engine.flush(alice.owner, "chat:c1")
    memory_ref = MemoryRef(Memory.objects.get(memory_type="episode", is_covered=False).memory_id)
    decisions.override(alice.user_pk, memory_ref, OverrideValues(text="I like coffee"), actor=ACTOR)
    with CaptureQueriesContext(connection) as queries:
        search_all(engine, alice, top_k=4)
    assert len(queries) == 5  # also the keyword index and the overrides


def test_an_override_is_found_until_it_is_undone(engine: AttachedEngine, alice: Person) -> None:
    engine.add(alice.owner, "chat:c1", [message_of(alice.owner, "I like green tea")])
    engine.flush(alice.owner, "chat:c1")
    memory_ref = MemoryRef(Memory.objects.get(memory_type="episode", is_covered=False).memory_id)
    override = decisions.override(alice.user_pk, memory_ref, OverrideValues(text="I like coffee"), actor=ACTOR)
    (found,) = search_all(engine, alice, "coffee").results
    assert (found.hit.text, found.override_id) == ("I like coffee", override.override_id)
    assert search_all(engine, alice, "green tea").results == ()
    decisions.undo_override(alice.user_pk, memory_ref, actor=ACTOR)
    assert search_all(engine, alice, "coffee").results == ()
    (found,) = search_all(engine, alice, "green tea").results
    assert (found.hit.text, found.override_id) == ("alice said: I like green tea", None)


# --- digests of deleted or overridden memories ------------------------------------------------------------------------


def say(engine: AttachedEngine, person: Person) -> list[str]:
    """Add two sessions with one memory each and return the ids of the memories."""
    for number, text in enumerate(("The walnut safe opens with 4711.", "I like tea.")):
        engine.add(person.owner, f"chat:c{number}", [message_of(person.owner, text)])
        engine.flush(person.owner, f"chat:c{number}")
    return list(
        Memory.objects.filter(memory_type="episode", is_covered=False)
        .order_by("pk")
        .values_list("memory_id", flat=True)
    )


def test_digests_are_omitted_while_a_memory_is_deleted(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, bob: Person
) -> None:
    """EverOS keeps the digest that it derived from the memory, and cannot be made to derive it again."""
    memory_ref = MemoryRef(say(engine, alice)[0])
    for person in (alice, bob):
        add_digests(stub, person, "a walnut safe and its tea")
    decisions.delete(alice.user_pk, memory_ref, actor=ACTOR)
    assert finds_in_digests(engine, alice, "walnut") == [False, False]
    assert search_all(engine, alice).scopes["all_user_memory"].hidden == 1  # the profile
    assert finds_in_digests(engine, bob, "walnut") == [True, True]
    decisions.restore(alice.user_pk, memory_ref, actor=ACTOR)
    assert finds_in_digests(engine, alice, "a walnut safe") == [True, True]


def test_a_digest_takes_three_statements(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    """One for data of erased users in EverOS, one for the person's controls, one for deletions and overrides."""
    say(engine, alice)
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            search_all(engine, alice)
        counts.append(len(queries))
        add_digests(stub, alice, "a walnut safe and its tea")
    assert counts == [7, 10]


def test_digests_are_omitted_while_a_session_is_deleted(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    say(engine, alice)
    add_digests(stub, alice, "a walnut safe and its tea")
    decisions.delete_session(alice.owner, "chat:c0", actor=ACTOR)
    assert finds_in_digests(engine, alice, "walnut") == [False, False]
    decisions.restore_session(alice.owner, "chat:c0", actor=ACTOR)
    assert finds_in_digests(engine, alice, "a walnut safe") == [True, True]
    engine.delete(alice.owner, "chat:c0")  # permanently, as with a resource
    assert finds_in_digests(engine, alice, "walnut") == [False, False]


def test_digests_are_omitted_while_a_text_is_overridden(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    memory_ref = MemoryRef(say(engine, alice)[0])
    add_digests(stub, alice, "a walnut safe and its tea")
    decisions.override(alice.user_pk, memory_ref, OverrideValues(category="user_memory_fact"), actor=ACTOR)
    assert finds_in_digests(engine, alice, "a walnut safe") == [True, True]
    decisions.override(alice.user_pk, memory_ref, OverrideValues(text="It has no safe."), actor=ACTOR)
    assert finds_in_digests(engine, alice, "walnut") == [False, False]
    decisions.undo_override(alice.user_pk, memory_ref, actor=ACTOR)
    assert finds_in_digests(engine, alice, "a walnut safe") == [True, True]
