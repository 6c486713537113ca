"""Terms that more than half of a user's memories contain are not read if others of the query match."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from engines.embedded.engine import EmbeddedEngine
from store.search import common_terms
from store.types import SearchRequest
from tests.conftest import Person
from tests.store.conftest import remember, search, texts

COMMON = common_terms.LEAST_MEMORIES


@pytest.fixture
def talkative(engine: EmbeddedEngine, alice: Person) -> Person:
    """A user whose memories all name Caroline; one also names a piano."""
    remember(engine, alice.owner, *(f"Caroline number x{number}x" for number in range(COMMON - 1)))
    remember(engine, alice.owner, "Caroline plays the piano", session="chat:piano")
    return alice


def read_terms(engine: EmbeddedEngine, person: Person, query: str, *, statements: int = 2) -> tuple[list[str], str]:
    """Return the texts that a search finds, and the SQL that it runs."""
    with CaptureQueriesContext(connection) as queries:
        found = texts(search(engine, person.owner, query, top_k=5))
    assert len(queries) == statements
    return found, " ".join(one["sql"] for one in queries.captured_queries)


def test_a_common_term_is_not_read_if_another_one_matches(engine: EmbeddedEngine, talkative: Person) -> None:
    found = [read_terms(engine, talkative, "Does Caroline play the piano?") for _ in range(2)]
    assert [texts for texts, _sql in found] == [["Caroline plays the piano"]] * 2
    assert ["carolin" in sql for _texts, sql in found] == [True, False]
    assert all("piano" in sql for _texts, sql in found)


@pytest.mark.parametrize("query", ["Caroline", "What happened to Caroline?"])
def test_a_common_term_is_read_if_the_question_has_no_other(
    engine: EmbeddedEngine, talkative: Person, query: str
) -> None:
    for _ in range(2):
        assert len(texts(search(engine, talkative.owner, query, top_k=5))) == 5


def test_a_common_term_is_no_reason_for_a_result_unless_the_floor_is_off(
    engine: EmbeddedEngine, talkative: Person
) -> None:
    for _ in range(2):
        assert search(engine, talkative.owner, "Caroline and her elephant", top_k=5) == []
        assert len(search(engine, talkative.owner, "Caroline and her elephant", top_k=5, min_relevance=0)) == 5


def test_without_the_floor_a_common_term_is_read_if_the_other_one_matches_in_other_sessions(
    engine: EmbeddedEngine, talkative: Person
) -> None:
    for _ in range(2):
        everywhere = SearchRequest("Caroline x7x", "keyword", 5, min_relevance=0)
        there = SearchRequest("Caroline x7x", "keyword", 5, session_ids=("chat:piano",), min_relevance=0)
        first, second = engine.search(talkative.owner, [everywhere, there])
        assert texts(first.hits)[0] == "Caroline number x7x"
        assert texts(second.hits) == ["Caroline plays the piano"]


def test_a_term_that_is_no_longer_common_is_read_again(engine: EmbeddedEngine, talkative: Person) -> None:
    read_terms(engine, talkative, "Caroline piano")
    remember(engine, talkative.owner, *(f"Someone y{number}y" for number in range(COMMON + 1)), session="chat:2")
    found, _sql = read_terms(engine, talkative, "Caroline piano", statements=3)  # read again with all terms
    assert len(found) == 5


def test_what_one_user_says_often_is_read_for_another(
    engine: EmbeddedEngine, talkative: Person, charlie: Person
) -> None:
    read_terms(engine, talkative, "Caroline piano")
    remember(engine, charlie.owner, "Caroline is here", "the piano is there")
    assert sorted(texts(search(engine, charlie.owner, "Caroline piano"))) == ["Caroline is here", "the piano is there"]


def test_what_was_counted_long_ago_is_read_again(
    engine: EmbeddedEngine, talkative: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_terms(engine, talkative, "Caroline piano")
    monkeypatch.setattr(common_terms, "KEPT_SECONDS", 0.0)
    _found, sql = read_terms(engine, talkative, "Caroline piano")
    assert "carolin" in sql


def test_a_user_with_fewer_memories_finds_each_that_names_one_of_the_words(
    engine: EmbeddedEngine, alice: Person
) -> None:
    for count in (1, 2, 3, 10):
        remember(engine, alice.owner, *(f"Caroline sang z{count}z{number}z" for number in range(count)))
        everything = texts(search(engine, alice.owner, f"Caroline z{count}z0z", top_k=100))
        assert everything[0] == f"Caroline sang z{count}z0z"
        assert len(everything) == sum(one for one in (1, 2, 3, 10) if one <= count)
