"""Attacks of clients without a key, without a proxy between, by connections and request heads."""

from __future__ import annotations

import contextlib
import http.client
import json
import resource
import secrets
import select
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from memory_gateway.server.bounds import MAX_HEAD_BYTES
from tests.agents.rpc.client import connected
from tests.server import RunningServer, running_server

MIB = 2**20
HASTY = {"DJANGO_SETTINGS_MODULE": "tests.memory_gateway.hasty_site"}
TOKEN = secrets.token_hex(32)
RPC_TOKEN = secrets.token_hex(32)
ON_A_NETWORK = {
    "MEMORY_GATEWAY_HOST": "0.0.0.0",  # noqa: S104
    "MEMORY_GATEWAY_PROVISIONING_TOKEN": TOKEN,
    "MEMORY_GATEWAY_RPC_TOKEN": RPC_TOKEN,
}
OTHER_USER = "127.0.0.2"
HEAD_START = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.fixture(scope="module", autouse=True)
def _many_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server on a network with a limit of 1,024 files; heads have two seconds, idle connections two."""
    with running_server(tmp_path_factory.mktemp("hasty"), **HASTY, **ON_A_NETWORK) as running:
        yield running


@pytest.fixture(scope="module")
def local_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server on loopback, whose heads are parsed as those behind a proxy."""
    with running_server(tmp_path_factory.mktemp("local"), **HASTY) as running:
        yield running


def connect(server: RunningServer, source: str = "127.0.0.1") -> socket.socket:
    port = int(server.url.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=10, source_address=(source, 0))


def read_all(client: socket.socket) -> bytes:
    received = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(65536):
            received += part
    return bytes(received)


def talk(server: RunningServer, sent: bytes) -> bytes:
    """Send, and return all that comes until the server closes the connection."""
    with connect(server) as client:
        client.sendall(sent)
        return read_all(client)


def is_open(client: socket.socket) -> bool:
    """Return True if the server has sent nothing and not closed the connection."""
    poll = select.poll()
    poll.register(client, select.POLLIN)
    return not poll.poll(0)


def is_served(server: RunningServer, source: str) -> bool:
    with connect(server, source) as client:
        client.sendall(HEAD_START + b"Connection: close\r\n\r\n")
        return read_all(client).startswith(b"HTTP/1.1 200 ")


@contextlib.contextmanager
def idle_connections(server: RunningServer, count: int, source: str = "127.0.0.1") -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(connect(server, source)) for _ in range(count)]


def head(*headers: bytes, path: bytes = b"/test/headers") -> bytes:
    return b"\r\n".join([b"GET " + path + b" HTTP/1.1", b"Host: 127.0.0.1", *headers, b"", b""])


# --- the head: size and number of headers ---


@pytest.mark.parametrize(
    "sent",
    [
        head(b"X: " + b"a" * 2 * MAX_HEAD_BYTES),
        head(b"X: " + b"a" * 2 * MAX_HEAD_BYTES)[:-4],
        head(*(b"X-%d: %b" % (number, b"a" * 1000) for number in range(70))),
        head(path=b"/" + b"a" * 2 * MAX_HEAD_BYTES),
        HEAD_START + b"X-" + b"a" * 2 * MAX_HEAD_BYTES,
    ],
    ids=["long header", "endless header", "long headers", "long path", "long name"],
)
def test_a_head_that_is_too_large_is_refused_and_the_connection_closed(server: RunningServer, sent: bytes) -> None:
    assert talk(server, sent)[:13] in {b"HTTP/1.1 400 ", b""}  # the answer can be lost: the client is still sending


def test_more_than_a_hundred_headers_are_answered_431(server: RunningServer, local_server: RunningServer) -> None:
    for one in (server, local_server):
        sent = head(*(b"X-%d: a" % number for number in range(99)), b"Connection: close")
        answer_head, _, body = talk(one, sent).partition(b"\r\n\r\n")
        assert answer_head.startswith(b"HTTP/1.1 431 ")
        assert b"content-type: application/problem+json" in answer_head
        assert json.loads(body)["code"] == "head_too_large"
        lines = [json.loads(line) for line in one.log.splitlines() if line.startswith("{")]
        assert (lines[-1]["output"]["status"], lines[-1]["client"]) == (431, "127.0.0.1")


