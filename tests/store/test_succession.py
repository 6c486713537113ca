"""`store.text.succession`: whether a later text replaces an earlier one as the answer to a question."""

from __future__ import annotations

import pytest

from store.text.slots import Slot
from store.text.succession import asked_topics, follows, gives_way, is_label, topics_of

DENTIST = "Dr. Almond is my dentist."
WHO = "Who's my dentist?"


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        (WHO, DENTIST, "Switched dentists, I go to Dr. Kettle on Mill Road now."),
        ("How much rent do I pay?", "I pay 900 a month in rent.", "Rent went up to 1050."),
        ("Who am I dating?", "I'm dating Theo.", "Theo and I broke up. I've been with Owen for two weeks."),
        ("Wer ist mein Hausarzt?", "Mein Hausarzt ist Dr. Lindner.", "Ich hab den Arzt gewechselt, bin bei Dr. Vogt."),
        ("Où est-ce que j'habite ?", "J'habite à Nantes.", "On a déménagé à Grenoble !"),
        ("我的房租是多少？", "我每个月房租三千五。", "房东涨价了，房租变成四千二。"),
    ],
)  # fmt: skip
def test_a_later_text_with_a_word_of_a_change_replaces_certainly(question: str, older: str, newer: str) -> None:
    link = follows(question, older, newer)
    assert link is not None
    assert (link.confidence, link.is_marked) == ("high", True)


@pytest.mark.parametrize(
    "newer",
    [
        "My sister switched dentists, she goes to Dr. Kettle now.",
        "Ella's dentist is Dr. Kettle now.",
        "Tom from my climbing group goes to Dr. Kettle now.",
        "Should I switch dentists?",
        "I want to switch to another dentist, Dr. Kettle.",
        "I almost switched dentists to Dr. Kettle.",
        "I did not switch my dentist to Dr. Kettle.",
        'She wrote: "My dentist is Dr. Kettle now."',
        "My dentist is on holiday now.",
        "My eye doctor is Dr. Kettle now.",
        "Dr. Kettle is my dentist for now.",
    ],
)
def test_doubts_other_persons_and_other_things_replace_nothing(newer: str) -> None:
    assert follows(WHO, DENTIST, newer) is None


@pytest.mark.parametrize("question", ["When did I see my dentist?", "Why is Dr. Almond my dentist?"])
def test_questions_about_events_and_reasons_have_no_newer_answer(question: str) -> None:
    assert follows(question, DENTIST, "I have a new dentist, Dr. Kettle.") is None


def test_the_same_value_said_again_replaces_nothing() -> None:
    assert follows("Where do I live?", "I live in Ulm.", "I moved to Ulm.") is None
    assert follows("Where do I live?", "I live in Ulm.", "I moved to Bonn.") is not None


@pytest.mark.parametrize(
    ("asked", "older", "newer"),
    [
        ("deployment note", "Deployment note 11", "Deployment note 34"),
        ("is my order shipped", "Order 4711 is shipped", "Order 4712 is shipped now"),
        ("invoice", "Invoice 12 is paid", "Invoice 13 is paid"),
        ("ticket", "Ticket ABC-12 is closed", "Ticket ABC-13 is closed"),
        ("flat", "Flat 3 costs 900", "Flat 4 costs 950"),
        ("room", "The key of room 12 is blue", "The key of room 13 is red"),
        ("release", "Release 1.2 is stable", "Release 1.3 is stable"),
        ("note", "Note from Monday: buy bread", "Note from Tuesday: buy bread"),
        ("chapter", "I read chapter 3", "I read chapter 4"),
        ("visits", "I visited Rome in 2019", "I visited Rome in 2021"),
        ("blood pressure", "My blood pressure on Monday was 120", "My blood pressure on Tuesday was 130"),
        ("茶", "茶的笔记1", "茶的笔记2"),
        ("订单", "订单123已发货", "订单124已发货"),
    ],
)  # fmt: skip
def test_things_that_a_number_or_name_tells_apart_never_surely_replace_each_other(
    asked: str, older: str, newer: str
) -> None:
    link = follows(asked, older, newer)
    assert link is None or link.confidence == "low"


