"""Limits that several gateways count together in Redis, and what happens while Redis is away."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from core.limits.shared_limits import RETRY_SECONDS, RedisCounter
from tests.server import RunningServer, free_port, running_server, wait_until

pytestmark = pytest.mark.skipif(not shutil.which("redis-server"), reason="needs redis-server")

LIMIT = 60


class RedisServer:
    """A Redis on loopback that can be stopped and started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = ["--port", str(self.port), "--save", "", "--appendonly", "no", "--dir", str(self._folder)]
        self._process = subprocess.Popen(["redis-server", *options], stdout=subprocess.PIPE)
        assert self._process.stdout
        for line in self._process.stdout:
            if b"Ready to accept connections" in line:
                return
        raise AssertionError("Redis does not start")

    def stop(self) -> None:
        if self._process:
            with self._process:
                self._process.kill()
            self._process = None


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.stop()


def test_three_processes_count_together(redis: RedisServer) -> None:
    gateways = [RedisCounter(redis.url).buckets(LIMIT, "per_key") for _ in range(3)]
    with ThreadPoolExecutor(12) as pool:
        waits = list(pool.map(lambda number: gateways[number % 3].take("ann"), range(3 * LIMIT)))
    assert waits.count(0.0) == LIMIT
    assert all(0 <= wait <= 60 for wait in waits)
    assert gateways[0].wait_seconds("ann") > 0
    assert gateways[0].take("ben") == 0.0


def test_limits_with_other_names_are_apart(redis: RedisServer) -> None:
    counter = RedisCounter(redis.url)
    buckets = [counter.buckets(1, name) for name in ("per_key", "failures")]
    assert [bucket.take("ann") for bucket in buckets] == [0.0, 0.0]
    assert all(bucket.take("ann") > 0 for bucket in buckets)


def test_no_limit_asks_nobody() -> None:
    buckets = RedisCounter("redis://127.0.0.1:1").buckets(0, "per_key")
    assert [buckets.take("ann") for _ in range(1000)] == [0.0] * 1000


def test_an_absent_redis_delays_one_request_only(redis: RedisServer) -> None:
    counter = RedisCounter(redis.url)
    buckets = counter.buckets(LIMIT, "per_key")
    redis.stop()
    began = time.monotonic()
    waits = [buckets.take("ann") for _ in range(LIMIT + 1)]
    assert time.monotonic() - began < 2
    assert waits[:LIMIT] == [0.0] * LIMIT
    assert waits[LIMIT] > 0
    assert not counter.answers()


@pytest.mark.slow
def test_gateways_share_a_limit_and_go_on_without_redis(redis: RedisServer, tmp_path: Path) -> None:
    folder = tmp_path / "gateway"
    folder.mkdir()
    settings = {"MEMORY_GATEWAY_REDIS_URL": redis.url, "MEMORY_GATEWAY_RATE_LIMIT_PER_MINUTE": str(LIMIT)}
    with running_server(folder, "--workers", "3", **settings) as server:

        def new_user(name: str) -> dict[str, str]:
            key = requests.post(f"{server.url}/users", json={"user_id": name}, timeout=10).json()["user_key"]
            return {"Authorization": f"Bearer {key}"}

        def statuses(key: dict[str, str], number: int) -> Counter[int]:
            def ask(_: int) -> int:  # on a new connection, so that the processes take turns
                return requests.get(f"{server.url}/resources", headers=key, timeout=30).status_code

            with ThreadPoolExecutor(6) as pool:
                return Counter(pool.map(ask, range(number)))

        counted = statuses(new_user("ann"), 2 * LIMIT)
        assert abs(counted[200] - LIMIT) <= 2
        assert counted[200] + counted[429] == 2 * LIMIT
        redis.stop()
        assert statuses(new_user("ben"), 30) == {200: 30}
        wait_until(lambda: "Redis" in " ".join(health(server).get("problems", [])), seconds=5)
        redis.start()
        wait_until(lambda: health(server)["status"] == "ok", seconds=5)
        time.sleep(RETRY_SECONDS)
        assert abs(statuses(new_user("charlie"), 2 * LIMIT)[200] - LIMIT) <= 2


def health(server: RunningServer) -> dict[str, Any]:
    document: dict[str, Any] = requests.get(f"{server.url}/health", timeout=10).json()
    return document
