"""Words that the answer to a question is likely to have."""

from __future__ import annotations

import pytest

from engines.embedded.engine import EmbeddedEngine
from store.text.expected import expected_tokens
from store.text.tokens import query_tokens
from tests.conftest import Person
from tests.store.conftest import remember, search, texts


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("When did she move?", "yesterday"),
        ("what day is it", "tomorrow"),
        ("Since when?", "ago"),
        ("Wann kommt er?", "gestern"),
        ("他什么时候搬家", "昨天"),
        ("我的会议是几点", "明天"),
    ],
)
def test_an_answer_to_when_is_likely_to_name_a_time(query: str, word: str) -> None:
    [token] = query_tokens(word)
    assert token in expected_tokens(query)


@pytest.mark.parametrize("query", ["What did she do when she moved?", "Where is it?", "他在哪里", "", "whenever"])
def test_other_questions_expect_no_words(query: str) -> None:
    assert expected_tokens(query) == ()


def test_of_two_memories_with_the_word_the_one_with_a_time_answers_when(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "I visited the museum yesterday", session="chat:a")
    remember(engine, alice.owner, "The museum has many old pictures", session="chat:b")
    hits = search(engine, alice.owner, "When did I go to the museum?")
    assert texts(hits)[0] == "I visited the museum yesterday"
    assert "yesterday" in hits[0].legs["keyword"]["expected"]
