"""Ranking as numbers: the formula worked out by hand, the same on every database."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from engine.embedded import ranking
from engine.embedded.engine import EmbeddedEngine
from engine.embedded.ranking import K1, NEIGHBOUR, SPEAKER, B, Candidate, Score, Statistics
from tests.conftest import Person
from tests.engine.conftest import ask, remember


def candidate(pk: int, terms: str, *, length: int = 10, place: int | None = None, **fields: Any) -> Candidate:
    """A turn in a session of its own, unless a place is given."""
    one = Candidate(
        terms, pk, length, pk * 100 if place is None else place, "", "episode", "chat:1", 0, 0, None, "", ""
    )
    return one._replace(**fields)


def idf(documents: int, holding: int) -> float:
    return math.log(1 + (documents - holding + 0.5) / (holding + 0.5))


def scores(text: str, terms: list[str], candidates: list[Candidate], statistics: Statistics) -> dict[int, Score]:
    question = ranking.ask(text, terms, candidates, statistics, lambda written: Counter(written.split()))
    found = {one.pk: score for one, score in question.best(candidates, 100)}
    totals = [score.total for score in found.values()]
    assert totals == sorted(totals, reverse=True)
    return found


def test_a_single_term_scores_by_the_formula() -> None:
    score = scores("a b", ["a", "b"], [candidate(1, "a a a", length=20)], Statistics(100, 1000))[1]
    weight = idf(100, 1) * 3 * (K1 + 1) / (3 + K1 * (1 - B + B * 20 / 10))
    most = (1 + 2 * NEIGHBOUR + SPEAKER) * (K1 + 1) * (idf(100, 1) + idf(100, 0))
    assert score.total == pytest.approx(weight / most)
    assert score.matched == ("a",)


def test_neighbours_share_their_evidence_and_passages_do_not() -> None:
    turns = [candidate(3, "a", place=8), candidate(4, "a", place=9), candidate(1, "a", place=1)]
    passage = candidate(2, "a")._replace(place=None)
    found = scores("a", ["a"], [*turns, passage], Statistics(20, 200))
    assert list(found) == [3, 4, 1, 2]
    assert found[3].neighbours == found[4].neighbours == pytest.approx(NEIGHBOUR * found[1].terms)
    assert found[1].neighbours == found[2].neighbours == 0


def test_a_named_speaker_adds_a_share_of_the_best() -> None:
    two = [candidate(pk, "a", speaker=name) for pk, name in ((1, "Ann"), (2, "Anna"))]
    found = scores("what did Ann say about a", ["a"], two, Statistics(20, 200))
    assert found[1].speaker == pytest.approx(SPEAKER * found[1].terms)
    assert found[2].speaker == 0


def test_candidates_of_another_question_are_left_out() -> None:
    assert list(scores("a", ["a"], [candidate(1, "b"), candidate(2, "a b")], Statistics(20, 200))) == [2]


def test_equal_scores_are_ordered_by_time_then_by_passage() -> None:
    four = [candidate(1, "a"), candidate(2, "a", created_at_ms=5), candidate(3, "a", seq=2), candidate(4, "a", seq=1)]
    passages = [one._replace(place=None) for one in four]
    assert list(scores("a", ["a"], passages, Statistics(20, 200))) == [2, 1, 4, 3]
    question = ranking.ask("a", ["a"], passages, Statistics(20, 200), lambda written: Counter(written.split()))
    assert [one.pk for one, _ in question.best(passages, 3)] == [2, 1, 4]


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
    many = [candidate(pk, "a") for pk in range(1, 6)]
    assert all(0 < score.total <= 1 for score in scores("a b", ["a", "b"], many, Statistics(2, 20)).values())


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


EXPECTED = [(3, 0.13498427092), (0, 0.111780287822), (4, 0.110111738109), (2, 0.101878469779), (1, 0.048333410154)]