@pytest.mark.parametrize(
    ("asked", "older", "newer"),
    [
        ("what is my rent", "My rent is 900", "My rent is 950"),
        ("which port", "The gateway runs on port 8000", "The gateway runs on port 9000"),
        ("which database", "The project uses MySQL", "The project uses PostgreSQL"),
        ("wie alt bin ich", "Ich bin 33 Jahre alt", "Ich bin 34 Jahre alt"),
        ("我的电话", "我的电话是123456", "我的电话是654321"),
    ],
)
def test_values_of_one_thing_surely_replace_each_other(asked: str, older: str, newer: str) -> None:
    link = follows(asked, older, newer)
    assert link is not None
    assert link.confidence == "high"


THEME = "Which editor theme does the user prefer?"
PHONE = "What is the user's phone number?"


@pytest.mark.parametrize(
    ("asked", "older", "newer", "expected"),
    [
        (PHONE, "The user's phone number is 555 0100.", "The user's phone number is 555 0199.", "high"),
        (THEME, "The user's editor theme is dark.", "The user's editor theme is light.", "low"),
        (THEME, "The user's editor theme is dark.", "The user's editor theme is dark.", None),
    ],
)
def test_only_values_of_one_known_kind_surely_replace_each_other(
    asked: str, older: str, newer: str, expected: str | None
) -> None:
    link = follows(asked, older, newer)
    assert (link.confidence if link else None) == expected


def test_topics_find_what_shares_no_word_with_the_question() -> None:
    home = Slot("home", "me")
    assert home in asked_topics("Where do I live?")
    assert home in topics_of("We finally got the keys, so as of Saturday I'm in Norwich.")
    assert topics_of("My sister got the keys of her flat.") == [Slot("home", "sister")]
    assert asked_topics("Where does my sister live?") == [Slot("home", "sister")]
    assert topics_of("If I move to Norwich, I need the keys of a flat.") == []


@pytest.mark.parametrize(
    ("newer", "expected"),
    [
        ("Should I switch dentists?", True),
        ("I want to switch to another dentist, Dr. Kettle.", True),
        ("Switched dentists, I go to Dr. Kettle on Mill Road now.", False),
        ("I might buy a bicycle.", False),
        ("My sister's dentist is Dr. Kettle.", True),
    ],
)
def test_a_text_that_asks_plans_or_is_of_others_gives_way(newer: str, *, expected: bool) -> None:
    assert gives_way(WHO, newer, DENTIST) is expected


def test_a_text_of_a_weaker_source_gives_way_to_a_statement_of_the_speaker() -> None:
    newer = "Your dentist is Dr. Kettle."
    assert gives_way(WHO, newer, DENTIST, is_weaker=True)
    assert gives_way("When is the exam?", "I heard the exam is in May?", "My exam is in June.", is_weaker=True)
    assert not gives_way("Who is Ella's dentist?", newer, DENTIST, is_weaker=True)
    assert not gives_way(WHO, newer, "Is Dr. Almond my dentist?", is_weaker=True)


