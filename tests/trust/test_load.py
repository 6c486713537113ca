"""Concurrent writers, a user who floods the gateway, and a start with many memories."""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import pytest
import requests

from tests.resources.people import RemotePerson
from tests.server import running_server

WRITERS, FLOODING_CONNECTIONS = 8, 16
NOON_MS = 1_781_172_177_000


def p99(seconds: list[float]) -> float:
    return sorted(seconds)[int(len(seconds) * 0.99)]


def add(session: requests.Session, person: RemotePerson, number: int) -> float:
    """Add a message and return the seconds that it took."""
    message = {"sender_id": person.user_id, "role": "user", "timestamp": NOON_MS + number, "content": f"Note {number}."}
    body = {"session_id": "chat:c1", "messages": [message]}
    started_at = time.perf_counter()
    answer = session.post(f"{person.server.url}/memories/add", json=body, headers=person.headers, timeout=60)
    assert answer.status_code == 200, answer.text
    return time.perf_counter() - started_at


@pytest.mark.parametrize("adds", [25, pytest.param(1000, marks=pytest.mark.torture)])
def test_no_write_of_eight_concurrent_writers_fails(tmp_path: Path, adds: int) -> None:
    with running_server(tmp_path) as server, ThreadPoolExecutor(WRITERS) as pool:
        people = [RemotePerson.create(server, f"user{number}") for number in range(WRITERS)]

        def write(person: RemotePerson) -> list[float]:
            with requests.Session() as session:
                return [add(session, person, number) for number in range(adds)]

        seconds = [one for of_person in pool.map(write, people) for one in of_person]
        assert server.rows("SELECT count(*) FROM store_memory") == [(WRITERS * adds,)]
        assert "database is locked" not in server.log
    print(f"p99 of {len(seconds)} adds: {p99(seconds) * 1000:.0f} ms")  # noqa: T201


def flood(person: RemotePerson, sent: Synchronized[int]) -> None:
    with requests.Session() as session:
        while True:
            session.get(f"{person.server.url}/memories", headers=person.headers, timeout=60)
            with sent.get_lock():
                sent.value += 1


def flood_by_threads(person: RemotePerson, sent: Synchronized[int]) -> None:
    for _ in range(FLOODING_CONNECTIONS):
        threading.Thread(target=flood, args=(person, sent)).start()


@contextlib.contextmanager
def flooding(person: RemotePerson) -> Iterator[Synchronized[int]]:
    """Flood in another process, so that the measured calls do not wait for the flood's own threads."""
    sent = multiprocessing.Value("i", 0)
    process = multiprocessing.Process(target=flood_by_threads, args=(person, sent))
    process.start()
    try:
        yield sent
    finally:
        process.kill()
        process.join()


@pytest.mark.torture
def test_a_flooding_user_does_not_slow_others(tmp_path: Path) -> None:
    """Call a flooded and a quiet gateway alternately: other load on the machine then slows both."""
    with running_server(tmp_path / "flooded") as flooded, running_server(tmp_path / "quiet") as quiet:
        mallory = RemotePerson.create(flooded, "mallory")
        others = [RemotePerson.create(server, "bob") for server in (quiet, flooded)]
        seconds: list[list[float]] = [[], []]
        with flooding(mallory) as sent, requests.Session() as session:
            time.sleep(2)
            for number in range(500):
                for person, taken in zip(others, seconds, strict=True):
                    taken.append(add(session, person, number))
        alone, loaded = map(p99, seconds)
        print(f"p99 alone {alone * 1000:.0f} ms, beside {sent.value} requests {loaded * 1000:.0f} ms")  # noqa: T201
        assert sent.value > 500
        assert loaded <= 2 * alone


@pytest.mark.torture
def test_a_hundred_thousand_memories_do_not_delay_the_start(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        assert server.manage("seed_memories", "100000", timeout_seconds=1200).returncode == 0
        server.kill()
        started_at = time.monotonic()
        server.start()
        seconds = time.monotonic() - started_at
        print(f"ready after {seconds:.1f} s")  # noqa: T201
        assert seconds <= 5
