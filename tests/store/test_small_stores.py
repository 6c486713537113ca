"""In stores of a few memories no word is too common to be searched, in English and in Chinese."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

import pytest

from engines.embedded.engine import EmbeddedEngine
from store.text.tokens import query_tokens, read, without_stop_words
from tests.conftest import Person
from tests.store.conftest import remember, search, texts

ENGLISH = (
    "Alice keeps a green parrot in the kitchen",
    "Alice painted the kitchen of her cottage yellow",
    "The parrot of Alice learned a song",
    "Alice sold her cottage and kept the parrot",
    "Every morning Alice waters tomatoes",
    "Alice repairs bicycles in a cellar",
    "Her parrot flew away while Alice was at the dentist",
    "Alice planted tomatoes behind the cottage",
    "The dentist of Alice plays the trumpet",
    "Alice forgot her umbrella on the ferry",
)
CHINESE = (
    "小红在厨房养了一只鹦鹉",
    "小红把小屋的厨房刷成了黄色",
    "小红的鹦鹉学会了一首歌",
    "小红卖掉了小屋,留下了鹦鹉",
    "小红每天早上给番茄浇水",
    "小红在地下室修理自行车",
    "小红看牙医的时候鹦鹉飞走了",
    "小红在小屋后面种了番茄",
    "小红的牙医会吹小号",
    "小红把雨伞忘在渡轮上了",
)


def pieces_of(text: str) -> list[str]:
    if text in CHINESE:
        return [text[place : place + 2] for place in range(0, len(text) - 1, 2)]
    return text.split()


def queries_of(stored: Sequence[str], chance: random.Random) -> list[str]:
    """Return the texts, their words, pairs of the words of one text, and three words of any."""
    pieces = [pieces_of(text) for text in stored]
    words = sorted({word for one in pieces for word in one})
    pairs = [" ".join(pair) for one in pieces for pair in combinations(one, 2)]
    mixed = [" ".join(chance.sample(words, 3)) for _ in range(10)]
    return [*stored, *words, *chance.sample(pairs, 10), *mixed]


@pytest.mark.parametrize("size", [1, 2, 3, 10])
@pytest.mark.parametrize("texts_of_language", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_a_query_finds_all_memories_with_one_of_its_words(
    engine: EmbeddedEngine, alice: Person, texts_of_language: Sequence[str], size: int
) -> None:
    stored = texts_of_language[:size]
    remember(engine, alice.owner, *stored)
    words = {text: set(read(text).words) for text in stored}
    for query in queries_of(stored, random.Random(size)):
        asked = set(query_tokens(query))
        found = texts(search(engine, alice.owner, query, min_relevance=0))
        assert set(found) >= {text for text in stored if asked & words[text]}, query
        if query in stored:
            assert texts(search(engine, alice.owner, query))[0] == query


@pytest.mark.parametrize("size", [1, 2, 3, 10])
@pytest.mark.parametrize("text", [ENGLISH[0], CHINESE[0]], ids=["en", "zh"])
def test_a_word_that_all_memories_have_finds_them_all(
    engine: EmbeddedEngine, alice: Person, text: str, size: int
) -> None:
    stored = {f"{text} {number}" for number in range(size)}
    remember(engine, alice.owner, *stored)
    content = [piece for piece in pieces_of(text) if without_stop_words(query_tokens(piece))]
    for query in (text, *content):
        for _ in range(2):  # the second time with what the first one has learned
            assert set(texts(search(engine, alice.owner, query))) == stored, query