CATS, CAR, FAHRE = "How many cats do I have?", "What car do I drive?", "Welches Auto fahre ich?"


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        (CATS, "I have 2 cats.", "I saw 3 cats now."),
        ("How many plants do I have?", "I have 12 plants.", "I watered 4 plants just now."),
        (CAR, "I drive a Volvo.", "I drive home now."),
        (CAR, "I drive a Volvo.", "I drive slowly now."),
        ("Where do I work?", "I work at Siemens.", "I work from home now."),
        ("How many hours do I work?", "I work 40 hours a week.", "I work with 3 colleagues now."),
        ("Where do I live?", "I live in Oslo.", "I live with Tom now."),
        ("What do I study?", "I study physics.", "I study in the evening now."),
        (FAHRE, "Ich fahre einen Volvo.", "Ich fahre jetzt nach Hause."),
        (FAHRE, "Ich fahre einen Volvo.", "Jetzt fahre ich mit dem Bus zur Arbeit."),
        (FAHRE, "Ich fahre einen Volvo.", "Ich fahre jetzt los."),
        ("Wie viele Katzen habe ich?", "Ich habe 2 Katzen.", "Ich habe jetzt 3 Katzen gesehen."),
        ("Wo arbeite ich?", "Ich arbeite bei Bosch.", "Ich arbeite jetzt von zu Hause."),
        ("Wo wohne ich?", "Ich wohne in Köln.", "Ich wohne jetzt mit Anna zusammen."),
        ("Wie hoch ist meine Miete?", "Ich zahle 800 Euro Miete.", "Ich zahle jetzt 30 Euro fürs Fitnessstudio."),
        ("我有几只猫？", "我有2只猫。", "我刚才看到3只猫了。"),
        ("我在哪里工作？", "我在华为工作。", "我现在在家工作。"),
        ("我房租多少？", "我每月付3000元房租。", "我现在每月付200元健身房。"),
    ],
)  # fmt: skip
def test_another_verb_or_complement_is_no_newer_value(question: str, older: str, newer: str) -> None:
    assert follows(question, older, newer) is None


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        ("Which port does service alpha use?", "Service alpha listens on port 80.", "Service beta listens on port 81."),
        ("Which port does the gateway use?", "The gateway listens on port 80.", "The proxy listens on port 81 now."),
        ("What does plan A cost?", "Plan A costs 10 euros.", "Plan B costs 12 euros now."),
        ("What is a ticket to Lyon?", "A ticket to Lyon costs 30 euros.", "A ticket to Nice costs 50 euros now."),
        ("Welchen Port hat Dienst Alpha?", "Dienst Alpha läuft auf Port 80.", "Dienst Beta läuft jetzt auf Port 81."),
        ("测试端口是多少？", "测试端口是8080", "生产端口改成9000了"),
        ("When is the standup?", "The standup is at 9:30", "Just for tomorrow: the standup moved to 11:15"),
        ("How many solar panels do we have?", "We have 12 solar panels", "next door got 18 solar panels put up now"),
        ("How many solar panels do we have?", "Our panels: 12 of them", "next door got 18 solar panels, now he boasts"),
        ("To whom does the user report?", "The user reports to Ana.", "The user's intern now reports to Milo."),
        ("Where do I work?", "I work in Turku", "My flatmate's band is fine, my landlord works in Oulu now"),
        ("例会一般是周几？", "例会固定周二开", "这周特殊，例会挪到周五，下周照旧"),
        ("What's for dinner on Monday?", "Monday dinner is lentil bake.", "Wednesday dinner is fish cakes."),
    ],
)
def test_a_newer_value_of_another_thing_than_asked_for_replaces_nothing(question: str, older: str, newer: str) -> None:
    assert follows(question, older, newer) is None


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        (CATS, "I have 2 cats.", "I have 3 cats now."),
        (CAR, "I drive a Volvo.", "I now drive a Kia."),
        ("What car does the user drive?", "The user drives a Volvo.", "The user sold it; they now drive a Kia."),
        ("How far do I run?", "I run 5 km every morning.", "I run 8 km every morning now."),
        (FAHRE, "Ich fahre einen Volvo.", "Ich fahre jetzt einen Kia."),
        ("Was trinke ich morgens?", "Ich trinke morgens Tee.", "Ich trinke morgens jetzt Kaffee."),
        ("我每天跑多少公里？", "我每天跑5公里。", "我现在每天跑8公里。"),
    ],
)
def test_another_value_with_the_same_verb_and_complement_replaces(question: str, older: str, newer: str) -> None:
    link = follows(question, older, newer)
    assert link is not None
    assert link.confidence == "high"


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        ("What car do I drive?", "I drive a Golf", "Sold my golf clubs on eBay"),
        ("When do I play chess?", "I play chess on Thursdays", "I stopped playing chess online, too many cheaters"),
        ("What's my ramipril dose?", "I take 5 mg of ramipril", "They raised the price of ramipril to 75 euros"),
        ("What is my dog called?", "I have a dog called Bruno", "Got a second dog, Mila is the name"),
        ("When is my flight?", "My flight is at 9:30", "Her flight got pushed to 11:15"),
        ("Welches Auto fahre ich?", "Ich fahre einen Passat", "Mein Chef hat seinen Passat verkauft und fährt Tesla"),
        ("我多重？", "我的体重是八十公斤", "我搬了一箱七十四公斤的书"),
        ("任务七十二怎么样了？", "任务七十二还没开始", "任务七十三搞定了"),
        ("Which phone do I have?", "I have a Pixel 7", "Lost my Pixel charger, bought a new cable"),
        ("When does school start?", "School starts at 8", "School ended early today because of the snow"),
        ("What do I drive?", "I drive a Tesla", "I test drove a Volvo and got back home late"),
        ("Wo wohne ich?", "Ich wohne in Graz", "Ich habe heute eine neue Wohnung in Linz besichtigt"),
        ("我学什么专业？", "我学的是会计", "我姐姐转专业了，现在学法律"),
        ("我的头发是什么颜色？", "我的头发是黑色", "我把裤子染成蓝色了"),
    ],
)  # fmt: skip
def test_a_change_of_another_thing_replaces_nothing_for_certain(question: str, older: str, newer: str) -> None:
    link = follows(question, older, newer)
    assert link is None or link.confidence == "low"


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        ("What's my ramipril dose?", "I'm taking 5 mg of ramipril", "My doctor upped my ramipril to 10 mg"),
        ("What time is standup?", "Standup is at 9:15 every day", "They shifted standup to 10:40"),
        ("Which school is Lena at?", "Lena goes to Birchfield", "Lena left Birchfield, she's at St Ives now"),
        ("Quel est le code du wifi ?", "Le code du wifi est 34B7.", "Le code du wifi a changé, c'est 91C2."),
        ("儿子多高？", "儿子的身高是一米二", "儿子长到一米二八了"),
        ("What color is our door?", "Our front door is red", "We painted the front door dark green"),
        ("大门是什么颜色？", "大门是红色的", "大门刷成绿色了"),
        ("Wann ist Chorprobe?", "Chorprobe ist montags", "Die Chorprobe wurde auf mittwochs verlegt"),
    ],
)  # fmt: skip
def test_a_change_of_the_same_thing_replaces_for_certain(question: str, older: str, newer: str) -> None:
    link = follows(question, older, newer)
    assert link is not None
    assert link.confidence == "high"


