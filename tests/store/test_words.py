"""Words that meet in all of their forms: irregular forms, languages, spellings, names of programs."""

from __future__ import annotations

import time
from itertools import permutations

import pytest

from store.text import stems
from store.text.tokens import query_readings, query_tokens, tokenize


def finds(query: str, text: str) -> bool:
    return bool({*query_tokens(query), *query_readings(query)} & {*tokenize(text)})


def inflections(word: str) -> list[str]:
    if word.endswith(("is", "ox", "um", "on", "us", "ex", "ix")):
        return [word]
    if word.endswith("y") and word[-2] not in "aeiou":
        return [word, f"{word[:-1]}ies"]
    return [word, f"{word}es" if word.endswith(("s", "x", "ch", "sh", "go")) else f"{word}s"]


@pytest.mark.parametrize("entry", stems.ENTRIES, ids=lambda entry: entry[0])
def test_every_form_of_a_word_meets_the_others(entry: tuple[str, ...]) -> None:
    base, *forms = entry
    missing = [(query, text) for query, text in permutations([*inflections(base), *forms], 2) if not finds(query, text)]
    assert missing == []


_OTHER_WORDS = """bore bores boring|bit bits|bound bounds bounded|found founds founded founding|
ground grounds grounded|fell felled|
left lefts|lay lays laid|saw saws sawed sawing sawn|rose roses|shot shots|spoke spokes|thought thoughts|
wound wounds wounded|dove doves|lives live living lived|leaves leave leaving left|shelves shelve shelved shelving|
analyses analyse analysed analysing analyze analyzed|axes axe ax|diagnoses diagnose diagnosed|
better betters bettered|people peoples peopled"""
OTHER_WORDS = {words.split()[0]: words for words in _OTHER_WORDS.replace("\n", "").split("|")}


@pytest.mark.parametrize("form", OTHER_WORDS)
def test_a_form_that_two_words_share_meets_the_forms_of_both(form: str) -> None:
    [entry] = [entry for entry in stems.ENTRIES if form in entry[1:]][:1] or [(form,)]
    other = OTHER_WORDS[form].split()
    for first, second in [*permutations(other, 2), *((form, one) for one in entry), *((one, form) for one in entry)]:
        assert finds(first, second), (first, second)


def test_shared_forms_are_forms_of_the_table() -> None:
    forms = {form for _, *forms in stems.ENTRIES for form in forms} | {base for base, *_ in stems.ENTRIES}
    assert forms >= stems.SHARED


