"""Compare searches through the gateway (A) and the reference (B), alternately on one machine, as ratios."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import load
from benchmarks.processes import PROJECT, call, cpu_seconds, free_port, gateway, python, upload

RESOURCES = 20
LEAST_THROUGHPUT = 1.25
MOST_CPU = 0.8


@dataclass(frozen=True, slots=True)
class Service:
    """A running service and the request to send."""

    name: str
    pid: int
    request: load.Request


@dataclass(frozen=True, slots=True)
class Round:
    """A measurement: requests per second, CPU milliseconds per request, median latency in milliseconds."""

    per_second: float
    cpu_ms: float
    median_ms: float


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    with tempfile.TemporaryDirectory() as folder, services(Path(folder), options) as (ours, theirs):
        missed = [_compare(ours, theirs, connections, options) for connections in options.connections]
    return int(any(missed))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks http", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="turns of each service per number of connections")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of a turn")
    parser.add_argument("--latency-ms", type=float, default=5.0, help="what one upstream search takes")
    parser.add_argument("--connections", type=int, nargs="+", default=[8, 32])
    parser.add_argument("--no-log", action="store_true", help="no bodies in our log, and no log at all in the other's")
    return parser.parse_args(arguments)


@contextmanager
def services(folder: Path, options: argparse.Namespace) -> Iterator[tuple[Service, Service]]:
    """Start both services, each with `RESOURCES` files of one user, and their common upstream."""
    upstream_port, port = free_port(), free_port()
    db = folder / "reference.sqlite3"
    reference = ["-m", "benchmarks.http.reference", "--db", str(db)]
    seeded = subprocess.run(
        [sys.executable, *reference, "--seed", str(RESOURCES)], cwd=PROJECT, check=True, capture_output=True, text=True
    )
    address = f"http://127.0.0.1:{upstream_port}"
    stub = ["-m", "benchmarks.upstream", "--port", str(upstream_port), "--latency-ms", str(options.latency_ms)]
    quiet = ["--no-log"] if options.no_log else []
    serve = [*reference, "--port", str(port), "--upstream", address, *quiet]
    with (
        python(stub, upstream_port, folder / "upstream.log", os.environ),
        gateway(folder, BACKEND_BASE_URL=address, LOG_BODIES=str(not options.no_log)) as (gateway_port, gateway_pid),
        python(serve, port, folder / "reference.log", os.environ) as pid,
    ):
        key = call(gateway_port, "/users", {"user_id": "u_bench"})["user_key"]
        for number in range(RESOURCES):
            answer = upload(gateway_port, key, f"contract-{number}.txt", f"Contract number {number}.")
            assert answer["status"] == "extracted", answer
        yield (
            Service("gateway", gateway_pid, _search(gateway_port, key)),
            Service("reference", pid, _search(port, seeded.stdout.strip())),
        )


def _search(port: int, key: str) -> load.Request:
    """Return the source document's example, with the key in the body, which both services accept."""
    body = {
        "user_id": "u_bench",
        "user_key": key,
        "query": "when is the supplier paid?",
        "scope": ["resources"],
        "method": "hybrid",
        "top_k": 8,
    }
    found = call(port, "/memories/search", body)["results"]
    assert len(found) == 8, f"a search brings {len(found)} results"
    return load.Request.post(port, "/memories/search", json.dumps(body).encode())


def _compare(ours: Service, theirs: Service, connections: int, options: argparse.Namespace) -> bool:
    """Print the comparison for a number of connections. Return True if a target was missed."""
    for service in (ours, theirs):
        load.run(service.request, connections, 1.0)
    pairs = [
        (_turn(ours, connections, options.seconds), _turn(theirs, connections, options.seconds))
        for _ in range(options.rounds)
    ]
    throughput = [a.per_second / b.per_second for a, b in pairs]
    cpu = [a.cpu_ms / b.cpu_ms for a, b in pairs]
    print(f"c = {connections}, {options.rounds} turns of {options.seconds:g} s each")
    for service, turns in zip((ours, theirs), zip(*pairs, strict=True), strict=True):
        print(f"  {service.name:10} {_summary(turns)}")
    print(f"  requests/s  {_spread(throughput)} × the reference (target ≥ {LEAST_THROUGHPUT})")
    print(f"  CPU/request {_spread(cpu)} × the reference (target ≤ {MOST_CPU})", flush=True)
    return statistics.median(throughput) < LEAST_THROUGHPUT or statistics.median(cpu) > MOST_CPU


def _turn(service: Service, connections: int, seconds: float) -> Round:
    before = cpu_seconds(service.pid)
    result = load.run(service.request, connections, seconds)
    result.require_ok()
    cpu = cpu_seconds(service.pid) - before
    return Round(result.per_second, cpu / len(result.latencies) * 1000, result.percentile(0.5) * 1000)


def _summary(turns: Sequence[Round]) -> str:
    per_second = statistics.median(turn.per_second for turn in turns)
    cpu_ms = statistics.median(turn.cpu_ms for turn in turns)
    median_ms = statistics.median(turn.median_ms for turn in turns)
    return f"{per_second:7.0f} requests/s, {cpu_ms:5.2f} ms CPU per request, median {median_ms:6.1f} ms"


def _spread(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"
