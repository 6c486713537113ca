"""Words in disguise are read, and ordinary texts have no other reading."""

from __future__ import annotations

import time

import pytest

from accounts.controls import Never
from store.admission import never_kept
from store.text.disguises import readings
from store.text.topics import TOPICS
from tests.store.test_topics import ABOUT_OTHER_THINGS

DISGUISED = {
    "vodka": [
        "I drink v o d k a.",
        "I v o d k a",
        "V.O.D.K.A!",
        "v-o-d-k-a, please",
        "we like v_o_d_k_a",
        "v * o * d * k * a",
        "I  d r i n k  v o d k a",
        "ｖｏｄｋａ",
        "ｖ ｏ ｄ ｋ ａ",
        "v\u200bo\u200bd\u200bk\u200ba",
        "my\u200bvodka",
        "v\u200do\u2060d\ufeffk\u3164a",
        "vod\u00adka",
        "vod-\nka",
        "v\u0336o\u0336d\u0336k\u0336a\u0336",
        "v\u20ddo\u20ddd\u20ddk\u20dda",
        "v\u0308\u030fo\u0308d\u0323k\u0323a\u030a",
        "vоdka",
        "I like vоdkа and νodka",
        "𝐯𝐨𝐝𝐤𝐚",
        "𝓿𝓸𝓭𝓴𝓪",
        "ⓥⓞⓓⓚⓐ",
        "🅥🅞🅓🅚🅐",
        "🇻 🇴 🇩 🇰 🇦",
        "ᴠᴏᴅᴋᴀ",
        "vødka",
        "v о d k а",
        "v0dka",
        "I like v0dk4!",
        "V0DK@, please",
        "(v0dka)",
    ],
    "password": ["my p4ssw0rd", "p@$$word", "P4$$W0RD"],
    "illegal": ["i11ega1", "!llegal", "ill3g@l"],
    "heroin": ["h3r0in", "her01n"],
    "Tim": ["T1m called"],
    "sex": ["s3x", "$ex"],
    "Krebs": ["Er hat Kr3bs", "Kr€bs"],
    "cocaine": ["сосаіnе", "ϲοϲaine"],
    "Ahmed": ["I met Аhmеd", "𝔸𝕙𝕞𝕖𝕕"],
    "divorce": ["We are d i v o r c e d", "They divоrced"],
    "cop": ["I saw a сор there"],
    "водка": [
        "Я люблю вoдку",
        "в о д к а",
        "в\u0336о\u0336д\u0336к\u0336а\u0336",
        "Люблю ʙодка и вoдкa",
        "в0дка",
        "вoдк@",
    ],
    "чай": ["4ай"],
    "糖尿病": ["我有糖 尿 病", "糖*尿*病", "糖\u200b尿\u200b病", "⾎糖尿病"],
    "花生": ["花 生 过敏", "花-生"],
    "병원": ["병 원"],
    "Müller": ["M u l l e r", "Müllеr"],
}
ORDINARY = {
    "tom": ["Я знаю, что дело в том, что он пришёл.", "и том, и USB"],
    "ham": ["Он нам сказал."],
    "花生": ["她买了花 生意很好", "花、生"],
    "island": ["It is land that I bought."],
    "chart": ["a b c d"],
    "vodka": ["Viktor, Olga, Dana, Karl, Anna", "V. Odka-Smith wrote it.", "vo dka"],
    "ima": ["I'm a fan of it."],
    "us": ["I live near 🇺🇸"],
    "as": ["about 45 of them", "4s", "the 4th"],
    "so": ["50 people", "$50", "50k"],
    "bo": ["in the 80s"],
    "ai": ["41 of 41"],
    "mail": ["Write to anna@example.org"],
}
SENTENCES = {
    "health": ["I t a k e  i n s u l i n", "I take insulіn every day", "I’m ａｌｌｅｒｇｉｃ to nuts"],
    "religion": ["I am a devout C a t h o l i c."],
    "sexuality": ["I am g4y", "I'm a le$b1an"],
    "family": ["I have two k1ds and a d0g."],
    "money": ["I owe my bank 20,000 d\u0336o\u0336l\u0336l\u0336a\u0336r\u0336s\u0336"],
}


@pytest.mark.parametrize(("word", "text"), [(word, text) for word, texts in DISGUISED.items() for text in texts])
def test_words_in_disguise_are_never_kept(word: str, text: str) -> None:
    assert never_kept(Never((word,)), [text], "user")


@pytest.mark.parametrize(("word", "text"), [(word, text) for word, texts in ORDINARY.items() for text in texts])
def test_ordinary_texts_are_kept(word: str, text: str) -> None:
    assert not never_kept(Never((word,)), [text], "user")


@pytest.mark.parametrize(("topic", "text"), [(topic, text) for topic, texts in SENTENCES.items() for text in texts])
def test_statements_in_disguise_are_never_kept(topic: str, text: str) -> None:
    assert never_kept(Never((), (topic,)), [text], "user")


@pytest.mark.parametrize(
    "text",
    [
        *ABOUT_OTHER_THINGS,
        "Größe, naïve, São Paulo",
        "USB-кабель и Wi-Fi",
        "今天 天气 很好",
        "I'm a fan",
        "At 10am, 5kg for $20, the 3rd",
    ],
)
def test_ordinary_texts_have_no_other_reading(text: str) -> None:
    assert readings(text) == []
    assert not never_kept(Never((), TOPICS), [text], "user")


def test_long_texts_take_linear_time() -> None:
    for text in (
        "I " * 10_000,
        "a-" * 10_000,
        "v\u200b" * 10_000,
        "糖 " * 10_000,
        "vо" * 10_000,
        "_" * 20_000,
        "v1" * 10_000,
        "1 a1 " * 4_000,
    ):
        started = time.process_time()
        never_kept(Never(("vodka", "糖尿病"), TOPICS), [text], "user")
        assert time.process_time() - started < 3
