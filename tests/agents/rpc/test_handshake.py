"""Challenge, connect, hello-ok, and every way in which a connect is refused."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.sync.client import connect

from tests.agents.rpc.client import Client, Closed, connect_params, connected, dialled
from tests.agents.rpc.conftest import TOKEN
from tests.server import RunningServer

MISMATCH = "unauthorized: gateway token mismatch (provide gateway auth token)"
MISSING = "unauthorized: gateway token missing (provide gateway auth token)"
FOREIGN = (
    "origin not allowed (open the Control UI from the gateway host or allow it in gateway.controlUi.allowedOrigins)"
)


def refusal(client: Client, **params: Any) -> tuple[dict[str, Any], Closed]:
    answer = client.connect(**params)
    assert answer["ok"] is False
    assert set(answer) == {"type", "id", "ok", "error"}
    closed = client.hear()
    assert isinstance(closed, Closed)
    return answer["error"], closed


def test_the_server_speaks_first(server: RunningServer) -> None:
    with connect(server.url.replace("http", "ws", 1)) as socket:
        challenge = json.loads(socket.recv())
        assert socket.subprotocol is None
    assert set(challenge) == {"type", "event", "payload"}
    assert challenge["payload"]["nonce"]
    assert abs(challenge["payload"]["ts"] - time.time() * 1000) < 5000


@pytest.mark.parametrize(("lowest", "highest", "spoken"), [(3, 3, 3), (4, 4, 4), (3, 4, 4), (1, 3, 3), (4, 9, 4)])
def test_both_wires_are_spoken(server: RunningServer, lowest: int, highest: int, spoken: int) -> None:
    with connected(server, TOKEN, minProtocol=lowest, maxProtocol=highest) as client:
        assert client.hello["protocol"] == spoken
        assert client.is_alive()


def test_hello_says_all_that_the_schema_wants_and_nothing_else(server: RunningServer) -> None:
    with connected(server, TOKEN) as client:
        hello = client.hello
        again = client.ask("connect", connect_params(TOKEN))
    assert again["error"] == {"code": "INVALID_REQUEST", "message": "connect is only valid as the first request"}
    assert set(hello) == {"type", "protocol", "server", "features", "snapshot", "auth", "policy"}
    assert hello["type"] == "hello-ok"
    assert set(hello["server"]) == {"version", "connId"}
    assert hello["features"]["events"] == ["connect.challenge", "tick", "shutdown"]
    assert set(hello["snapshot"]) == {"presence", "health", "stateVersion", "uptimeMs"}
    assert hello["auth"] == {"role": "operator", "scopes": ["operator.admin"]}
    assert hello["policy"] == {"maxPayload": 26214400, "maxBufferedBytes": 52428800, "tickIntervalMs": 500}
    assert "null" not in json.dumps(hello)


@pytest.mark.parametrize("path", ["/", "/any/path?token=x", "/admin/", "/plugins/memory"])
def test_any_path_is_the_gateway(server: RunningServer, path: str) -> None:
    with dialled(server, path) as client:
        assert client.connect(token=TOKEN)["ok"]


CLIENTS: dict[str, dict[str, Any]] = {
    "the panel elsewhere": {"client": {"id": "openclaw-probe", "mode": "probe"}},
    "with a device": {"device": {"id": "d", "publicKey": "k", "signature": "s", "signedAt": 1, "nonce": "n"}},
    "with keys that nobody knows": {"locale": "zh-CN", "userAgent": "x", "caps": [], "whatever": {"a": None}},
    "with hardly anything": {"client": None, "role": "operator", "caps": None},
    "with a password": {"auth": {"password": TOKEN}},
    "with a stale token beside the password": {"auth": {"token": "old", "password": TOKEN, "deviceToken": "x"}},
}


@pytest.mark.parametrize("params", CLIENTS.values(), ids=CLIENTS.keys())
def test_clients_of_all_kinds_connect(server: RunningServer, params: dict[str, Any]) -> None:
    with connected(server, TOKEN, **params) as client:
        assert client.is_alive()


def test_a_connect_of_the_bare_minimum_has_the_scopes_of_its_token(server: RunningServer) -> None:
    with dialled(server) as client:
        answer = client.ask("connect", {"minProtocol": 3, "maxProtocol": 3, "auth": {"token": TOKEN}})
    assert answer["payload"]["auth"]["scopes"] == ["operator.admin"]


@pytest.mark.parametrize("token", ["wrong", "rpc_" + "x" * 43, TOKEN + " ", TOKEN[:-1], "密钥", "x" * 10_000])
def test_a_wrong_token_is_refused(server: RunningServer, token: str) -> None:
    with dialled(server) as client:
        error, closed = refusal(client, token=token)
    assert error["code"] == "INVALID_REQUEST"
    assert error["message"] == MISMATCH
    assert error["details"] == {
        "code": "AUTH_TOKEN_MISMATCH",
        "authReason": "token_mismatch",
        "canRetryWithDeviceToken": False,
        "recommendedNextStep": "update_auth_credentials",
    }
    assert closed == Closed(1008, MISMATCH)


def test_no_token_is_refused(server: RunningServer) -> None:
    with dialled(server) as client:
        error, closed = refusal(client)
    assert (error["code"], error["details"]["code"]) == ("NOT_PAIRED", "DEVICE_IDENTITY_REQUIRED")
    assert closed == Closed(1008, "device identity required")
    with dialled(server) as client:
        error, closed = refusal(client, device={"id": "d"})
    assert error["details"]["code"] == "AUTH_TOKEN_MISSING"
    assert closed == Closed(1008, MISSING)


@pytest.mark.parametrize(("lowest", "highest"), [(1, 2), (5, 5), (5, 9)])
def test_another_wire_is_refused(server: RunningServer, lowest: int, highest: int) -> None:
    with dialled(server) as client:
        error, closed = refusal(client, token=TOKEN, minProtocol=lowest, maxProtocol=highest)
    assert error["code"] == "INVALID_REQUEST"
    assert error["details"] == {
        "code": "PROTOCOL_MISMATCH",
        "clientMinProtocol": lowest,
        "clientMaxProtocol": highest,
        "expectedProtocol": 4,
        "minimumProbeProtocol": 3,
    }
    assert closed == Closed(1002, "protocol mismatch")


BAD_PARAMS: list[dict[str, Any]] = [
    {"minProtocol": None},
    {"minProtocol": "3"},
    {"minProtocol": True},
    {"maxProtocol": 0},
    {"maxProtocol": 3.5},
    {"auth": "token"},
    {"scopes": "operator.admin"},
    {"scopes": [1]},
]


@pytest.mark.parametrize("params", BAD_PARAMS)
def test_bad_params_are_refused(server: RunningServer, params: dict[str, Any]) -> None:
    with dialled(server) as client:
        error, closed = refusal(client, token=TOKEN, **params)
    assert error["message"].startswith("invalid connect params: at /")
    assert closed == Closed(1008, error["message"])


def test_another_role_is_refused(server: RunningServer) -> None:
    with dialled(server) as client:
        assert refusal(client, token=TOKEN, role="node")[0]["message"] == "invalid role"


def test_the_first_request_must_be_connect(server: RunningServer) -> None:
    with dialled(server) as client:
        answer = client.ask("health")
        message = "invalid handshake: first request must be connect"
        assert answer["error"] == {"code": "INVALID_REQUEST", "message": message}
        assert client.hear() == Closed(1008, message)


@pytest.mark.parametrize(
    "frame", [[], 7, "text", {"type": "req"}, {"type": "res", "id": "1", "ok": True}, {"type": "req", "id": "1"}]
)
def test_a_first_frame_that_is_no_request_closes(server: RunningServer, frame: Any) -> None:
    with dialled(server) as client:
        client.send(json.dumps(frame))
        assert client.hear() == Closed(1008, "invalid request frame")


@pytest.mark.parametrize("said", ["", "hello", "{", b"\xff\xfe", '{"a":NaN}'])
def test_a_first_frame_that_is_no_json_closes_without_a_word(server: RunningServer, said: str | bytes) -> None:
    with dialled(server) as client:
        client.send(said)
        assert client.hear() == Closed(1000, "")


def test_a_silent_socket_is_closed_in_time(server: RunningServer) -> None:
    with dialled(server) as client:
        began = time.monotonic()
        assert client.hear() == Closed(1000, "")
    assert 1.5 < time.monotonic() - began < 4


def test_frames_behind_a_pending_connect_wait_for_it(server: RunningServer) -> None:
    with dialled(server) as client:
        client.send({"type": "req", "id": "c", "method": "connect", "params": connect_params(TOKEN)})
        for number in range(15):
            client.send({"type": "req", "id": str(number), "method": "health"})
        assert client.hear_response("c")["ok"]
        answered = {client.hear()["id"] for _ in range(15)}
    assert answered == {str(number) for number in range(15)}


# --- origins ---------------------------------------------------------------------------------------------------------


def origin_answer(server: RunningServer, origin: str | None) -> Any:
    with dialled(server, origin=origin) as client:
        return client.connect(token=TOKEN)


@pytest.mark.parametrize("origin", ["http://localhost:5173", "http://127.0.0.1:9", "http://[::1]:80", None])
def test_pages_of_this_machine_and_programs_may_connect(server: RunningServer, origin: str | None) -> None:
    assert origin_answer(server, origin)["ok"]
    assert origin_answer(server, server.url)["ok"]


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://127.0.0.1.evil.example", "file://", "http://", "http://a:b:c", "x"],
)
def test_foreign_pages_may_not(server: RunningServer, origin: str) -> None:
    with dialled(server, origin=origin) as client:
        error, closed = refusal(client, token=TOKEN)
    assert (error["code"], error["message"]) == ("INVALID_REQUEST", FOREIGN)
    assert error["details"]["code"] == "CONTROL_UI_ORIGIN_NOT_ALLOWED"
    assert closed.code == 1008
    assert FOREIGN.startswith(closed.reason)


def upgrade_status(server: RunningServer, *headers: tuple[str, str]) -> int:
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
    connection.putrequest("GET", "/", skip_host=True)
    upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")]
    for name, value in [*headers, *upgrade, ("Sec-WebSocket-Key", "x3JJHMbDL1EzLkh9GBhXDw==")]:
        connection.putheader(name, value)
    connection.endheaders()
    status = connection.getresponse().status
    connection.close()
    return status


OWN = ("Host", "127.0.0.1")
UPGRADES = {
    "our own name": ([OWN], 101),
    "another name": ([("Host", "evil.example")], 403),
    "another name with a port": ([("Host", "evil.example:80")], 403),
    "no name": ([("Host", "")], 403),
    "two names": ([OWN, ("Host", "evil.example")], 403),
    "two origins": ([OWN, ("Origin", "http://127.0.0.1"), ("Origin", "https://evil.example")], 400),
}


@pytest.mark.parametrize(("headers", "status"), UPGRADES.values(), ids=UPGRADES.keys())
def test_a_name_that_is_not_ours_is_refused_before_anything_is_said(
    server: RunningServer, headers: list[tuple[str, str]], status: int
) -> None:
    assert upgrade_status(server, *headers) == status


# --- scopes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("has", "asks", "gets"),
    [
        ("alice", ["operator.read", "operator.approvals", "node.x"], ["operator.read", "operator.approvals"]),
        ("writer", ["operator.admin", "operator.read", "operator.write"], ["operator.read", "operator.write"]),
        ("reader", ["operator.admin"], []),
        ("reader", [], []),
    ],
)
def test_scopes_are_what_was_asked_for_and_the_token_has(
    server: RunningServer, tokens: dict[str, str], has: str, asks: list[str], gets: list[str]
) -> None:
    with connected(server, tokens[has], scopes=asks) as client:
        assert client.hello["auth"]["scopes"] == gets
