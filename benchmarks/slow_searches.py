"""Measure a user's searches while another sends 100 slow ones at once: their latency, × that of an idle gateway.

Busy and idle turns alternate, so that other load on the machine is in both.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import uvloop

from benchmarks.load import Request, Result, run_on_loop
from benchmarks.processes import PROJECT, call, gateway, gateway_environment

MOST: Final = 1.5
"""The target of the 95th percentile beside slow searches, × that of an idle gateway."""
CLIENT: Final = "many-00000"
"""The user of `seed_memories`, whose searches read many memories."""
SLOW_AT_ONCE: Final = 100
PAUSE_SECONDS: Final = 0.02
"""The time between an answer and the other user's next search."""
_NOON: Final = 1_781_172_177_000


async def turn(slow: Request, other: Request, seconds: float) -> tuple[Result, Result, Result]:
    """Return the answers to the slow searches, and those of the other user beside them and alone."""
    busy = [run_on_loop(slow, SLOW_AT_ONCE, seconds), run_on_loop(other, 1, seconds, PAUSE_SECONDS)]
    of_client, beside = await asyncio.gather(*busy)
    return of_client, beside, await run_on_loop(other, 1, seconds, PAUSE_SECONDS)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks slow_searches", description=__doc__)
    parser.add_argument("--memories", type=int, default=50_000, help="of the client with slow searches")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a turn")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, requests(Path(folder), options.memories) as (slow, other):
        uvloop.run(turn(slow, other, 1.0))
        turns = [uvloop.run(turn(slow, other, options.seconds)) for _ in range(options.turns)]
    of_client, beside, idle = (_joined(results) for results in zip(*turns, strict=True))
    for name, result in (("slow searches", of_client), ("others beside", beside), ("others alone", idle)):
        shown = ", ".join(f"p{share} {result.percentile(share / 100) * 1000:.1f} ms" for share in (50, 95, 99))
        print(f"{name:14} {shown} ({len(result.latencies)} answers)")
    ratio = beside.percentile(0.95) / idle.percentile(0.95)
    print(f"p95 beside slow searches: {ratio:.2f} × idle (target ≤ {MOST})")
    return int(ratio > MOST)


@contextmanager
def requests(folder: Path, memories: int) -> Iterator[tuple[Request, Request]]:
    """Run a gateway; yield a search of a user with that many memories, and one of a user with a hundred."""
    with gateway(folder) as (port, _pid):
        seed = [sys.executable, "manage.py", "seed_memories", str(memories), "--users", "1"]
        subprocess.run(seed, cwd=PROJECT, env=gateway_environment(folder), check=True, capture_output=True)
        key = call(port, "/users", {"user_id": "ann"})["user_key"]
        messages = [
            {"sender_id": "ann", "role": "user", "timestamp": _NOON + number, "content": f"Rent {number} is due."}
            for number in range(100)
        ]
        call(port, "/memories/add", {"session_id": "chat:rent", "messages": messages}, key=key)
        slow = "Does the invoice, the garden or the train to Hamburg depend on the new supplier or the budget?"
        of_client = call(port, "/users", {"user_id": CLIENT})["user_key"]
        yield _search(port, of_client, slow), _search(port, key, "When is rent 7 due?")


def _search(port: int, key: str, query: str) -> Request:
    body = {"query": query, "scope": ["all_user_memory"]}
    assert call(port, "/memories/search", body, key=key)["results"]
    return Request.post(port, "/memories/search", json.dumps(body).encode(), key=key)


def _joined(results: Sequence[Result]) -> Result:
    joined = Result(sum(result.seconds for result in results))
    for result in results:
        result.require_ok()
        joined.latencies += result.latencies
    return joined
