"""Measure the search scope `resources` of a user with 2,000 files, with an upstream that takes 20 ms per call."""

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.processes import PROJECT, call, cpu_seconds, free_port, gateway, gateway_environment, python

RESOURCES = 2000
LATENCY_MS = 20.0
SESSIONS_PER_CALL = 50
CALLS_AT_ONCE = 8
MOST_OVER_IDEAL = 1.35
WARM_UP = 3


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    ideal_ms = math.ceil(options.resources / SESSIONS_PER_CALL / CALLS_AT_ONCE) * LATENCY_MS
    with tempfile.TemporaryDirectory() as folder:
        times, cpu_ms = _measure(Path(folder), options.resources, options.searches)
    median = statistics.median(times)
    print(
        f"{options.resources} resources, {math.ceil(options.resources / SESSIONS_PER_CALL)} calls of {LATENCY_MS:g} ms,"
    )
    print(f"at most {CALLS_AT_ONCE} at once: ideal {ideal_ms:g} ms")
    print(f"  median of {len(times)} searches {median:.1f} ms (fastest {min(times):.1f}, slowest {max(times):.1f})")
    print(f"  {cpu_ms:.1f} ms of the gateway's processor time for each")
    print(f"  {median / ideal_ms:.2f} × the ideal (target ≤ {MOST_OVER_IDEAL})")
    return int(median / ideal_ms > MOST_OVER_IDEAL)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks resource_scope", description=__doc__)
    parser.add_argument("--resources", type=int, default=RESOURCES)
    parser.add_argument("--searches", type=int, default=30)
    return parser.parse_args(arguments)


def _measure(folder: Path, resources: int, searches: int) -> tuple[list[float], float]:
    """Return the milliseconds of each search, one after the other, and the gateway's mean CPU milliseconds."""
    upstream_port = free_port()
    stub = ["-m", "benchmarks.upstream", "--port", str(upstream_port), "--latency-ms", str(LATENCY_MS)]
    address = f"http://127.0.0.1:{upstream_port}"
    settings = {"BACKEND_BASE_URL": address, "RESOURCE_SEARCH_BATCH_SIZE": str(SESSIONS_PER_CALL)}
    with (
        python(stub, upstream_port, folder / "upstream.log", os.environ),
        gateway(folder, **settings) as (port, pid),
    ):
        key = call(port, "/users", {"user_id": "u_bench"})["user_key"]
        rows = [sys.executable, "-m", "benchmarks.many_resources", "u_bench", str(resources)]
        subprocess.run(rows, cwd=PROJECT, env=gateway_environment(folder), check=True)
        for _ in range(WARM_UP):
            _search(port, key)
        before = cpu_seconds(pid)
        times = [_search(port, key) for _ in range(searches)]
        return times, (cpu_seconds(pid) - before) * 1000 / searches


def _search(port: int, key: str) -> float:
    body = {"query": "when is the supplier paid?", "scope": ["resources"]}
    began = time.perf_counter()
    found = call(port, "/memories/search", body, key=key)["results"]
    took = (time.perf_counter() - began) * 1000
    assert len(found) == 8, f"a search brings {len(found)} results"
    return took
