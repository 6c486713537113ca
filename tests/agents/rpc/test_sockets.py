"""Sockets that are too many, too large, too slow, silent, senseless or unwelcome: the server serves the others."""

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

import requests
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.agents.rpc.client import Client, Closed, connect_params, connected, dialled
from tests.agents.rpc.conftest import TOKEN
from tests.server import RunningServer, running_server

MEBIBYTE = 2**20


def serves(server: RunningServer) -> bool:
    """Both kinds of callers, and nobody is kept waiting: a busy machine alone takes a few seconds."""
    began = time.monotonic()
    assert requests.get(f"{server.url}/api/schema/?format=json", timeout=5).status_code == 200
    with connected(server, TOKEN) as client:
        assert client.is_alive()
    return time.monotonic() - began < 10


# --- sizes -----------------------------------------------------------------------------------------------------------


def test_ten_megabytes_before_connect_are_refused_by_their_header(server: RunningServer) -> None:
    before = server.rss_bytes().current
    with dialled(server) as client:
        with contextlib.suppress(ConnectionClosed):
            client.send("x" * 10 * MEBIBYTE)
        assert client.hear().code == 1009
    assert server.rss_bytes().current - before < 5 * MEBIBYTE
    assert serves(server)


def test_what_a_stranger_may_send_ends_at_64_kib(server: RunningServer) -> None:
    frame = {"type": "req", "id": "1", "method": "connect", "params": connect_params(TOKEN)}
    length = len(json.dumps(frame | {"pad": ""}))
    with dialled(server) as client:
        client.send(json.dumps(frame | {"pad": "x" * (65536 - length)}))
        assert client.hear_response("1")["ok"]
    with dialled(server) as client:
        client.send(json.dumps(frame | {"pad": "x" * (65537 - length)}))
        assert client.hear().code == 1009


def test_pieces_of_a_large_message_are_counted_together(server: RunningServer) -> None:
    with dialled(server) as client:
        with contextlib.suppress(ConnectionClosed):
            client.socket.send(iter(["x" * 1000] * 100))
        assert client.hear().code == 1009


def test_a_connected_client_may_send_25_mebibytes_and_no_more(server: RunningServer) -> None:
    frame = {"type": "req", "id": "1", "method": "health", "params": {"pad": ""}}
    room = 25 * MEBIBYTE - len(json.dumps(frame))
    with connected(server, TOKEN) as client:
        client.send(json.dumps(frame | {"params": {"pad": "x" * room}}))
        assert client.hear_response("1")["ok"]
        with contextlib.suppress(ConnectionClosed):
            client.send(json.dumps(frame | {"params": {"pad": "x" * (room + 1)}}))
        heard: Any = client.hear()
        while not isinstance(heard, Closed):
            heard = client.hear()
        assert heard.code == 1009


# --- numbers ---------------------------------------------------------------------------------------------------------


def test_two_hundred_silent_sockets_disturb_nobody_and_are_closed(server: RunningServer) -> None:
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(dialled(server)) for _ in range(200)]
        assert serves(server)
        assert {silent_one.hear() for silent_one in silent} == {Closed(1000, "")}


def test_who_waits_longest_makes_room_for_others(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        # Handshakes may take as long as they may elsewhere: on a busy machine 300 sockets take more than two seconds.
        server = stack.enter_context(running_server(tmp_path, MEMORY_GATEWAY_RPC_TOKEN=TOKEN))
        addresses = [_raw_socket(server, stack) for _ in range(300)]
        assert serves(server)
        first = addresses[0]
        first.settimeout(20)
        said = first.recv(65536)
        while not said.endswith(b"too many connections") and (more := first.recv(65536)):
            said += more
        assert said.endswith(b"\x03\xf5too many connections")  # 1013


def _raw_socket(server: RunningServer, stack: contextlib.ExitStack) -> socket.socket:
    """Quicker than a whole client."""
    host, port = server.url.removeprefix("http://").split(":")
    raw = stack.enter_context(socket.create_connection((host, int(port))))
    raw.sendall(
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\n\r\n"
    )
    return raw


def test_a_token_holds_eight_sockets(server: RunningServer, tokens: dict[str, str]) -> None:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(connected(server, tokens["bob"])) for _ in range(8)]
        with dialled(server) as ninth:
            answer = ninth.connect(token=tokens["bob"])
            assert answer["error"]["code"] == "UNAVAILABLE"
            assert ninth.hear().code == 1008
        held[0].socket.close()
        _until(lambda: _connects(server, tokens["bob"]))
        assert held[1].is_alive()


def _connects(server: RunningServer, token: str) -> bool:
    with dialled(server) as client:
        return bool(client.connect(token=token)["ok"])


def _until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_too_many_requests_are_slowed_down_and_none_is_refused(tmp_path: Any) -> None:
    with running_server(tmp_path, MEMORY_GATEWAY_RPC_TOKEN=TOKEN) as server, connected(server, TOKEN) as client:
        began = time.monotonic()
        for number in range(100):  # sixty at once, then twenty a second
            client.send({"type": "req", "id": str(number), "method": "health"})
        assert {client.hear()["id"] for _ in range(100)} == {str(number) for number in range(100)}
        assert 1.5 < time.monotonic() - began < 6


