"""Tokens of texts, under which they are indexed, and of queries."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.text.tokens import MAX_TOKEN_CHARS, query_readings, query_tokens, read, tokenize


def finds(query: str, text: str) -> bool:
    return bool({*query_tokens(query), *query_readings(query)} & {*tokenize(text)})


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("payment", "All payments are due"),
        ("paying", "they paid at once"),
        ("running", "She ran home"),
        ("mouse", "three mice"),
        ("child", "the children's room"),
        ("two dogs", "2 cats"),
        ("Überraschung", "UBERRASCHUNG"),
        ("cafe", "the café"),
        ("straße", "STRASSE"),
        ("книга", "две книги"),
        ("付款", "甲方应在三十日内付款。"),
        ("款", "付款"),
        ("付款条款", "付款"),
        ("カタカナ", "ｶﾀｶﾅ"),
        ("食べる", "寿司を食べた"),
        ("안녕", "안녕하세요"),
        ("สวัสดี", "สวัสดีครับ"),
        ("عالم", "مرحبا بالعالم"),
        ("ｃｏｎｔｒａｃｔ", "contract"),
        ("2026", "on 2026-05-01"),
        ("1234.5", "1,234.50 EUR"),
        ("٣٤", "34"),
        ("contract", "see contract.pdf"),
        ("contract.pdf", "see CONTRACT.PDF."),
        ("合同.pdf", "请看合同.pdf里的条款"),
        ("iPhone 15", "my iPhone15"),
        ("snake case", "snake_case"),
        ("c++", "C++ and Rust"),
        ("C#", "F# or c#?"),
        ("🎉", "party 🎉🎉"),
        ("👍", "👍🏽 done"),
        ("❤️", "❤"),
        ("🇨🇳", "from 🇨🇳 with love"),
        ("->", "a -> b"),
        ("$", "$5"),
        ("how many €", "20 €"),
        ('"', 'he said "no"'),
        ("*", "2 * 3"),
        ("AND", "this and that"),
        ("NEAR", "near the sea"),
        ("¯\\_(ツ)_/¯", "well ¯\\_(ツ)_/¯"),
        ("who are you", "who are you"),
        ("con\u00adtract", "contract"),
        ("台湾的发票", "臺灣的發票在這裡"),
        ("臺灣的發票", "台湾的发票在这里"),
    ],
)
def test_a_query_matches_a_text(query: str, text: str) -> None:
    assert finds(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("the contract", "the weather"),
        ("什么合同", "什么天气"),
        ("don't worry", "don't stop"),
        ("hm?", "no?"),
        ("款付", "付钱"),
    ],
)
def test_stop_words_are_not_looked_up_with_other_words(query: str, text: str) -> None:
    assert not finds(query, text)


DATES = ["2026-05-01", "2026/5/1", "2026.05.01", "20260501", "1 May 2026", "1st of May, 2026", "May 1, 2026",
         "05/01/2026", "2026年5月1日", "2026年05月01号", "二〇二六年五月一日", "２０２６年５月１日"]  # fmt: skip


@pytest.mark.parametrize("written", DATES)
def test_all_notations_of_a_date_give_the_same_tokens(written: str) -> None:
    day_tokens = {"d:2026-05-01", "md:05-01", "m:2026-05", "mo:05", "y:2026"}
    assert day_tokens <= set(tokenize(f"signed {written} in Berlin"))
    assert day_tokens <= set(query_tokens(f"signed {written}?"))


@pytest.mark.parametrize(
    ("written", "days"),
    [
        ("02.01.2024", {"2024-01-02"}),
        ("2.1.2024", {"2024-01-02"}),
        ("2. 1. 2024", {"2024-01-02"}),
        ("12.31.2024", {"2024-12-31"}),
        ("03/05/2024", {"2024-05-03", "2024-03-05"}),
        ("03-05-2024", {"2024-05-03", "2024-03-05"}),
        ("25/05/2024", {"2024-05-25"}),
        ("3/5/24", {"2024-05-03", "2024-03-05"}),
        ("am 02.01.24", {"2024-01-02"}),
        ("5. März 2024", {"2024-03-05"}),
        ("5.März 2024", {"2024-03-05"}),
        ("5 Maerz 2024", {"2024-03-05"}),
        ("den 1. Mai 2024", {"2024-05-01"}),
        ("3. Okt. 2024", {"2024-10-03"}),
        ("24. Dezember 2024", {"2024-12-24"}),
        ("version 1.2.3", set()),
        ("192.168.1.20", set()),
        ("call 555-03-05-2024", set()),
        ("src/1/2/24x", set()),
        ("31.02.2024", set()),
    ],
)
def test_dates_in_all_orders(written: str, days: set[str]) -> None:
    assert {token[2:] for token in tokenize(f"signed {written} there") if token.startswith("d:")} == days


@pytest.mark.parametrize(
    ("written", "days"),
    [
        ("am 5.3.", {"03-05"}),
        ("vom 5.3. bis 7.3.", {"03-05"}),
        ("am 5. März", {"03-05"}),
        ("on 3/5", {"03-05", "05-03"}),
        ("5.3 kg", set()),
        ("am 3.5 GHz", set()),
        ("3/5 of it", set()),
        ("I have 5. May I go?", set()),
    ],
)
def test_days_without_a_year_in_all_orders(written: str, days: set[str]) -> None:
    assert days <= {token[3:] for token in tokenize(written) if token.startswith("md:")}
    assert days or not [token for token in tokenize(written) if token.startswith("md:")]


@pytest.mark.parametrize("partly", ["May 2026", "2026年5月", "2026-05", "in May", "5月", "五月份", "May 1st", "5月1日"])
def test_part_of_a_date_finds_the_full_date(partly: str) -> None:
    assert finds(partly, "2026年5月1日签署")


@pytest.mark.parametrize("text", ["13月", "2026-02-30", "the 32 may", "version 2026-13-01", "you may go", "1:30 may"])
def test_numbers_and_words_that_are_no_date_give_no_date_tokens(text: str) -> None:
    assert not [token for token in tokenize(text) if token.startswith(("d:", "md:", "m:", "mo:"))]


@given(st.text(alphabet="合同付款条款甲乙方三十日内的了是我", min_size=2, max_size=40))
def test_every_pair_and_every_character_of_chinese_text_finds_it(text: str) -> None:
    for first, second in pairwise(text):
        assert finds(first + second, text)
    for char in text:
        assert finds(char, text)


@given(st.text(max_size=200))
def test_any_text_with_a_token_matches_itself(text: str) -> None:
    assert finds(text, text) == bool(tokenize(text))


@given(st.text(max_size=200))
def test_tokens_are_short_and_contain_no_spaces_nul_or_lone_surrogates(text: str) -> None:
    for token in tokenize(text):
        assert token
        assert len(token) <= MAX_TOKEN_CHARS + 4
        assert not any(char.isspace() for char in token)
        assert "\x00" not in token
        token.encode()


def test_a_single_sign_matches_less_of_a_run_of_signs() -> None:
    alone, together = (len(set(query_tokens("*")) & set(tokenize(text))) for text in ("2 * 3", "/* x */"))
    assert alone > together > 0


def test_stop_words_are_indexed_once() -> None:
    assert tokenize("the car, the road, the end").count("w:the") == 1


def test_stop_words_do_not_count_toward_the_length_of_a_text() -> None:
    assert len(read("What is the color of the car?").words) == 2


@pytest.mark.parametrize(
    "piece", ["1", "a.", "a'", "-", "一", "may ", "1 ", "\u0301", "👨\u200d", "19", "1,", "九月", "1,111"]
)
def test_hostile_repetition_costs_linear_time(piece: str) -> None:
    started = time.monotonic()
    tokenize(piece * (200_000 // len(piece)))
    assert time.monotonic() - started < 5
