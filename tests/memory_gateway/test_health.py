"""`GET /health`: what it says, and that nothing behind it can hold it up."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
import requests
from django.test import Client
from django.utils import timezone

from memory_gateway.health import HealthMonitor, Report, health_document, unavailable
from remote.outbox import Backlog
from store.port import Health
from tests.server import running_server

UP = Report(Health("ok", base_url="http://up:1", data={"status": "ok"}))


class Engine:
    """Counts the questions; each waits for `release` if that is given."""

    def __init__(self, answer: Report = UP, release: threading.Event | None = None) -> None:
        self.asked = 0
        self._answer = answer
        self._release = release

    def probe(self, timeout_seconds: float) -> Report:
        self.asked += 1
        if self._release:
            self._release.wait(10)
        return self._answer


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_healthy_engine_as_documented() -> None:
    assert health_document(UP) == {
        "status": "ok",
        "api": {"status": "ok"},
        "backend": {"status": "ok", "base_url": "http://up:1", "data": {"status": "ok"}},
    }


def test_what_waits_for_the_remote_is_counted() -> None:
    oldest = timezone.now() - timedelta(seconds=90)
    document = health_document(UP._replace(waiting=Backlog(3, oldest, 1)))
    counts = document["backend"]["outbox"]
    assert (counts["waiting"], counts["refused"], document["status"]) == (3, 1, "ok")
    assert 90 <= counts["oldest_seconds"] < 100


def test_a_dead_engine_as_documented() -> None:
    assert health_document(Report(Health("unavailable", base_url="http://up:1", error="Connection refused"))) == {
        "status": "degraded",
        "api": {"status": "ok"},
        "backend": {"status": "unavailable", "base_url": "http://up:1", "error": "Connection refused"},
    }


@pytest.mark.django_db(transaction=True)
def test_the_embedded_engine_needs_no_upstream(client: Client) -> None:
    answer = client.get("/health")
    assert answer.status_code == 200
    backend = answer.json()["backend"]
    assert (backend["status"], backend["base_url"], backend["data"]["engine"]) == ("ok", None, "embedded")


def test_other_methods_are_refused(client: Client) -> None:
    answer = client.post("/health")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


def test_an_answer_is_kept_for_a_second() -> None:
    engine, clock = Engine(), Clock()
    monitor = HealthMonitor(engine.probe, clock, failed=unavailable)
    for _ in range(5):
        monitor.wait()
    clock.now += 0.9
    assert (monitor.wait(), engine.asked) == (UP, 1)
    clock.now += 0.2
    assert (monitor.wait(), engine.asked) == (UP, 2)


def test_many_who_ask_at_once_ask_the_engine_once() -> None:
    release = threading.Event()
    engine = Engine(release=release)
    monitor = HealthMonitor(engine.probe, failed=unavailable)
    with ThreadPoolExecutor(8) as askers:
        answers = [askers.submit(monitor.wait) for _ in range(8)]
        time.sleep(0.1)
        release.set()
        assert [answer.result() for answer in answers] == [UP] * 8
    assert engine.asked == 1


def test_an_engine_that_hangs_is_unavailable_in_time_and_not_asked_again() -> None:
    release = threading.Event()
    engine = Engine(release=release)
    monitor = HealthMonitor(engine.probe, failed=unavailable)

    async def ask_twice() -> list[Report]:
        return [await monitor.wait_on_loop(), await asyncio.to_thread(monitor.wait)]

    began = time.monotonic()
    answers = asyncio.run(ask_twice())
    assert time.monotonic() - began < 4
    assert [answer.engine.status for answer in answers] == ["unavailable"] * 2
    assert "no answer within" in str(answers[0].engine.error)
    assert engine.asked == 1
    release.set()


def test_an_engine_that_raises_is_unavailable_and_the_log_says_why(caplog: pytest.LogCaptureFixture) -> None:
    def probe(timeout_seconds: float) -> Report:
        raise RuntimeError("out of luck")

    answer = HealthMonitor(probe, failed=unavailable).wait()
    assert answer.engine.status == "unavailable"
    assert "out of luck" not in str(answer.engine.error)
    assert "out of luck" in caplog.text


def test_an_upstream_that_takes_the_call_and_says_nothing_delays_no_request(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        base_url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with running_server(tmp_path, MEMORY_GATEWAY_BACKEND_BASE_URL=base_url) as server:
            for _ in range(3):
                began = time.monotonic()
                answer = requests.get(f"{server.url}/health", timeout=10)
                assert time.monotonic() - began < 5
                assert answer.status_code == 200
                assert (answer.json()["status"], answer.json()["api"]) == ("degraded", {"status": "ok"})
                assert answer.json()["backend"]["base_url"] == base_url
                assert answer.json()["backend"]["error"]
