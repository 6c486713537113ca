"""`store.text.statements`: what texts say of slots, what questions ask for, and which statements replace others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from store.text.slots import MAX_TOKEN_CHARS, Slot, Statement, link_of
from store.text.statements import asked, is_about_first, is_about_past, statements

CASES = Path("benchmarks/answers/cases/own")


def cases(name: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (CASES / f"{name}.jsonl").read_bytes().splitlines()]


def is_linked(older: str, newer: str) -> bool:
    return any(link_of(old, new) for old in statements(older) for new in statements(newer))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I moved from Berlin to Lisbon last month.", Statement("home", "me", "Lisbon", "change", "Berlin")),
        ("We live in Oslo.", Statement("home", "me", "Oslo")),
        ("My boss's name is Petra.", Statement("boss", "me", "Petra")),
        ("The user's phone number is 555-0101.", Statement("phone", "me", "555-0101")),
        ("My sister moved to Braga.", Statement("home", "sister", "Braga", "change")),
        ("We migrated from MySQL to PostgreSQL.", Statement("database", "us", "PostgreSQL", "change", "MySQL")),
        ("I don't work at Nokia anymore.", Statement("employer", "me", "Nokia", "negation")),
        ("The retro was moved to Thursday.", Statement("retro", "us", "Thursday", "change")),
        ("My phone number changed. It's 0160 777 now.", Statement("phone", "me", "0160 777", "change")),
        ("我搬到杭州了。", Statement("home", "me", "杭州", "change")),
        ("会议改到周三了。", Statement("会议", "us", "周三", "change")),
        ("Ich bin nach Leipzig gezogen.", Statement("home", "me", "Leipzig", "change")),
        ("Ich bin kein Vegetarier mehr.", Statement("diet", "me", "Vegetarier", "negation")),
    ],
)
def test_a_text_says_the_value_of_a_slot(text: str, expected: Statement) -> None:
    assert expected in statements(text)


@pytest.mark.parametrize(
    ("question", "slot"),
    [
        ("Where do I live now?", Slot("home", "me")),
        ("What is my boss called?", Slot("boss", "me")),
        ("What is the name of my boss?", Slot("boss", "me")),
        ("How old is my daughter?", Slot("age", "daughter")),
        ("Which database do we use in production?", Slot("database", "us")),
        ("What is the deploy command?", Slot("deploy command", "us")),
        ("我住在哪里？", Slot("home", "me")),
        ("会议是哪天？", Slot("会议", "us")),
        ("Wie heißt mein Chef?", Slot("boss", "me")),
    ],
)
def test_a_question_asks_for_a_slot(question: str, slot: Slot) -> None:
    assert slot in asked(question)


@pytest.mark.parametrize("name", ["updates", "history"])
def test_the_newer_statement_of_an_update_replaces_the_older_one(name: str) -> None:
    found = [case for case in cases(name) if case.get("language", "en") in {"en", "zh", "de"}]
    missed = [case for case in found if not is_linked(case["old"], case["new"])]
    assert len(missed) <= 0.09 * len(found), missed


def test_statements_that_say_nothing_against_each_other_are_not_linked() -> None:
    same_speaker = [
        case["messages"]
        for case in cases("negatives")
        if not any({"role", "sender"} & message.keys() for message in case["messages"])
    ]
    linked = [messages for messages in same_speaker if is_linked(*(message["text"] for message in messages))]
    assert len(same_speaker) > 150
    assert linked == []


@pytest.mark.parametrize("case", cases("history"), ids=lambda case: case["question"])
def test_questions_of_history_are_about_the_past(case: dict[str, str]) -> None:
    assert is_about_past(case["question"])


def test_questions_of_updates_are_about_the_present() -> None:
    assert [case["question"] for case in cases("updates") if is_about_past(case["question"])] == []


def test_a_question_asks_for_the_very_first_value() -> None:
    assert is_about_first("What was the original budget?")
    assert not is_about_first("What was the budget before?")


def test_a_statement_replaces_no_value_that_holds_beside_it() -> None:
    assert not is_linked("My daughter is called Emma.", "My daughter is called Lily.")
    assert not is_linked("My boss is called Karl.", "My boss is on holiday now.")
    assert not is_linked("My boss is Karl.", "My boss is Karl Meier.")
    assert not is_linked("Service alpha listens on port 80", "Service beta listens on port 81 now")
    assert is_linked("Service alpha listens on port 80", "Service alpha listens on port 81")
    assert not is_linked("I drive a Volvo.", "I drive slowly now.")
    assert not is_linked("我在华为工作。", "我现在在家工作。")
    assert not is_linked("我住在北京。", "我现在住酒店三天。")
    assert is_linked("I use Obsidian for notes.", "I use Logseq for notes now.")


def test_equal_words_with_another_value_only_rank() -> None:
    [[older], [newer]] = [statements(text) for text in ("The retro is on Monday.", "The retro is on Thursday.")]
    link = link_of(older, newer)
    assert link is not None
    assert (link.is_marked, link.confidence) == (False, "low")


def test_tokens_are_short_and_without_spaces() -> None:
    token = Slot("the number of the second gate behind the old garden house of my uncle", "me").token
    assert len(token) <= MAX_TOKEN_CHARS
    assert Slot("Gebühr\u3000am Tor", "us").token == "slot:gebuhr_am_tor:us"
    assert Slot("gate code", "my uncle").token == "slot:gate_code:my_uncle"


@pytest.mark.parametrize(
    "text", ["", "ok", "?!" * 500, "my " * 3000, "is is is is is now now", "我" * 3000, ": : : :", "a: b"]
)
def test_odd_texts_say_nothing(text: str) -> None:
    assert statements(text) == ()


def test_a_long_chinese_text_is_an_article() -> None:
    said = "我的电话号码是13800001111。"
    assert statements(said)
    assert not statements(said + "这座城市的公园里有许多古老的树木和安静的小路。" * 10)