def test_large_heads_within_the_bounds_are_served(server: RunningServer) -> None:
    headers = [b"X-%d: a" % number for number in range(90)]
    for sent in (head(*headers, b"Connection: close"), head(b"X-0: " + b"a" * 30 * 1024, b"Connection: close")):
        answer = talk(server, sent)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b'"X-0": "a' in answer


def test_a_large_head_in_many_pieces_and_after_a_large_body_is_served(server: RunningServer) -> None:
    body = bytes(300_000)
    upload = b"POST /test/headers HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body)
    last = head(b"X-0: " + b"a" * 30 * 1024, b"Connection: close")
    with connect(server) as client:
        client.sendall(upload + body + last[:1000])
        for start in range(1000, len(last), 5000):
            time.sleep(0.02)
            client.sendall(last[start : start + 5000])
        answer = read_all(client)
    assert b'"body": 300000' in answer
    assert b'"X-0": "aaa' in answer


def test_a_head_that_begins_behind_a_body_has_the_same_bounds(server: RunningServer) -> None:
    upload = b"POST /test/headers HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99000\r\n\r\n" + bytes(99_000)
    for size, is_answered in ((30_000, True), (20 * MAX_HEAD_BYTES, False)):
        answer = talk(server, upload + head(b"X-0: " + b"a" * size, b"Connection: close"))
        assert (b'"X-0"' in answer) == is_answered
    assert "Traceback" not in server.log


def test_pipelined_requests_are_answered_in_order(server: RunningServer) -> None:
    few = b"".join(head(path=b"/test/echo?%d" % number) for number in range(20))
    assert talk(server, few + head(b"Connection: close")).count(b"HTTP/1.1 ") == 21
    with connect(server) as client:  # with requests that are being answered when the connection is cut
        client.sendall(head() * 1000)
    assert is_served(server, OTHER_USER)
    assert "Traceback" not in server.log


