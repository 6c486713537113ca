"""Ranking as numbers: the formula worked out by hand, the same on every database."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from engines.embedded.engine import EmbeddedEngine
from store.index.pages import FACTS, ORIGINS
from store.search import ranking
from store.search.ranking import AROUND, K1, NEIGHBOUR, REACH, SPEAKER, B
from store.search.snapshot import Postings, Snapshot
from store.text.tokens import query_tokens
from tests.conftest import Person
from tests.store.conftest import ask, remember


class Document(NamedTuple):
    """A turn in a session of its own, unless a place is given; `terms` are what it holds of the question."""

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
        documents=count,
        tokens=tokens,
        facts=facts,
        pks=facts["pk"],
        names=names,
        pending=np.zeros(len(documents), np.bool_),
        sessions={},
        postings=Postings(columns[0], columns[1], columns[2].astype(float)),
    )


def idf(documents: int, holding: int) -> float:
    return math.log(1 + (documents - holding + 0.5) / (holding + 0.5))


def scores(
    text: str,
    terms: Sequence[str],
    documents: Sequence[Document],
    *,
    count: int = 20,
    tokens: int = 200,
    limit: int = 100,
) -> dict[int, dict[str, Any]]:
    """What the keyword leg says of each document by its key, best first."""
    seen = snapshot(terms, documents, count=count, tokens=tokens)
    question = ranking.keywords(seen, terms, seen.postings, ranking.speakers_named(text, seen))
    chosen = ranking.best(seen.facts, np.flatnonzero(question.totals > 0), question.totals, limit)
    legs = question.legs(chosen, range(1, len(chosen) + 1))
    totals = [leg["score"] for leg in legs]
    assert totals == sorted(totals, reverse=True)
    return dict(zip(seen.facts["pk"][chosen].tolist(), legs, strict=True))


def test_a_single_term_scores_by_the_formula() -> None:
    score = scores("a b", ["a", "b"], [Document(1, "a a a", length=20)], count=100, tokens=1000)[1]
    weight = idf(100, 1) * 3 * (K1 + 1) / (3 + K1 * (1 - B + B * 20 / 10))
    most = ((1 + SPEAKER) * (K1 + 1 + AROUND) + 2 * NEIGHBOUR * (K1 + 1)) * (idf(100, 1) + idf(100, 0))
    assert score["parts"]["terms"] == pytest.approx(weight / most)
    assert score["parts"]["around"] == pytest.approx(AROUND * idf(100, 1) / most)
    assert score["score"] == pytest.approx((weight + AROUND * idf(100, 1)) / most)
    assert score["matched"] == ["a"]


def test_neighbours_share_their_evidence_and_passages_do_not() -> None:
    turns = [Document(3, "a", place=8), Document(4, "a", place=9), Document(1, "a", place=1)]
    passage = Document(2, "a", place=2, is_turn=False)
    found = {pk: leg["parts"] for pk, leg in scores("a", ["a"], [*turns, passage]).items()}
    assert list(found) == [3, 4, 1, 2]
    assert found[3]["neighbours"] == found[4]["neighbours"] == pytest.approx(NEIGHBOUR * found[1]["terms"])
    assert found[1]["neighbours"] == found[2]["neighbours"] == 0


def test_terms_around_a_turn_count_as_far_as_it_reaches() -> None:
    turns = [Document(1, "a", place=20), Document(2, "b", place=20 + REACH), Document(3, "c", place=19 - REACH)]
    elsewhere = [Document(4, "b c"), Document(5, "b", place=21, is_turn=False)]
    found = scores("a b c", ["a", "b", "c"], [*turns, *elsewhere])
    most = ((1 + SPEAKER) * (K1 + 1 + AROUND) + 2 * NEIGHBOUR * (K1 + 1)) * (idf(20, 1) + idf(20, 3) + idf(20, 2))
    held = {1: idf(20, 1) + idf(20, 3), 2: idf(20, 1) + idf(20, 3), 3: idf(20, 2), 5: idf(20, 3)}
    for pk, weights in held.items():
        assert found[pk]["parts"]["around"] == pytest.approx(AROUND * weights / most)


@pytest.mark.parametrize("seed", range(20))
def test_what_stands_around_is_what_one_finds_by_looking(seed: int) -> None:
    """Turns in no order, with gaps, several in one place, each term once however often it stands there."""
    chance = random.Random(seed)
    terms = ["a", "b", "c", "d"]
    documents = [
        Document(
            pk, " ".join(chance.choices([*terms, "-"], k=2)), place=chance.randrange(60), is_turn=chance.random() > 0.1
        )
        for pk in range(1, 40)
    ]
    seen = snapshot(terms, documents, count=40, tokens=400)
    found = ranking.Turns(seen.facts).around(seen.postings, np.array([1.0, 2.0, 4.0, 8.0]))
    for one, sum_of_weights in zip(documents, found.tolist(), strict=True):
        near = [other for other in documents if other == one or _reaches(one, other)]
        held = {term for other in near for term in other.terms.split() if term in terms}
        assert sum_of_weights == sum(2.0 ** terms.index(term) for term in held)


def _reaches(one: Document, other: Document) -> bool:
    return one.is_turn and other.is_turn and abs((one.place or 0) - (other.place or 0)) <= REACH


def test_equal_surroundings_give_equal_scores() -> None:
    """Whatever was counted before them: with a rest of a rounding, time would no longer decide."""
    terms = [f"t{number}" for number in range(9)]
    talk = [Document(pk, f"{terms[pk % 9]} {terms[pk % 7]}", place=50 * (pk // 20) + pk % 20) for pk in range(200)]
    twins = [Document(1000 + pk, "t3 t5", place=50 * pk - 20, at=pk) for pk in range(1, 9)]
    found = scores(" ".join(terms), terms, [*talk, *twins], count=300, tokens=3000, limit=300)
    assert len({found[one.pk]["score"] for one in twins}) == 1
    assert [pk for pk in found if pk > 1000] == [one.pk for one in reversed(twins)]


def test_a_turn_beside_two_words_of_the_question_is_found_without_any() -> None:
    turns = [Document(1, "rent flat", place=5), Document(2, "-", place=6), Document(3, "-", place=7)]
    passage = Document(4, "-", place=4, is_turn=False)
    found = scores("rent flat", ["rent", "flat"], [*turns, passage, Document(5, "-")])
    assert list(found) == [1, 2]
    assert found[2]["matched"] == []
    assert found[2]["parts"]["neighbours"] == pytest.approx(NEIGHBOUR * found[1]["parts"]["terms"])


def test_what_was_written_down_has_nothing_of_what_stands_beside_it() -> None:
    tool = ORIGINS.index("tool")
    notes = [Document(1, "rent flat", place=5, origin=tool), Document(2, "-", place=6, origin=tool)]
    notes += [Document(3, "lake", place=4, origin=tool), Document(4, "-", place=4)]
    found = scores("rent flat lake", ["rent", "flat", "lake"], notes)
    assert list(found) == [1, 3]
    assert found[3]["parts"]["neighbours"] == 0
    assert found[3]["parts"]["around"] < found[1]["parts"]["around"]


@pytest.mark.parametrize(
    "question",
    ["rent", "2026-05-28", "rent 2026-05-28", "O'Brien", "LT-40", "report_final.pdf", "iPhone15", "付款期限"],
)
def test_one_word_or_a_date_finds_only_what_holds_it(question: str) -> None:
    terms = query_tokens(question)
    turns = [Document(1, " ".join(terms), place=5), Document(2, "-", place=6)]
    assert list(scores(question, terms, turns)) == [1]


@pytest.mark.parametrize("question", ["rent flat", "LT-40 gripper", "供应商付款期限"])
def test_two_words_find_what_stands_beside_them(question: str) -> None:
    terms = query_tokens(question)
    turns = [Document(1, " ".join(terms), place=5), Document(2, "-", place=6)]
    assert list(scores(question, terms, turns)) == [1, 2]


def test_with_vectors_the_sum_is_what_the_parts_give() -> None:
    """Both hold one term; beside the second, the other one is spoken of."""
    documents = [Document(1, "a"), Document(2, "a", place=1), Document(3, "b", place=2), Document(4, "")]
    seen = snapshot(["a", "b"], documents, count=20, tokens=200)
    words = ranking.keywords(seen, ["a", "b"], seen.postings, ranking.speakers_named("a b", seen))
    cosines = np.array([0.2, 0.4, np.nan, 0.6])
    totals = ranking.fused(seen.facts, words, cosines, np.zeros(4, np.bool_)).totals
    own = words.evidence + words.around
    most = 1 + ranking.VECTOR + 2 * ranking.FUSED_NEIGHBOUR + ranking.FUSED_SPEAKER
    beside = ranking.FUSED_NEIGHBOUR * words.evidence / own.max()
    assert own[0] < own[1]
    assert totals[0] == pytest.approx(own[0] / own.max() / most)
    assert totals[1] == pytest.approx((own[1] / own.max() + ranking.VECTOR / 2 + beside[2]) / most)
    assert totals[2] == pytest.approx((own[2] / own.max() + beside[1]) / most)
    assert totals[3] == pytest.approx(ranking.VECTOR / most)


def test_a_named_speaker_adds_a_share_of_the_best() -> None:
    two = [Document(pk, "a", speaker=name) for pk, name in ((1, "Ann"), (2, "Anna"))]
    found = {pk: leg["parts"] for pk, leg in scores("what did Ann say about a", ["a"], two).items()}
    assert found[1]["speaker"] == pytest.approx(SPEAKER * (found[1]["terms"] + found[1]["around"]))
    assert found[2]["speaker"] == 0


def test_what_holds_no_term_of_the_question_is_left_out() -> None:
    assert list(scores("a", ["a"], [Document(1, "b"), Document(2, "a b")])) == [2]


def test_equal_scores_are_ordered_by_time_then_by_passage() -> None:
    four = [Document(1, "a"), Document(2, "a", at=5), Document(3, "a", seq=2), Document(4, "a", seq=1)]
    passages = [one._replace(is_turn=False) for one in four]
    assert list(scores("a", ["a"], passages)) == [2, 1, 4, 3]
    assert list(scores("a", ["a"], passages, limit=3)) == [2, 1, 4]


@pytest.mark.parametrize(
    ("question", "speaker", "named"),
    [
        ("what did ann say", "Ann", True),
        ("annual report", "Ann", False),
        ("小明说了什么", "小明", True),
        ("a?", "a", False),
        ("jose's car", "José", True),
        ("", "", False),
    ],
)
def test_who_counts_as_named(question: str, speaker: str, named: bool) -> None:
    assert ranking.names(question, speaker) is named


def test_more_postings_than_memories_never_give_negative_weights() -> None:
    many = [Document(pk, "a") for pk in range(1, 6)]
    assert all(0 < leg["score"] <= 1 for leg in scores("a b", ["a", "b"], many, count=2, tokens=20).values())


def test_order_and_scores_are_the_same_on_every_database(engine: EmbeddedEngine, alice: Person) -> None:
    """The numbers were written down once; SQLite and PostgreSQL both have to give them."""
    turns = [
        "Caroline: I went to the support group yesterday",
        "Melanie: That is great, what happened there?",
        "Caroline: The group told moving stories",
        "甲方应在2026年5月1日前付款",
        "Melanie: I paint lakes in May 2026",
    ]
    remember(engine, alice.owner, *turns)
    hits = ask(engine, alice.owner, "What did Caroline hear at the support group in May 2026? 付款")
    assert [(turns.index(hit.text), round(hit.score or 0, 12)) for hit in hits] == EXPECTED


EXPECTED = [(3, 0.175587468995), (0, 0.164687528618), (2, 0.155610862078), (4, 0.152787647251), (1, 0.096157513292)]
