"""A client with an invalid credential does not block valid clients of the same address, on a running gateway."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter

from tests.agents.rpc.client import open_connection
from tests.clients import at_work
from tests.resources.people import eventually
from tests.server import RunningServer, running_server

pytestmark = pytest.mark.slow

PER_SECOND, THREADS = 50, 10
METRICS_TOKEN = "f3Vw9KqZ1xT7mNb5RcL2pYhJ8sDgE4uA"
MCP_CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
TOOL_CALL = {"tool": "memory_recall", "args": {"query": "tea"}}

_CREATE_USERS = """
import json
from accounts import services, tokens
from accounts.audit import Actor

actor, made = Actor.command("tests"), []
for number in range(%d):
    issued = services.create_user(f"user{number}", actor=actor)
    token = tokens.issue("laptop", user=issued.key.user, actor=actor)
    made.append([issued.key.user.user_id, issued.plaintext, token.plaintext])
print(json.dumps(made))
"""


@dataclass(frozen=True)
class Credential:
    user_id: str
    key: str
    token: str


@dataclass(frozen=True)
class Answer:
    status: int
    retry_after_seconds: float | None


STALE = Credential("user0", "uk_" + "x" * 43, "rpc_" + "x" * 43)
Call = Callable[[RunningServer, str, Credential], Answer]


class _SourceAddressAdapter(HTTPAdapter):
    """Connect from a given local address."""

    def __init__(self, address: str) -> None:
        self._address = address
        super().__init__()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options, source_address=(self._address, 0))


def _http(server: RunningServer, address: str, method: str, path: str, **request: Any) -> Answer:
    with requests.Session() as session:
        session.mount("http://", _SourceAddressAdapter(address))
        answer = session.request(method, server.url + path, timeout=30, **request)
    seconds = answer.headers.get("Retry-After")
    return Answer(answer.status_code, float(seconds) if seconds else None)


def _bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}", "Accept": "application/json, text/event-stream"}


def _credential_fields(credential: Credential) -> dict[str, str]:
    return {"user_id": credential.user_id, "user_key": credential.key}


def _websocket(server: RunningServer, address: str, credential: Credential) -> Answer:
    with open_connection(server, source_address=(address, 0)) as client:
        answer = client.connect(token=credential.token)
    if answer["ok"]:
        return Answer(200, None)
    status = {"AUTH_TOKEN_MISMATCH": 401, "AUTH_RATE_LIMITED": 429}[answer["error"]["details"]["code"]]
    milliseconds = answer["error"].get("retryAfterMs")
    return Answer(status, milliseconds and milliseconds / 1000)


ENDPOINTS: dict[str, Call] = {
    "header": lambda server, address, credential: _http(
        server, address, "GET", "/users/me/keys", headers=_bearer(credential.key)
    ),
    "query": lambda server, address, credential: _http(
        server, address, "GET", "/users/me/keys", params=_credential_fields(credential)
    ),
    "body": lambda server, address, credential: _http(
        server, address, "POST", "/users/me/keys", json=_credential_fields(credential)
    ),
    "mcp": lambda server, address, credential: _http(
        server, address, "POST", "/mcp", json=MCP_CALL, headers=_bearer(credential.key)
    ),
    "tools, key": lambda server, address, credential: _http(
        server, address, "POST", "/tools/invoke", json=TOOL_CALL, headers=_bearer(credential.key)
    ),
    "tools, token": lambda server, address, credential: _http(
        server, address, "POST", "/tools/invoke", json=TOOL_CALL, headers=_bearer(credential.token)
    ),
    "websocket": _websocket,
    "metrics": lambda server, address, credential: _http(
        server, address, "GET", "/metrics", headers=_bearer("wrong" if credential is STALE else METRICS_TOKEN)
    ),
}
USERS = 20
addresses = (f"127.0.7.{number}" for number in count(1))


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, list[Credential]]]:
    """A newly started process, which has not yet seen any of the credentials."""
    with running_server(tmp_path_factory.mktemp("stale"), MEMORY_GATEWAY_METRICS_TOKEN=METRICS_TOKEN) as server:
        created = server.manage("shell", "--no-imports", "--command", _CREATE_USERS % (USERS * len(ENDPOINTS)))
        assert created.returncode == 0, created.stderr
        server.restart()
        yield server, [Credential(*fields) for fields in json.loads(created.stdout)]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_stale_client_at_50_requests_a_second_does_not_block_valid_ones(
    gateway: tuple[RunningServer, list[Credential]], endpoint: str
) -> None:
    server, credentials = gateway
    address, call = next(addresses), ENDPOINTS[endpoint]
    first = list(ENDPOINTS).index(endpoint) * USERS
    refused, stop = list[Answer](), threading.Event()

    def stale(_: random.Random) -> None:
        while not stop.is_set():
            refused.append(call(server, address, STALE))
            stop.wait(THREADS / PER_SECOND)

    started_at = time.monotonic()
    with at_work(stale, THREADS, stop):
        assert eventually(lambda: len(refused) >= 15)  # the address has used up its failures
        served = [call(server, address, credential) for credential in credentials[first : first + USERS]]
    seconds = time.monotonic() - started_at
    assert [answer.status for answer in served] == [200] * USERS
    unauthorized = [answer for answer in refused if answer.status == 401]
    too_many = [answer for answer in refused if answer.status == 429]
    assert len(unauthorized) + len(too_many) == len(refused)
    assert 10 <= len(unauthorized) <= 11 + seconds / 6
    assert all(0 < (answer.retry_after_seconds or 0) <= 6 for answer in too_many)
