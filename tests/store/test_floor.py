"""The floor of a search: what is no result because it shares only common words with the question."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from engines.embedded.engine import EmbeddedEngine
from store.index import fact_pages
from store.models import Memory
from store.search import question, spelling
from store.types import Hit, SearchRequest, SearchResult
from tests.conftest import Person
from tests.store.conftest import NOON_MS, remember, search, text_message, texts

FACTS = [f"The user {verb} item {number}" for number in range(20) for verb in ("likes", "owns")]


def tell(engine: EmbeddedEngine, person: Person, *facts: str) -> None:
    """Store each fact in another session, so that none is in the context of another."""
    for number, fact in enumerate(facts):
        engine.add(person.owner, f"chat:f{number}", [text_message(fact, at=NOON_MS + number * 1000)])
        engine.flush(person.owner, f"chat:f{number}")


def result(engine: EmbeddedEngine, person: Person, query: str) -> SearchResult:
    [found] = engine.search(person.owner, [SearchRequest(query, "keyword")])
    return found


def relevance(hits: list[Hit]) -> dict[str, float | None]:
    return {hit.text: hit.relevance for hit in hits}


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Which toothpaste did my dentist recommend?", "My dentist replaced a filling"),
        ("Where did I park at the airport?", "The park behind our house floods each autumn"),
    ],
)
def test_a_topic_does_not_answer_what_is_asked_beside_it(
    engine: EmbeddedEngine, alice: Person, question: str, told: str
) -> None:
    tell(engine, alice, told, "My flight leaves the airport at 6:40", "I take my tea strong")
    found = relevance(search(engine, alice.owner, question))
    assert found
    assert all(one is not None and one < 0.5 for one in found.values()), found


def test_a_topic_answers_a_question_for_it_alone(engine: EmbeddedEngine, alice: Person) -> None:
    tell(engine, alice, "I moved to Lisbon")
    [hit] = search(engine, alice.owner, "Where do I live?")
    assert hit.relevance is not None
    assert hit.relevance > 0.5


@pytest.mark.parametrize(
    "query",
    [
        "What is the user's blood type?",
        "What is the name of the user's mother?",
        "Does the user have siblings?",
        "用户的血型是什么？",
        "Welche Blutgruppe hat der Benutzer?",
    ],
)
def test_a_question_without_a_known_word_finds_nothing(engine: EmbeddedEngine, alice: Person, query: str) -> None:
    tell(engine, alice, *FACTS[:8], "用户喜欢苹果", "Der Benutzer mag Tee")
    assert search(engine, alice.owner, query) == []


def test_a_question_with_a_known_word_finds_only_what_holds_it(engine: EmbeddedEngine, alice: Person) -> None:
    tell(engine, alice, *FACTS[:8], "The user's blood type is A positive")
    [hit] = search(engine, alice.owner, "What is the user's blood type?")
    assert hit.text == "The user's blood type is A positive"
    assert hit.relevance == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("query", "fact"),
    [
        ("What is my blood type?", "I like blood oranges"),
        ("When is my sister's wedding?", "My sister has a dog"),
        ("How tall is my brother?", "My brother plays chess"),
    ],
)
def test_a_partly_known_property_is_found_as_of_low_relevance(
    engine: EmbeddedEngine, alice: Person, query: str, fact: str
) -> None:
    tell(engine, alice, *(f"{fact} {number}" for number in range(6)))
    found = result(engine, alice, query)
    assert found.is_partly_known
    assert all(0 < (hit.relevance or 0) < 0.5 for hit in found.hits)
    assert len(search(engine, alice.owner, query, min_relevance=0)) == 6


def test_a_question_of_common_words_alone_finds_what_shares_them(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "Caroline: I paint lakes.", "Melanie: Fine.", session="chat:a")
    assert texts(search(engine, alice.owner, "Caroline?")) == ["Caroline: I paint lakes."]
    assert texts(search(engine, alice.owner, "What happened to Caroline?")) == ["Caroline: I paint lakes."]


def test_a_turn_that_shares_a_common_word_needs_an_informative_one_within_six_messages(
    engine: EmbeddedEngine, alice: Person
) -> None:
    turns = ["Caroline: The museum was great."] + ["Caroline: Yes."] + ["Melanie: Well."] * 6 + ["Caroline: No."]
    remember(engine, alice.owner, *turns, session="chat:a")
    remember(engine, alice.owner, "Caroline: Elsewhere.", session="chat:b")
    found = texts(search(engine, alice.owner, "Did Caroline see the museum?"))
    assert found == ["Caroline: The museum was great.", "Caroline: Yes."]


def test_a_word_of_more_than_half_of_fifty_memories_is_common(engine: EmbeddedEngine, alice: Person) -> None:
    facts = [f"item {number} costs x{number}x" for number in range(52)]
    tell(engine, alice, *facts[:48])
    assert len(search(engine, alice.owner, "item colour")) == 48
    tell(engine, alice, *facts)
    assert search(engine, alice.owner, "item colour") == []
    assert texts(search(engine, alice.owner, "item x7x")) == ["item 7 costs x7x"]
    assert len(search(engine, alice.owner, "item")) == 52


def test_a_date_informs_if_a_memory_is_of_it(engine: EmbeddedEngine, alice: Person) -> None:
    tell(engine, alice, "We met", "We parted")
    assert len(search(engine, alice.owner, "What did the user do on 28 May 2026?")) == 2
    assert search(engine, alice.owner, "What did the user do on 27 May 2026?") == []


def test_relevance_is_the_share_of_the_question_that_a_memory_and_its_context_cover(
    engine: EmbeddedEngine, alice: Person
) -> None:
    remember(engine, alice.owner, "I bought a piano", "The kitchen is small", session="chat:a")
    remember(engine, alice.owner, "A piano needs care", session="chat:b")
    found = relevance(search(engine, alice.owner, "piano kitchen"))
    assert found["I bought a piano"] == found["The kitchen is small"] == pytest.approx(1.0)
    alone = found["A piano needs care"] or 0.0
    assert 0 < alone < 0.5
    assert set(texts(search(engine, alice.owner, "piano kitchen", min_relevance=0.9))) == set(list(found)[:2])
    assert alone == pytest.approx(relevance(search(engine, alice.owner, "kitchen piano"))["A piano needs care"])


def test_legs_tell_what_the_words_of_a_question_are(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "Caroline: I play the violin", session="chat:a")
    [hit] = search(engine, alice.owner, "Does Caroline happen to own a violin?")
    told = hit.legs["keyword"]["question"]
    assert told["informative"] == ["violin"]
    assert told["unknown"] == ["own"]
    assert set(told["common"]) == {"carolin", "happen"}


@pytest.mark.parametrize(
    ("query", "written", "known"),
    [
        ("who is my denist?", "denist", "dentist"),
        ("where is the restaraunt", "restaraunt", "restaurant"),
        ("wifi passwrod", "passwrod", "password"),
        ("when is the meetign", "meetign", "meeting"),
        ("Wie heisst mein Zahnartzt?", "zahnartzt", "Zahnarzt"),
    ],
)
def test_a_misspelled_word_is_replaced_by_the_nearest_known_one(
    engine: EmbeddedEngine, alice: Person, query: str, written: str, known: str
) -> None:
    texts_of = ["The dentist is kind", "A restaurant nearby", "My password is swordfish", "The meeting is at noon"]
    tell(engine, alice, *texts_of, "Mein Zahnarzt ist nett")
    found = result(engine, alice, query)
    assert found.corrected == {written: known}
    assert known.casefold() in found.hits[0].text.casefold()


@pytest.mark.parametrize(
    "query", ["What is the height?", "Is the house old?", "Does Danist know?", "call 5554", "lake"]
)
def test_names_numbers_and_other_words_are_not_corrected(engine: EmbeddedEngine, alice: Person, query: str) -> None:
    tell(engine, alice, "The weight is 80 kg", "A horse ran", "The dentist is kind", "call 5555", "like")
    assert result(engine, alice, query).corrected == {}


def test_a_word_of_a_deleted_memory_corrects_nothing(engine: EmbeddedEngine, alice: Person) -> None:
    tell(engine, alice, "The dentist is kind", "A lake")
    Memory.objects.filter(text="The dentist is kind").update(
        state="trashed", state_since=datetime(2026, 1, 1, tzinfo=UTC)
    )
    found = result(engine, alice, "my denist")
    assert (found.corrected, found.hits) == ({}, ())


def test_two_words_that_are_equally_near_correct_nothing(engine: EmbeddedEngine, alice: Person) -> None:
    tell(engine, alice, "The planner works", "The planter grows")
    assert result(engine, alice, "the planer").corrected in ({}, {"planer": "planner"})
    tell(engine, alice, "matter", "mutter")
    assert result(engine, alice, "motter").corrected == {}


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [("same", "same", 0), ("ab", "ba", 1), ("dentist", "denist", 1), ("house", "horse", 2), ("colour", "color", 1)],
)
def test_edits_between_words(one: str, other: str, edits: int) -> None:
    assert spelling.distance(one, other, 2) == edits
    assert spelling.distance(other, one, 2) == edits
    assert spelling.distance(one, "entirely", 2) == spelling.TOO_FAR


def test_known_words_cost_no_statement_and_unknown_ones_one(engine: EmbeddedEngine, alice: Person) -> None:
    tell(engine, alice, "The dentist is kind")
    for query, statements in (("the dentist", 2), ("zebra", 2), ("denist", 4)):
        with CaptureQueriesContext(connection) as captured:
            search(engine, alice.owner, query)
        assert len(captured) == statements, query


def test_a_pronoun_is_found_by_the_name_that_it_stands_for(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "My cousin Tomas is visiting.", "He lives in Gdansk.", "He is a glassblower.")
    remember(engine, alice.owner, "小明今天来了。", "他是做木工的。", session="chat:b")
    remember(engine, alice.owner, "Mein Bruder Jonas zieht um.", "Er arbeitet als Koch.", session="chat:c")
    assert texts(search(engine, alice.owner, "Where does Tomas live?"))[0] == "He lives in Gdansk."
    assert "He is a glassblower." in texts(search(engine, alice.owner, "What is the job of Tomas?"))[:2]
    assert "他是做木工的。" in texts(search(engine, alice.owner, "小明是做什么的？"))[:2]
    assert "Er arbeitet als Koch." in texts(search(engine, alice.owner, "Was ist der Beruf von Jonas?"))[:2]


def test_the_time_of_a_question_prefers_and_excludes_only_if_it_asks_for_nothing_else(
    engine: EmbeddedEngine, alice: Person
) -> None:
    now = datetime(2026, 6, 10, 9, tzinfo=UTC)
    days = {"I painted the fence and the door and the wall": 30, "I repaired the roof": 1, "I painted the fence": 1}
    for number, (text, age) in enumerate(days.items()):
        at = int((now - timedelta(days=age)).timestamp() * 1000)
        engine.add(alice.owner, f"chat:{number}", [text_message(text, at=at + number)])
        engine.flush(alice.owner, f"chat:{number}")
    asked = {"now": now}
    assert texts(search(engine, alice.owner, "What did I do yesterday?", **asked)) == list(days)[:0:-1]
    found = texts(search(engine, alice.owner, "Did I paint the fence yesterday?", **asked))
    assert found[0] == "I painted the fence"
    assert "I painted the fence and the door and the wall" in found


@pytest.mark.parametrize(
    "query", ["a" * 8192, "when " + "a" * 8187, "中" * 8192, "我的" * 4096, "what is my " + "a" * 8181]
)
def test_long_questions_are_read_in_linear_time(query: str) -> None:
    started_at = time.process_time()
    question.asked(query)
    assert time.process_time() - started_at < 0.6


def test_a_correction_names_no_word_of_other_agents(engine: EmbeddedEngine, alice: Person) -> None:
    tell(engine, alice, *FACTS, "The user was treated for hepatitis")
    query = "Is the user treated for hepatitas?"
    [found] = engine.search(alice.owner, [SearchRequest(query, "keyword")])
    assert found.corrected == {"hepatitas": "hepatitis"}
    memory = Memory.objects.filter(text__contains="hepatitis")
    memory.update(origin="tool", agent_id="doctor")
    fact_pages.update(alice.owner, list(memory.values_list("pk", flat=True)))
    [found] = engine.search(alice.owner, [SearchRequest(query, "keyword", reader="helper")])
    assert "hepatitis" not in str(found)
    assert found.corrected == {}
