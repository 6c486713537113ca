"""Words beside those of a query: which ones, and that searches find memories by them."""

from __future__ import annotations

import pytest

from engines.embedded.engine import EmbeddedEngine
from store.text.related import related_tokens
from store.text.tokens import query_tokens
from tests.conftest import Person
from tests.store.conftest import remember, search


@pytest.mark.parametrize(
    ("query", "related"),
    [
        ("Which instruments does she play?", "violin"),
        ("Does he have kids?", "daughter"),
        ("Where did they go on vacation?", "trip"),
        ("他的母亲在哪里", "妈妈"),
        ("她会什么乐器", "钢琴"),
    ],
)
def test_related_words_are_of_the_same_kind(query: str, related: str) -> None:
    tokens = query_tokens(query)
    [expected] = query_tokens(related)
    assert expected in related_tokens(tokens)
    assert not set(related_tokens(tokens)) & set(tokens)


def test_most_words_have_no_related_ones() -> None:
    assert related_tokens(query_tokens("LT-40 gripper, O'Brien, 2026-05-28, 供应商")) == []


def test_a_memory_is_found_by_a_related_word_after_those_with_the_word_itself(
    engine: EmbeddedEngine, alice: Person
) -> None:
    remember(engine, alice.owner, "My violin needs new strings", "The lake was cold", "An instrument is expensive")
    hits = search(engine, alice.owner, "Which instruments do I own?")
    assert [hit.text for hit in hits] == ["An instrument is expensive", "My violin needs new strings"]
    assert hits[1].legs["keyword"]["related"] == ["violin"]
