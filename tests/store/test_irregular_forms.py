"""Forms of words of other languages, which their stemmers do not know."""

import pytest

from store.text.tokens import query_readings, query_tokens, read


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Er kocht heute für uns", "kochen"),
        ("Sie kochte eine Suppe", "kochen"),
        ("Ich koche gern", "gekocht"),
        ("Ich arbeitete dort lange", "arbeiten"),
        ("Wir haben die Wand gestrichen", "streichen"),
        ("Sie fährt nach Hause", "fahren"),
        ("Wir sangen den ganzen Abend", "singen"),
        ("Ich bin eingeschlafen", "einschlafen"),
        ("Das Paket wurde abgeholt", "abholen"),
        ("Vergiss nicht, das Paket abzuholen", "abholen"),
        ("Er hat den Termin verschoben", "verschieben"),
        ("Er schließt den Laden", "geschlossen"),
        ("Er brachte Kuchen mit", "bringen"),
        ("Sie isst kein Fleisch", "essen"),
        ("Das Ei ist hart", "Eier"),
        ("Der Schmerz in den Knien", "Knie"),
        ("Die Museen sind zu", "Museum"),
        ("Hier gibt es drei Gymnasien", "Gymnasium"),
        ("besseres Wetter wäre schön", "gut"),
        ("Mi hermano hizo la cena", "hacer"),
        ("Duermo muy mal", "dormir"),
        ("Los jueces no vinieron", "juez"),
        ("Mi abuela cosía vestidos", "coser"),
        ("Les vitraux de la cathédrale", "vitrail"),
        ("Il a bu du vin", "boire"),
        ("Elle a mal aux yeux", "oeil"),
        ("Ho scritto una lettera", "scrivere"),
        ("Abbiamo comprato le uova", "uovo"),
        ("Ontem eu trouxe o bolo", "trazer"),
        ("Ik ben met de trein naar huis gegaan", "gaan"),
        ("Hij heeft zijn fiets verkocht", "verkopen"),
    ],
)
def test_a_form_is_found_by_another_one(text: str, query: str) -> None:
    stored = read(text)
    looked_up = {*query_tokens(query), *query_readings(query)}
    assert not looked_up.isdisjoint([*stored.words, *stored.readings])


@pytest.mark.parametrize(("text", "query"), [("Die Wand ist weiß", "Wand"), ("El vino tinto", "vino")])
def test_a_word_that_looks_like_a_form_is_found_as_it_is(text: str, query: str) -> None:
    assert not set(query_tokens(query)).isdisjoint(read(text).words)
