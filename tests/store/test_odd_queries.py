"""Unusual queries rank their memory first, and every pair of Chinese characters finds the texts that contain it."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from engines.embedded.engine import EmbeddedEngine
from store.text.times import query_times
from tests.conftest import Person
from tests.store.conftest import NOON_MS, remember, search, text_message, texts
from tests.store.odd_queries import ODD_QUERIES

_PARAGRAPHS = (
    "二〇二六年春天，北京的出版社决定重印这部长篇小说，并邀请原作者为新版本撰写序言。",
    "合同约定甲方应在收到发票后三十日内付款，逾期每日按千分之五支付违约金。",
    "她从小喜欢弹钢琴，也学过三年的小提琴，后来在上海音乐学院攻读作曲专业。",
    "研究人员发现，这种蝴蝶每年秋季会飞越两千多公里，到南方的山谷里过冬。",
    "地铁十号线延长段将于下月开通，沿途新增五座车站，预计每天运送二十万乘客。",
)


@pytest.fixture
def engine_with_memories(engine: EmbeddedEngine, alice: Person) -> EmbeddedEngine:
    """An engine with one session for each memory, so that no memory is found because of its neighbors."""
    for number, text in enumerate(dict.fromkeys(ODD_QUERIES.values())):
        engine.add(alice.owner, f"chat:{number}", [text_message(text, at=NOON_MS + 86_400_000 * 400 + number)])
    return engine


def test_there_are_two_hundred_queries() -> None:
    assert len(ODD_QUERIES) >= 200


def test_the_expected_memory_ranks_first(engine_with_memories: EmbeddedEngine, alice: Person) -> None:
    wrong = []
    for query, text in ODD_QUERIES.items():
        found = texts(search(engine_with_memories, alice.owner, query, top_k=3))
        if found[:1] != [text]:
            wrong.append(f"{query[:40]!r}: {text[:40]!r} is not before {[one[:40] for one in found]}")
    assert not wrong, "\n".join(wrong)


def test_every_pair_of_chinese_characters_finds_its_texts(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, *_PARAGRAPHS)
    words = {
        (run[start : start + 2], text)
        for text in _PARAGRAPHS
        for run in re.findall("[\u3400-\u9fff]{2,}", text)
        for start in range(len(run) - 1)
    }
    assert len(words) > 120
    now = datetime.now(UTC)
    words = {(word, text) for word, text in words if not query_times(word, now).tokens}  # 下月 asks for a time
    missing = [(word, text) for word, text in words if text not in texts(search(engine, alice.owner, word))]
    assert missing == []
