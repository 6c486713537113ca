"""Current statements before the ones that they replace: over REST, tools and the panel's decision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from accounts.audit import Actor
from accounts.models import AuditEvent
from agents import tools
from agents.tools import Caller
from core.times import from_ms
from engines.registry import get_engine
from memories.services import decisions, links
from memories.services.lookup import MemoryRef
from memories.services.manual import add_by_hand
from store.models import Memory
from store.types import ContentItem, Message
from tests.conftest import Person
from tests.memories import calls
from tests.memories.calls import NOON_MS, id_of, texts

DAY_MS = 86_400_000
BERLIN, LISBON = "I live in Berlin.", "I moved from Berlin to Lisbon last month."
NOISE = ("The weather was lovely.", "I watched a film about whales.", "We had pasta.", "The bus was late again.")
OWN_CASES = Path("benchmarks/answers/cases/own")
ACTOR = Actor.command("tests")


def say(person: Person, *said: str, role: Any = "user", sender: str = "", day: int = 0, step: int = 30) -> None:
    """Add messages of a person, assistant or tool, each `step` days after the one before."""
    is_participant = role == "user" and sender != ""
    messages = [
        Message(
            sender or person.user_id,
            role,
            NOON_MS + (day + number * step) * DAY_MS,
            (ContentItem("text", text=text),),
            is_participant=is_participant,
            tool_call_id="call_1" if role == "tool" else None,
        )
        for number, text in enumerate(said)
    ]
    get_engine().add(person.owner, "chat:c1", messages)
    get_engine().flush(person.owner, "chat:c1")


def search(person: Person, query: str, **fields: Any) -> dict[str, Any]:
    return calls.search(person, query, scope=["all_user_memory"], **fields)


def recall(person: Person, query: str) -> list[str]:
    answer = tools.invoke(Caller(person.owner, "", ACTOR), "memory_recall", {"query": query})
    return [memory["text"] for memory in answer["details"].get("memories", [])]


def cases(name: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (OWN_CASES / f"{name}.jsonl").read_bytes().splitlines()]


@pytest.fixture
def moved(alice: Person) -> Person:
    """A person who told two homes."""
    say(alice, *NOISE, day=-200, step=1)
    say(alice, BERLIN, LISBON)
    return alice


def test_the_current_home_comes_first_and_names_no_newer_one(moved: Person) -> None:
    first, second = search(moved, "Where do I live now?")["results"][:2]
    assert (first["text"], first["superseded_by"]) == (LISBON, None)
    assert (second["text"], second["superseded_by"]) == (BERLIN, id_of(LISBON))


def test_the_explanation_names_the_link(moved: Person) -> None:
    first, second = search(moved, "Where do I live now?", explain=True)["results"][:2]
    link = {"relation": "home", "rule": "named value", "confidence": "high"}
    assert first["explain"]["links"] == [{"memory_id": id_of(BERLIN), "is_newer": False, **link}]
    assert second["explain"]["links"] == [{"memory_id": id_of(LISBON), "is_newer": True, **link}]


def test_recall_leaves_out_what_is_replaced(moved: Person) -> None:
    assert recall(moved, "Where do I live now?") == [LISBON]
    assert BERLIN not in texts(search(moved, "Where do I live now?", history=False))


def test_a_question_about_the_past_gets_the_old_value_first(moved: Person) -> None:
    assert recall(moved, "Where did I live before?")[:2] == [BERLIN, LISBON]


def test_nothing_is_left_out_for_a_newer_memory_outside_the_answer(moved: Person) -> None:
    found = search(moved, "Berlin Berlin Berlin live", history=False, top_k=1)
    assert len(found["results"]) == 1


def test_the_older_memory_is_current_again_once_the_newer_one_is_deleted(moved: Person) -> None:
    decisions.delete(moved.user_pk, MemoryRef(id_of(LISBON)), actor=ACTOR)
    [found] = search(moved, "Where do I live now?")["results"]
    assert (found["text"], found["superseded_by"]) == (BERLIN, None)


def test_order_is_that_of_the_times_that_memories_are_about(alice: Person) -> None:
    say(alice, "My phone number is 555-0199.", day=60)
    say(alice, "My phone number is 555-0101.", day=0)  # arrived later, about an earlier day
    assert texts(search(alice, "What is my phone number?"))[0] == "My phone number is 555-0199."


@pytest.mark.parametrize(
    "weaker",
    [
        {"role": "assistant", "sender": "assistant"},
        {"role": "tool", "sender": "tool"},
        {"role": "user", "sender": "bob"},
    ],
)
def test_a_weaker_source_replaces_nothing(alice: Person, weaker: dict[str, str]) -> None:
    say(alice, "My phone number is 555-0101.")
    say(alice, "My new phone number is 555-0199.", day=30, **weaker)
    found = search(alice, "What is my phone number?", history=False)["results"]
    assert {one["text"] for one in found} >= {"My phone number is 555-0101."}
    assert all(one["superseded_by"] is None for one in found)


def test_a_message_does_not_replace_what_an_operator_wrote(alice: Person) -> None:
    by_operator = {"category": "user_memory_fact", "origin": "panel", "actor": ACTOR}
    add_by_hand(alice.owner, text="The user's phone number is 555-0101.", **by_operator)  # type: ignore[arg-type]
    Memory.objects.update(created_at_ms=NOON_MS)
    say(alice, "My new phone number is 555-0199.", day=30)
    assert all(one["superseded_by"] is None for one in search(alice, "What is my phone number?")["results"])


def test_a_stored_fact_replaces_a_message(alice: Person) -> None:
    say(alice, "My phone number is 555-0101.", day=-60)
    Memory.objects.update(created_at_ms=NOON_MS - DAY_MS * 400)
    add_by_hand(
        alice.owner,
        category="user_memory_fact",
        text="The user's phone number is 555-0199.",
        origin="tool",
        actor=ACTOR,
    )
    assert recall(alice, "What is the user's phone number?") == ["The user's phone number is 555-0199."]


def test_equal_words_with_another_value_are_ranked_without_a_mark(alice: Person) -> None:
    say(alice, "The retro is on Monday.", "The retro is on Thursday.")
    found = search(alice, "When is the retro?", history=False)["results"]
    assert [(one["text"], one["superseded_by"]) for one in found] == [
        ("The retro is on Thursday.", None),
        ("The retro is on Monday.", None),
    ]


def test_a_question_with_a_date_is_answered_in_the_order_of_its_words(moved: Person) -> None:
    assert BERLIN in texts(search(moved, "Where did I live in June 2026?", history=False))


def test_a_past_question_for_a_day_is_answered_from_that_day(alice: Person) -> None:
    say(alice, "早上跑了六公里，膝盖没疼", day=-3)
    say(alice, "早上跑了三公里，下雨", day=-1)
    found = search(alice, "三天前我跑了多少？", now=from_ms(NOON_MS).isoformat())
    assert texts(found)[0] == "早上跑了六公里，膝盖没疼"


def test_a_person_decides_that_a_memory_is_not_replaced(moved: Person) -> None:
    ref = MemoryRef(id_of(BERLIN))
    assert links.set_kept(moved.user_pk, ref, is_kept=True, actor=ACTOR)
    assert not links.set_kept(moved.user_pk, ref, is_kept=True, actor=ACTOR)
    assert all(one["superseded_by"] is None for one in search(moved, "Where do I live now?")["results"])
    assert links.set_kept(moved.user_pk, ref, is_kept=False, actor=ACTOR)
    assert search(moved, "Where do I live now?")["results"][1]["superseded_by"] == id_of(LISBON)
    actions = AuditEvent.objects.filter(subject_id=ref.memory_id).values_list("action", flat=True)
    assert set(actions) == {"memory.keep", "memory.keep_undo"}


def test_the_links_of_a_memory_are_found_by_its_statement(moved: Person) -> None:
    older, newer = (get_engine().find(moved.user_pk, id_of(text))[0] for text in (BERLIN, LISBON))
    assert links.links_of(older) == links.Links(replaced_by=(newer.memory_id,))
    assert links.links_of(newer) == links.Links(replaces=(older.memory_id,))


def test_three_statements_are_ordered_by_time(alice: Person) -> None:
    said = ["The budget is 10k.", "The budget is now 20k.", "The budget was raised to 30k."]
    say(alice, *said)
    assert texts(search(alice, "What is the budget?")) == said[::-1]
    assert texts(search(alice, "What was the budget before?")) == [said[1], said[0], said[2]]
    assert texts(search(alice, "What was the original budget?")) == said


@pytest.mark.parametrize("case", cases("updates")[:144:6], ids=lambda case: case["question"])
def test_updates_are_answered_by_the_new_value(alice: Person, case: dict[str, str]) -> None:
    say(alice, *NOISE, day=-200, step=1)
    say(alice, case["old"], case["new"])
    found = texts(search(alice, case["question"]))
    assert found.index(case["new"]) < found.index(case["old"])
    assert case["old"] not in recall(alice, case["question"])


@pytest.mark.parametrize("case", cases("negatives")[::8], ids=lambda case: case["question"])
def test_what_is_never_linked_is_never_left_out(alice: Person, case: dict[str, Any]) -> None:
    for message in case["messages"]:
        sender = message.get("sender") or ("" if message.get("role", "user") == "user" else "other")
        say(alice, message["text"], role=message.get("role", "user"), sender=sender, day=message["day"])
    everything = search(alice, case["question"])["results"]
    assert [one["superseded_by"] for one in everything] == [None] * len(everything)
    assert set(texts(search(alice, case["question"], history=False))) == {one["text"] for one in everything}


@pytest.mark.django_db
def test_a_statement_of_what_is_asked_is_relevant_without_its_words(alice: Person) -> None:
    calls.say(alice, "chat:a", "I live in Berlin.")
    calls.say(alice, "chat:b", "I moved from Berlin to Lisbon last month.")
    body = {"query": "Where do I live now?", "scope": ["all_user_memory"], "min_relevance": 0.5}
    found = calls.call(alice, "post", "/memories/search", **body)["results"]
    assert {result["text"] for result in found} == {"I live in Berlin.", "I moved from Berlin to Lisbon last month."}


GOLF, KIA = "I drive an old Golf", "Sold the Golf on Saturday and picked up a Kia EV6"


def test_what_ends_the_old_value_is_found_without_a_word_of_the_question(alice: Person) -> None:
    say(alice, *NOISE, day=-200, step=1)
    say(alice, GOLF, KIA)
    assert texts(search(alice, "What car do I drive?"))[:2] == [KIA, GOLF]
    assert recall(alice, "What car do I drive?") == [KIA]


def test_a_value_that_ended_is_found_by_what_replaced_it(alice: Person) -> None:
    say(alice, *NOISE, day=-200, step=1)
    old, new = "I started as a trainee at Siemens in spring", "Left Siemens, my job is baking bread now"
    say(alice, old, new)
    assert texts(search(alice, "What was my job before?"))[:2] == [old, new]


@pytest.mark.parametrize(
    "other",
    ["My brother sold his Golf and picked up a Kia", "Washed the Golf", "I might sell the Golf and get a Kia"],
)
def test_what_only_names_the_old_value_is_not_found_by_it(alice: Person, other: str) -> None:
    say(alice, *NOISE, day=-200, step=1)
    say(alice, GOLF, other)
    assert texts(search(alice, "What car do I drive?"))[0] == GOLF
    assert GOLF in recall(alice, "What car do I drive?")


@pytest.mark.parametrize(
    ("filters", "is_found"),
    [
        ({"NOT": {"tags": "private"}}, False),
        ({"tags": {"none": ["private"]}}, False),
        ({"NOT": {"metadata.car": {"exists": True}}}, False),
        ({"OR": [{"role": "user"}, {"metadata.car": "Kia"}]}, True),
    ],
)
def test_what_ends_a_value_meets_the_filters(alice: Person, filters: dict[str, Any], is_found: bool) -> None:
    say(alice, *NOISE, day=-200, step=1)
    say(alice, GOLF)
    labels = {"tags": ["private"], "metadata": {"car": "Kia"}}
    calls.call(alice, "post", "/memories", status=201, text=KIA, created_at="2026-08-01T12:00:00Z", **labels)
    expected = [KIA, GOLF] if is_found else [GOLF]
    assert texts(search(alice, "What car do I drive?", filters=filters)) == expected


def test_what_ends_a_value_is_of_the_same_person_scope_and_source(alice: Person) -> None:
    say(alice, GOLF)
    say(alice, KIA, role="assistant", day=30)
    say(alice, KIA.replace("Kia", "Fiat"), sender="bob", day=31)
    assert texts(search(alice, "What car do I drive?", history=False)) == [GOLF]
