"""EverOS behind a running gateway, away for a while."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.lifecycle.gateways import gateway, statuses
from tests.lifecycle.proxied import FaultyProxy, Traffic, of_proxy, repeated_and_missing
from tests.lifecycle.test_kills import memories_of
from tests.resources.people import RemotePerson, eventually
from tests.server import RunningServer
from tests.stub_upstream import Fault, StubUpstream


@pytest.mark.parametrize(("seconds", "uploads"), [(60, 60), pytest.param(600, 500, marks=pytest.mark.torture)])
def test_what_is_uploaded_while_everos_is_away_is_extracted_within_a_minute_of_its_return(
    tmp_path: Path, seconds: int, uploads: int
) -> None:
    first = StubUpstream()
    with first:
        port = int(first.url.rsplit(":", 1)[1])
    with gateway(tmp_path, first.url) as server:
        alice = RemotePerson.create(server, "alice")
        with nobody_listening(port):
            began = time.monotonic()
            for number in range(uploads):
                answer = alice.upload(f"note{number}.txt", f"The note {number}.".encode(), Prefer="respond-async")
                assert answer.status_code == 202, answer.text
                time.sleep(max(0.0, began + seconds * number / uploads - time.monotonic()))
            assert health_seconds(server) < 2
        second = StubUpstream(port)
        second.store = first.store
        with second:
            assert eventually(lambda: statuses(alice) == {"extracted": uploads}, 60), statuses(alice)
        told = json.dumps([one["episode"] for one in second.store.episodes])
        assert all(told.count(f"The note {number}.") == 1 for number in range(uploads))


@contextlib.contextmanager
def nobody_listening(port: int) -> Iterator[None]:
    """Holds the port, which the system would otherwise give to another test's server."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", port))
        yield


def health_seconds(server: RunningServer) -> float:
    began = time.monotonic()
    answer = requests.get(f"{server.url}/health", timeout=10).json()
    assert answer["backend"]["status"] == "unavailable"
    return time.monotonic() - began


@pytest.mark.parametrize("status", [502, 504])
@pytest.mark.parametrize("count", [25, pytest.param(500, marks=pytest.mark.torture)])
def test_what_a_proxy_says_of_an_everos_that_works_on_loses_and_doubles_nothing(
    tmp_path: Path, status: int, count: int
) -> None:
    page = Fault(status=status, body=b"<html>", content_type="text/html", slow_seconds=5.0)
    faults = {**of_proxy(status, late_seconds=1.5), f"{status}_flush_slow": page}
    with FaultyProxy(faults, 0.6) as everos, gateway(tmp_path, everos.url) as server:
        traffic = Traffic(RemotePerson.create(server, "alice"))
        traffic.run(uploads=count, adds=count, clients=6 if count < 100 else 16)
        everos.heal_all()
        assert eventually(lambda: statuses(traffic.person) == {"extracted": count}, 60 + 3 * count), statuses(
            traffic.person
        )
        traffic.flush_all()
        time.sleep(6)  # what goes on in EverOS
        traffic.flush_all()
        kept = "\n".join(episode["episode"] for episode in everos.store.episodes)
        told = memories_of(traffic.person)
        assert len(traffic.acknowledged) == 2 * count
        assert repeated_and_missing(traffic, kept) == ([], [])
        assert repeated_and_missing(traffic, told) == ([], [])
        assert sum(everos.told.values()) > count, everos.told
