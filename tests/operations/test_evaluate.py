"""`manage.py evaluate`: labeled questions, comparisons, and questions from decisions."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from engines.embedded.engine import EmbeddedEngine
from operations import evaluation
from store.models import Memory
from tests.conftest import Person
from tests.store.conftest import remember

pytestmark = pytest.mark.django_db

TEXTS = ("The lease of the flat ends in May", "My bicycle stands in the cellar", "We saw a lake", "The lake was cold")


@pytest.fixture
def ids(alice: Person) -> dict[str, str]:
    """Alice's memories: id by text."""
    remember(EmbeddedEngine(), alice.owner, *TEXTS)
    return dict(Memory.objects.values_list("text", "memory_id"))


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(*arguments: Any) -> Any:
    out = StringIO()
    call_command("evaluate", *map(str, arguments), "--json", stdout=out, stderr=StringIO())
    return json.loads(out.getvalue())


def test_recall_and_rank_are_those_of_the_results(ids: dict[str, str], tmp_path: Path) -> None:
    questions = write(
        tmp_path / "questions.jsonl",
        {"user": "alice", "query": "bicycle", "expected": [ids[TEXTS[1]]]},
        {"user": "alice", "query": "lake", "texts": ["saw a LAKE", "was cold"]},
        {"user": "alice", "query": "zebra", "expected": [ids[TEXTS[0]]]},
    )
    found = run("--questions", questions, "--method", "keyword")["methods"]["keyword"]
    assert found["questions"] == 3
    assert found["recall@1"]["mean"] == pytest.approx((1 + 0.5 + 0) / 3, abs=1e-4)
    assert found["recall@10"]["mean"] == pytest.approx(2 / 3, abs=1e-4)
    assert found["mrr"]["mean"] == pytest.approx(2 / 3, abs=1e-4)
    assert 0 <= found["recall@1"]["low"] <= found["recall@1"]["mean"] <= found["recall@1"]["high"] <= 1
    assert 0 < found["p50_ms"] <= found["p95_ms"]


def test_questions_that_got_worse_are_listed(ids: dict[str, str], tmp_path: Path) -> None:
    bicycle = {"user": "alice", "query": "bicycle", "expected": [ids[TEXTS[1]]]}
    lease = {"user": "alice", "query": "lease", "expected": [ids[TEXTS[0]]]}
    questions, saved = write(tmp_path / "questions.jsonl", bicycle, lease), tmp_path / "before.jsonl"
    run("--questions", questions, "--method", "keyword", "--save", saved)
    Memory.objects.filter(memory_id=ids[TEXTS[1]]).delete()
    compared = run("--questions", questions, "--method", "keyword", "--compare", saved)["compared"]["keyword"]
    assert compared["questions"] == 2
    assert compared["recall@10"]["mean"] == -0.5
    assert compared["worse"] == [{"user": "alice", "query": "bicycle", "recall@10": -1.0, "reciprocal_rank": -1.0}]


def test_methods_are_compared_with_the_first(ids: dict[str, str], tmp_path: Path) -> None:
    questions = write(tmp_path / "q.jsonl", {"user": "alice", "query": "lake", "expected": [ids[TEXTS[2]]]})
    answer = run("--questions", questions, "--method", "keyword", "--method", "hybrid")
    assert list(answer["methods"]) == ["keyword", "hybrid"]
    assert answer["compared"]["hybrid"]["worse"] == []


def test_edits_and_deletions_become_questions_that_hold(alice: Person, ids: dict[str, str], tmp_path: Path) -> None:
    edited, deleted = ids[TEXTS[0]], ids[TEXTS[1]]
    alice.client.patch(f"/memories/{edited}", {"override_text": "The lease ends in June"}, "application/json")
    alice.client.delete(f"/memories/{deleted}")
    questions = tmp_path / "questions.jsonl"
    assert run("--write", questions, "--user", "alice")["questions"] == 2
    made = evaluation.load(questions)
    assert [(one.label, one.expected, one.forbidden) for one in made] == [
        ("edit", (edited,), ()),
        ("deletion", (), (deleted,)),
    ]
    found = run("--questions", questions)["methods"]["hybrid"]
    assert (found["recall@1"]["mean"], found["forbidden_found"]) == (1.0, 0)


def test_a_forbidden_memory_ends_with_exit_code_1(ids: dict[str, str], tmp_path: Path) -> None:
    questions = write(tmp_path / "q.jsonl", {"user": "alice", "query": "lake", "forbidden": [ids[TEXTS[2]]]})
    with pytest.raises(SystemExit, match="1"):
        run("--questions", questions)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"user": "alice", "query": "x"}\n', "line 1: .*one of expected, texts and forbidden"),
        ('{"user": "alice", "query": "x", "texts": ["y"]}\n{"user": 7}\n', "line 2"),
        ('{"user": "alice", "query": "x", "expect": ["y"]}\n', "line 1: Extra inputs are not permitted"),
        ("not JSON\n", "line 1: Invalid JSON"),
        ("\n", "is empty"),
        ('{"user": "nobody", "query": "x", "texts": ["y"]}\n', "no such user"),
    ],
)
def test_bad_questions_are_refused(alice: Person, tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(content)
    with pytest.raises(CommandError, match=reason) as refused:
        run("--questions", path)
    assert refused.value.returncode == 2


def test_an_existing_file_is_not_overwritten(alice: Person, tmp_path: Path) -> None:
    path = write(tmp_path / "questions.jsonl")
    with pytest.raises(CommandError, match="exists already"):
        run("--write", path)