SPELLINGS = """colour color|favourite favorite|neighbourhood neighborhood|organisation organization|realise realized|
analyse analyzing|grey gray|centre center|theatres theater|kilometre kilometers|travelled traveling|cancelled canceled|
modelling modeling|jewellery jewelry|catalogue catalogs|dialogue dialog|defence defense|licence licenses|
practise practice|programme programs|judgement judgment|ageing aging|enrol enrolls|fulfil fulfilled|aluminium aluminum|
aeroplane airplane|pyjamas pajamas|moustache mustache|sceptical skeptical|mould mold|plough plow|doughnut donuts|
yoghurt yogurt|tyres tire|behaviour behavior|labour labor|apologise apologized|marvellous marvelous|mum mom|
paediatric pediatric|anaesthetic anesthetic"""


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("can", "two tin cans"),
        ("will", "their wills"),
        ("20", "twenty guests"),
        ("twenty-one", "21 guests"),
        ("21 guests", "twenty-one people"),
        ("first", "the 1st prize"),
        ("3rd", "the third prize"),
        # British and American
        *[pair for line in SPELLINGS.replace("\n", "").split("|") for pair in permutations(line.split(), 2)],
        # joined and in parts
        ("email", "send me an e-mail"),
        ("e-mails", "two emails"),
        ("wifi password", "the wi-fi"),
        ("coworkers", "a co-worker"),
        ("co-worker", "my coworkers"),
        ("nodejs", "runs on Node.js"),
        ("Node.js", "runs on nodejs"),
        ("server error", "raises HTTPServerError"),
        ("HTTPServerError", "a server error"),
        ("HTTPServer", "the http server"),
        ("3.11", "Python3.11"),
        ("2,000 guests", "2000 people"),
        ("camel", "camelCaseName is a function"),
        ("getUserName", "get_user_name"),
        ("v2.10", "since 2.10.3"),
        ("2.10", "version v2.10.3"),
        ("2.10.3", "v2.10.3"),
        ("U.S. visa", "a visa for the US"),
        ("USA", "born in the U.S.A."),
        ("US", "moved to the U.S. in spring"),
        ("Ph.D.", "has a PhD"),
        ("gpt4", "uses GPT-4"),
        ("obrien", "Mr. O'Brien"),
        ("❤️", "I ❤ it"),
        ("❤", "❤️"),
        # languages
        ("Katze", "Die Katzen schlafen."),
        ("Katzen", "Meine Katze schläft auf dem Sofa."),
        ("Haus", "Die Häuser sind alt."),
        ("Versicherung", "Die Versicherungen sind teuer."),
        ("Wo sind meine Schlüsseln?", "Der Schlüssel ist im Auto"),
        ("München", "I live in Muenchen"),
        ("Muenchen", "Ich wohne in München."),
        ("gato", "Los gatos duermen."),
        ("canciones", "Me gusta la canción."),
        ("amigas", "Mi amiga vive en Lima"),
        ("livre", "J'ai acheté des livres."),
        ("cheval", "Elle a deux chevaux dans le pré."),
        ("libro", "Ho comprato due libri con mia madre."),
        ("livros", "Comprei um livro para ela."),
        ("boek", "Ik heb twee boeken en een fiets."),
        ("bil", "Vi har två bilar och en båt."),
        ("kitap", "Bu kitaplar çok güzel."),
        ("книга", "две книги"),
        ("cà phê", "Toi uong cà phê mỗi sáng"),
        ("ca phe", "Tôi uống cà phê"),
    ],
)  # fmt: skip
def test_words_of_one_kind_meet(query: str, text: str) -> None:
    assert finds(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("care", "my car"),
        ("plane", "my plan"),
        ("What is the rate?", "a rat in the house"),
        ("PayPal", "pay the rent"),
        ("hour", "a hor"),
        ("four", "for sale"),
        ("prize", "the price"),
        ("3.5", "version 3.6"),
        ("us", "tell me"),
        ("leaf", "live music"),
        ("rise", "the roses of my garden"),
        ("totals", "tot"),
    ],
)
def test_other_words_do_not_meet(query: str, text: str) -> None:
    assert not finds(query, text)


def test_accents_are_kept_beside_the_folded_word() -> None:
    assert {"ca", "cà"} <= set(tokenize("cà phê"))
    assert "cá" not in tokenize("cà")
    assert query_readings("cà")["cà"] == "ca"


def test_other_readings_of_a_word_are_no_words_of_the_query() -> None:
    assert query_tokens("lives") == ["life"]
    assert query_readings("Where is it that she lives?") == {"live": "life"}
    assert query_tokens("Wo ist meine Katze?") == ["katz"]
    assert query_readings("Wo ist meine Katze?") == {"^katz": "katz"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The invoice 2024-118 costs 1,234.50 EUR", {"1234.5"}),
        ("call 555-0199", {"555-0199", "555", "0199"}),
        ("LT-40 gripper", {"lt-40"}),
        ("O'Brien met Denise in Paris", {"brien", "pari"}),
    ],
)
def test_numbers_and_names_stay(text: str, expected: set[str]) -> None:
    assert expected <= {*tokenize(text)}


@pytest.mark.parametrize("char", ["a", "ß", "é", "я"])
def test_very_long_words_are_read_in_linear_time(char: str) -> None:
    started_at = time.process_time()
    assert finds(char * 100_000, char * 100_000)
    assert time.process_time() - started_at < 2
