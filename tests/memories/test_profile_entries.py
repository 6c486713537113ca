"""Entries of profiles among the results of a search."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts import profile_entries
from accounts.audit import Actor
from agents import tools
from agents.tools import Caller
from profiles.services import patch, set_disabled
from tests.conftest import Person
from tests.memories.calls import call, say, search

pytestmark = pytest.mark.django_db(transaction=True)
ACTOR = Actor.command("tests")
USER = {
    "occupation": "Carpenter",
    "timezone": "Europe/Lisbon",
    "people": [{"name": "Ana", "relationship": "sister"}, {"name": "Bo", "relationship": "neighbor"}],
    "interests": ["jazz", "chess"],
}
WORK = {"current_projects": [{"name": "library", "deadline": "2026-09-30"}, {"name": "garden", "status": "active"}]}


@pytest.fixture
def known(alice: Person) -> Person:
    """A person with both documents."""
    patch(alice.user_pk, "user", USER, actor=ACTOR)
    patch(alice.user_pk, "work", WORK, actor=ACTOR)
    return alice


def entries(person: Person, query: str, **fields: Any) -> list[tuple[str, str, str]]:
    found = search(person, query, **fields)["results"]
    return [(one["id"], one["raw"]["path"], one["text"]) for one in found if one["id"].startswith("profile:")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What is my occupation?", ("profile:user", "content.occupation", "Occupation: Carpenter")),
        ("What do I do for work?", ("profile:user", "content.occupation", "Occupation: Carpenter")),
        ("我的职业是什么？", ("profile:user", "content.occupation", "Occupation: Carpenter")),
        ("Was ist mein Beruf?", ("profile:user", "content.occupation", "Occupation: Carpenter")),
        ("Who is Ana?", ("profile:user", "content.people.0", "People: Ana: Relationship: sister")),
        ("What are my hobbies?", ("profile:user", "content.interests", "Interests: jazz, chess")),
        (
            "When is the deadline of the library project?",
            ("profile:work", "content.current_projects.0", "Current projects: library: Deadline: 2026-09-30"),
        ),
    ],
)
def test_an_entry_that_answers_the_query_is_a_result(known: Person, query: str, expected: tuple[str, ...]) -> None:
    assert entries(known, query)[0] == expected


@pytest.mark.parametrize(
    "query",
    [
        *("What is Ana's phone number?", "Where does Ana work?", "When does Ana visit Rome?", "Who is Carl?"),
        *("What is my blood type?", "安娜的电话是多少？", "Wann besucht mich Ana?", "the", "What did I do yesterday?"),
    ],
)
def test_a_query_without_an_answer_finds_nothing(known: Person, query: str) -> None:
    assert search(known, query)["results"] == []


def test_entries_follow_the_memories_outside_of_the_limit(known: Person) -> None:
    say(known, "chat:c1", "Ana plays chess", "Ana likes jazz")
    found = search(known, "Ana", conversation_id="c1", top_k=1)["results"]
    assert [one["memory_type"] for one in found] == ["episode", "profile"]
    entry = found[1]
    assert (entry["session_id"], entry["score"], entry["role"], entry["superseded_by"]) == (None, None, None, None)
    assert entry["raw"] == {"path": "content.people.0"}
    assert entry["relevance"] == 1.0


def test_at_most_three_entries_are_results(known: Person) -> None:
    people = [{"name": f"Person {number}", "relationship": "cousin"} for number in range(5)]
    patch(known.user_pk, "user", {"people": people}, actor=ACTOR)
    assert len(entries(known, "Who is my cousin?")) == 3


def test_no_entry_with_an_agent_without_the_option_and_of_a_disabled_document(known: Person) -> None:
    query = "What is my occupation?"
    assert entries(known, query, agent_id="main") == entries(known, query, include_profile=False) == []
    assert entries(known, query, min_relevance=1.0)
    set_disabled(known.user_pk, "user", is_disabled=True, actor=ACTOR)
    assert entries(known, query) == []


def test_entries_are_those_of_the_caller(known: Person, bob: Person) -> None:
    assert entries(bob, "What is my occupation?") == []


def test_a_written_document_is_found_at_once(alice: Person) -> None:
    assert entries(alice, "What is my occupation?") == []
    patch(alice.user_pk, "user", USER, actor=ACTOR)
    assert entries(alice, "What is my occupation?")


def test_entries_are_no_results_of_recall(known: Person) -> None:
    answer = tools.invoke(Caller(known.owner, "", ACTOR), "memory_recall", {"query": "What is my occupation?"})
    assert answer["details"] == {"count": 0}


@pytest.mark.parametrize("kind", ["user", "work"])
def test_decisions_about_an_entry_name_the_document(known: Person, kind: str) -> None:
    path = f"/memories/profile:{kind}"
    refused = [
        call(known, "get", path, status=409),
        call(known, "patch", path, status=409, override_text="Baker"),
        call(known, "delete", path, status=409),
        call(known, "post", f"{path}/restore", status=409),
        call(known, "delete", f"{path}/override", status=409),
    ]
    assert all(f"/api/v1/memories/{kind}" in answer["detail"] for answer in refused)


def test_entries_take_one_statement_and_none_without_documents(known: Person, bob: Person) -> None:
    for person in (known, bob):  # the first request of a key notes its use
        search(person, "Ana", include_profile=False)
    counts = []
    for person, fields in ((known, {"include_profile": False}), (known, {}), (bob, {}), (bob, {})):
        with CaptureQueriesContext(connection) as captured:
            search(person, "Ana", **fields)
        counts.append(len(captured))
    without, once, first, again = counts
    assert once == without + 1
    assert first == again + 1


def test_a_user_without_documents_is_forgotten_after_a_while(alice: Person, monkeypatch: Any) -> None:
    assert entries(alice, "What is my occupation?") == []
    assert alice.user_pk in profile_entries._without
    monkeypatch.setattr(profile_entries, "_KEPT_SECONDS", -1.0)
    assert entries(alice, "What is my occupation?") == []