def test_guesses_are_counted_together_with_those_at_the_api(tmp_path: Any) -> None:
    with running_server(tmp_path, MEMORY_GATEWAY_RPC_TOKEN=TOKEN) as server:
        codes = []
        for _ in range(12):
            with dialled(server) as client:
                codes.append(client.connect(token="wrong")["error"]["details"]["code"])
        assert codes == ["AUTH_TOKEN_MISMATCH"] * 10 + ["AUTH_RATE_LIMITED"] * 2
        with dialled(server) as client:
            error = client.connect(token="wrong")["error"]
        assert error["message"] == "unauthorized: too many failed authentication attempts (retry later)"
        assert error["retryable"] is True
        assert 0 < error["retryAfterMs"] <= 6000
        with connected(server, TOKEN) as client:
            assert client.is_alive()


# --- nonsense --------------------------------------------------------------------------------------------------------


def _nonsense(seed: int) -> Iterator[str | bytes]:
    """Frames that are damaged, of wrong types, or right but for one part."""
    chance = random.Random(seed)
    values: list[Any] = [None, True, -1, 0, 1e308, 2**70, "", "x", "你好", "\x00", [], {}, [[]], {"a": {}}, "x" * 5000]
    methods = ["health", "connect", "memory.admin.list", "memory.admin.add", "memory.admin.delete", "tools.invoke"]
    methods += ["memory.admin.dashboard", "memory.admin.facets", "nothing", ""]
    names = ["agentId", "tab", "page", "limit", "timeFrom", "timeTo", "items", "text", "category", "tool", "args", "id"]
    while True:
        params = {chance.choice(names): chance.choice(values) for _ in range(chance.randrange(5))}
        if chance.random() < 0.5:
            params |= {
                "agentId": "main",
                "timeFrom": chance.choice(values),
                "items": [dict(params), chance.choice(values)],
            }
        frame = {"type": "req", "id": "f", "method": chance.choice(methods), "params": params}
        if chance.random() < 0.3:
            frame[chance.choice(list(frame))] = chance.choice(values)
        said = json.dumps(frame, allow_nan=True)
        kind = chance.random()
        if kind < 0.2:
            at = chance.randrange(len(said))
            said = said[:at] + chance.choice(['"', "{", "]", "\\", "\\ud800", "\x7f"]) + said[at + 1 :]
        elif kind < 0.3:
            yield chance.randbytes(chance.randrange(200))
            continue
        yield said


def test_ten_thousand_senseless_frames_are_answered_or_passed_over(
    server: RunningServer, tokens: dict[str, str]
) -> None:
    began_log = len(server.log)
    frames = _nonsense(7)
    with connected(server, tokens["charlie"]) as client, connected(server, TOKEN) as other:
        for _ in range(100):
            for _ in range(100):
                client.send(next(frames))
            client.send({"type": "req", "id": "last", "method": "health"})
            answer = client.hear_response("last")
            assert not isinstance(answer, Closed), answer
            assert answer["ok"]
            assert other.is_alive()
        assert client.is_alive()
    assert serves(server)
    assert "Traceback" not in server.log[began_log:]


def test_senseless_first_frames_close_their_own_socket_only(server: RunningServer) -> None:
    frames = _nonsense(8)
    with connected(server, TOKEN) as other:
        for _ in range(100):
            with dialled(server) as client, contextlib.suppress(ConnectionClosed):
                client.send(next(frames))
                heard = client.hear()
                heard = client.hear() if not isinstance(heard, Closed) else heard
                assert heard.code in {1000, 1002, 1008}
        assert other.is_alive()


def test_broken_frames_of_the_wire_itself_are_refused(server: RunningServer) -> None:
    with contextlib.ExitStack() as stack:
        for broken in (b"\xc1\x00", b"\x81\x05hello", b"\x83\x80\x00\x00\x00\x00", b"\x81\xff" + b"\xff" * 8):
            hasty, patient = _raw_socket(server, stack), _raw_socket(server, stack)
            hasty.sendall(broken)  # perhaps before the answer to the upgrade
            said = b""
            while not said.endswith(b"}}"):
                said += patient.recv(65536)
            patient.sendall(broken)
            assert b"\x03" in patient.recv(65536)  # a close code: 1002, 1009
    assert serves(server)


# --- time ------------------------------------------------------------------------------------------------------------


def test_ticks_come_in_time_and_are_counted(server: RunningServer) -> None:
    with connected(server, TOKEN) as client:
        ticks = [client.hear() for _ in range(4)]
    assert [tick["seq"] for tick in ticks] == [1, 2, 3, 4]
    assert {tick["event"] for tick in ticks} == {"tick"}
    assert set(ticks[0]) == {"type", "event", "payload", "seq"}
    apart = [later["payload"]["ts"] - tick["payload"]["ts"] for tick, later in pairwise(ticks)]
    assert all(200 < milliseconds < 5000 for milliseconds in apart), apart


