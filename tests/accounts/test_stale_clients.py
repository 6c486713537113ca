"""A client whose credential is no longer valid, beside valid ones of its own address, on a running gateway."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter

from tests.agents.rpc.client import dialled
from tests.server import RunningServer, running_server

PER_SECOND, SECONDS = 50, 4
METRICS_TOKEN = "f3Vw9KqZ1xT7mNb5RcL2pYhJ8sDgE4uA"
MCP_CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
TOOL_CALL = {"tool": "memory_recall", "args": {"query": "tea"}}

_MAKE = """
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


class _From(HTTPAdapter):
    """Connects from one of this machine's own addresses."""

    def __init__(self, address: str) -> None:
        self._address = address
        super().__init__()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options, source_address=(self._address, 0))


def _http(server: RunningServer, address: str, method: str, path: str, **request: Any) -> Answer:
    with requests.Session() as session:
        session.mount("http://", _From(address))
        answer = session.request(method, server.url + path, timeout=30, **request)
    seconds = answer.headers.get("Retry-After")
    return Answer(answer.status_code, float(seconds) if seconds else None)


def _bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}", "Accept": "application/json, text/event-stream"}


def _pair(credential: Credential) -> dict[str, str]:
    return {"user_id": credential.user_id, "user_key": credential.key}


def _websocket(server: RunningServer, address: str, credential: Credential) -> Answer:
    with dialled(server, source_address=(address, 0)) as client:
        answer = client.connect(token=credential.token)
    if answer["ok"]:
        return Answer(200, None)
    status = {"AUTH_TOKEN_MISMATCH": 401, "AUTH_RATE_LIMITED": 429}[answer["error"]["details"]["code"]]
    milliseconds = answer["error"].get("retryAfterMs")
    return Answer(status, milliseconds and milliseconds / 1000)


ENDPOINTS: dict[str, Call] = {
    "header": lambda server, address, who: _http(server, address, "GET", "/users/me/keys", headers=_bearer(who.key)),
    "query": lambda server, address, who: _http(server, address, "GET", "/users/me/keys", params=_pair(who)),
    "body": lambda server, address, who: _http(server, address, "POST", "/users/me/keys", json=_pair(who)),
    "mcp": lambda server, address, who: _http(server, address, "POST", "/mcp", json=MCP_CALL, headers=_bearer(who.key)),
    "tools, key": lambda server, address, who: _http(
        server, address, "POST", "/tools/invoke", json=TOOL_CALL, headers=_bearer(who.key)
    ),
    "tools, token": lambda server, address, who: _http(
        server, address, "POST", "/tools/invoke", json=TOOL_CALL, headers=_bearer(who.token)
    ),
    "websocket": _websocket,
    "metrics": lambda server, address, who: _http(
        server, address, "GET", "/metrics", headers=_bearer("wrong" if who is STALE else METRICS_TOKEN)
    ),
}
USERS = 20
addresses = (f"127.0.7.{number}" for number in count(1))


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, list[Credential]]]:
    """A process that has just started and has not seen any of the credentials."""
    with running_server(tmp_path_factory.mktemp("stale"), MEMORY_GATEWAY_METRICS_TOKEN=METRICS_TOKEN) as server:
        made = server.manage("shell", "--no-imports", "--command", _MAKE % (USERS * len(ENDPOINTS)))
        assert made.returncode == 0, made.stderr
        server.restart()
        yield server, [Credential(*one) for one in json.loads(made.stdout)]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_stale_client_at_50_requests_a_second_shuts_out_no_valid_one(
    gateway: tuple[RunningServer, list[Credential]], endpoint: str
) -> None:
    server, credentials = gateway
    address, call = next(addresses), ENDPOINTS[endpoint]
    position = list(ENDPOINTS).index(endpoint) * USERS
    began = time.monotonic()
    with ThreadPoolExecutor(16) as pool:

        def stale(number: int) -> Answer:
            time.sleep(max(0.0, began + number / PER_SECOND - time.monotonic()))
            return call(server, address, STALE)

        refused = [pool.submit(stale, number) for number in range(PER_SECOND * SECONDS)]
        for failure in refused[:15]:  # by then the address has used up its failures
            failure.result()
        served = [call(server, address, credential) for credential in credentials[position : position + USERS]]
        was_beside = not refused[-1].done()
        answers = [failure.result() for failure in refused]
    seconds = time.monotonic() - began
    assert was_beside
    assert [answer.status for answer in served] == [200] * USERS
    unauthorized = [answer for answer in answers if answer.status == 401]
    too_many = [answer for answer in answers if answer.status == 429]
    assert len(unauthorized) + len(too_many) == PER_SECOND * SECONDS
    assert 10 <= len(unauthorized) <= 11 + seconds / 6
    assert all(0 < (answer.retry_after_seconds or 0) <= 6 for answer in too_many)
