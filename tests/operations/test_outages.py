"""A running gateway while EverOS is unavailable, or while a proxy in front of it fails."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.operations.everos_gateway import gateway, resource_statuses
from tests.operations.faulty_proxy import FaultyProxy, Traffic, duplicated_and_missing, proxy_faults
from tests.operations.test_kills import memories_of
from tests.resources.people import RemotePerson, eventually
from tests.server import RunningServer, running_server
from tests.stub_upstream import Fault, StubUpstream

pytestmark = pytest.mark.slow
logger = logging.getLogger(__name__)


@pytest.mark.parametrize(("seconds", "uploads"), [(3, 3), pytest.param(600, 500, marks=pytest.mark.torture)])
def test_files_uploaded_during_an_outage_are_found_at_once_and_derived_from_after_it(
    tmp_path: Path, seconds: int, uploads: int
) -> None:
    first = StubUpstream()
    with first:
        port = int(first.url.rsplit(":", 1)[1])
    with gateway(tmp_path, first.url) as server:
        alice = RemotePerson.create(server, "alice")
        with closed_port(port):
            began = time.monotonic()
            for number in range(uploads):
                answer = alice.upload(f"note{number}.txt", f"The note {number}.".encode(), Prefer="respond-async")
                assert answer.status_code == 202, answer.text
                time.sleep(max(0.0, began + seconds * number / uploads - time.monotonic()))
            assert health_seconds(server) < 2
            assert eventually(lambda: resource_statuses(alice) == {"extracted": uploads}, 60), resource_statuses(alice)
        second = StubUpstream(port)
        second.store = first.store
        with second:
            assert eventually(lambda: len(second.store.episodes) >= uploads, 180)
        episodes = json.dumps([one["episode"] for one in second.store.episodes])
        assert all(episodes.count(f"The note {number}.") == 1 for number in range(uploads))


SECONDS = 0.5
KINDS = {
    "killed": Fault(reset=True),
    "hanging": Fault(hang_seconds=4),
    "dripping": Fault(drip_seconds=0.05),
    "500": Fault(status=500, body={}),
}


@pytest.mark.torture
@pytest.mark.parametrize("kind", KINDS)
def test_two_hundred_searches_while_everos_is_away_find_our_own_texts_in_time(tmp_path: Path, kind: str) -> None:
    """The first ones take the deadline; once the breaker opened, as long as with the embedded engine beside it."""
    settings = {"MEMORY_GATEWAY_BACKEND_SEARCH_SECONDS": str(SECONDS)}
    (tmp_path / "alone").mkdir()
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(contextlib.ExitStack())
        stub = running.enter_context(StubUpstream())
        attached = stack.enter_context(gateway(tmp_path, stub.url, **settings))
        embedded = stack.enter_context(running_server(tmp_path / "alone"))
        people = [RemotePerson.create(server, "alice") for server in (attached, embedded)]
        for person in people:
            for number in range(200):
                add_and_flush(person, f"chat:{number % 10}", number)
        assert eventually(lambda: len(stub.store.episodes) >= 200, 120)
        stub.fault("*", KINDS[kind], times=100_000)
        if kind == "killed":
            running.close()
        first = [timed_search(people[0], number) for number in range(200)]
        beside = [[timed_search(person, number) for person in people] for number in range(200)]
        assert percentile(first, 95) <= SECONDS + 0.3
        ours, others = ([pair[one] for pair in beside] for one in (0, 1))
        ratio = percentile(ours, 95) / percentile(others, 95), statistics.median(ours) / statistics.median(others)
        logger.info("%s: p95 %.3f s; to the embedded engine %s", kind, percentile(first, 95), ratio)
        assert ratio[1] <= 1.2


def add_and_flush(person: RemotePerson, session_id: str, number: int) -> None:
    at = 1_781_172_177_000 + 1000 * number
    message = {"sender_id": "alice", "role": "user", "timestamp": at, "content": f"My word is zq{number}x."}
    body = {"session_id": session_id, "messages": [message]}
    for path, fields in (("add", body), ("flush", {"session_id": session_id})):
        url = f"{person.server.url}/memories/{path}"
        requests.post(url, json=fields, headers=person.headers, timeout=60).raise_for_status()


def timed_search(person: RemotePerson, number: int) -> float:
    """Return the seconds of a search for a word, which is found."""
    body = {"query": f"zq{number}x", "scope": ["all_user_memory"], "top_k": 10}
    began = time.monotonic()
    answer = requests.post(f"{person.server.url}/memories/search", json=body, headers=person.headers, timeout=60)
    took = time.monotonic() - began
    assert answer.status_code == 200, answer.text
    assert any(f"zq{number}x" in hit["text"] for hit in answer.json()["results"]), answer.text
    return took


def percentile(values: list[float], percent: int) -> float:
    return sorted(values)[len(values) * percent // 100 - 1]


@contextlib.contextmanager
def closed_port(port: int) -> Iterator[None]:
    """Bind the port without listening, so that no other process gets it."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", port))
        yield


def health_seconds(server: RunningServer) -> float:
    began = time.monotonic()
    answer = requests.get(f"{server.url}/health", timeout=10).json()
    assert answer["backend"]["status"] == "unavailable"
    return time.monotonic() - began


@pytest.mark.parametrize(
    ("proxy_statuses", "chance", "count"),
    [
        ((502, 504), 0.6, 16),
        pytest.param((502,), 1.0, 500, marks=pytest.mark.torture),
        pytest.param((504,), 1.0, 500, marks=pytest.mark.torture),
    ],
)
def test_a_faulty_proxy_in_front_of_everos_loses_and_duplicates_nothing(
    tmp_path: Path, proxy_statuses: tuple[int, ...], chance: float, count: int
) -> None:
    faults = {}
    for status in proxy_statuses:
        page = Fault(status=status, body=b"<html>", content_type="text/html", slow_seconds=5.0)
        faults |= {**proxy_faults(status, late_seconds=1.5), f"{status}_flush_slow": page}
    with FaultyProxy(faults, chance) as everos, gateway(tmp_path, everos.url) as server:
        # If every attempt fails, a flush is never acknowledged, so sessions are flushed after the proxy is healed.
        traffic = Traffic(RemotePerson.create(server, "alice"), flushes=chance < 1)
        traffic.run(uploads=count, adds=count, clients=6 if count < 100 else 16)
        everos.heal_all()
        if chance == 1:  # each file failed often: its next retry may be an hour away
            retried = server.manage("ingest", "--failed", timeout_seconds=3600)
            assert retried.returncode == 0, retried.stdout
        assert eventually(lambda: resource_statuses(traffic.person) == {"extracted": count}, 60 + 3 * count), (
            resource_statuses(traffic.person)
        )
        traffic.flush_all()
        time.sleep(6)  # EverOS completes the calls
        traffic.flush_all()

        def derived_texts() -> str:
            return "\n".join(episode["episode"] for episode in everos.store.episodes)

        # Files are found here at once; the background task flushes them again, and copies what was derived.
        assert eventually(lambda: not duplicated_and_missing(traffic, derived_texts())[1], 180)
        assert eventually(lambda: not duplicated_and_missing(traffic, memories_of(traffic.person))[1], 180)
        stored_texts = derived_texts()
        listed_texts = memories_of(traffic.person)
        assert len(traffic.acknowledged) == 2 * count
        assert duplicated_and_missing(traffic, stored_texts) == ([], [])
        assert duplicated_and_missing(traffic, listed_texts) == ([], [])
        assert sum(everos.injected.values()) > count, everos.injected
