"""Ranking scores agree with the formula, computed here separately, on every database."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pytest

from engines.embedded.engine import EmbeddedEngine
from store.index.fact_pages import FACTS, ORIGINS
from store.search import ranking
from store.search.question import Asked
from store.search.ranking import (
    ANSWER_WEIGHT,
    CONTINUED_WEIGHT,
    EXPECTED_WEIGHT,
    K1,
    NEXT_WEIGHT,
    PASSAGE_B,
    PREVIOUS_WEIGHT,
    QUESTION_SIGN,
    RECENCY_WEIGHT,
    SPEAKER_WEIGHT,
    WINDOW_TURNS,
    WINDOW_WEIGHT,
    B,
    QueryTerms,
)
from store.search.snapshot import Postings, Snapshot
from store.text.pronouns import CONTINUATION_SIGN
from store.types import Owner
from tests.conftest import Person
from tests.store.conftest import remember, search

HIGHEST = (1 + SPEAKER_WEIGHT) * (K1 + 1 + WINDOW_WEIGHT) + (PREVIOUS_WEIGHT + ANSWER_WEIGHT + NEXT_WEIGHT) * (K1 + 1)
HIGHEST *= 1 + RECENCY_WEIGHT
"""The most that one term can add to a score, by its weight."""


class Document(NamedTuple):
    """A turn: in a session with others at `place`, or alone in its session. `terms` are its query terms."""

    pk: int
    terms: str
    length: int = 10
    place: int | None = None
    speaker: str = ""
    at: int = 0
    seq: int = 0
    is_turn: bool = True
    origin: int = 0


def snapshot(terms: Sequence[str], documents: Sequence[Document], *, count: int, tokens: int) -> Snapshot:
    documents = sorted(documents)
    names = sorted({one.speaker for one in documents})
    facts = np.zeros(len(documents), FACTS)
    postings = []
    for row, one in enumerate(documents):
        for field in ("pk", "length", "at", "seq", "is_turn", "origin"):
            facts[row][field] = getattr(one, field)
        facts[row]["speaker"] = names.index(one.speaker)
        facts[row]["session"] = one.pk if one.place is None else 1_000
        if one.place is not None:
            facts[row]["seq"] = one.place
        held = one.terms.split()
        postings += [(terms.index(term), row, held.count(term)) for term in sorted(set(held)) if term in terms]
    columns = np.array(sorted(postings), np.int64).reshape(-1, 3).T
    return Snapshot(
        owner=Owner(UUID(int=1), "alice"),
        documents=count,
        tokens=tokens,
        facts=facts,
        pks=facts["pk"],
        names=names,
        pending=np.zeros(len(documents), np.bool_),
        sessions={},
        postings=Postings(columns[0], columns[1], columns[2].astype(float)),
    )


def idf(documents: int, matching: int) -> float:
    return math.log(1 + (documents - matching + 0.5) / (matching + 0.5))


def scores(
    text: str,
    terms: Sequence[str],
    documents: Sequence[Document],
    *,
    expected: Sequence[str] = (),
    asked: Asked | None = None,
    window: Sequence[str] = (),
    count: int = 20,
    tokens: int = 200,
    limit: int = 100,
) -> dict[int, dict[str, Any]]:
    """Return the keyword leg of each document by its row id, best first."""
    all_terms = QueryTerms.of(terms, expected, asked, window)
    data = snapshot(all_terms.looked_up, documents, count=count, tokens=tokens)
    scored = ranking.score_keywords(data, all_terms, data.postings, ranking.speakers_named(text, data))
    chosen = ranking.best(data.facts, np.flatnonzero(scored.totals > 0), scored.totals, limit)
    legs = scored.legs(chosen, range(1, len(chosen) + 1))
    totals = [leg["score"] for leg in legs]
    assert totals == sorted(totals, reverse=True)
    return dict(zip(data.facts["pk"][chosen].tolist(), legs, strict=True))


def test_a_single_term_scores_by_the_formula() -> None:
    score = scores("a b", ["a", "b"], [Document(1, "a a a", length=20)], count=100, tokens=1000)[1]
    weight = idf(100, 1) * 3 * (K1 + 1) / (3 + K1 * (1 - B + B * 20 / 10))
    highest = HIGHEST * (idf(100, 1) + idf(100, 0))
    assert score["parts"]["terms"] == pytest.approx(weight / highest)
    assert score["parts"]["context_window"] == pytest.approx(WINDOW_WEIGHT * idf(100, 1) / highest)
    assert score["score"] == pytest.approx((1 + RECENCY_WEIGHT) * (weight + WINDOW_WEIGHT * idf(100, 1)) / highest)
    assert score["matched"] == ["a"]


def test_adjacent_turns_share_their_evidence_and_passages_do_not() -> None:
    turns = [Document(3, "a", place=8), Document(4, "a", place=9), Document(1, "a", place=1)]
    passage = Document(2, "a", place=2, is_turn=False)
    found = {pk: leg["parts"] for pk, leg in scores("a", ["a"], [*turns, passage]).items()}
    assert list(found) == [4, 3, 1, 2]
    assert found[4]["neighbors"] == pytest.approx(PREVIOUS_WEIGHT * found[1]["terms"])
    assert found[3]["neighbors"] == pytest.approx(NEXT_WEIGHT * found[1]["terms"])
    assert found[1]["neighbors"] == found[2]["neighbors"] == 0


def test_a_turn_after_a_question_gains_more() -> None:
    turns = [Document(1, f"rent flat {QUESTION_SIGN}", place=1), Document(2, "lake", place=2)]
    turns += [Document(3, "rent flat", place=11), Document(4, "lake", place=12)]
    found = {pk: leg["parts"] for pk, leg in scores("rent flat?", ["rent", "flat", "lake"], turns).items()}
    assert found[2]["neighbors"] == pytest.approx((PREVIOUS_WEIGHT + ANSWER_WEIGHT) * found[1]["terms"])
    assert found[4]["neighbors"] == pytest.approx(PREVIOUS_WEIGHT * found[3]["terms"])


def test_the_best_expected_word_counts_a_fraction_and_finds_a_memory() -> None:
    documents = [Document(1, "pet"), Document(2, "dog"), Document(3, "dog cat"), Document(4, "-")]
    found = scores("pet", ["pet"], documents, expected=["dog", "cat"])
    assert list(found) == [1, 3, 2]
    highest = HIGHEST * (idf(20, 1) + EXPECTED_WEIGHT * idf(20, 1))
    weight = EXPECTED_WEIGHT * (K1 + 1) / (1 + K1)
    assert found[3]["parts"]["expected"] == pytest.approx(weight * idf(20, 1) / highest)
    assert found[2]["parts"]["expected"] == pytest.approx(weight * idf(20, 2) / highest)
    assert (found[3]["matched"], found[3]["expected"]) == ([], ["dog", "cat"])
    assert found[1]["parts"]["expected"] == 0


def test_terms_in_the_context_window_of_a_turn_count() -> None:
    turns = [
        Document(1, "a", place=20),
        Document(2, "b", place=20 + WINDOW_TURNS),
        Document(3, "c", place=19 - WINDOW_TURNS),
    ]
    elsewhere = [Document(4, "b c"), Document(5, "b", place=21, is_turn=False)]
    found = scores("a b c", ["a", "b", "c"], [*turns, *elsewhere])
    highest = HIGHEST * (idf(20, 1) + idf(20, 3) + idf(20, 2))
    context_weights = {1: idf(20, 1) + idf(20, 3), 2: idf(20, 1) + idf(20, 3), 3: idf(20, 2), 5: idf(20, 3)}
    for pk, weight in context_weights.items():
        assert found[pk]["parts"]["context_window"] == pytest.approx(WINDOW_WEIGHT * weight / highest)


@pytest.mark.parametrize("seed", range(20))
def test_window_sums_agree_with_a_plain_computation(seed: int) -> None:
    """Turns are in random order, with gaps and equal places; repeated terms count once."""
    rng = random.Random(seed)
    terms = ["a", "b", "c", "d"]
    documents = [
        Document(pk, " ".join(rng.choices([*terms, "-"], k=2)), place=rng.randrange(60), is_turn=rng.random() > 0.1)
        for pk in range(1, 40)
    ]
    data = snapshot(terms, documents, count=40, tokens=400)
    found = ranking.ConversationTurns(data.facts, np.zeros(len(documents), np.bool_)).window_sums(
        data.postings, np.array([1.0, 2.0, 4.0, 8.0])
    )
    for document, window_sum in zip(documents, found.tolist(), strict=True):
        window = [other for other in documents if other == document or _in_one_window(document, other)]
        window_terms = {term for other in window for term in other.terms.split() if term in terms}
        assert window_sum == sum(2.0 ** terms.index(term) for term in window_terms)


def _in_one_window(one: Document, other: Document) -> bool:
    return one.is_turn and other.is_turn and abs((one.place or 0) - (other.place or 0)) <= WINDOW_TURNS


def test_equal_context_gives_equal_scores() -> None:
    """Scores must not differ by rounding, or time would not decide between equal turns."""
    terms = [f"t{number}" for number in range(9)]
    conversation = [
        Document(pk, f"{terms[pk % 9]} {terms[pk % 7]}", place=50 * (pk // 20) + pk % 20) for pk in range(200)
    ]
    twins = [Document(1000 + pk, "t3 t5", place=50 * pk - 20, at=pk) for pk in range(1, 9)]
    found = scores(" ".join(terms), terms, [*conversation, *twins], count=300, tokens=3000, limit=300)
    assert len({found[one.pk]["parts"]["context_window"] + found[one.pk]["parts"]["terms"] for one in twins}) == 1
    assert [pk for pk in found if pk > 1000] == [one.pk for one in reversed(twins)]


def test_a_turn_without_any_word_of_the_query_is_not_found() -> None:
    turns = [Document(1, "rent flat", place=5), Document(2, "-", place=6), Document(3, "-", place=4)]
    assert list(scores("rent flat", ["rent", "flat"], turns)) == [1]


def test_notes_of_tools_gain_nothing_from_their_neighbors() -> None:
    tool = ORIGINS["tool"]
    notes = [Document(1, "rent flat", place=5, origin=tool), Document(2, "-", place=6, origin=tool)]
    notes += [Document(3, "lake", place=4, origin=tool), Document(4, "-", place=4)]
    found = scores("rent flat lake", ["rent", "flat", "lake"], notes)
    assert list(found) == [1, 3]
    assert found[3]["parts"]["neighbors"] == 0
    assert found[3]["parts"]["context_window"] < found[1]["parts"]["context_window"]


def test_turns_that_go_on_about_a_subject_are_found_by_its_name_and_rank_with_it() -> None:
    """The third goes on about the first, too; the fourth is too far away, and the fifth is another session."""
    he = CONTINUATION_SIGN
    turns = [Document(1, "tomas", place=1), Document(2, he, place=2), Document(3, f"live {he}", place=3)]
    others = [Document(4, he, place=4), Document(5, he), Document(6, "live", place=30)]
    asked = Asked(frozenset(), frozenset({"tomas"}))
    found = scores("where does tomas live", ["tomas", "live"], [*turns, *others], asked=asked)
    assert next(iter(found)) == 3
    assert set(found) == {1, 2, 3, 6}
    assert found[3]["parts"]["continued"] == pytest.approx(CONTINUED_WEIGHT * found[1]["parts"]["terms"])
    assert found[1]["parts"]["continued"] == 0


def test_only_the_subject_of_a_question_goes_on_in_the_next_turns() -> None:
    turns = [Document(1, "lake", place=1), Document(2, CONTINUATION_SIGN, place=2)]
    assert list(scores("the lake", ["lake"], turns, asked=Asked(frozenset(), frozenset()))) == [1]


def test_newer_memories_come_first_among_almost_equal_ones_and_passages_have_no_age() -> None:
    turns = [Document(1, "a", length=10, at=120_000), Document(2, "a", length=10, at=1)]
    assert list(scores("a", ["a"], turns)) == [1, 2]
    parts = {pk: leg["parts"] for pk, leg in scores("a", ["a"], turns).items()}
    assert parts[1]["recency"] == pytest.approx(2 * parts[2]["recency"])
    passages = [one._replace(is_turn=False) for one in turns]
    assert all(leg["parts"]["recency"] == 0 for leg in scores("a", ["a"], passages).values())


def test_the_length_of_a_passage_is_compared_with_passages_and_says_more() -> None:
    turns = [Document(1, "a", length=10), Document(2, "-", length=10)]
    passages = [Document(3, "a", length=200, is_turn=False), Document(4, "a", length=400, is_turn=False)]
    found = {pk: leg["parts"]["terms"] for pk, leg in scores("a", ["a"], [*turns, *passages]).items()}
    for pk, length, share in ((1, 1, B), (3, 200 / 300, PASSAGE_B), (4, 400 / 300, PASSAGE_B)):
        expected = (K1 + 1) / (1 + K1 * (1 - share + share * length))
        assert found[pk] == pytest.approx(expected / HIGHEST)


def test_what_is_of_the_time_of_a_question_and_has_a_word_of_it_comes_first() -> None:
    day = "d:2026-06-09"
    documents = [Document(1, "roof roof roof"), Document(2, f"roof {day}"), Document(3, day)]
    found = scores("roof", ["roof"], documents, window=[day])
    assert next(iter(found)) == 2
    assert set(found) == {1, 2, 3}
    assert found[1]["parts"]["time"] == found[3]["parts"]["time"] == 0


def test_a_question_for_a_time_alone_finds_what_is_of_it_newest_first() -> None:
    day = "d:2026-06-09"
    documents = [
        Document(1, day, at=5),
        Document(2, f"do {day}", at=3),
        Document(3, "do", at=9),
        Document(4, day, at=7),
    ]
    found = scores("do", ["do"], documents, asked=Asked(frozenset({"do"}), frozenset()), window=[day])
    assert list(found)[:3] == [4, 1, 2]


def test_fused_totals_are_the_sum_of_their_parts() -> None:
    """The first two documents contain one term each; a neighbor of the second contains the other term."""
    documents = [Document(1, "a"), Document(2, "a", place=1), Document(3, "b", place=2), Document(4, "")]
    terms = QueryTerms.of(["a", "b"])
    data = snapshot(terms.looked_up, documents, count=20, tokens=200)
    keywords = ranking.score_keywords(data, terms, data.postings, ranking.speakers_named("a b", data))
    cosines = np.array([0.2, 0.5, np.nan, 0.6])
    totals = ranking.fuse(data.facts, keywords, cosines, np.zeros(4, np.bool_)).totals
    keyword_scores = keywords.evidence + keywords.context_window
    own = keyword_scores / keyword_scores.max()
    near = 0.75 - 0.6  # of the second: scaled to 0..1, less what a vector has to exceed
    neighbors = (PREVIOUS_WEIGHT + ANSWER_WEIGHT + NEXT_WEIGHT) * (1 + EXPECTED_WEIGHT + 0.4)
    highest = 1 + EXPECTED_WEIGHT + ranking.BY_VECTORS.similarity + neighbors + ranking.BY_VECTORS.speaker
    shares = keywords.evidence / keyword_scores.max()
    assert keyword_scores[0] < keyword_scores[1]
    assert totals[0] == pytest.approx(own[0] / highest)
    assert totals[1] == pytest.approx(
        (own[1] + ranking.BY_VECTORS.similarity * 0.75 + NEXT_WEIGHT * shares[2]) / highest
    )
    assert totals[2] == pytest.approx((own[2] + PREVIOUS_WEIGHT * (shares[1] + near)) / highest)
    assert totals[3] == pytest.approx(ranking.BY_VECTORS.similarity / highest)


def test_a_named_speaker_adds_a_share_of_the_score() -> None:
    documents = [Document(pk, "a", speaker=name) for pk, name in ((1, "Ann"), (2, "Anna"))]
    found = {pk: leg["parts"] for pk, leg in scores("what did Ann say about a", ["a"], documents).items()}
    assert found[1]["speaker"] == pytest.approx(SPEAKER_WEIGHT * (found[1]["terms"] + found[1]["context_window"]))
    assert found[2]["speaker"] == 0


def test_documents_without_a_query_term_are_left_out() -> None:
    assert list(scores("a", ["a"], [Document(1, "b"), Document(2, "a b")])) == [2]


def test_equal_scores_are_ordered_by_time_then_by_position() -> None:
    turns = [Document(1, "a"), Document(2, "a", at=5), Document(3, "a", seq=2), Document(4, "a", seq=1)]
    passages = [one._replace(is_turn=False) for one in turns]
    assert list(scores("a", ["a"], passages)) == [2, 1, 4, 3]
    assert list(scores("a", ["a"], passages, limit=3)) == [2, 1, 4]


@pytest.mark.parametrize(
    ("query", "speaker", "named"),
    [
        ("what did ann say", "Ann", True),
        ("annual report", "Ann", False),
        ("小明说了什么", "小明", True),
        ("a?", "a", False),
        ("jose's car", "José", True),
        ("", "", False),
    ],
)
def test_which_speakers_a_query_names(query: str, speaker: str, named: bool) -> None:
    assert ranking.names(query, speaker) is named


def test_more_postings_than_memories_never_give_negative_weights() -> None:
    many = [Document(pk, "a") for pk in range(1, 6)]
    assert all(0 < leg["score"] <= 1 for leg in scores("a b", ["a", "b"], many, count=2, tokens=20).values())


def test_order_and_scores_are_the_same_on_every_database(engine: EmbeddedEngine, alice: Person) -> None:
    """SQLite and PostgreSQL must both return the recorded scores."""
    turns = [
        "Caroline: I went to the support group yesterday",
        "Melanie: That is great, what happened there?",
        "Caroline: The group told moving stories",
        "甲方应在2026年5月1日前付款",
        "Melanie: I paint lakes in May 2026",
    ]
    remember(engine, alice.owner, *turns)
    hits = search(engine, alice.owner, "What did Caroline hear at the support group in May 2026? 付款")
    assert [(turns.index(hit.text), round(hit.score or 0, 12)) for hit in hits] == EXPECTED


EXPECTED = [(0, 0.193521994732), (2, 0.185480768851), (3, 0.165689020332), (4, 0.155641336149), (1, 0.105756355681)]