def test_what_is_of_another_person_gives_way_even_if_it_tells_a_change() -> None:
    older = "My driving test is booked for 11 May."
    assert gives_way("When's my driving test?", "My cousin's driving test got moved to 2 June.", older)
    assert not gives_way("When's my driving test?", "My boss moved my driving test to 2 June.", older)


def test_strong_evidence_needs_no_word_of_the_question() -> None:
    link = follows("Who cuts my hedge?", "Mr. Larch cuts my hedge.", "Larch retired, I'm with Osman's firm these days.")
    assert link is not None
    assert link.confidence == "high"


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        ("Where did I live before Ghent?", "I live in Ulm.", "Settled in Ghent, boxes everywhere."),
        ("Wo haben wir vor Genua gewohnt?", "Wir wohnen in Ulm.", "Eigene Wohnung in Genua!"),
        ("¿Dónde vivía antes de Vigo?", "Vivo en Soria.", "¡Por fin instalada en Vigo!"),
        ("我搬到昆明之前住在哪里？", "我住在银川。", "昆明的房子收拾好了。"),
    ],
)
def test_what_a_question_names_came_after_its_answer(question: str, older: str, newer: str) -> None:
    link = follows(question, older, newer)
    assert link is not None
    assert not link.is_marked
    assert follows(question, newer, older) is None


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("Vivo en Murcia", "home"),
        ("Abito a Torino", "home"),
        ("Conduzco un Seat", "car"),
        ("Rent: 980 a month", "rent"),
        ("Wir sind auf Postgres", "database"),
    ],
)
def test_a_verb_or_a_thing_at_the_beginning_is_of_the_speaker(text: str, relation: str) -> None:
    assert Slot(relation, "me") in topics_of(text)


