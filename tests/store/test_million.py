"""The engine with a million memories of a thousand users, beside FTS5 and LanceDB."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from tests.server import PROJECT


@pytest.mark.torture
@pytest.mark.skipif(not importlib.util.find_spec("lancedb"), reason="needs LanceDB: make bench installs it")
def test_a_million_memories_meet_every_target() -> None:
    command = [sys.executable, "-m", "benchmarks", "engine", "--rows", "1000000"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
