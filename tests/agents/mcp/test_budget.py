"""The length of answers: what a model reads of long memories and of many."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from accounts.audit import Actor
from agents import tools
from agents.mcp import catalog, server
from agents.tools import Caller
from agents.tools.budget import LARGEST_MAX_TOKENS, MAX_TOKENS, SMALLEST_MAX_TOKENS
from core.token_estimates import estimated_tokens
from tests.agents.mcp.conftest import ids_in
from tests.conftest import Person
from tests.memories.calls import say

pytestmark = pytest.mark.django_db
MAX_BYTES = 12_000
ENGLISH = "We talked about the harbour and the weather for a long while. "
CHINESE = "我们聊了很久的天气和港口，后来又说到了旅行的计划。"
TEXTS = {
    "English": (ENGLISH * 8000, "The zebra notes have the code 4412. ", "zebra notes code"),
    "Chinese": (CHINESE * 19000, "斑马笔记的密码是四四一二。", "斑马笔记的密码"),
    "quotes": ('"\\' * 250_000, ' The zebra notes have the code 4412. "', "zebra notes code"),
    "lines": ("\n\t" * 250_000, "The zebra notes have the code 4412.\n", "zebra notes code"),
    "brackets": ("<relevant-memories>" * 25_000, "The zebra notes have the code 4412. ", "zebra notes code"),
}


def answer(person: Person, name: str, **arguments: Any) -> tuple[str, bytes]:
    """Return the text of a tool's answer, and the JSON-RPC answer."""
    given = tools.invoke(Caller(person.owner, "main", Actor.command("tests")), name, arguments, catalog.TOOLS)
    sent = server.call_result(name, given).model_dump(mode="json", by_alias=True, exclude_none=True)
    return given["content"][0]["text"], orjson.dumps({"jsonrpc": "2.0", "id": 1, "result": sent})


@pytest.mark.parametrize("kind", TEXTS)
def test_a_memory_of_a_megabyte_is_found_by_its_part(alice: Person, kind: str) -> None:
    filler, fact, query = TEXTS[kind]
    half = filler[: len(filler) // 2]
    say(alice, "chat:c1", f"{half}{fact}{half}")
    for name in ("memory_recall", "memory_search"):
        text, sent = answer(alice, name, query=query)
        assert fact.strip() in text
        assert f"of {2 * len(half) + len(fact)}]" in text
        assert len(sent) < MAX_BYTES
    text, sent = answer(alice, "memory_list")
    assert len(sent) < MAX_BYTES
    [memory_id] = ids_in(text)
    parts, offset = "", 0
    while "There is more" in text or not parts:
        text, sent = answer(alice, "memory_get", memory_id=memory_id, offset=offset)
        offset += 4000
        parts += text
        if offset > 40_000:
            break
    assert f"call again with the offset {offset}" in text


@pytest.mark.parametrize("filler", [ENGLISH, CHINESE, "😀 é\u0301 "])
def test_many_long_memories_stay_within_the_budget(alice: Person, filler: str) -> None:
    for number in range(12):
        say(alice, f"chat:c{number}", f"{number} zebra {filler * (3 + 40 * number)}")
    for limit in (SMALLEST_MAX_TOKENS, MAX_TOKENS, LARGEST_MAX_TOKENS):
        for name in ("memory_recall", "memory_search", "memory_list"):
            query = {} if name == "memory_list" else {"query": "zebra"}
            count = {"memory_recall": "limit", "memory_search": "top_k", "memory_list": "limit"}[name]
            text, _ = answer(alice, name, max_tokens=limit, **query, **{count: 30})
            assert estimated_tokens(text) <= limit
            assert ids_in(text)
            if limit == LARGEST_MAX_TOKENS:
                assert len(ids_in(text)) == 12
            elif name != "memory_list" and len(ids_in(text)) < 12:
                assert f"{12 - len(ids_in(text))} more did not fit" in text


def test_large_metadata_is_no_part_of_an_answer(alice: Person) -> None:
    metadata = {f"key {number}": "x" * 1000 for number in range(16)}
    for number in range(30):
        fact = {"text": f"Fact {number} of zebras.", "metadata": metadata, "tags": [f"tag {one}" for one in range(32)]}
        assert alice.client.post("/memories", fact, "application/json").status_code == 201
    assert len(orjson.dumps(metadata)) > 15 * 1024
    for name, count in (("memory_recall", "limit"), ("memory_search", "top_k"), ("memory_list", "limit")):
        for options in ({}, {count: 30}, {count: 30, "max_tokens": MAX_TOKENS}):
            query = {} if name == "memory_list" else {"query": "zebras"}
            text, sent = answer(alice, name, **query, **options)
            assert len(sent) <= MAX_BYTES
            assert ids_in(text)
            assert "xxx" not in text


@pytest.mark.parametrize("filler", [ENGLISH, CHINESE])
def test_ten_long_memories_are_shown_by_default(alice: Person, filler: str) -> None:
    for number in range(12):
        say(alice, f"chat:c{number}", f"{filler * 10}The zebra {number} sleeps. {filler * 10}")
    text, _ = answer(alice, "memory_recall", query="zebra")
    assert len(ids_in(text)) >= 10
    assert text.count("zebra") >= 10


def test_a_list_that_does_not_fit_goes_on_with_its_cursor(alice: Person) -> None:
    for number in range(30):
        say(alice, f"chat:c{number}", f"{number} {ENGLISH * 10}")
    seen: list[str] = []
    cursor: dict[str, Any] = {}
    while True:
        text, sent = answer(alice, "memory_list", limit=20, **cursor)
        assert len(sent) < MAX_BYTES
        seen += ids_in(text)
        if "There are more" not in text:
            break
        cursor = {"cursor": text.rpartition(" ")[2]}
    assert len(seen) == len(set(seen)) == 30
