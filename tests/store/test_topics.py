"""Topics are recognized in statements about the person, in notes about them, and not in other sentences."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.topics.run import MIN_FOUND, statements
from store.text.topics import TOPICS, Speaker, topics_of

ABOUT_OTHER_THINGS = [
    "Insulin was discovered in 1921.",
    "The doctor in the novel is tired of the war.",
    "Which party won the election in France?",
    "Explain how a mortgage works, with an example.",
    "The church was built in 1402.",
    "What is the tallest building in Lyon?",
    "I won't quit, no matter what.",
    "Can you make this function work?",
    "I like hiking and green tea.",
    "My favourite colour is blue.",
    "I think the second draft is better than the first.",
    "Let's meet on Friday to look at the slides.",
    "I need a recipe with lentils.",
    "My laptop is slow since the update.",
    "Python is a language that I like.",
    "玛丽·居里出生于华沙。",
    "请解释一下什么是房贷。",
    "我喜欢绿茶和爬山。",
    "我国政府发布了报告。",
    "Die Kirche wurde 1402 gebaut.",
    "Ich mag grünen Tee und Wandern.",
    "Wie funktioniert eine Hypothek?",
    "Can you help me write an essay about diabetes?",
    "I'm reading a novel about a priest in Mexico.",
    "I read that insulin was discovered in 1921.",
    "Please tell me about the history of the Labour Party.",
    "I moved the file to Documents.",
    "I have 200 photos to sort.",
    "We need 200 grams of flour for this.",
    "I get paper from the printer.",
    "Kannst du mir den Unterschied zwischen ETF und Fonds erklären?",
    "Ich höre gern Podcasts über Geschichte.",
    "Ich bin heute etwas müde.",
    "Mein Kurs beginnt um acht.",
    "我主要用Python。",
    "我性格比较内向。",
    "我想学西班牙语。",
    "帮我写一首关于秋天的诗。",
    "公司将于七月迁至新址。",
]
TOLD = [
    ("Dad had a stroke last winter and still can't move his arm.", "health"),  # of the person's people
    ("My sister is told that the lump is malignant.", "health"),
    ("I've been on citalopram since June.", "health"),  # a medicine by its ending
    ("There is a tingling under my ribs.", "health"),
    ("Migraine again since this morning.", "health"),  # the subject is left out
    ("got laid off on Friday", "work"),
    ("hab heute die Kündigung bekommen", "work"),
    ("刚被公司裁了，正在改简历", "work"),
    ("婆婆上周刚出院", "family"),
    ("I take home 3,200 after taxes.", "money"),
    ("My grandmother left me around eighty thousand.", "money"),
    ("Our vicar asked me to read the lesson.", "religion"),
    ("As a socialist I find that hard.", "politics"),
    ("My brother's gone full MAGA.", "politics"),
    ("We haven't slept together in a year.", "sexuality"),
    ("I swim at the Parkside baths at seven.", "location"),
    ("Every morning I walk the dog through Prospect Park.", "location"),
    ("Jeden Donnerstag bin ich in der Kletterhalle in Thalkirchen.", "location"),
    ("每周六早上我都去朝阳公园跑步", "location"),
    ("My girlfriend drives a forklift.", "work"),
]
ABOUT_THE_PERSON: list[tuple[Speaker, str, str]] = [
    ("other", "Since you're allergic to nuts, try sunflower seeds.", "health"),
    ("other", "Your boss should have told you.", "work"),
    ("other", "既然你对花生过敏，就别吃了。", "health"),
    ("other", "Weil du schwanger bist oder du bist schwanger.", "health"),
    ("note", "Allergic to penicillin", "health"),
    ("note", "User lives in Lisbon", "location"),
    ("note", "Alice is married and has two kids", "family"),
    ("note", "Votes for the Greens", "politics"),
    ("note", "Her salary is 74,000 euros", "money"),
    ("note", "对青霉素过敏", "health"),
    ("user", "The user is a practising Catholic.", "religion"),
    ("user", "I’m gay", "sexuality"),
    ("user", "Nothing new. But I was laid off in March! See you", "work"),
    ("user", "我對青黴素過敏", "health"),
]


def test_at_least_70_percent_of_unseen_statements_are_recognized() -> None:
    found, all_of = Counter[str](), Counter[str]()
    for topic, _language, text in statements():
        all_of[topic] += 1
        found[topic] += topic in topics_of(text)
    assert sum(all_of.values()) == 300
    assert {topic for topic in TOPICS if found[topic] < MIN_FOUND * all_of[topic]} == set()


@pytest.mark.parametrize("text", ABOUT_OTHER_THINGS)
def test_other_sentences_are_of_no_topic(text: str) -> None:
    assert topics_of(text) == set()


@pytest.mark.parametrize("name", ["others", "read"])
def test_most_sentences_of_other_writers_are_recognized(name: str) -> None:
    rows = statements(name)
    assert sum(topic in topics_of(text) for topic, _language, text in rows) >= 0.85 * len(rows)


@pytest.mark.parametrize(("text", "topic"), TOLD)
def test_people_places_and_left_out_subjects_are_recognized(text: str, topic: str) -> None:
    assert topic in topics_of(text)


def test_an_assistant_says_you_to_anyone() -> None:
    assert topics_of("You may be told that dialysis is needed.", speaker="other") == set()


@pytest.mark.parametrize(("speaker", "text", "topic"), ABOUT_THE_PERSON)
def test_assistants_and_notes_speak_of_the_person(speaker: Speaker, text: str, topic: str) -> None:
    assert topic in topics_of(text, speaker=speaker)


def test_only_wanted_topics_are_returned() -> None:
    text = "I live in Lisbon. I am allergic to nuts."
    assert topics_of(text, ["health"]) == {"health"}
    assert topics_of(text, ["work"]) == set()
    assert topics_of(text, []) == set()


def test_long_texts_take_linear_time() -> None:
    for text in (
        "I " * 50_000,
        "my " + "a-" * 50_000,
        "我" * 50_000,
        "x" * 200_000,
        "the " * 50_000,
        "I am at the " * 20_000,
    ):
        assert topics_of(text) == set()
