"""`store.text.ended_values`: whether a text says that the value of an older one ended."""

from __future__ import annotations

import pytest

from store.text.ended_values import ends_value, has_several_values, is_whole, values


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        ("What bike do I ride?", "I ride a Yamaha MT-07", "Got rid of the Yamaha MT-07, there's a Triumph now"),
        ("Which book am I reading?", "I'm reading Middlemarch", "Done with Middlemarch, started on Persuasion"),
        ("Who do I work for?", "I work for Siemens", "Left Siemens in spring, Bosch made me an offer and I took it"),
        ("Which tool do we deploy with?", "We deploy with Capistrano", "Ditched Capistrano for Kamal"),
        ("Who is my dentist?", "My dentist is Dr. Harlow", "Dr. Harlow retired, Dr. Menon took over"),
        ("Welches Auto habe ich?", "Ich fahre einen Passat", "Den Passat habe ich verkauft und mir einen Skoda geholt"),
        ("Womit planen wir?", "Wir nutzen Trello", "Trello haben wir abgeschafft, alles liegt jetzt in Linear"),
        ("Où est-ce que je travaille ?", "Je travaille chez Orange", "J'ai quitté Orange, je suis chez OVH maintenant"),
        ("onde eu trabalho?", "Trabalho no Itaú", "saí do Itaú, agora estou na Stone"),
        ("我开什么车？", "我开的是大众朗逸", "上周把朗逸卖了，换了一辆比亚迪汉"),
        ("我用什么手机？", "我用的手机是iPhone", "iPhone摔坏了，买了华为"),
    ],
)  # fmt: skip
def test_a_text_ends_a_value_and_names_another(question: str, older: str, newer: str) -> None:
    assert ends_value(question, older, newer)


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        ("What car do I drive?", "I drive a Golf", "Sold my golf clubs on eBay, now I play tennis"),
        ("What car do I drive?", "I drive a Golf", "Washed the Golf and drove home"),
        ("Where do I live?", "I live in Leeds", "Left Leeds at six and got home from London at nine"),
        ("Who do I work for?", "I work for Siemens", "I finished the Siemens report and started the slides"),
        ("Where is our office?", "Our office is on Kingsway", "The bakery on Kingsway closed down, it's a bank now"),
        ("When do I play chess?", "I play chess on Thursdays", "I stopped playing chess online, now I read"),
        ("Bei welcher Bank bin ich?", "Ich bin bei der Postbank", "Die Postbank hat jetzt eine neue Filiale"),
        ("我开什么车？", "我开的是本田飞度", "今天把飞度送去洗了"),
        ("我在看什么书？", "我在看《三体》", "《三体》第二部看完了，真精彩"),
    ],
)  # fmt: skip
def test_a_text_that_only_names_a_value_does_not_end_it(question: str, older: str, newer: str) -> None:
    assert not ends_value(question, older, newer)


def test_the_words_of_a_value_are_those_that_the_question_lacks() -> None:
    assert values("What car do I drive?", "I drive an old Golf") == ["old", "golf"]
    assert values("我开什么车？", "我开的是大众朗逸")[0] == "朗逸"


def test_a_text_with_several_values_is_known() -> None:
    assert has_several_values("I'm learning Japanese and Korean")
    assert not has_several_values("I'm learning Japanese")


def test_a_value_ends_as_a_whole() -> None:
    assert is_whole("Golf", "the Golf on Saturday")
    assert is_whole("Leeds", "Leeds for London")
    assert not is_whole("Golf", "golf clubs on eBay")
    assert not is_whole("Leeds", "Leeds at six")
