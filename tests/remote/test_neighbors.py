"""Noisy-neighbor isolation: failing calls of one user do not slow the requests of others."""

from __future__ import annotations

import contextlib
import itertools
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import requests

from remote.client.client import READS_AT_ONCE
from tests.remote.conftest import NOON
from tests.server import RunningServer, free_port, running_server, wait_until
from tests.stub_upstream import Fault, StubUpstream

MEBIBYTE = 2**20
CONNECTIONS = 48  # of the user whose calls fail: more than the gateway has threads
PAUSE_SECONDS = 1.0  # between a response to that user and the next request, unless `Retry-After` is longer
MEASURE_SECONDS = 30.0
MIN_CALLS = 100  # of each kind, or the p99 would be one slow response
MAX_P99_RATIO = 2.0
MAX_SECONDS = 20.0  # for calls of another user while calls hang for ten minutes
QUEUED = {"request_id": "endless", "data": {"status": "queued"}}
FAULTS = {
    "silence": Fault(hang_seconds=600),
    "one byte a second": Fault(drip_seconds=1),
    "resets": Fault(reset=True),
    "half an answer": Fault(truncate=True),
    "500": Fault(status=500, body={"error": {"code": "INTERNAL_ERROR"}}),
    "503": Fault(status=503, body={}),
    "429": Fault(status=429, headers={"Retry-After": "1"}, body={}),
    "no json": Fault(body=b"<html>", content_type="text/html"),
    "another shape": Fault(body={"request_id": "x", "data": {"status": 7, "episodes": {}}}),
    "an endless body": Fault(size_bytes=64 * MEBIBYTE),
    "a gzip bomb": Fault(bomb_bytes=64 * MEBIBYTE),
    "tasks without end": Fault(status=202, body=QUEUED),
}


@dataclass
class User:
    """A client of one user and one gateway, for one thread at a time."""

    url: str
    user_id: str
    key: str
    numbers: Iterator[int] = field(default_factory=itertools.count)
    acknowledged: set[str] = field(default_factory=set)
    http: requests.Session = field(default_factory=requests.Session)

    def reconnected(self) -> User:
        """Return the same client with a separate connection."""
        return replace(self, http=requests.Session())

    @property
    def session_id(self) -> str:
        return f"chat:{self.user_id}"

    def send(self, method: str, path: str, **options: Any) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.key}"}
        return self.http.request(method, self.url + path, headers=headers, timeout=150, **options)

    def search(self) -> requests.Response:
        body = {"query": "rent", "scope": ["all_user_memory"], "include_profile": False}
        return self.send("POST", "/memories/search", json=body)

    def add(self) -> requests.Response:
        number = next(self.numbers)
        content = f"message {number}"
        message = {
            "sender_id": self.user_id,
            "role": "user",
            "timestamp": NOON + number,
            "content": f"{content}, the rent.",
        }
        answer = self.send("POST", "/memories/add", json={"session_id": self.session_id, "messages": [message]})
        if answer.status_code == 200:
            self.acknowledged.add(content)
        return answer

    def flush(self) -> requests.Response:
        return self.send("POST", "/memories/flush", json={"session_id": self.session_id})

    def upload(self) -> requests.Response:
        text = f"rent number {next(self.numbers)} of {self.user_id}".encode()
        return self.send("POST", "/resources", files={"file": ("rent.txt", text)})

    def list_resources(self) -> requests.Response:
        return self.send("GET", "/resources")

    def list_memories(self) -> requests.Response:
        return self.send("GET", "/memories")


def new_user(server: RunningServer, user_id: str) -> User:
    created = requests.post(f"{server.url}/users", json={"user_id": user_id}, timeout=30).json()
    return User(server.url, user_id, created["user_key"])


@contextlib.contextmanager
def gateway(folder: Path, base_url: str, **env: str) -> Iterator[RunningServer]:
    with running_server(folder, MEMORY_GATEWAY_BACKEND_BASE_URL=base_url, **env) as server:
        yield server


@contextlib.contextmanager
def repeated_requests(noisy: User) -> Iterator[Counter[int]]:
    """Send requests of the user over `CONNECTIONS` connections repeatedly, and yield the counts of their statuses.

    Asserts that every error response is a problem document of the gateway.
    """
    statuses: Counter[int] = Counter()
    has_ended = threading.Event()

    def repeat_requests(number: int) -> None:
        own = User(noisy.url, noisy.user_id, noisy.key, itertools.count(number * 1_000_000), noisy.acknowledged)
        call = {0: own.flush, 1: own.upload, 2: own.add, 3: own.add}.get(number % 12, own.search)
        while not has_ended.is_set():
            answer = call()
            assert_gateway_response(answer)
            statuses[answer.status_code] += 1
            pause = max(PAUSE_SECONDS, float(answer.headers.get("Retry-After", 0)))
            has_ended.wait(pause * random.uniform(1, 2))  # jitter, as careful clients use

    with ThreadPoolExecutor(CONNECTIONS) as executor:
        running = [executor.submit(repeat_requests, number) for number in range(CONNECTIONS)]
        try:
            yield statuses
        finally:
            has_ended.set()
    for one in running:
        one.result()


def assert_gateway_response(answer: requests.Response) -> None:
    assert answer.status_code in {200, 502, 503}, answer.text
    if answer.status_code != 200:
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["status"] == answer.status_code


