"""`"context": n` of `POST /memories/search`: the neighbors of a result."""

from __future__ import annotations

from typing import Any

import pytest

from store.models import Memory
from store.neighbors import context_windows
from tests.conftest import Person
from tests.memories.calls import NOON_MS, call, id_of, say, search, upload

pytestmark = pytest.mark.django_db

MESSAGES = [f"turn {word}" for word in ("alpha", "bravo", "charlie", "delta", "echo")]


def context_of(person: Person, query: str, count: int, **fields: Any) -> tuple[list[str], list[str]]:
    """Return the texts before and after the first result."""
    answer = search(person, query, **{"scope": ["all_user_memory"], "context": count, **fields})
    neighbors = answer["results"][0]["context"]
    return [one["text"] for one in neighbors["before"]], [one["text"] for one in neighbors["after"]]


def test_neighbors_come_in_order(alice: Person) -> None:
    say(alice, "chat:c1", *MESSAGES)
    say(alice, "chat:c2", "another chat")
    assert context_of(alice, "charlie", 2) == (MESSAGES[:2], MESSAGES[3:])
    assert context_of(alice, "charlie", 1) == ([MESSAGES[1]], [MESSAGES[3]])
    assert context_of(alice, "alpha", 10) == ([], MESSAGES[1:])
    (result,) = search(alice, "charlie", scope=["all_user_memory"], context=1, top_k=1)["results"]
    assert result["context"]["before"] == [
        {"id": id_of("turn bravo"), "sender_id": "alice", "text": "turn bravo", "timestamp_ms": NOON_MS + 1}
    ]


def test_without_context_there_is_no_field_and_no_statement(alice: Person, django_assert_num_queries: Any) -> None:
    say(alice, "chat:c1", *MESSAGES)
    search(alice, "charlie", scope=["all_user_memory"])  # records the use of the key
    for fields, statements in (({}, 5), ({"context": 0}, 5), ({"context": 3}, 7)):
        with django_assert_num_queries(statements):
            answer = search(alice, "charlie", scope=["all_user_memory"], method="keyword", **fields)
        assert ("context" in answer["results"][0]) is (statements == 7)


def test_context_skips_deleted_memories_and_shows_overrides(alice: Person) -> None:
    say(alice, "chat:c1", *MESSAGES)
    call(alice, "delete", f"/memories/{id_of('turn bravo')}", session_id="chat:c1")
    call(alice, "patch", f"/memories/{id_of('turn delta')}", session_id="chat:c1", override_text="turn corrected")
    assert context_of(alice, "charlie", 2) == (["turn alpha"], ["turn corrected", "turn echo"])


def test_memories_of_a_deleted_session_have_no_context(alice: Person) -> None:
    say(alice, "chat:c1", *MESSAGES)
    assert context_windows(alice.owner, [id_of("turn charlie")], 1)
    call(alice, "delete", "/sessions/chat:c1")
    assert context_windows(alice.owner, [id_of("turn charlie")], 1) == {}


@pytest.mark.django_db(transaction=True)
def test_a_passage_has_its_neighboring_passages(alice: Person, storage: Any) -> None:
    upload(
        alice,
        text="\n\n".join(f"Section {name}. " + "Some filling words here. " * 30 for name in ("one", "two", "three")),
    )
    passages = [memory.text for memory in Memory.objects.order_by("chunk_index")]
    assert len(passages) == 3
    assert context_of(alice, "section two", 1) == (passages[:1], passages[2:])


def test_sessions_of_other_users_are_no_context(alice: Person, bob: Person) -> None:
    say(alice, "chat:c1", "turn alpha")
    say(bob, "chat:c1", "turn bravo")
    assert context_of(alice, "alpha", 5) == ([], [])


@pytest.mark.parametrize("count", [-1, 11, "x", 1.5])
def test_the_number_of_neighbors_is_limited(alice: Person, count: Any) -> None:
    assert search(alice, context=count, status=422)["errors"][0]["field"] == "context"


def test_a_hundred_results_have_context(alice: Person) -> None:
    say(alice, "chat:c1", *[f"payment {number}" for number in range(120)])
    results = search(alice, scope=["all_user_memory"], context=10, top_k=100)["results"]
    assert len(results) == 100
    assert all(len(result["context"]["before"]) + len(result["context"]["after"]) >= 10 for result in results)