def test_a_revoked_token_is_felt_on_a_live_socket(server: RunningServer, tokens: dict[str, str]) -> None:
    with connected(server, tokens["revoked"]) as client, connected(server, TOKEN) as other:
        assert client.is_alive()
        prefix = tokens["revoked"][:8]
        code = (
            "from accounts import tokens; from accounts.audit import Actor; from accounts.models import RpcToken; "
            f"tokens.revoke(RpcToken.objects.get(prefix={prefix!r}).pk, actor=Actor.command('tests'))"
        )
        assert server.manage("shell", "--no-imports", "--command", code).returncode == 0
        heard: Any = client.hear()
        while not isinstance(heard, Closed):
            heard = client.hear(2)
        assert heard == Closed(4001, "gateway auth changed")
        assert other.is_alive()
    with dialled(server) as client:
        assert client.connect(token=tokens["revoked"])["error"]["details"]["code"] == "AUTH_TOKEN_MISMATCH"


def test_a_token_that_ended_is_refused_at_its_next_request(tmp_path: Any) -> None:
    """Between two ticks, which are half a minute apart."""
    with running_server(tmp_path) as server:
        for user_id, end in (("erased", ["erase_user", "erased", "--yes"]), ("revoked", ["revoke_token"])):
            requests.post(f"{server.url}/users", json={"user_id": user_id}, timeout=10).raise_for_status()
            issued = server.manage("issue_token", "phone", "--user", user_id)
            with connected(server, issued.stdout.strip()) as client:
                assert client.is_alive()
                ended = server.manage(*end, *(issued.stderr.split()[-1:] if end == ["revoke_token"] else []))
                assert ended.returncode == 0, ended.stderr
                addition = {"agentId": "main", "text": "x", "category": "user_memory_fact"}
                answer = client.ask("memory.admin.add", addition)
                assert answer["error"]["details"]["code"] == "AUTH_TOKEN_MISMATCH"
                assert client.hear() == Closed(4001, "gateway auth changed")
        assert "Traceback" not in server.log


def test_sockets_do_not_wait_for_each_other_at_the_database(server: RunningServer) -> None:
    """Dashboards of eight sockets at once; asgiref's one thread would answer `health` after all of them."""
    span = {"agentId": "main", "timeFrom": "2016-01-01", "timeTo": "2026-12-31"}
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connected(server, TOKEN)) for _ in range(7)]
        for client in clients:
            client.send({"type": "req", "id": "slow", "method": "memory.admin.dashboard", "params": span})
        last = stack.enter_context(connected(server, TOKEN))
        assert last.is_alive()
        assert all(client.hear_response("slow")["ok"] for client in clients)


def test_a_client_that_does_not_read_is_cut_off_and_costs_little(server: RunningServer, tokens: dict[str, str]) -> None:
    with connected(server, tokens["alice"]) as client:
        for number in range(60):
            text = f"{number} " + "words " * 1300
            client.call("memory.admin.add", agentId="large", text=text, category="user_memory_fact")
    before = server.rss_bytes().current
    url = server.url.replace("http", "ws", 1)
    with connect(url, compression=None, ping_interval=None, max_queue=1, max_size=2**26) as deaf:
        client = Client(deaf)
        client.hear()
        assert client.connect(token=tokens["alice"])["ok"]
        for number in range(400):
            with contextlib.suppress(ConnectionClosed, TimeoutError):
                deaf.socket.settimeout(0.5)
                client.send({"type": "req", "id": str(number), "method": "memory.admin.list", "params": LARGE})
        assert serves(server)
        assert server.rss_bytes().current - before < 60 * MEBIBYTE


LARGE = {"agentId": "large", "limit": 500}


def test_a_restart_is_announced_and_outlived(tmp_path: Any) -> None:
    settings = {"DJANGO_SETTINGS_MODULE": "tests.agents.rpc.server_settings", "MEMORY_GATEWAY_RPC_TOKEN": TOKEN}
    with running_server(tmp_path, **settings) as server:
        with connected(server, TOKEN) as client, dialled(server) as stranger:
            began = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - began < 5
            for one in (client, stranger):
                heard = one.hear()
                while heard["event"] == "tick":
                    heard = one.hear()
                assert heard["event"] == "shutdown"
                assert heard["payload"] == {"reason": "service restart", "restartExpectedMs": 5000}
                assert one.hear() == Closed(1012, "service restart")
        server.start()
        assert serves(server)


def test_a_token_whose_calls_take_long_does_not_keep_others_waiting(
    server: RunningServer, tokens: dict[str, str]
) -> None:
    slow = {"agentId": "main", "timeFrom": "2016-01-01", "timeTo": "2026-12-31"}
    with contextlib.ExitStack() as stack:
        busy = [stack.enter_context(connected(server, tokens["bob"])) for _ in range(8)]
        for client in busy:
            for number in range(10):
                frame = {"type": "req", "id": str(number), "method": "memory.admin.dashboard", "params": slow}
                client.send(frame)
        began = time.monotonic()
        other = stack.enter_context(connected(server, tokens["charlie"]))
        assert other.is_alive()
        assert time.monotonic() - began < 3
        for client in busy:
            assert client.hear_response("9", seconds=60)["ok"]
