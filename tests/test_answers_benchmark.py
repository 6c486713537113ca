"""The benchmark of answers runs against a real gateway, with the first cases of each kind."""

from __future__ import annotations

import pytest

from benchmarks.answers import run
from benchmarks.answers.kinds import KINDS


@pytest.mark.slow
def test_the_first_own_cases_pass(capfd: pytest.CaptureFixture[str]) -> None:
    missed = run.main(["--limit", "3", "--half", "own", "--show"])
    shown = capfd.readouterr()
    assert not missed, shown.out + shown.err
    assert {line.split()[0] for line in shown.out.splitlines()[1:-1]} == {kind.name for kind in KINDS}
