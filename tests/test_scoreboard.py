"""The scoreboard reads LongMemEval's format, judges by turn and by session, and sees what comes back to a peer."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.answers.client import Said
from benchmarks.retrieval.compare import judge
from benchmarks.retrieval.questions import load
from benchmarks.scoreboard import returns
from benchmarks.scoreboard.peers import TOKENIZERS, Fts5, Mem0Process
from benchmarks.scoreboard.run import main

TURNS = [
    [
        {"role": "user", "content": "I bought a tent for the lake."},
        {"role": "assistant", "content": "Enjoy the weekend!"},
    ],
    [
        {"role": "user", "content": "My bicycle is green.", "has_answer": True},
        {"role": "assistant", "content": "A green one, noted."},
    ],
]
SAMPLE = {
    "question_id": "q1",
    "question": "Which color is my bicycle?",
    "haystack_session_ids": ["s1", "s2"],
    "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
    "haystack_sessions": TURNS,
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "longmemeval.json"
    path.write_text(json.dumps([SAMPLE, {**SAMPLE, "question_id": "q2_abs"}]), encoding="utf-8")
    return path


def test_the_public_file_is_read_with_roles_times_and_the_turns_that_answer(file: Path) -> None:
    questions = load(file)
    [question] = questions.questions
    assert (question.user, question.text, question.answered_by) == ("q1", SAMPLE["question"], {"s2:0"})
    assert [(told.id, told.session, told.role, told.text) for told in questions.told["q1"]] == [
        (f"{session}:{number}", session, turn["role"], turn["content"])
        for session, turns in zip(("s1", "s2"), TURNS, strict=True)
        for number, turn in enumerate(turns)
    ]
    assert questions.told["q1"][0].began_ms == 1_684_549_260_000


@pytest.mark.parametrize(
    ("found", "recall", "rank", "has_session"),
    [
        (["My bicycle is green."], 1.0, 1, True),
        (["Enjoy the weekend!", "A green one, noted."], 0.0, 0, True),
        (["Enjoy the weekend!", "unknown"], 0.0, 0, False),
    ],
    ids=["turn", "session", "neither"],
)
def test_an_answer_is_judged_by_turn_and_by_session(
    file: Path, found: list[str], recall: float, rank: int, has_session: bool
) -> None:
    [judged] = judge(load(file), lambda _question: found)
    assert (judged.recall, judged.rank) == (recall, rank)
    assert judged.any_session is judged.every_session is has_session


@pytest.mark.parametrize("tokenizer", TOKENIZERS.values())
def test_a_peer_finds_by_any_word_the_best_first(tokenizer: str) -> None:
    with closing(Fts5(tokenizer)) as peer:
        peer.say([Said("The kettle is blue."), Said("The kettle of my sister is red."), Said("Rain fell.")])
        assert next(one["text"] for one in peer.search('the "red" kettle')) == "The kettle of my sister is red."
        assert len(peer.search("kettle")) == 2
        assert peer.search("…") == []


def test_facts_come_back_to_a_plain_table() -> None:
    with closing(Fts5(TOKENIZERS["FTS5, porter"])) as peer:
        counts = dict(returns.of_peer(peer))
    assert counts == {"deleted": (0, 20, 0), "sent again": (10, 20, 0), "ingested again": (20, 20, 0)}


@pytest.mark.torture
def test_the_whole_scoreboard_runs_and_nothing_comes_back(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "scoreboard.jsonl"
    assert main(["--data", str(file), "--limit", "1", "--output", str(output)]) == 0
    printed = capfd.readouterr().out
    assert all(f"{step}: back of 20, lost 0" in printed for step in returns.STEPS)
    systems = [json.loads(line)["system"] for line in output.read_text(encoding="utf-8").splitlines()]
    assert {*systems} == {"gateway", *TOKENIZERS}


def test_mem0_is_asked_over_lines_of_json(tmp_path: Path) -> None:
    """A stand-in for its Python answers what the driver would."""
    python = tmp_path / "python"
    python.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        "told, arguments = [], sys.argv[2:]\n"
        "for line in sys.stdin:\n"
        "    user, call, values = json.loads(line)\n"
        "    told += [text for _, text, _ in values] if call == 'add' else []\n"
        "    found = [['1', one, arguments[1]] for one in told] if call == 'search' else []\n"
        "    print(json.dumps(found), flush=True)\n",
        encoding="utf-8",
    )
    python.chmod(0o755)
    with Mem0Process(str(python), "http://127.0.0.1:1/v1#mini?dimensions=384") as process:
        user = process.user("alice")
        user.store("The kettle is blue.")
        assert [(one["text"], one["session_id"]) for one in user.search("kettle")] == [("The kettle is blue.", "mini")]
    with pytest.raises(ValueError, match="--embedding must look like"):
        Mem0Process(str(python), "http://127.0.0.1:1/v1")
