"""Parts of long texts: the best one for a query, in REST answers within a budget."""

from __future__ import annotations

import random
import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.token_estimates import estimated_tokens
from memories.services.excerpts import MAX_CHARS, excerpt
from tests.conftest import Person
from tests.memories.calls import call, say

WORDS = [
    "harbour",
    "weather",
    "train",
    "dinner",
    "garden",
    "morning",
    "letter",
    "start",
    "parts",
    "the",
    "of",
    "and",
    "with",
]
FACTS = {
    "What is the code of the zebra notes?": "The zebra notes have the code 4412.",
    "Wann fährt die Fähre?": "Die Fähre fährt um neun Uhr ab.",
    "斑马笔记的密码是多少？": "斑马笔记的密码是四四一二。",
    "何時に出発しますか": "出発は午後三時です。",
    "HTTP 502": "The proxy answered 502 twice.",
}


def prose(seed: int, chars: int) -> str:
    chosen = random.Random(seed)
    return " ".join(chosen.choices([*WORDS, "weather.", "start."], k=chars // 7))


@pytest.mark.parametrize("query", FACTS)
@pytest.mark.parametrize("before", [0, 700, 5_000, 300_000])
@pytest.mark.parametrize("after", [0, 100, 2_000, 300_000])
def test_the_part_holds_the_fact_whole(query: str, before: int, after: int) -> None:
    text = f"{prose(1, before)} {FACTS[query]} {prose(2, after)}"
    part = excerpt(text, query)
    assert FACTS[query] in part.text
    assert len(part.text) <= MAX_CHARS
    assert part.text == text[part.start : part.end]


def test_a_part_begins_and_ends_with_sentences() -> None:
    text = "".join(f"Sentence {number} is about the weather. " for number in range(500)).replace("300 is", "300 was")
    part = excerpt(text, "300 was")
    assert part.text.startswith("Sentence ")
    assert part.text.endswith("weather.")
    chinese = "".join(f"第{number}句话说的是天气。" for number in range(900))
    part = excerpt(chinese, "第450句")
    assert "第450句" in part.text
    assert part.text.startswith("第")
    assert part.text.endswith("天气。")


def test_a_text_that_no_word_fits_begins_at_its_beginning() -> None:
    for query in ("", "zeppelin", "the of", "?"):
        assert excerpt(prose(3, 9_000), query).start == 0


@given(
    text=st.text("ab İ.。\n中é", max_size=60).map(lambda part: part * 50), query=st.text("ab İ中é", max_size=8),
    limit=st.integers(1, 300),
)  # fmt: skip
def test_a_part_is_a_part_within_its_limit(text: str, query: str, limit: int) -> None:
    part = excerpt(text, query, limit)
    assert len(part.text) <= max(limit, 0)
    assert part.text == text[part.start : part.end]


def test_a_text_of_a_megabyte_takes_milliseconds() -> None:
    for text in (prose(4, 1_000_000), "我们聊了很久的天气和港口。" * 76_000, "x" * 1_000_000, "a" + "b " * 500_000):
        started = time.process_time()
        excerpt(text, "What did we say about the harbour, the parts, b and 港口天气?")
        assert time.process_time() - started < 0.5  # 5 to 20 ms on an idle machine


@pytest.mark.django_db
def test_a_search_shows_the_part_beside_the_whole_text(alice: Person) -> None:
    text = f"{prose(5, 4_000)} The zebra notes have the code 4412. {prose(6, 4_000)}"
    say(alice, "chat:c1", text, "The zebra is small.")
    long, short = found(alice, "zebra notes code")["results"]
    assert long["text"] == text.strip()
    assert "4412" in long["passage"]
    assert text.strip()[long["place"]["start"] : long["place"]["end"]] == long["passage"]
    assert (short["passage"], short["place"]) == (None, None)
    [long, _] = found(alice, "zebra notes code", max_chars_per_memory=200)["results"]
    assert "4412" in long["text"]
    assert len(long["text"]) <= 200
    assert (long["passage"], long["place"]["end"] - long["place"]["start"]) == (None, len(long["text"]))


@pytest.mark.django_db
def test_a_search_within_a_budget_leaves_out_the_last(alice: Person) -> None:
    say(alice, "chat:c1", *(f"The zebra has {number} stripes." for number in range(8)))
    whole = found(alice, "zebra", raw=False)
    assert "left_out" not in whole["meta"]
    answer = found(alice, "zebra", max_tokens=600, raw=False)
    assert 1 <= len(answer["results"]) < 8
    assert answer["results"] == whole["results"][: len(answer["results"])]
    assert answer["meta"]["left_out"] == 8 - len(answer["results"])
    assert estimated_tokens(orjson.dumps(answer["results"]).decode()) <= 610
    assert found(alice, "zebra", max_tokens=1)["results"] == []
    say(alice, "chat:c2", f'{prose(7, 9_000)} "giraffe" {prose(8, 9_000)}')
    [cut] = found(alice, "giraffe", max_tokens=600, raw=False)["results"]
    assert "giraffe" in cut["text"]
    assert estimated_tokens(orjson.dumps(cut).decode()) <= 610


def found(person: Person, query: str, **options: Any) -> dict[str, Any]:
    body = {"query": query, "scope": ["all_user_memory"], **options}
    return dict(call(person, "post", "/memories/search", **body))


@pytest.mark.parametrize("max_chars", range(60, 200, 7))
def test_a_word_at_the_end_of_a_block_is_shown(max_chars: int) -> None:
    filler = "我们聊了很久的天气和港口，后来又说到了旅行的计划。" * 10
    assert "zebra" in excerpt(f"{filler}The zebra 3 sleeps. {filler}", "zebra", max_chars).text
