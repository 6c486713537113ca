"""Ranking as numbers: the formula worked out by hand, the same on every database."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from engine.embedded import ranking
from engine.embedded.engine import EmbeddedEngine
from engine.embedded.pages import FACTS
from engine.embedded.ranking import K1, NEIGHBOUR, SPEAKER, B
from engine.embedded.snapshot import Postings, Snapshot
from tests.conftest import Person
from tests.engine.conftest import ask, remember


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


def snapshot(terms: Sequence[str], documents: Sequence[Document], *, count: int, tokens: int) -> Snapshot:
    documents = sorted(documents)
    names = sorted({one.speaker for one in documents})
    facts = np.zeros(len(documents), FACTS)
    postings = []
    for row, one in enumerate(documents):
        for field in ("pk", "length", "at", "seq", "is_turn"):
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
    most = (1 + 2 * NEIGHBOUR + SPEAKER) * (K1 + 1) * (idf(100, 1) + idf(100, 0))
    assert score["score"] == pytest.approx(weight / most)
    assert score["matched"] == ["a"]


def test_neighbours_share_their_evidence_and_passages_do_not() -> None:
    turns = [Document(3, "a", place=8), Document(4, "a", place=9), Document(1, "a", place=1)]
    passage = Document(2, "a", place=2, is_turn=False)
    found = {pk: leg["parts"] for pk, leg in scores("a", ["a"], [*turns, passage]).items()}
    assert list(found) == [3, 4, 1, 2]
    assert found[3]["neighbours"] == found[4]["neighbours"] == pytest.approx(NEIGHBOUR * found[1]["terms"])
    assert found[1]["neighbours"] == found[2]["neighbours"] == 0


def test_a_named_speaker_adds_a_share_of_the_best() -> None:
    two = [Document(pk, "a", speaker=name) for pk, name in ((1, "Ann"), (2, "Anna"))]
    found = {pk: leg["parts"] for pk, leg in scores("what did Ann say about a", ["a"], two).items()}
    assert found[1]["speaker"] == pytest.approx(SPEAKER * found[1]["terms"])
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


EXPECTED = [(3, 0.13498427092), (0, 0.111780287822), (4, 0.110111738109), (2, 0.101878469779), (1, 0.048333410154)]
