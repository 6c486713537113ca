"""Whatever is asked, what holds it comes first; and every Chinese word of two characters finds what it stands in."""

from __future__ import annotations

import re

import pytest

from engines.embedded.engine import EmbeddedEngine
from tests.conftest import Person
from tests.store.conftest import NOON_MS, ask, remember, said, texts
from tests.store.odd_queries import ODD_QUERIES

_PARAGRAPHS = (
    "二〇二六年春天，北京的出版社决定重印这部长篇小说，并邀请原作者为新版本撰写序言。",
    "合同约定甲方应在收到发票后三十日内付款，逾期每日按千分之五支付违约金。",
    "她从小喜欢弹钢琴，也学过三年的小提琴，后来在上海音乐学院攻读作曲专业。",
    "研究人员发现，这种蝴蝶每年秋季会飞越两千多公里，到南方的山谷里过冬。",
    "地铁十号线延长段将于下月开通，沿途新增五座车站，预计每天运送二十万乘客。",
)


@pytest.fixture
def planted(engine: EmbeddedEngine, alice: Person) -> EmbeddedEngine:
    """Each planted memory in a session of its own, so that none is found for its neighbours."""
    for number, text in enumerate(dict.fromkeys(ODD_QUERIES.values())):
        engine.add(alice.owner, f"chat:{number}", [said(text, at=NOON_MS + 86_400_000 * 400 + number)])
    return engine


def test_there_are_two_hundred_of_them() -> None:
    assert len(ODD_QUERIES) >= 200


def test_the_planted_memory_comes_first(planted: EmbeddedEngine, alice: Person) -> None:
    wrong = []
    for query, text in ODD_QUERIES.items():
        found = texts(ask(planted, alice.owner, query, top_k=3))
        if found[:1] != [text]:
            wrong.append(f"{query[:40]!r}: {text[:40]!r} is not before {[one[:40] for one in found]}")
    assert not wrong, "\n".join(wrong)


def test_every_chinese_word_of_two_characters_finds_its_memory(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, *_PARAGRAPHS)
    words = {
        (run[place : place + 2], text)
        for text in _PARAGRAPHS
        for run in re.findall("[\u3400-\u9fff]{2,}", text)
        for place in range(len(run) - 1)
    }
    assert len(words) > 120
    lost = [(word, text) for word, text in words if text not in texts(ask(engine, alice.owner, word))]
    assert lost == []
