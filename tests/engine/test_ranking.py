"""Ranking as numbers: the formula worked out by hand, the same on every database."""

from __future__ import annotations

import math

import pytest

from engine.embedded import ranking
from engine.embedded.engine import EmbeddedEngine
from engine.embedded.ranking import K1, NEIGHBOUR, SPEAKER, B, Candidate, Statistics
from tests.conftest import Person
from tests.engine.conftest import ask, remember


def candidate(pk: int, terms: dict[str, int], *, seq: int = 0, length: int = 10, **fields: object) -> Candidate:
    values: dict[str, object] = {"session_pk": pk, "session_id": f"chat:{pk}", "chunk_index": None, "speaker": ""}
    values |= {"sender_id": "", "agent_id": "", "memory_type": "episode", "created_at_ms": 0}
    return Candidate(terms=terms, pk=pk, seq=seq, length=length, **values | fields)  # type: ignore[arg-type]


def idf(documents: int, holding: int) -> float:
    return math.log(1 + (documents - holding + 0.5) / (holding + 0.5))


def test_a_single_term_scores_by_the_formula() -> None:
    [one] = candidates = [candidate(1, {"a": 3}, length=20)]
    score = ranking.ask("a b", ["a", "b"], candidates, Statistics(100, 1000)).score(one)
    weight = idf(100, 1) * 3 * (K1 + 1) / (3 + K1 * (1 - B + B * 20 / 10))
    most = (1 + 2 * NEIGHBOUR + SPEAKER) * (K1 + 1) * (idf(100, 1) + idf(100, 0))
    assert score.total == pytest.approx(weight / most)
    assert score.matched == ("a",)


def test_neighbours_share_their_evidence_and_passages_do_not() -> None:
    turns = [candidate(pk, {"a": 1}, seq=pk, session_pk=1) for pk in (1, 2, 4)]
    passages = [candidate(pk, {"a": 1}, seq=pk, session_pk=2, chunk_index=pk) for pk in (11, 12)]
    question = ranking.ask("a", ["a"], [*turns, *passages], Statistics(20, 200))
    one = question.score(turns[0])
    assert one.neighbours == pytest.approx(NEIGHBOUR * one.terms)
    assert question.score(turns[2]).neighbours == 0
    assert question.score(passages[0]).neighbours == 0


def test_a_named_speaker_adds_a_share_of_the_best() -> None:
    ann, anna = (candidate(pk, {"a": 1}, speaker=name) for pk, name in ((1, "Ann"), (2, "Anna")))
    question = ranking.ask("what did Ann say about a", ["a"], [ann, anna], Statistics(20, 200))
    assert question.score(ann).speaker == pytest.approx(SPEAKER * question.score(ann).terms)
    assert question.score(anna).speaker == 0


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
    many = [candidate(pk, {"a": 1}) for pk in range(1, 6)]
    question = ranking.ask("a", ["a"], many, Statistics(2, 20))
    assert all(0 < question.score(one).total <= 1 for one in many)


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
