"""One running gateway for each engine, and users that no other test knows."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import pytest

from tests.contract.caller import Caller, Gateway
from tests.contract.differences import EngineName
from tests.everos import EverOS
from tests.fleet.fleet import running_fleet
from tests.server import running_server
from tests.web import WebServer, web_server

MAX_UPLOAD_BYTES = 1_000_000
IS_EVEROS_ASKED_FOR = os.environ.get("RUN_BACKEND_INTEGRATION") == "1"
IS_FLEET_ASKED_FOR = os.environ.get("CONTRACT_ON_FLEET") == "1"
"""Run the gateway as `tests.fleet`, behind its balancer."""
ENGINES: tuple[EngineName, ...] = get_args(EngineName) if IS_EVEROS_ASKED_FOR else ("embedded",)
Started = Callable[[EngineName, str | None], Gateway]


@pytest.fixture(scope="session")
def web() -> Iterator[WebServer]:
    with web_server() as running:
        yield running


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory, web: WebServer) -> Iterator[Started]:
    """Starts an engine's gateway at the first question for it."""
    gateways: dict[EngineName, Gateway] = {}
    files = tmp_path_factory.mktemp("files")
    with contextlib.ExitStack() as stack:

        def start(engine: EngineName, base_url: str | None) -> Gateway:
            if engine not in gateways:
                folder = tmp_path_factory.mktemp(engine)
                running = running_fleet if IS_FLEET_ASKED_FOR else running_server
                server = stack.enter_context(running(folder, **_environment(files, base_url)))
                gateways[engine] = Gateway(engine, server, base_url, files, web)
            return gateways[engine]

        yield start


def _environment(files: Path, base_url: str | None) -> dict[str, str]:
    return {
        "MEMORY_GATEWAY_BACKEND_BASE_URL": base_url or "",
        "MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS": "0.05",
        "MEMORY_GATEWAY_MAX_UPLOAD_BYTES": str(MAX_UPLOAD_BYTES),
        "MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS": "127.0.0.1",
        "MEMORY_GATEWAY_FILE_URI_ROOTS": str(files),
        "MEMORY_GATEWAY_LOG_BODIES": "true",
    }


@pytest.fixture(params=ENGINES)
def gateway(request: pytest.FixtureRequest, started: Started) -> Gateway:
    engine: EngineName = request.param
    if engine == "embedded":
        return started(engine, None)
    everos: EverOS = request.getfixturevalue("everos")
    return started(engine, everos.url)


@pytest.fixture
def writes(gateway: Gateway) -> None:
    """Tests with the extraction of a real EverOS need a second switch: it leaves memories there and may cost
    calls of its models."""
    if gateway.engine == "everos" and os.environ.get("RUN_BACKEND_INGEST_INTEGRATION") != "1":
        pytest.skip("writes into a real EverOS: set RUN_BACKEND_INGEST_INTEGRATION=1")


@pytest.fixture
def alice(gateway: Gateway) -> Caller:
    return gateway.new_user(f"alice.{secrets.token_hex(4)}")


@pytest.fixture
def bob(gateway: Gateway) -> Caller:
    return gateway.new_user(f"bob.{secrets.token_hex(4)}")


@pytest.fixture
def conversation() -> str:
    """An id that earlier runs did not use."""
    return f"c_{secrets.token_hex(6)}"


@pytest.fixture
def chat(conversation: str) -> str:
    return f"chat:{conversation}"
