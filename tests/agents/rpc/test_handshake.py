"""Challenge, connect and hello-ok, and all refusals of connect."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.sync.client import connect

from tests.agents.rpc.client import Client, Closed, connect_params, connected, open_connection
from tests.agents.rpc.conftest import TOKEN
from tests.server import RunningServer

MISMATCH = "unauthorized: gateway token mismatch (provide gateway auth token)"
MISSING = "unauthorized: gateway token missing (provide gateway auth token)"
ORIGIN_NOT_ALLOWED = (
    "origin not allowed (open the Control UI from the gateway host or allow it in gateway.controlUi.allowedOrigins)"
)


def refusal(client: Client, **params: Any) -> tuple[dict[str, Any], Closed]:
    answer = client.connect(**params)
    assert answer["ok"] is False
    assert set(answer) == {"type", "id", "ok", "error"}
    closed = client.receive()
    assert isinstance(closed, Closed)
    return answer["error"], closed


def test_the_server_sends_a_challenge_first(server: RunningServer) -> None:
    with connect(server.url.replace("http", "ws", 1)) as socket:
        challenge = json.loads(socket.recv())
        assert socket.subprotocol is None
    assert set(challenge) == {"type", "event", "payload"}
    assert challenge["payload"]["nonce"]
    assert abs(challenge["payload"]["ts"] - time.time() * 1000) < 5000


@pytest.mark.parametrize(("lowest", "highest", "expected"), [(3, 3, 3), (4, 4, 4), (3, 4, 4), (1, 3, 3), (4, 9, 4)])
def test_both_protocol_versions_are_supported(server: RunningServer, lowest: int, highest: int, expected: int) -> None:
    with connected(server, TOKEN, minProtocol=lowest, maxProtocol=highest) as client:
        assert client.hello["protocol"] == expected
        assert client.is_alive()


def test_hello_has_exactly_the_fields_of_the_schema(server: RunningServer) -> None:
    with connected(server, TOKEN) as client:
        hello = client.hello
        second_answer = client.request("connect", connect_params(TOKEN))
    assert second_answer["error"] == {
        "code": "INVALID_REQUEST",
        "message": "connect is only valid as the first request",
    }
    assert set(hello) == {"type", "protocol", "server", "features", "snapshot", "auth", "policy"}
    assert hello["type"] == "hello-ok"
    assert set(hello["server"]) == {"version", "connId"}
    assert hello["features"]["events"] == ["connect.challenge", "tick", "shutdown"]
    assert set(hello["snapshot"]) == {"presence", "health", "stateVersion", "uptimeMs"}
    assert hello["auth"] == {"role": "operator", "scopes": ["operator.admin"]}
    assert hello["policy"] == {"maxPayload": 26214400, "maxBufferedBytes": 52428800, "tickIntervalMs": 500}
    assert "null" not in json.dumps(hello)


@pytest.mark.parametrize("path", ["/", "/any/path?token=x", "/admin/", "/plugins/memory"])
def test_sockets_are_accepted_on_any_path(server: RunningServer, path: str) -> None:
    with open_connection(server, path) as client:
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
def test_connect_accepts_optional_and_unknown_parameters(server: RunningServer, params: dict[str, Any]) -> None:
    with connected(server, TOKEN, **params) as client:
        assert client.is_alive()


def test_a_minimal_connect_gets_the_scopes_of_its_token(server: RunningServer) -> None:
    with open_connection(server) as client:
        answer = client.request("connect", {"minProtocol": 3, "maxProtocol": 3, "auth": {"token": TOKEN}})
    assert answer["payload"]["auth"]["scopes"] == ["operator.admin"]


@pytest.mark.parametrize("token", ["wrong", "rpc_" + "x" * 43, TOKEN + " ", TOKEN[:-1], "密钥", "x" * 10_000])
def test_a_wrong_token_is_refused(server: RunningServer, token: str) -> None:
    with open_connection(server) as client:
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


def test_connect_without_a_token_is_refused(server: RunningServer) -> None:
    with open_connection(server) as client:
        error, closed = refusal(client)
    assert (error["code"], error["details"]["code"]) == ("NOT_PAIRED", "DEVICE_IDENTITY_REQUIRED")
    # Clients look for "device identity required", the panel for "unauthorized" or "token missing".
    assert error["message"] == "unauthorized: gateway token missing (device identity required)"
    assert closed == Closed(1008, error["message"])
    with open_connection(server) as client:
        error, closed = refusal(client, device={"id": "d"})
    assert error["details"]["code"] == "AUTH_TOKEN_MISSING"
    assert closed == Closed(1008, MISSING)


@pytest.mark.parametrize(("lowest", "highest"), [(1, 2), (5, 5), (5, 9)])
def test_other_protocol_versions_are_refused(server: RunningServer, lowest: int, highest: int) -> None:
    with open_connection(server) as client:
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
def test_invalid_params_are_refused(server: RunningServer, params: dict[str, Any]) -> None:
    with open_connection(server) as client:
        error, closed = refusal(client, token=TOKEN, **params)
    assert error["message"].startswith("invalid connect params: at /")
    assert closed == Closed(1008, error["message"])


def test_another_role_is_refused(server: RunningServer) -> None:
    with open_connection(server) as client:
        assert refusal(client, token=TOKEN, role="node")[0]["message"] == "invalid role"


def test_the_first_request_must_be_connect(server: RunningServer) -> None:
    with open_connection(server) as client:
        answer = client.request("health")
        message = "invalid handshake: first request must be connect"
        assert answer["error"] == {"code": "INVALID_REQUEST", "message": message}
        assert client.receive() == Closed(1008, message)


@pytest.mark.parametrize(
    "frame", [[], 7, "text", {"type": "req"}, {"type": "res", "id": "1", "ok": True}, {"type": "req", "id": "1"}]
)
def test_a_first_frame_that_is_not_a_request_closes_the_socket(server: RunningServer, frame: Any) -> None:
    with open_connection(server) as client:
        client.send(json.dumps(frame))
        assert client.receive() == Closed(1008, "invalid request frame")


@pytest.mark.parametrize("sent", ["", "hello", "{", b"\xff\xfe", '{"a":NaN}'])
def test_a_first_frame_that_is_not_json_closes_without_a_reason(server: RunningServer, sent: str | bytes) -> None:
    with open_connection(server) as client:
        client.send(sent)
        assert client.receive() == Closed(1000, "")


def test_a_silent_socket_is_closed_at_the_timeout(server: RunningServer) -> None:
    with open_connection(server) as client:
        started_at = time.monotonic()
        assert client.receive() == Closed(1000, "")
    assert 1.5 < time.monotonic() - started_at < 4


def test_frames_after_connect_wait_for_its_response(server: RunningServer) -> None:
    with open_connection(server) as client:
        client.send({"type": "req", "id": "c", "method": "connect", "params": connect_params(TOKEN)})
        for number in range(15):
            client.send({"type": "req", "id": str(number), "method": "health"})
        assert client.receive_response("c")["ok"]
        answered = {client.receive()["id"] for _ in range(15)}
    assert answered == {str(number) for number in range(15)}


# --- origins ---------------------------------------------------------------------------------------------------------


def origin_answer(server: RunningServer, origin: str | None) -> Any:
    with open_connection(server, origin=origin) as client:
        return client.connect(token=TOKEN)


@pytest.mark.parametrize("origin", ["http://localhost:5173", "http://127.0.0.1:9", "http://[::1]:80", None])
def test_local_pages_and_programs_may_connect(server: RunningServer, origin: str | None) -> None:
    assert origin_answer(server, origin)["ok"]
    assert origin_answer(server, server.url)["ok"]


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://127.0.0.1.evil.example", "file://", "http://", "http://a:b:c", "x"],
)
def test_pages_of_other_origins_may_not_connect(server: RunningServer, origin: str) -> None:
    with open_connection(server, origin=origin) as client:
        error, closed = refusal(client, token=TOKEN)
    assert (error["code"], error["message"]) == ("INVALID_REQUEST", ORIGIN_NOT_ALLOWED)
    assert error["details"]["code"] == "CONTROL_UI_ORIGIN_NOT_ALLOWED"
    assert closed.code == 1008
    assert ORIGIN_NOT_ALLOWED.startswith(closed.reason)


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


OWN_HOST = ("Host", "127.0.0.1")
UPGRADES = {
    "our own name": ([OWN_HOST], 101),
    "another name": ([("Host", "evil.example")], 403),
    "another name with a port": ([("Host", "evil.example:80")], 403),
    "no name": ([("Host", "")], 403),
    "two names": ([OWN_HOST, ("Host", "evil.example")], 403),
    "two origins": ([OWN_HOST, ("Origin", "http://127.0.0.1"), ("Origin", "https://evil.example")], 400),
}


@pytest.mark.parametrize(("headers", "status"), UPGRADES.values(), ids=UPGRADES.keys())
def test_an_upgrade_with_another_host_or_several_origins_is_refused(
    server: RunningServer, headers: list[tuple[str, str]], status: int
) -> None:
    assert upgrade_status(server, *headers) == status


# --- scopes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "requested", "granted"),
    [
        ("alice", ["operator.read", "operator.approvals", "node.x"], ["operator.read", "operator.approvals"]),
        ("writer", ["operator.admin", "operator.read", "operator.write"], ["operator.read", "operator.write"]),
        ("reader", ["operator.admin"], []),
        ("reader", [], []),
    ],
)
def test_granted_scopes_are_requested_ones_that_the_token_has(
    server: RunningServer, tokens: dict[str, str], user: str, requested: list[str], granted: list[str]
) -> None:
    with connected(server, tokens[user], scopes=requested) as client:
        assert client.hello["auth"]["scopes"] == granted
