"""Whatever the upstream does to the calls of one user, the others are answered as if that user were not there."""

from __future__ import annotations

import contextlib
import itertools
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import requests

from engines.everos.client.client import READS_AT_ONCE
from tests.engines.everos.conftest import NOON
from tests.server import RunningServer, free_port, running_server
from tests.stub_upstream import Fault, StubUpstream

MEBIBYTE = 2**20
CONNECTIONS = 48  # of the user for whom calls go wrong: more than the gateway has threads
PAUSE_SECONDS = 1.0  # between an answer to that user and the next request; longer where `Retry-After` says so
WAY_SECONDS = 30.0
LEAST_CALLS = 100  # of each kind, so that one slow answer is not the p99
MOST_TIMES_ALONE = 2.0
SHORT_SECONDS = 20.0  # beside calls that hang for ten minutes
QUEUED = {"request_id": "endless", "data": {"status": "queued"}}
WAYS = {
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
    """An application of one user, as it speaks to one gateway; a thread at a time."""

    url: str
    user_id: str
    key: str
    numbers: Iterator[int] = field(default_factory=itertools.count)
    acknowledged: set[str] = field(default_factory=set)
    http: requests.Session = field(default_factory=requests.Session)

    def anew(self) -> User:
        """The same over a connection of its own."""
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
def gateway(folder: Path, base_url: str) -> Iterator[RunningServer]:
    with running_server(folder, MEMORY_GATEWAY_BACKEND_BASE_URL=base_url) as server:
        yield server


@contextlib.contextmanager
def insisting(stuck: User) -> Iterator[Counter[int]]:
    """The user's applications ask over all their connections, again and again; yields how often they got which
    status. Every refusal must have our own shape."""
    statuses: Counter[int] = Counter()
    has_ended = threading.Event()

    def insist(number: int) -> None:
        own = User(stuck.url, stuck.user_id, stuck.key, itertools.count(number * 1_000_000), stuck.acknowledged)
        call = {0: own.flush, 1: own.upload, 2: own.add, 3: own.add}.get(number % 12, own.search)
        while not has_ended.is_set():
            answer = call()
            require_own_shape(answer)
            statuses[answer.status_code] += 1
            pause = max(PAUSE_SECONDS, float(answer.headers.get("Retry-After", 0)))
            has_ended.wait(pause * random.uniform(1, 2))  # as careful clients do, not all in one moment

    with ThreadPoolExecutor(CONNECTIONS) as executor:
        running = [executor.submit(insist, number) for number in range(CONNECTIONS)]
        try:
            yield statuses
        finally:
            has_ended.set()
    for one in running:
        one.result()


def require_own_shape(answer: requests.Response) -> None:
    assert answer.status_code in {200, 502, 503}, answer.text
    if answer.status_code != 200:
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["status"] == answer.status_code


def test_one_users_hanging_calls_hold_up_nobody_else(tmp_path: Path) -> None:
    with StubUpstream() as stub, gateway(tmp_path, stub.url) as server:
        alice, bob = new_user(server, "alice"), new_user(server, "bob")
        alice.add()
        with ThreadPoolExecutor(CONNECTIONS) as executor, stub.failing_for("alice", WAYS["silence"]):
            stuck = [executor.submit(alice.anew().search) for _ in range(CONNECTIONS)]
            wait_until(lambda: stub.most_at_once["search"] >= READS_AT_ONCE // 2)
            began = time.monotonic()
            for call in (bob.add, bob.flush, bob.search, bob.list_resources, bob.list_memories, bob.upload):
                assert call().status_code == 200
            took = time.monotonic() - began
            assert not any(one.done() for one in stuck)
        assert took < SHORT_SECONDS
        assert {one.result().status_code for one in stuck} == {200}


def wait_until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


# --- at full length --------------------------------------------------------------------------------------------------


@pytest.fixture
def stub() -> Iterator[StubUpstream]:
    """New for each way, as the gateways are: nothing is caught up on of what failed in another."""
    with StubUpstream() as running:
        running.tasks["endless"] = [{"status": "processing"}]
        yield running


@pytest.fixture
def alone(stub: StubUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Where nobody's calls go wrong."""
    with gateway(tmp_path_factory.mktemp("alone"), stub.url) as server:
        yield server


@pytest.fixture
def beside(stub: StubUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Where one user's do."""
    with gateway(tmp_path_factory.mktemp("beside"), stub.url) as server:
        yield server


@pytest.mark.torture
@pytest.mark.parametrize("way", WAYS)
def test_other_users_p99_stays_within_twice_of_alone(
    stub: StubUpstream, alone: RunningServer, beside: RunningServer, way: str
) -> None:
    stuck = new_user(beside, "stuck")
    stuck.add()
    others = (new_user(alone, "bob"), new_user(beside, "bob"))
    with insisting(stuck) as statuses, stub.failing_for(stuck.user_id, WAYS[way]):
        time.sleep(2 * PAUSE_SECONDS)
        report = require_like(others, ("search", "list_resources", "list_memories", "upload"))
    print(way, report, dict(statuses), flush=True)  # noqa: T201
    assert stub.failed_for[stuck.user_id] >= 10
    require_kept_once(stub, stuck)


@pytest.mark.torture
def test_other_users_p99_of_what_needs_no_upstream_stays_when_nobody_listens_there(
    alone: RunningServer, tmp_path: Path
) -> None:
    with gateway(tmp_path, f"http://127.0.0.1:{free_port()}") as beside:
        stuck = new_user(beside, "stuck")
        others = (new_user(alone, "bob"), new_user(beside, "bob"))
        with insisting(stuck) as statuses:
            report = require_like(others, ("list_resources", "list_memories"))
    print("refused", report, dict(statuses))  # noqa: T201


def require_like(others: tuple[User, User], names: Sequence[str]) -> dict[str, str]:
    """Asks both gateways in turns, so that whatever else the machine does slows both; one thread for each kind of
    call. Returns what to print: milliseconds alone and beside."""
    with ThreadPoolExecutor(len(names)) as executor:
        measured = dict(zip(names, executor.map(lambda name: in_turns(others, name), names), strict=True))
    slower = {name: p99(times[1]) / p99(times[0]) for name, times in measured.items()}
    report = {
        name: f"{p99(times[0]) * 1000:.0f}/{p99(times[1]) * 1000:.0f} of {len(times[0])}"
        for name, times in measured.items()
    }
    assert max(slower.values()) <= MOST_TIMES_ALONE, report
    return report


def in_turns(others: tuple[User, User], name: str) -> tuple[list[float], list[float]]:
    times: tuple[list[float], list[float]] = ([], [])
    callers = [one.anew() for one in others]
    until = time.monotonic() + WAY_SECONDS
    while time.monotonic() < until or len(times[0]) < LEAST_CALLS:
        for caller, taken in zip(callers, times, strict=True):
            began = time.perf_counter()
            answer = getattr(caller, name)()
            taken.append(time.perf_counter() - began)
            assert answer.status_code == 200, answer.text
    return times


def p99(times: Sequence[float]) -> float:
    return sorted(times)[int(0.99 * (len(times) - 1))]


def require_kept_once(stub: StubUpstream, stuck: User) -> None:
    """What was acknowledged is there once the calls get through again, and nothing is there twice."""
    wait_until(lambda: stuck.flush().status_code == 200, 120)
    with stub.store.lock:
        text = " ".join(episode["episode"] for episode in stub.store.episodes if episode["user_id"] == stuck.user_id)
    times = Counter(re.findall(r"message \d+", text))
    assert set(times.values()) <= {1}
    assert stuck.acknowledged <= set(times)
