"""`"context": n` of `POST /memories/search`: what stands beside a result."""

from __future__ import annotations

from typing import Any

import pytest

from store.models import Memory
from tests.conftest import Person
from tests.memories.calls import NOON_MS, call, id_of, say, search, upload

pytestmark = pytest.mark.django_db

TURNS = [f"turn {word}" for word in ("alpha", "bravo", "charlie", "delta", "echo")]


def around(person: Person, query: str, count: int, **fields: Any) -> tuple[list[str], list[str]]:
    """The texts before and after the first result."""
    answer = search(person, query, **{"scope": ["all_user_memory"], "context": count, **fields})
    beside = answer["results"][0]["context"]
    return [one["text"] for one in beside["before"]], [one["text"] for one in beside["after"]]


def test_the_turns_before_and_after_come_in_their_order(alice: Person) -> None:
    say(alice, "chat:c1", *TURNS)
    say(alice, "chat:c2", "another chat")
    assert around(alice, "charlie", 2) == (TURNS[:2], TURNS[3:])
    assert around(alice, "charlie", 1) == ([TURNS[1]], [TURNS[3]])
    assert around(alice, "alpha", 10) == ([], TURNS[1:])
    (result,) = search(alice, "charlie", scope=["all_user_memory"], context=1, top_k=1)["results"]
    assert result["context"]["before"] == [
        {"id": id_of("turn bravo"), "sender_id": "alice", "text": "turn bravo", "timestamp_ms": NOON_MS + 1}
    ]


def test_without_the_wish_there_is_no_field_and_no_statement(alice: Person, django_assert_num_queries: Any) -> None:
    say(alice, "chat:c1", *TURNS)
    search(alice, "charlie", scope=["all_user_memory"])  # the key's first use is written down
    for fields, statements in (({}, 5), ({"context": 0}, 5), ({"context": 3}, 7)):
        with django_assert_num_queries(statements):
            answer = search(alice, "charlie", scope=["all_user_memory"], method="keyword", **fields)
        assert ("context" in answer["results"][0]) is (statements == 7)


def test_what_is_deleted_is_no_context_and_what_is_corrected_says_the_new(alice: Person) -> None:
    say(alice, "chat:c1", *TURNS)
    call(alice, "delete", f"/memories/{id_of('turn bravo')}", session_id="chat:c1")
    call(alice, "patch", f"/memories/{id_of('turn delta')}", session_id="chat:c1", override_text="turn corrected")
    assert around(alice, "charlie", 2) == (["turn alpha"], ["turn corrected", "turn echo"])


@pytest.mark.django_db(transaction=True)
def test_a_passage_comes_with_those_around_it(alice: Person, storage: Any) -> None:
    upload(
        alice,
        text="\n\n".join(f"Section {name}. " + "Some filling words here. " * 30 for name in ("one", "two", "three")),
    )
    passages = [memory.text for memory in Memory.objects.order_by("chunk_index")]
    assert len(passages) == 3
    assert around(alice, "section two", 1) == (passages[:1], passages[2:])


def test_a_stranger_s_session_of_that_name_is_no_context(alice: Person, bob: Person) -> None:
    say(alice, "chat:c1", "turn alpha")
    say(bob, "chat:c1", "turn bravo")
    assert around(alice, "alpha", 5) == ([], [])


@pytest.mark.parametrize("count", [-1, 11, "x", 1.5])
def test_how_many_is_bounded(alice: Person, count: Any) -> None:
    assert search(alice, context=count, status=422)["errors"][0]["field"] == "context"


def test_a_hundred_results_have_theirs(alice: Person) -> None:
    say(alice, "chat:c1", *[f"payment {number}" for number in range(120)])
    results = search(alice, scope=["all_user_memory"], context=10, top_k=100)["results"]
    assert len(results) == 100
    assert all(len(result["context"]["before"]) + len(result["context"]["after"]) >= 10 for result in results)
