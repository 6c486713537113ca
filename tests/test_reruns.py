"""The list of tests that passed only when they were run again."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
FAILURE = "2026-11-26 tests/test_a.py::test_b[c d] - AssertionError: 1 == 2\n"


def report(folder: Path, known: str, new: str) -> subprocess.CompletedProcess[str]:
    (folder / "list").write_text(f"# Comment\n{known}")
    (folder / "new").write_text(new)
    command = [PROJECT / ".ci" / "report_reruns", "list", "new"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_nothing_new_passes(tmp_path: Path) -> None:
    assert report(tmp_path, FAILURE, "").returncode == 0


def test_a_first_race_is_recorded(tmp_path: Path) -> None:
    done = report(tmp_path, FAILURE.replace("test_b", "test_other"), FAILURE)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "list").read_text().endswith(FAILURE)


@pytest.mark.parametrize("again", [FAILURE, FAILURE.replace("1 == 2", "2 == 3").replace("26", "27")])
def test_a_second_race_of_a_test_fails(tmp_path: Path, again: str) -> None:
    done = report(tmp_path, FAILURE, again)
    assert done.returncode == 1
    assert "tests/test_a.py::test_b[c d]" in done.stdout.splitlines()[-1]


def test_the_known_races_name_a_test_once_and_its_cause() -> None:
    entries = [line for line in (PROJECT / ".ci" / "reruns.txt").read_text().splitlines() if not line.startswith("#")]
    assert [entry for entry in entries if not re.fullmatch(r"\d{4}-\d\d-\d\d \S+::.+ - .+", entry)] == []
    tests = [entry.split(" ", 1)[1].partition(" - ")[0] for entry in entries]
    assert len(tests) == len(set(tests))
