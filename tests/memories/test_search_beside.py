"""Searching where the engine is an upstream that knows nothing of its users' decisions: it is asked again for more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.audit import Actor
from engines.everos.adapter import EverOSEngine
from memories.models import Tombstone
from memories.services import decisions
from memories.services.decisions import OverrideValues
from memories.services.lookup import MemoryRef
from memories.services.search import SearchAnswer, SearchCommand, search
from store.models import Memory
from tests.conftest import Person
from tests.engines.everos.conftest import make_engine, told
from tests.stub_upstream import StubUpstream

ACTOR = Actor.command("tests")


@pytest.fixture
def stub() -> Iterator[StubUpstream]:
    with StubUpstream() as running:
        yield running


@pytest.fixture
def engine(stub: StubUpstream) -> EverOSEngine:
    return make_engine(stub)


def hold(stub: StubUpstream, person: Person, count: int) -> list[str]:
    """Lets the upstream hold memories of tea, all alike, and gives their ids."""
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


def ask(engine: EverOSEngine, person: Person, query: str = "tea", **values: Any) -> SearchAnswer:
    command = SearchCommand(query=query, scopes=frozenset({"all_user_memory"}), **values)
    return search(person.owner, command, engine=engine)


def digest(stub: StubUpstream, person: Person, text: str) -> None:
    """What the upstream wrote of everything that the person and their agent said."""
    scope = {"app_id": "default", "project_id": "default"}
    stub.store.profiles.append(
        {"id": person.user_id, "user_id": person.user_id, "profile_data": {"summary": text}, **scope}
    )
    agent = f"main+{person.user_pk.hex}"
    stub.store.agent_skills.append({"id": f"{agent}_skill", "agent_id": agent, "name": "", "content": text, **scope})


def told_by_digests(engine: EverOSEngine, person: Person, text: str) -> list[bool]:
    """Whether a search of the person's says it, and one of their agent's."""
    answers = (ask(engine, person, agent_id=agent_id) for agent_id in (None, "main"))
    return [text in str([found.hit for found in answer.results]) for answer in answers]


def ids_of(answer: SearchAnswer) -> list[str]:
    return [found.hit.memory_id for found in answer.results]


def asked(stub: StubUpstream) -> list[int]:
    return [body["top_k"] for body in stub.calls("search")]


def test_deleted_hits_are_made_up_for(engine: EverOSEngine, stub: StubUpstream, alice: Person) -> None:
    ids = hold(stub, alice, 40)
    delete(alice, *ids[:9])
    answer = ask(engine, alice, top_k=4)
    assert ids_of(answer) == ids[9:13]
    assert asked(stub) == [4, 8, 16]
    report = answer.scopes["all_user_memory"]
    assert (report.asked, report.found, report.hidden, report.exhausted) == (16, 16, 9, False)


def test_nobody_is_asked_again_where_nothing_is_missing(
    engine: EverOSEngine, stub: StubUpstream, alice: Person
) -> None:
    ids = hold(stub, alice, 5)
    assert ids_of(ask(engine, alice, top_k=5)) == ids
    delete(alice, ids[0])
    assert ids_of(ask(engine, alice, top_k=8)) == ids[1:]
    assert asked(stub) == [5, 8]


def test_a_hundred_deleted_ones_exhaust_the_upstream(engine: EverOSEngine, stub: StubUpstream, alice: Person) -> None:
    ids = hold(stub, alice, 120)
    delete(alice, *ids[:99])
    answer = ask(engine, alice, top_k=60)
    assert ids_of(answer) == ids[99:100]
    assert asked(stub) == [60, 100]
    assert answer.scopes["all_user_memory"].exhausted


def test_only_the_scope_that_lacks_some_is_asked_again(engine: EverOSEngine, stub: StubUpstream, alice: Person) -> None:
    engine.add(alice.owner, "chat:c1", [told(alice.owner, "tea")])
    engine.flush(alice.owner, "chat:c1")
    ids = hold(stub, alice, 3)
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


def test_each_round_of_asking_costs_the_same_few_statements(
    engine: EverOSEngine, stub: StubUpstream, alice: Person
) -> None:
    ids = hold(stub, alice, 40)
    delete(alice, *ids[:9])
    with CaptureQueriesContext(connection) as queries:
        ask(engine, alice, top_k=4)
    # three rounds: what somebody erased left behind, whether anything of ours lies beside, the decisions
    assert len(queries) == 3 * 3


def test_what_lies_beside_costs_two_statements_more(engine: EverOSEngine, alice: Person) -> None:
    engine.add(alice.owner, "chat:c1", [told(alice.owner, "I like green tea")])
    engine.flush(alice.owner, "chat:c1")
    which = MemoryRef(Memory.objects.get(memory_type="episode").memory_id)
    decisions.override(alice.user_pk, which, OverrideValues(text="I like coffee"), actor=ACTOR, engine=engine)
    with CaptureQueriesContext(connection) as queries:
        ask(engine, alice, top_k=4)
    assert len(queries) == 4  # and our index, what was reworded


def test_a_correction_is_found_by_its_words_until_it_is_undone(engine: EverOSEngine, alice: Person) -> None:
    engine.add(alice.owner, "chat:c1", [told(alice.owner, "I like green tea")])
    engine.flush(alice.owner, "chat:c1")
    which = MemoryRef(Memory.objects.get(memory_type="episode").memory_id)
    override = decisions.override(
        alice.user_pk, which, OverrideValues(text="I like coffee"), actor=ACTOR, engine=engine
    )
    (found,) = ask(engine, alice, "coffee").results
    assert (found.hit.text, found.override_id) == ("I like coffee", override.override_id)
    assert ask(engine, alice, "green tea").results == ()
    decisions.undo_override(alice.user_pk, which, actor=ACTOR, engine=engine)
    assert ask(engine, alice, "coffee").results == ()
    (found,) = ask(engine, alice, "green tea").results
    assert (found.hit.text, found.override_id) == ("alice said: I like green tea", None)


# --- what the upstream made of memories that are deleted or corrected -------------------------------------------------


def say(engine: EverOSEngine, person: Person) -> list[str]:
    """Two sessions, one memory each; gives the ids of these."""
    for number, text in enumerate(("The walnut safe opens with 4711.", "I like tea.")):
        engine.add(person.owner, f"chat:c{number}", [told(person.owner, text)])
        engine.flush(person.owner, f"chat:c{number}")
    return list(Memory.objects.filter(memory_type="episode").order_by("pk").values_list("memory_id", flat=True))


def test_a_digest_is_left_out_while_a_memory_is_deleted(
    engine: EverOSEngine, stub: StubUpstream, alice: Person, bob: Person
) -> None:
    """The upstream goes on telling what it wrote of the memory, and nothing makes it write that anew."""
    which = MemoryRef(say(engine, alice)[0])
    for person in (alice, bob):
        digest(stub, person, "a walnut safe and its tea")
    decisions.delete(alice.user_pk, which, actor=ACTOR, engine=engine)
    assert told_by_digests(engine, alice, "walnut") == [False, False]
    assert ask(engine, alice).scopes["all_user_memory"].hidden == 1  # the profile
    assert told_by_digests(engine, bob, "walnut") == [True, True]
    decisions.restore(alice.user_pk, which, actor=ACTOR, engine=engine)
    assert told_by_digests(engine, alice, "a walnut safe") == [True, True]


def test_a_digest_costs_two_statements(engine: EverOSEngine, stub: StubUpstream, alice: Person) -> None:
    """Whether the upstream holds it of somebody erased, and whether anything is deleted or corrected."""
    say(engine, alice)
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            ask(engine, alice)
        counts.append(len(queries))
        digest(stub, alice, "a walnut safe and its tea")
    assert counts == [4, 6]


def test_a_digest_is_left_out_while_a_session_is_deleted(
    engine: EverOSEngine, stub: StubUpstream, alice: Person
) -> None:
    say(engine, alice)
    digest(stub, alice, "a walnut safe and its tea")
    decisions.delete_session(alice.owner, "chat:c0", actor=ACTOR, engine=engine)
    assert told_by_digests(engine, alice, "walnut") == [False, False]
    decisions.restore_session(alice.owner, "chat:c0", actor=ACTOR, engine=engine)
    assert told_by_digests(engine, alice, "a walnut safe") == [True, True]
    engine.delete(alice.owner, "chat:c0")  # for good, as with a file
    assert told_by_digests(engine, alice, "walnut") == [False, False]


def test_a_digest_is_left_out_while_other_words_hold(engine: EverOSEngine, stub: StubUpstream, alice: Person) -> None:
    which = MemoryRef(say(engine, alice)[0])
    digest(stub, alice, "a walnut safe and its tea")
    decisions.override(alice.user_pk, which, OverrideValues(category="user_memory_fact"), actor=ACTOR, engine=engine)
    assert told_by_digests(engine, alice, "a walnut safe") == [True, True]
    decisions.override(alice.user_pk, which, OverrideValues(text="It has no safe."), actor=ACTOR, engine=engine)
    assert told_by_digests(engine, alice, "walnut") == [False, False]
    decisions.undo_override(alice.user_pk, which, actor=ACTOR, engine=engine)
    assert told_by_digests(engine, alice, "a walnut safe") == [True, True]