def test_hanging_calls_of_one_user_do_not_block_others(tmp_path: Path) -> None:
    with StubUpstream() as stub, gateway(tmp_path, stub.url, MEMORY_GATEWAY_BACKEND_SEARCH_SECONDS="8") as server:
        alice, bob = new_user(server, "alice"), new_user(server, "bob")
        alice.add()
        with ThreadPoolExecutor(CONNECTIONS) as executor, stub.failing_for("alice", FAULTS["silence"]):
            pending_requests = [executor.submit(alice.reconnected().search) for _ in range(CONNECTIONS)]
            wait_until(lambda: stub.most_at_once["search"] >= READS_AT_ONCE // 2)
            began = time.monotonic()
            for call in (bob.add, bob.flush, bob.search, bob.list_resources, bob.list_memories, bob.upload):
                assert call().status_code == 200
            took = time.monotonic() - began
            assert not any(one.done() for one in pending_requests)
        assert took < MAX_SECONDS
        assert {one.result().status_code for one in pending_requests} == {200}


# --- torture tests ---------------------------------------------------------------------------------------------------


@pytest.fixture
def stub() -> Iterator[StubUpstream]:
    """A new stub for each fault, or retries of one would disturb the measurement of the next."""
    with StubUpstream() as running:
        running.tasks["endless"] = [{"status": "processing"}]
        yield running


@pytest.fixture
def undisturbed(stub: StubUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A gateway without failing calls."""
    with gateway(tmp_path_factory.mktemp("undisturbed"), stub.url) as server:
        yield server


@pytest.fixture
def disturbed(stub: StubUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A gateway on which the calls of one user fail."""
    with gateway(tmp_path_factory.mktemp("disturbed"), stub.url) as server:
        yield server


@pytest.mark.torture
@pytest.mark.parametrize("fault", FAULTS)
def test_failing_calls_of_one_user_at_most_double_the_p99_of_others(
    stub: StubUpstream, undisturbed: RunningServer, disturbed: RunningServer, fault: str
) -> None:
    noisy = new_user(disturbed, "noisy")
    noisy.add()
    neighbors = (new_user(undisturbed, "bob"), new_user(disturbed, "bob"))
    with repeated_requests(noisy) as statuses, stub.failing_for(noisy.user_id, FAULTS[fault]):
        time.sleep(2 * PAUSE_SECONDS)
        report = assert_p99_not_affected(neighbors, ("search", "list_resources", "list_memories", "upload"))
    print(fault, report, dict(statuses), flush=True)  # noqa: T201
    assert stub.failed_for[noisy.user_id] >= 10
    assert_stored_once(stub, noisy)


@pytest.mark.torture
def test_an_absent_upstream_does_not_slow_requests_that_do_not_need_it(
    undisturbed: RunningServer, tmp_path: Path
) -> None:
    with gateway(tmp_path, f"http://127.0.0.1:{free_port()}") as disturbed:
        noisy = new_user(disturbed, "noisy")
        neighbors = (new_user(undisturbed, "bob"), new_user(disturbed, "bob"))
        with repeated_requests(noisy) as statuses:
            report = assert_p99_not_affected(neighbors, ("list_resources", "list_memories"))
    print("refused", report, dict(statuses))  # noqa: T201


def assert_p99_not_affected(neighbors: tuple[User, User], names: Sequence[str]) -> dict[str, str]:
    """Assert that the p99 with a failing neighbor is at most `MAX_P99_RATIO` times the p99 without one.

    The gateways are called alternately, so that other load on the machine slows both; each kind of call has a thread.
    Returns the p99 of both gateways in milliseconds and the number of calls, for printing.
    """
    with ThreadPoolExecutor(len(names)) as executor:
        measured = dict(zip(names, executor.map(lambda name: measure_alternately(neighbors, name), names), strict=True))
    ratios = {name: p99(times[1]) / p99(times[0]) for name, times in measured.items()}
    report = {
        name: f"{p99(times[0]) * 1000:.0f}/{p99(times[1]) * 1000:.0f} of {len(times[0])}"
        for name, times in measured.items()
    }
    assert max(ratios.values()) <= MAX_P99_RATIO, report
    return report


def measure_alternately(neighbors: tuple[User, User], name: str) -> tuple[list[float], list[float]]:
    times: tuple[list[float], list[float]] = ([], [])
    callers = [one.reconnected() for one in neighbors]
    until = time.monotonic() + MEASURE_SECONDS
    while time.monotonic() < until or len(times[0]) < MIN_CALLS:
        for caller, durations in zip(callers, times, strict=True):
            began = time.perf_counter()
            answer = getattr(caller, name)()
            durations.append(time.perf_counter() - began)
            assert answer.status_code == 200, answer.text
    return times


def p99(times: Sequence[float]) -> float:
    return sorted(times)[int(0.99 * (len(times) - 1))]


def assert_stored_once(stub: StubUpstream, noisy: User) -> None:
    """Assert that each acknowledged message is stored once after the calls succeed again."""
    wait_until(lambda: noisy.flush().status_code == 200, 120)
    with stub.store.lock:
        text = " ".join(episode["episode"] for episode in stub.store.episodes if episode["user_id"] == noisy.user_id)
    times = Counter(re.findall(r"message \d+", text))
    assert set(times.values()) <= {1}
    assert noisy.acknowledged <= set(times)
