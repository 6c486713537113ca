"""A running gateway while EverOS is unavailable, or while a proxy in front of it fails."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.operations.everos_gateway import gateway, resource_statuses
from tests.operations.faulty_proxy import FaultyProxy, Traffic, duplicated_and_missing, proxy_faults
from tests.operations.test_kills import memories_of
from tests.resources.people import RemotePerson, eventually
from tests.server import RunningServer
from tests.stub_upstream import Fault, StubUpstream

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("seconds", "uploads"), [(10, 20), pytest.param(600, 500, marks=pytest.mark.torture)])
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
