"""Browsing a million memories takes no longer than browsing a thousand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked import PROJECT
from tests.million import MAX_MS, MAX_RATIO, two_gateways
from tests.server import RunningServer

PAGE_MS = 20.0
"""Time that a page or an RPC call takes besides the query; the ratio compares the sums."""


def measure(server: RunningServer) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.store.browse_calls"]
    run = subprocess.run(command, cwd=PROJECT, env=server.env, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    durations_ms: dict[str, float] = json.loads(run.stdout)
    return durations_ms


@pytest.mark.torture
def test_browsing_a_million_memories_is_as_fast_as_a_thousand(tmp_path: Path) -> None:
    with two_gateways(tmp_path) as (few, many):
        small, large = measure(few), measure(many)
    for name, ms in large.items():
        sys.stdout.write(f"{name:50} {small[name]:8.1f} ms {ms:8.1f} ms\n")
    scan = large.pop("a scan")
    slow = {name for name, ms in large.items() if ms > MAX_MS}
    lists = [name for name in large if not name.startswith(("two years", "a month", "a day"))]
    slow |= {name for name in lists if large[name] + PAGE_MS > MAX_RATIO * (small[name] + PAGE_MS)}
    assert not slow
    # Dashboards of all users add up what each user has on each day, and partial days by the rows.
    assert large["two years: everything"] <= scan