def test_a_question_that_names_a_thing_is_of_no_other_of_its_kind() -> None:
    assert Slot("sport", "me") in asked_topics("Which sport do I do?")
    assert asked_topics("When do I play tennis?") == []
    link = follows("When do I play tennis?", "I play tennis on Mondays.", "I play football on Tuesdays now.")
    assert link is None or link.confidence == "low"


@pytest.mark.parametrize(
    ("newer", "expected"),
    [
        ("My dentist moved my appointment, it's at 9:30 instead.", "high"),
        ("Moved my appointment to 9:30 because my sister needs the car.", "high"),
        ("My sister moved her appointment, it's at 9:30 instead.", None),
    ],
)
def test_who_changes_what_is_of_the_speaker_is_not_of_whom_a_text_speaks(newer: str, expected: str | None) -> None:
    link = follows("What time is my appointment?", "My appointment is at 8:15.", newer)
    assert (link.confidence if link else None) == expected


def test_what_a_text_asks_for_or_denies_after_a_change_leaves_it_a_statement() -> None:
    asked, older = "Which plan am I on?", "I'm on the Pro plan."
    assert follows(asked, older, "I downgraded to the free plan, the other wasn't worth it.") is not None
    assert follows(asked, older, "I switched to the free plan, please update your notes.") is not None
    assert follows(asked, older, "I did not switch to the free plan.") is None


@pytest.mark.parametrize(
    ("label", "expected"),
    [("Running shoes", True), ("Miete", True), ("Caroline", False), ("Ana de la Cruz", False), ("小红", False)],
)
def test_a_thing_before_a_colon_is_no_speaker(label: str, *, expected: bool) -> None:
    assert is_label(label) is expected


def test_texts_in_different_scripts_are_of_no_one_thing() -> None:
    assert follows("我以前怎么上班？", "Our train was late.", "我现在坐地铁上班。") is None


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        ("Which layout suits the user?", "The user keeps the wide layout.", "The user keeps the narrow layout."),
        (
            "Wo ist der Gartenschlüssel?",
            "Der Gartenschlüssel ist im Schuppen.",
            "Den Schlüssel hab ich verlegt, er hängt jetzt im Keller.",
        ),
    ],
)
def test_an_agents_sentence_and_a_compound_tell_of_one_thing(question: str, older: str, newer: str) -> None:
    assert follows(question, older, newer) is not None


def test_another_thing_in_the_same_words_replaces_nothing_for_certain() -> None:
    link = follows("What colour is the bathroom?", "We painted the bathroom blue.", "We painted the hallway orange.")
    assert link is None or link.confidence == "low"


@pytest.mark.parametrize("query", ["payment", "tea", "car insurance", "付款"])
def test_bare_words_ask_for_no_topic(query: str) -> None:
    assert asked_topics(query) == []
    assert asked_topics("What is my insurance?") != []


def test_a_change_with_less_of_the_question_than_the_older_text_does_not_come_first() -> None:
    asked, older = "Where do I buy The Monday Courier?", "I buy The Monday Courier at the kiosk by the station."
    assert follows(asked, older, "The courier left a card.") is None
