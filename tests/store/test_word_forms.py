"""Words that must not be remembered are found in every form, and no other words are."""

from __future__ import annotations

import pytest

from store.text.word_forms import WordForms

FORMS = {
    "run": "run runs running ran",
    "child": "child children child's children's Child CHILDREN",
    "tumour": "tumour tumors Tumours",
    "diagnosis": "diagnosis diagnoses",
    "write": "write writes wrote written writing",
    "wolf": "wolf wolves",
    "party": "party parties partying partied",
    "divorce": "divorce divorced divorces divorcing",
    "organize": "organise organized organising",
}
IN_LANGUAGES = {
    "Hund": ["Ich habe zwei Hunde.", "Das ist der Napf des Hundes.", "Mit den Hunden gehe ich in den Wald."],
    "Arzt": ["Meine Ärzte sind sich nicht einig.", "Ich war bei dem Arzt.", "Bei Aerzten bin ich nie."],
    "kündigen": ["Ich kündige morgen.", "Er kündigt mir.", "Sie kündigten ihm.", "Ich habe gekündigt."],
    "Müller": ["Frau Mueller ruft an.", "FRAU MÜLLER"],
    "perro": ["Tengo dos perros en casa.", "El perro de mi madre."],
    "maison": ["Les maisons de mon père."],
    "gatto": ["I gatti della mia vicina."],
    "cachorro": ["Os cachorros da minha mãe."],
    "hond": ["Ik heb twee honden."],
    "собака": ["У меня две собаки.", "Я гуляю с собакой."],
    "癌症": ["我妈得了癌症。", "癌症治好了"],
    "花生": ["我對花生過敏。"],
    "병원": ["어제 병원에 갔어요."],
    "糖尿病": ["祖母は糖尿病です。"],
    "green tea": ["I like Green  Teas.", "the green-tea shop"],
    "Anna's dog": ["I walked Anna’s dog", "ANNA'S DOGS"],
    "HIV": ["My hiv test", "ＨＩＶ", "H\u200bIV"],
    "C++": ["I write C++ every day"],
    "me@example.org": ["Write to ME@example.org."],
    "+49 170 1234567": ["Call +49 170 1234567 now"],
}
NOT_IN = {
    "run": ["A rune was found.", "The runway is long."],
    "car": ["I care for my mother.", "The cart is full.", "Take care of it"],
    "HIV": ["The hive has bees.", "We archive it"],
    "Anna": ["Susanna came.", "The annals"],
    "green tea": ["The tea was green.", "a green box of tea"],
    "gay": ["Gayle called.", "The gazette"],
    "war": ["I was there.", "They were late."],
    "Mark": ["Der Markt ist heute geschlossen."],
    "花生": ["花开了，生意很好。"],
}


@pytest.mark.parametrize(("word", "form"), [(word, form) for word, forms in FORMS.items() for form in forms.split()])
def test_every_form_of_an_english_word_is_found(word: str, form: str) -> None:
    assert WordForms([word]).are_in(f"Well, I think that {form} is what it was.")
    assert WordForms([form]).are_in(f"Well, I think that {word} is what it was.")


@pytest.mark.parametrize(("word", "text"), [(word, text) for word, texts in IN_LANGUAGES.items() for text in texts])
def test_forms_of_other_languages_are_found(word: str, text: str) -> None:
    assert WordForms(["zebra", word]).are_in(text)


@pytest.mark.parametrize(("word", "text"), [(word, text) for word, texts in NOT_IN.items() for text in texts])
def test_other_words_are_not(word: str, text: str) -> None:
    assert not WordForms([word]).are_in(text)


def test_words_without_letters_are_none() -> None:
    assert not WordForms(["", " ", "!", "\u200b"]).are_in("! anything \u200b")
    assert not WordForms([]).are_in("anything")
