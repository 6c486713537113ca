"""The benchmark of answers runs against a real gateway, with the first cases of each kind."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.answers.kinds import KINDS
from tests.forked import PROJECT


@pytest.mark.slow
def test_the_first_own_cases_pass() -> None:
    env = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    command = [sys.executable, "-m", "benchmarks", "answers", "--limit", "1", "--part", "own", "--show"]
    done = subprocess.run(command, cwd=PROJECT, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {line.split()[0] for line in done.stdout.splitlines()[1:-1]} == {kind.name for kind in KINDS}