def test_nonsense_is_answered_400_without_a_line_in_the_log(server: RunningServer) -> None:
    log_length = len(server.log)
    assert talk(server, b"\x16\x03\x01 nonsense\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    assert len(server.log) == log_length


def test_nonsense_behind_an_answered_request_closes_the_connection(server: RunningServer) -> None:
    refused = b"POST /users HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    with connect(server) as client:
        client.sendall(refused)
        answer = client.recv(65536)
        client.sendall(b"nonsense\r\n")
        answer += read_all(client)
    assert answer.startswith(b"HTTP/1.1 415 ")
    assert "Traceback" not in server.log


# --- after the head ---

CHUNKED = b"POST /test/headers HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"


@pytest.mark.parametrize("start", [b"0\r\nX: ", b"1;x="], ids=["trailer", "chunk extension"])
def test_endless_trailers_and_chunk_extensions_are_cut_off(server: RunningServer, start: bytes) -> None:
    with connect(server) as client:
        client.sendall(CHUNKED + b"\r\n" + start)
        sent = _send_until_closed(client, b"a" * 65536, 64 * MIB)
    assert sent < 16 * MIB


def test_endless_many_trailers_are_cut_off(server: RunningServer) -> None:
    with connect(server) as client:
        client.sendall(CHUNKED + b"\r\n0\r\n")
        assert _send_until_closed(client, b"a:b\r\n" * 10_000, 64 * MIB) < 16 * MIB


def _send_until_closed(client: socket.socket, data: bytes, most: int) -> int:
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < most:
            client.sendall(data)
            sent += len(data)
    return sent


def test_a_trailer_does_not_pass_for_a_header(server: RunningServer) -> None:
    answer = talk(server, CHUNKED + b"Connection: close\r\n\r\n1\r\na\r\n0\r\nX-Trailer: yes\r\n\r\n")
    assert b'"body": 1' in answer
    assert b"X-Trailer" not in answer


# --- time ---


def test_slow_heads_are_closed_in_time_and_delay_no_client(server: RunningServer) -> None:
    with idle_connections(server, 200) as slow:
        began = time.monotonic()
        for position in range(30):
            for client in slow:
                with contextlib.suppress(ConnectionError):
                    client.send(head()[position : position + 1])
            asked = time.monotonic()
            assert is_served(server, OTHER_USER)
            assert time.monotonic() - asked < 1
            if position == 5:
                assert time.monotonic() - began < 1.5
                assert all(is_open(client) for client in slow)
            time.sleep(0.1)
        assert time.monotonic() - began > 2.5
        assert not any(is_open(client) for client in slow)


@pytest.mark.parametrize("drip", [b"", b"\r\n" * 20, head()], ids=["nothing", "empty lines", "a head"])
def test_idle_connections_are_closed_whatever_they_drip(server: RunningServer, drip: bytes) -> None:
    with connect(server) as client:
        client.sendall(head())
        assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
        client.settimeout(0.4)
        began = time.monotonic()
        for position in range(20):
            try:
                client.sendall(drip[position : position + 1])
                if not client.recv(65536):
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        assert time.monotonic() - began < 5


@pytest.mark.slow
def test_a_busy_connection_is_not_idle(server: RunningServer) -> None:
    assert talk(server, head(b"Connection: close", path=b"/test/sleep/4")).startswith(b"HTTP/1.1 200 ")


@pytest.mark.slow
@pytest.mark.parametrize("lines", [(), (b"Connection: close",)], ids=["keep-alive", "close"])
def test_who_does_not_take_an_answer_is_cut_off(server: RunningServer, lines: tuple[bytes, ...]) -> None:
    size = 20 * MIB
    with connect(server) as client:
        client.sendall(head(*lines, path=b"/test/large/%d" % size))
        time.sleep(5)
        assert len(read_all(client)) < size


@pytest.mark.slow
def test_who_takes_an_answer_slowly_gets_all_of_it(server: RunningServer) -> None:
    size = 12 * MIB
    with connect(server) as client:
        client.sendall(head(b"Connection: close", path=b"/test/large/%d" % size))
        received = 0
        began = time.monotonic()
        while part := client.recv(MIB):
            received += len(part)
            time.sleep(len(part) / size * 4)
        assert time.monotonic() - began > 3
    assert received > size


# --- how many ---


def test_the_start_says_what_only_a_proxy_bounds(server: RunningServer, local_server: RunningServer) -> None:
    note = "note       no MEMORY_GATEWAY_TRUSTED_PROXIES: only a proxy encrypts, and bounds"
    assert note in server.log
    assert note not in local_server.log


def test_the_longest_idle_connections_leave_room_for_others(server: RunningServer) -> None:
    assert "the limit of open files (ulimit -n) allows 608 connections per process" in server.log
    with idle_connections(server, 1300) as idle:
        for source in ("127.0.0.1", OTHER_USER) * 10:
            assert is_served(server, source)
        still_open = [client for client in idle if is_open(client)]
        assert 400 < len(still_open) <= 608
        assert still_open == idle[-len(still_open) :]


def test_busy_connections_are_kept_while_idle_ones_leave(server: RunningServer) -> None:
    with idle_connections(server, 5) as busy:
        for client in busy:
            client.sendall(head(b"Connection: close", path=b"/test/sleep/1"))
        with idle_connections(server, 1300):
            assert all(read_all(client).startswith(b"HTTP/1.1 200 ") for client in busy)
            assert is_served(server, OTHER_USER)


def test_websockets_do_not_end_as_idle_connections(server: RunningServer) -> None:
    with connected(server, RPC_TOKEN) as client, idle_connections(server, 1300):
        time.sleep(3)
        assert client.is_alive()


def test_a_websocket_behind_another_request_does_not_end_as_one_either(server: RunningServer) -> None:
    with connect(server) as client:
        client.sendall(head() + UPGRADE)
        received = b""
        while b"connect.challenge" not in received:
            received += client.recv(65536)
        time.sleep(3)
        assert is_open(client)


def test_websockets_without_a_token_use_up_no_files(server: RunningServer) -> None:
    with connected(server, RPC_TOKEN) as client, contextlib.ExitStack() as stack:
        for _ in range(1300):
            stack.enter_context(connect(server)).sendall(UPGRADE)
        assert all(is_served(server, OTHER_USER) for _ in range(5))
        assert client.is_alive()


@pytest.mark.slow
def test_worker_processes_have_the_same_bounds(tmp_path: Path) -> None:
    with running_server(tmp_path, "--workers", "2", **HASTY, **ON_A_NETWORK) as server:
        assert not talk(server, head(b"X: " + b"a" * 2 * MAX_HEAD_BYTES)).startswith(b"HTTP/1.1 2")
        with idle_connections(server, 1600) as idle:
            assert is_served(server, OTHER_USER)
            time.sleep(3)
            assert not any(is_open(client) for client in idle)


# --- what other users notice ---


class Timer:
    """A user who calls with one connection, one request after another."""

    def __init__(self, server: RunningServer) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        created = requests.post(f"{server.url}/users", json={"user_id": "ann"}, headers=headers, timeout=10).json()
        self._port = int(server.url.rpartition(":")[2])
        self._headers = {"Authorization": f"Bearer {created['user_key']}"}

    def p99(self, count: int = 400) -> float:
        client = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30, source_address=(OTHER_USER, 0))
        seconds = []
        for _ in range(count):
            began = time.monotonic()
            client.request("GET", "/resources", headers=self._headers)
            response = client.getresponse()
            assert response.read()
            assert response.status == 200
            seconds.append(time.monotonic() - began)
        client.close()
        return sorted(seconds)[int(count * 0.99)]


