"""Copies, repeated questions, acknowledgments and wordings of one fact in the results of a search."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from engines.registry import get_engine
from memories.services.folding import fold
from memories.services.scoped_hits import ScopedHit
from store.text.same_fact import is_same_fact
from store.text.wording import is_acknowledgment, is_question, only_asks, repeats_question, tells_nothing
from store.types import Hit
from tests.conftest import Person
from tests.forked import PROJECT
from tests.memories.calls import NOON_MS, call, say

OWN = PROJECT / "benchmarks/answers/cases/own"


def cases(name: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (OWN / name).read_bytes().splitlines() if line]


def found(person: Person, query: str, **options: Any) -> list[dict[str, Any]]:
    body = {"query": query, "scope": ["all_user_memory"], **options}
    return list(call(person, "post", "/memories/search", **body)["results"])


@pytest.mark.django_db
@pytest.mark.parametrize("case", cases("echoes.jsonl"), ids=lambda case: str(case["question"]))
def test_the_fact_comes_before_the_questions(alice: Person, case: dict[str, Any]) -> None:
    say(alice, "chat:fact", case["fact"])
    for number, question in enumerate(case["asked_before"]):
        said = [("user", "alice", question), *([("assistant", "helper", case["reply"])] if "reply" in case else [])]
        messages = [
            {"role": role, "sender_id": sender, "timestamp": NOON_MS + place, "content": text}
            for place, (role, sender, text) in enumerate(said)
        ]
        call(alice, "post", "/memories/add", session_id=f"chat:{number}", messages=messages)
        call(alice, "post", "/memories/flush", session_id=f"chat:{number}")
    results = found(alice, case["question"])
    assert results, case
    assert results[0]["text"] == case["fact"], [result["text"] for result in results[:4]]


@pytest.mark.django_db
def test_questions_leave_the_three_places_of_a_partly_known_question_to_statements(alice: Person) -> None:
    say(alice, "chat:fact", "The invoice template lives in Drive")
    for verb in ("is", "was", "did I see"):
        say(alice, f"chat:{verb[-3:]}", f"Where {verb} the invoice template?")
    for word in ("blue", "old", "new"):
        say(alice, f"chat:{word}", f"An invoice template is {word}")
    results = found(alice, "Where is the invoice template kept?")
    assert len(results) == 3
    assert not any(result["text"].startswith("Where") for result in results)


def scoped(number: int, text: str, **values: Any) -> ScopedHit:
    fields: dict[str, Any] = {"role": "user", "sender_id": "alice", **values}
    hit = Hit(f"m{number}", "episode", f"chat:c{number}", text, 1 - number / 100, number, {}, **fields)
    return ScopedHit(hit, "all_user_memory")


@pytest.mark.parametrize("case", cases("duplicates.jsonl"), ids=lambda case: str(case["wordings"][0]))
def test_wordings_of_one_fact_take_two_places_and_others_stay(case: dict[str, Any]) -> None:
    texts = case["wordings"]
    others = [scoped(10 + number, f"Note {number} is about {word}.") for number, word in enumerate(OTHERS)]
    order = [one.hit.text for one in fold([*(scoped(number, text) for number, text in enumerate(texts)), *others], "")]
    if "others" in case:
        assert sum(text in texts for text in order[:10]) <= 2
        assert order.index(others[0].hit.text) <= 2
    else:
        assert order[: len(texts)] == texts
    copies = len(texts) - len({text.casefold().rstrip(".!。") for text in texts})
    assert len(order) == len(texts) + len(others) - copies


OTHERS = ["gardens", "trains", "letters", "weather", "dinner", "music", "paint", "horses", "rivers", "planes"]


def test_equal_texts_fold_into_the_best() -> None:
    hits = [
        scoped(0, "The gate code is 4412."),
        scoped(1, "the gate  code is 4412"),
        scoped(2, "The gate code is 4412!", role="assistant"),
        scoped(3, "Ｔｈｅ gate code is 4412"),
        scoped(4, "The gate code is 4413."),
        scoped(5, "The gate code is 4412.", sender_id="bob"),
    ]
    first, *others = fold(hits, "gate code")
    assert [copy.memory_id for copy in first.copies] == ["m1", "m3"]
    assert [one.hit.memory_id for one in others] == ["m2", "m4", "m5"]


@pytest.mark.django_db
def test_copies_leave_room_for_others(alice: Person) -> None:
    for number in range(30):
        say(alice, f"chat:copy{number}", "The harbour opens at nine")
    for number in range(8):
        say(alice, f"chat:other{number}", f"At the harbour {number} boats and many other things of interest were seen")
    results = found(alice, "harbour opens at nine", top_k=8)
    assert len(results) == 8
    assert len(results[0]["copies"]) == 20
    assert len({result["text"] for result in results}) == 8
    answer = call(alice, "post", "/memories/search", query="harbour", scope=["all_user_memory"], top_k=8)
    assert answer["meta"]["scopes"]["all_user_memory"]["asked"] == 8
    unfolded = found(alice, "harbour opens at nine", top_k=8, fold=False)
    assert [result["copies"] for result in unfolded] == [[]] * 8
    assert {result["text"] for result in unfolded} == {"The harbour opens at nine"}


@pytest.mark.django_db
def test_the_engine_is_asked_again_only_where_a_rule_moves_a_hit(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = get_engine()
    asked: list[int] = []
    engine_search = engine.search
    monkeypatch.setattr(
        engine,
        "search",
        lambda owner, requests: asked.extend(r.top_k for r in requests) or engine_search(owner, requests),
    )
    for number in range(12):
        say(alice, f"chat:{number}", f"Boat {number} left the harbour for island {number}")
    assert len(found(alice, "harbour", top_k=5)) == 5
    assert asked == [5]
    asked.clear()
    say(alice, "chat:question", "Which boat left the harbour?")
    results = found(alice, "Which boat left the harbour?", top_k=5)
    assert asked == [5, 10]
    assert "Which boat left the harbour?" not in {result["text"] for result in results}


@pytest.mark.parametrize(
    "text",
    [
        "ok",
        "OK!",
        "Thanks",
        "thank you so much!",
        "got it",
        "好的",
        "谢谢你！",
        "嗯嗯",
        "danke",
        "ja, genau",
        "👍",
        "...",
        "收到",
    ],
)
def test_an_acknowledgment_is_no_result(text: str) -> None:
    assert is_acknowledgment(text)
    assert fold([scoped(0, text), scoped(1, text, role="")], "ok") == [scoped(1, text, role="")]


@pytest.mark.parametrize(
    "text",
    [
        "No, I am allergic",
        "Ok, the code is 4412",
        "好的医生在北京",
        "yes, at nine",
        "Good Friday",
        "对虾过敏",
        "",
        "42",
    ],
)
def test_a_short_statement_is_one(text: str) -> None:
    assert not is_acknowledgment(text)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Is the gate code 4412?", "What is the gate code?"),
        ("Is my dentist in Berlin Dr. Weber?", "Who is my dentist in Berlin?"),
        ("Will is my brother", "Who is my brother?"),
        ("What is the gate code? I think it is 4412.", "What is the gate code?"),
        ("The gate code is in the drawer", "gate code drawer"),
        ("What is the garage code?", "What is the gate code?"),
        ("我的航班是早上八点。", "我的航班是几点？"),
        ("Mein Zahnarzt heißt Weber.", "Wie heißt mein Zahnarzt?"),
    ],
)
def test_what_tells_something_is_no_repeated_question(text: str, query: str) -> None:
    assert not repeats_question(text, query)


def test_questions_are_known_without_their_mark() -> None:
    for text in (
        "what is the gate code",
        "do you remember where my keys are",
        "我的航班几点",
        "wo ist mein Schlüssel",
        "Oslo?",
    ):
        assert is_question(text)
    for text in (
        "The gate is open",
        "Will is my brother",
        "Can openers are useful",
        "我的航班是早上八点",
        "Hast is a river",
    ):
        assert not is_question(text)


@pytest.mark.parametrize(
    ("one", "other", "query"),
    [
        ("My new dentist near the station is Weber", "My new dentist near the station is Huber", "Who is my dentist?"),
        ("My sister works at the bakery in Oslo", "My brother works at the bakery in Oslo", "Who works at the bakery?"),
        ("I park my red bike in the cellar", "I park my blue bike in the cellar", "Where do I park my bike?"),
        ("Rufus fixed my bike", "Rufus fixed her bike", "Who fixed the bike?"),
        ("Rufus fixed my bike", "Rufus nearly fixed my bike", "Who fixed the bike?"),
        ("My brother lives in Toronto", "My brother works in Toronto", "Where does my brother live?"),
        ("Piano lesson on Thursday at Ida's", "Piano lesson on Friday at Ida's", "Who gives the piano lesson?"),
        ("Paula's locker code is 4471", "Paulo's locker code is 4471", "What is the locker code?"),
        ("我姐姐在青岛上学", "我妹妹在青岛上学", "谁在青岛上学？"),
        ("Minha irmã mora em Faro", "Minha irmã não mora em Faro", "Onde mora a minha irmã?"),
        ("Coop 1 holds 12 hens", "Coop 12 holds 1 hen", "How many hens are in the coop?"),
        ("The north gate is locked at night", "The north gate is locked at noon", "Is the north gate locked at night?"),
        ("In Silo 4 liegt die Gerste", "In Silo 4 liegt der Roggen", "In welchem Silo liegt die Gerste?"),
        ("小郑的工号是 10482", "小郑的分机号是 10482", "小郑的工号是多少"),
        ("A senha do cadeado é 2702", "A senha do cadeado azul é 2702", "Qual a senha do cadeado?"),
        ("小娟吃素", "小娟的妈妈吃素", "谁吃素?"),
        ("Detlef hat den Kranschein", "Detlef hat den Kranschein nicht mehr", "Wer hat den Kranschein?"),
        ("Lena paid the deposit", "Lena has not paid the deposit", "Did Lena pay the deposit?"),
        ("I drink tea with Ida on Monday", "I do not like tea with Ida", "What do I drink with Ida?"),
    ],
)
def test_what_differs_in_one_place_is_two_facts(one: str, other: str, query: str) -> None:
    assert not is_same_fact(one, other, query)


@pytest.mark.parametrize(
    ("one", "other", "query"),
    [
        ("My brother lives in Toronto.", "My brother has a place in Toronto.", "Where does my brother live?"),
        ("My son is allergic to eggs.", "Eggs give my son an allergic reaction.", "What allergy does my son have?"),
        ("Meine Oma wohnt in Bamberg.", "Meine Oma lebt in Bamberg.", "Wo wohnt meine Oma?"),
        ("Mi abuela vive en la calle Olmo.", "La casa de mi abuela está en la calle Olmo.", "¿Dónde vive mi abuela?"),
        ("Mon chien s'appelle Biscotte.", "Le nom de mon chien est Biscotte.", "Quel est le nom de mon chien ?"),
        (
            "A minha irmã trabalha num aquário.",
            "O trabalho da minha irmã é num aquário.",
            "Onde trabalha a minha irmã?",
        ),
        ("荔枝是我最喜欢的水果。", "水果里我最爱荔枝。", "我最喜欢的水果是什么？"),
        ("I'm allergic to penicillin", "I can't take penicillin, I'm allergic", "Am I allergic to penicillin?"),
        ("My locker is number 218", "Don't forget, my locker is number 218", "What number is my locker?"),
        ("La réunion est salle Mimosa", "N'oublie pas, réunion salle Mimosa", "Dans quelle salle ?"),
        (
            "The farm shop opens at eight",
            "our farm shop opens 8 in the morning, sharp",
            "When does the farm shop open?",
        ),
        ("Shed lock code: 3819", "The lock of the shed opens with 3 8 1 9", "What is the code of the shed lock?"),
        ("The 41 is the bus to the pit", "It's the 41 bus that stops at the pit", "Which bus goes to the pit?"),
        ("My parents met at a roller disco", "It was a roller disco in Hull where they met", "Where did they meet?"),
        ("Wi-Fi password at the cottage: saltmarsh9", "saltmarsh9 is the cottage wifi", "What is the wifi password?"),
        ("Blutdruckmittel: Ramipril", "Ich nehme Ramipril gegen Blutdruck", "Welches Blutdruckmittel nehme ich?"),
        ("我对海鲜过敏", "我这人一吃海鲜就过敏", "我吃什么会过敏？"),
    ],
)
def test_other_words_for_a_relation_tell_the_same_fact(one: str, other: str, query: str) -> None:
    assert is_same_fact(one, other, query)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("There is no record of your favorite board game.", "Which board game is my favorite?"),
        ("The gate of your flight isn't known to me.", "What gate does my flight leave from?"),
        ("Wo der Ersatzschlüssel liegt, weiß ich leider nicht.", "Wo liegt der Ersatzschlüssel?"),
        ("¿Tu profesora de canto? No tengo su nombre.", "¿Cuál es el nombre de mi profesora de canto?"),
        ("Votre casier à la piscine ? Je ne sais pas.", "Quel est mon casier à la piscine ?"),
        ("Você ainda não me contou o sabor.", "qual o sabor do bolo?"),
        ("没有找到快递放在哪里。", "快递放在哪里？"),
        ("Usually the default branch is called main.", "What is the default branch called?"),
        ("I have no note of your shoe size.", "Which shoe size do I take?"),
        ("I have nothing about who leads the design of Heron.", "Who is Heron's lead designer?"),
        ("There's no appointment with a surveyor that I know of.", "When do I meet the surveyor?"),
        ("Über einen Trauzeugen haben wir noch nicht gesprochen.", "Wie hieß unser Trauzeuge?"),
        ("抱歉，我没有您的尿酸数据。", "我尿酸多少来着"),
    ],
)
def test_replies_without_an_answer_tell_nothing(text: str, query: str) -> None:
    assert tells_nothing(text, query, is_reply=True)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Which level did I park on?", "Where's the car parked?"),
        ("remind me of my blood type, filling in a form", "What's my blood type?"),
        ("where did we put the router", "where is our router?"),
        ("记得我把车停在哪一层吗？", "我把车停在哪里了？"),
        ("¿Cómo se llama la gata?", "qué nombre le pusimos a la gata?"),
        ("物置の鍵、どこだっけ？", "物置の鍵はどこにありますか？"),
    ],
)
def test_a_text_of_questions_alone_only_asks(text: str, query: str) -> None:
    assert only_asks(text, query)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Where is the office of Dr. Weber, my dentist?", "Who is my dentist?"),
        ("What was 4412 for? The gate?", "What is the gate code?"),
        ("Eight is when the farm shop opens", "When does the farm shop open?"),
        ("Is the gate code 4412?", "What is the gate code?"),
        ("Remind me to call Ida", "Who should I call?"),
    ],
)
def test_a_text_that_may_answer_does_not_only_ask(text: str, query: str) -> None:
    assert not only_asks(text, query)


def test_questions_come_after_statements_and_before_further_wordings() -> None:
    texts = [
        "Which level did I park on?",
        "I parked on level P3",
        "my car is parked on level P3",
        "level P3 is where I park",
        "We walked in the park",
    ]
    order = [one.hit.text for one in fold([scoped(*pair) for pair in enumerate(texts)], "Where did I park the car?")]
    assert order == [texts[1], texts[2], texts[4], texts[0], texts[3]]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("I don't know the gate, perhaps Lena knows", "Which gate is it?"),
        ("The heating is off.", "Is the heating on or off?"),
        ("I am vegan.", "Am I vegan?"),
        ("My blood type is A", "What is my blood type?"),
        ("Lena maintains the scheduler.", "Who maintains the scheduler?"),
    ],
)
def test_statements_of_the_person_tell_something(text: str, query: str) -> None:
    assert not tells_nothing(text, query, is_reply=False)
