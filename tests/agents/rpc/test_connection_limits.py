"""The server serves its clients while other sockets are too many, too slow or silent, or send too much or nonsense."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import requests
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.agents.rpc.client import Client, Closed, connect_params, connected, open_connection
from tests.agents.rpc.conftest import TOKEN
from tests.server import RunningServer, running_server

MEBIBYTE = 2**20


def serves_others(server: RunningServer) -> bool:
    """Return True if REST and RPC respond within ten seconds; a busy machine alone takes a few."""
    started_at = time.monotonic()
    assert requests.get(f"{server.url}/api/schema/?format=json", timeout=5).status_code == 200
    with connected(server, TOKEN) as client:
        assert client.is_alive()
    return time.monotonic() - started_at < 10


# --- sizes -----------------------------------------------------------------------------------------------------------


def test_a_large_frame_before_connect_is_refused_by_its_header(server: RunningServer) -> None:
    before = server.rss_bytes().current
    with open_connection(server) as client:
        with contextlib.suppress(ConnectionClosed):
            client.send("x" * 10 * MEBIBYTE)
        assert client.receive().code == 1009
    assert server.rss_bytes().current - before < 5 * MEBIBYTE
    assert serves_others(server)


def test_messages_before_connect_are_limited_to_64_kib(server: RunningServer) -> None:
    frame = {"type": "req", "id": "1", "method": "connect", "params": connect_params(TOKEN)}
    length = len(json.dumps(frame | {"pad": ""}))
    with open_connection(server) as client:
        client.send(json.dumps(frame | {"pad": "x" * (65536 - length)}))
        assert client.receive_response("1")["ok"]
    with open_connection(server) as client:
        client.send(json.dumps(frame | {"pad": "x" * (65537 - length)}))
        assert client.receive().code == 1009


def test_fragments_of_a_message_are_counted_together(server: RunningServer) -> None:
    with open_connection(server) as client:
        with contextlib.suppress(ConnectionClosed):
            client.socket.send(iter(["x" * 1000] * 100))
        assert client.receive().code == 1009


@pytest.mark.slow
def test_messages_of_connected_clients_are_limited_to_25_mib(server: RunningServer) -> None:
    frame = {"type": "req", "id": "1", "method": "health", "params": {"pad": ""}}
    room = 25 * MEBIBYTE - len(json.dumps(frame))
    with connected(server, TOKEN) as client:
        client.send(json.dumps(frame | {"params": {"pad": "x" * room}}))
        assert client.receive_response("1")["ok"]
        with contextlib.suppress(ConnectionClosed):
            client.send(json.dumps(frame | {"params": {"pad": "x" * (room + 1)}}))
        heard: Any = client.receive()
        while not isinstance(heard, Closed):
            heard = client.receive()
        assert heard.code in {1009, 1006}  # the close frame can be lost: the client is still sending


# --- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_hundred_silent_sockets_do_not_delay_clients_and_are_closed(server: RunningServer) -> None:
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(open_connection(server)) for _ in range(200)]
        assert serves_others(server)
        assert {silent_one.receive() for silent_one in silent} == {Closed(1000, "")}


def test_the_oldest_pending_connections_are_closed_first(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        # With the default handshake timeout: on a busy machine, 300 sockets take more than two seconds.
        server = stack.enter_context(running_server(tmp_path, MEMORY_GATEWAY_RPC_TOKEN=TOKEN))
        addresses = [_raw_socket(server, stack) for _ in range(300)]
        assert serves_others(server)
        first = addresses[0]
        first.settimeout(20)
        frame_text = first.recv(65536)
        while not frame_text.endswith(b"too many connections") and (more := first.recv(65536)):
            frame_text += more
        assert frame_text.endswith(b"\x03\xf5too many connections")  # 1013


def _raw_socket(server: RunningServer, stack: contextlib.ExitStack) -> socket.socket:
    """Open a socket without a client, which is faster."""
    host, port = server.url.removeprefix("http://").split(":")
    raw = stack.enter_context(socket.create_connection((host, int(port))))
    raw.sendall(
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\n\r\n"
    )
    return raw


def test_a_token_may_have_eight_sockets(server: RunningServer, tokens: dict[str, str]) -> None:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(connected(server, tokens["bob"])) for _ in range(8)]
        with open_connection(server) as ninth:
            answer = ninth.connect(token=tokens["bob"])
            assert answer["error"]["code"] == "UNAVAILABLE"
            assert ninth.receive().code == 1008
        held[0].socket.close()
        _wait_until(lambda: _connects(server, tokens["bob"]))
        assert held[1].is_alive()


def _connects(server: RunningServer, token: str) -> bool:
    with open_connection(server) as client:
        return bool(client.connect(token=token)["ok"])


def _wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_too_many_requests_are_delayed_and_not_refused(tmp_path: Any) -> None:
    with running_server(tmp_path, MEMORY_GATEWAY_RPC_TOKEN=TOKEN) as server, connected(server, TOKEN) as client:
        started_at = time.monotonic()
        for number in range(100):  # sixty at once, then twenty a second
            client.send({"type": "req", "id": str(number), "method": "health"})
        assert {client.receive()["id"] for _ in range(100)} == {str(number) for number in range(100)}
        assert 1.5 < time.monotonic() - started_at < 6


def test_wrong_tokens_count_together_with_wrong_api_keys(tmp_path: Any) -> None:
    with running_server(tmp_path, MEMORY_GATEWAY_RPC_TOKEN=TOKEN) as server:
        codes = []
        for _ in range(12):
            with open_connection(server) as client:
                codes.append(client.connect(token="wrong")["error"]["details"]["code"])
        assert codes == ["AUTH_TOKEN_MISMATCH"] * 10 + ["AUTH_RATE_LIMITED"] * 2
        with open_connection(server) as client:
            error = client.connect(token="wrong")["error"]
        assert error["message"] == "unauthorized: too many failed authentication attempts (retry later)"
        assert error["retryable"] is True
        assert 0 < error["retryAfterMs"] <= 6000
        with connected(server, TOKEN) as client:
            assert client.is_alive()


# --- invalid frames --------------------------------------------------------------------------------------------------


def _invalid_frames(seed: int) -> Iterator[str | bytes]:
    """Yield frames that are damaged, have values of wrong types, or have one invalid part."""
    rng = random.Random(seed)
    values: list[Any] = [None, True, -1, 0, 1e308, 2**70, "", "x", "你好", "\x00", [], {}, [[]], {"a": {}}, "x" * 5000]
    methods = ["health", "connect", "memory.admin.list", "memory.admin.add", "memory.admin.delete", "tools.invoke"]
    methods += ["memory.admin.dashboard", "memory.admin.facets", "nothing", ""]
    names = ["agentId", "tab", "page", "limit", "timeFrom", "timeTo", "items", "text", "category", "tool", "args", "id"]
    while True:
        params = {rng.choice(names): rng.choice(values) for _ in range(rng.randrange(5))}
        if rng.random() < 0.5:
            params |= {
                "agentId": "main",
                "timeFrom": rng.choice(values),
                "items": [dict(params), rng.choice(values)],
            }
        frame = {"type": "req", "id": "f", "method": rng.choice(methods), "params": params}
        if rng.random() < 0.3:
            frame[rng.choice(list(frame))] = rng.choice(values)
        frame_text = json.dumps(frame, allow_nan=True)
        kind = rng.random()
        if kind < 0.2:
            at = rng.randrange(len(frame_text))
            frame_text = frame_text[:at] + rng.choice(['"', "{", "]", "\\", "\\ud800", "\x7f"]) + frame_text[at + 1 :]
        elif kind < 0.3:
            yield rng.randbytes(rng.randrange(200))
            continue
        yield frame_text


@pytest.mark.slow
def test_ten_thousand_invalid_frames_do_not_disturb_other_sockets(
    server: RunningServer, tokens: dict[str, str]
) -> None:
    log_start = len(server.log)
    frames = _invalid_frames(7)
    with connected(server, tokens["charlie"]) as client, connected(server, TOKEN) as other:
        for _ in range(100):
            for _ in range(100):
                client.send(next(frames))
            client.send({"type": "req", "id": "last", "method": "health"})
            answer = client.receive_response("last")
            assert not isinstance(answer, Closed), answer
            assert answer["ok"]
            assert other.is_alive()
        assert client.is_alive()
    assert serves_others(server)
    assert "Traceback" not in server.log[log_start:]


def test_an_invalid_first_frame_closes_only_its_socket(server: RunningServer) -> None:
    frames = _invalid_frames(8)
    with connected(server, TOKEN) as other:
        for _ in range(100):
            with open_connection(server) as client, contextlib.suppress(ConnectionClosed):
                client.send(next(frames))
                heard = client.receive()
                heard = client.receive() if not isinstance(heard, Closed) else heard
                assert heard.code in {1000, 1002, 1008}
        assert other.is_alive()


def test_malformed_websocket_frames_are_refused(server: RunningServer) -> None:
    with contextlib.ExitStack() as stack:
        for broken in (b"\xc1\x00", b"\x81\x05hello", b"\x83\x80\x00\x00\x00\x00", b"\x81\xff" + b"\xff" * 8):
            eager, waiting = _raw_socket(server, stack), _raw_socket(server, stack)
            eager.sendall(broken)  # possibly before the response to the upgrade
            frame_text = b""
            while not frame_text.endswith(b"}}"):
                frame_text += waiting.recv(65536)
            waiting.sendall(broken)
            assert b"\x03" in waiting.recv(65536)  # a close code: 1002, 1009
    assert serves_others(server)


# --- time ------------------------------------------------------------------------------------------------------------


def test_ticks_are_punctual_and_numbered(server: RunningServer) -> None:
    with connected(server, TOKEN) as client:
        ticks = [client.receive() for _ in range(4)]
    assert [tick["seq"] for tick in ticks] == [1, 2, 3, 4]
    assert {tick["event"] for tick in ticks} == {"tick"}
    assert set(ticks[0]) == {"type", "event", "payload", "seq"}
    apart = [later["payload"]["ts"] - tick["payload"]["ts"] for tick, later in pairwise(ticks)]
    assert all(200 < milliseconds < 5000 for milliseconds in apart), apart


def test_a_revoked_token_closes_its_sockets(server: RunningServer, tokens: dict[str, str]) -> None:
    with connected(server, tokens["revoked"]) as client, connected(server, TOKEN) as other:
        assert client.is_alive()
        prefix = tokens["revoked"][:8]
        code = (
            "from accounts import tokens; from accounts.audit import Actor; from accounts.models import RpcToken; "
            f"tokens.revoke(RpcToken.objects.get(prefix={prefix!r}).pk, actor=Actor.command('tests'))"
        )
        assert server.manage("shell", "--no-imports", "--command", code).returncode == 0
        heard: Any = client.receive()
        while not isinstance(heard, Closed):
            heard = client.receive(2)
        assert heard == Closed(4001, "gateway auth changed")
        assert other.is_alive()
    with open_connection(server) as client:
        assert client.connect(token=tokens["revoked"])["error"]["details"]["code"] == "AUTH_TOKEN_MISMATCH"


@pytest.mark.slow
def test_an_invalidated_token_is_refused_at_its_next_request(tmp_path: Any) -> None:
    """Without waiting for the next tick, which may be half a minute later."""
    with running_server(tmp_path) as server:
        for user_id, end in (("erased", ["erase_user", "erased", "--yes"]), ("revoked", ["revoke_token"])):
            requests.post(f"{server.url}/users", json={"user_id": user_id}, timeout=10).raise_for_status()
            issued = server.manage("issue_token", "phone", "--user", user_id)
            with connected(server, issued.stdout.strip()) as client:
                assert client.is_alive()
                ended = server.manage(*end, *(issued.stderr.split()[-1:] if end == ["revoke_token"] else []))
                assert ended.returncode == 0, ended.stderr
                addition = {"agentId": "main", "text": "x", "category": "user_memory_fact"}
                answer = client.request("memory.admin.add", addition)
                assert answer["error"]["details"]["code"] == "AUTH_TOKEN_MISMATCH"
                assert client.receive() == Closed(4001, "gateway auth changed")
        assert "Traceback" not in server.log


def test_requests_of_sockets_run_in_parallel(server: RunningServer) -> None:
    """Call dashboards on several sockets: the one thread of asgiref would respond to `health` after all of them."""
    span = {"agentId": "main", "timeFrom": "2016-01-01", "timeTo": "2026-12-31"}
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connected(server, TOKEN)) for _ in range(7)]
        for client in clients:
            client.send({"type": "req", "id": "slow", "method": "memory.admin.dashboard", "params": span})
        last = stack.enter_context(connected(server, TOKEN))
        assert last.is_alive()
        assert all(client.receive_response("slow")["ok"] for client in clients)


@pytest.mark.slow
def test_a_client_that_does_not_read_is_disconnected(server: RunningServer, tokens: dict[str, str]) -> None:
    with connected(server, tokens["alice"]) as client:
        for number in range(60):
            text = f"{number} " + "words " * 1300
            client.call("memory.admin.add", agentId="large", text=text, category="user_memory_fact")
    before = server.rss_bytes().current
    url = server.url.replace("http", "ws", 1)
    with connect(url, compression=None, ping_interval=None, max_queue=1, max_size=2**26) as deaf:
        client = Client(deaf)
        client.receive()
        assert client.connect(token=tokens["alice"])["ok"]
        for number in range(400):
            with contextlib.suppress(ConnectionClosed, TimeoutError):
                deaf.socket.settimeout(0.5)
                client.send({"type": "req", "id": str(number), "method": "memory.admin.list", "params": LARGE})
        assert serves_others(server)
        assert server.rss_bytes().current - before < 60 * MEBIBYTE


LARGE = {"agentId": "large", "limit": 500}


def test_a_restart_is_announced_to_clients(tmp_path: Any) -> None:
    settings = {"DJANGO_SETTINGS_MODULE": "tests.agents.rpc.server_settings", "MEMORY_GATEWAY_RPC_TOKEN": TOKEN}
    with running_server(tmp_path, **settings) as server:
        with connected(server, TOKEN) as client, open_connection(server) as outsider:
            started_at = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - started_at < 5
            for one in (client, outsider):
                heard = one.receive()
                while heard["event"] == "tick":
                    heard = one.receive()
                assert heard["event"] == "shutdown"
                assert heard["payload"] == {"reason": "service restart", "restartExpectedMs": 5000}
                assert one.receive() == Closed(1012, "service restart")
        server.start()
        assert serves_others(server)


def test_slow_requests_of_a_token_do_not_delay_others(server: RunningServer, tokens: dict[str, str]) -> None:
    slow = {"agentId": "main", "timeFrom": "2016-01-01", "timeTo": "2026-12-31"}
    with contextlib.ExitStack() as stack:
        busy = [stack.enter_context(connected(server, tokens["bob"])) for _ in range(8)]
        for client in busy:
            for number in range(10):
                frame = {"type": "req", "id": str(number), "method": "memory.admin.dashboard", "params": slow}
                client.send(frame)
        started_at = time.monotonic()
        other = stack.enter_context(connected(server, tokens["charlie"]))
        assert other.is_alive()
        assert time.monotonic() - started_at < 3
        for client in busy:
            assert client.receive_response("9", seconds=60)["ok"]