@pytest.mark.slow
@pytest.mark.parametrize("piece", [b"a" * 65536, b"\r\nX:a" * 13_000], ids=["one header", "many headers"])
def test_endless_heads_cost_other_users_nothing(tmp_path: Path, piece: bytes) -> None:
    """Time another user alone and beside the sender, in up to three rounds: an attack that works slows each of them."""
    with running_server(tmp_path, **ON_A_NETWORK) as server:
        timer = Timer(server)
        timer.p99()
        before = server.rss_bytes().current
        for _ in range(3):
            alone, beside = timer.p99(), _beside_endless_heads(timer, server, piece)
            growth = server.rss_bytes().peak - before
            print(f"p99 {alone * 1000:.0f} ms, beside {beside * 1000:.0f} ms, growth {growth / MIB:.1f} MiB")  # noqa: T201
            if is_little := beside <= 2 * alone + 0.03:  # the second summand is what a shared machine adds
                break
        assert is_little
        assert growth < 10 * MIB


def _beside_endless_heads(timer: Timer, server: RunningServer, piece: bytes) -> float:
    is_over = threading.Event()
    sender = threading.Thread(target=_send_endless_heads, args=(server, piece, is_over))
    sender.start()
    time.sleep(0.5)
    p99 = timer.p99()
    is_over.set()
    sender.join()
    return p99


def _send_endless_heads(server: RunningServer, piece: bytes, is_over: threading.Event) -> None:
    """One after another, as long as the server lets each, with a pause in which a shell would start the next."""
    while not is_over.wait(0.05):
        with connect(server) as client, contextlib.suppress(OSError):
            client.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
            for _ in range(4000):
                client.sendall(piece)


def test_idle_sockets_cost_little_memory_and_delay_no_client(tmp_path: Path) -> None:
    with running_server(tmp_path, **ON_A_NETWORK) as server:
        timer = Timer(server)
        timer.p99()
        before = server.rss_bytes().current
        with idle_connections(server, 1300) as idle:
            assert is_served(server, OTHER_USER)
            timer.p99(20)
            assert all(is_open(client) for client in idle)
            assert server.rss_bytes().current - before < 10 * MIB


# --- names and parameters ---


@pytest.mark.parametrize("path", [b"/api/schema/", b"/health"])
@pytest.mark.parametrize("target", [b"", b"http://127.0.0.1", b"http://evil.test"])
def test_a_host_that_is_not_served_is_refused_whatever_the_target_names(
    server: RunningServer, local_server: RunningServer, path: bytes, target: bytes
) -> None:
    for one in (server, local_server):
        sent = b"GET " + target + path + b" HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n"
        assert talk(one, sent).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("parameter", ["x*=foo''y", "x*=hex''66", "x*=a; x*0=b"])
@pytest.mark.parametrize("header", ["Content-Type", "Accept"])
def test_parameters_that_django_cannot_read_are_refused(server: RunningServer, header: str, parameter: str) -> None:
    headers = {"Content-Type": "application/json", header: f"application/json; {parameter}"}
    for path in ("/users", "/no/such/path"):
        answer = requests.post(f"{server.url}{path}", b"{}", headers=headers, timeout=30)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
        assert header in answer.json()["detail"]
    page = requests.post(f"{server.url}/admin/login/", b"{}", headers=headers, timeout=30)
    assert (page.status_code, page.headers["Content-Type"]) == (400, "text/html; charset=utf-8")
    assert header in page.text
    assert "Traceback" not in server.log
