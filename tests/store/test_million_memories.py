"""The engine benchmark with a million memories of a thousand users, compared with FTS5 and LanceDB."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from tests.forked import PROJECT


@pytest.mark.torture
@pytest.mark.skipif(not importlib.util.find_spec("lancedb"), reason="needs LanceDB: make bench installs it")
def test_the_engine_meets_every_target_with_a_million_memories() -> None:
    command = [sys.executable, "-m", "benchmarks", "engine", "--rows", "1000000"]
    run = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr[-2000:]
