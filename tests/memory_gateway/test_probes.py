"""`GET /live` and `GET /ready`: the probes of Kubernetes and load balancers."""

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest
import requests
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from memory_gateway import probes
from memory_gateway.health import HealthMonitor
from memory_gateway.server.asgi import router
from tests.server import DATABASE_FILE, running_server, wait_until


def asked(path: str, *, is_leaving: bool) -> tuple[int, dict[str, Any]]:
    """Return what the server answers at a path, with or without a stop in progress."""
    sent: list[dict[str, Any]] = []

    async def ask() -> None:
        leaving = asyncio.Event()
        if is_leaving:
            leaving.set()
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "headers": [(b"host", b"10.0.0.7:8010")],
            "query_string": b"",
        }
        scope["state"] = {"is_leaving": leaving}

        async def send(message: Any) -> None:
            sent.append(message)

        await router(scope, asyncio.sleep, send)  # type: ignore[arg-type]

    asyncio.run(ask())
    return sent[0]["status"], orjson.loads(sent[1]["body"])


@pytest.mark.django_db(transaction=True)
def test_a_gateway_that_can_serve_is_alive_and_ready(client: Client) -> None:
    probes.monitor._result = None
    for path in ("/live", "/ready"):
        answers = [client.get(path).json(), asked(path, is_leaving=False)[1]]
        assert answers == [{"status": "ok"}] * 2
        assert [client.get(path).status_code, asked(path, is_leaving=False)[0]] == [200, 200]


def test_a_gateway_that_stops_is_alive_and_not_ready() -> None:
    assert asked("/ready", is_leaving=True) == (503, {"status": "unavailable", "error": "The gateway is stopping."})
    assert asked("/live", is_leaving=True) == (200, {"status": "ok"})


@pytest.mark.django_db
def test_a_gateway_is_not_ready_before_its_migrations() -> None:
    assert probes.problem(1.0) == ""
    MigrationRecorder(connection).record_unapplied("store", "0028_memories_by_tag")
    assert probes.problem(1.0) == "Unapplied migrations: 1."


@pytest.mark.django_db
def test_migrations_of_a_newer_version_leave_it_ready() -> None:
    """As during a rolling upgrade."""
    MigrationRecorder(connection).record_applied("store", "9999_of_the_next_version")
    assert probes.problem(1.0) == ""


@pytest.mark.django_db
def test_a_gateway_without_its_database_is_not_ready(caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_arguments: object) -> None:
        raise OperationalError("connection refused at 10.0.0.1")

    with connection.execute_wrapper(fail):
        found = probes.problem(1.0)
    assert found == "The database does not answer."
    assert "10.0.0.1" in caplog.text
    assert probes.readiness(found)[0] == 503


def test_a_probe_that_fails_is_no_sign_of_readiness() -> None:
    def fail(_timeout_seconds: float) -> str:
        raise RuntimeError

    failing = HealthMonitor(fail, failed=probes.monitor._failed)
    assert failing.wait().startswith("The database does not answer")


@pytest.mark.skipif(connection.vendor != "sqlite", reason="it moves SQLite's file")
def test_a_server_whose_database_is_gone_is_alive_and_not_ready(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        assert [requests.get(f"{server.url}/{path}", timeout=10).status_code for path in ("live", "ready")] == [200] * 2
        (server.data_dir / DATABASE_FILE).rename(tmp_path / "away")
        wait_until(lambda: requests.get(f"{server.url}/ready", timeout=10).status_code == 503)
        assert requests.get(f"{server.url}/live", timeout=10).json() == {"status": "ok"}
