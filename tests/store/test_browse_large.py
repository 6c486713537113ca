"""With a million memories operators wait no longer than with a thousand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.million import MAX_MS, MAX_RATIO, two_gateways
from tests.server import PROJECT, RunningServer

PAGE_MS = 20.0
"""What a page or an RPC call takes beside: the ratio is that of the whole."""


def asked(server: RunningServer) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.store.browse_calls"]
    done = subprocess.run(command, cwd=PROJECT, env=server.env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, float] = json.loads(done.stdout)
    return found


@pytest.mark.torture
def test_a_million_is_as_quick_as_a_thousand(tmp_path: Path) -> None:
    with two_gateways(tmp_path) as (few, many):
        small, large = asked(few), asked(many)
    for name, took in large.items():
        sys.stdout.write(f"{name:50} {small[name]:8.1f} ms {took:8.1f} ms\n")
    scan = large.pop("a scan")
    slow = {name for name, took in large.items() if took > MAX_MS}
    slow |= {name for name, took in large.items() if took + PAGE_MS > MAX_RATIO * (small[name] + PAGE_MS)}
    assert not slow
    assert large["two years: everything"] <= 0.10 * scan
