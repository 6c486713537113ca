"""The proxy of `compose.yaml` bounds what clients may cost before authentication."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from django.conf import settings

from tests.forked import PROJECT
from tests.server import RunningServer, free_port, running_server, wait_until

pytestmark = pytest.mark.skipif(not shutil.which("caddy"), reason="needs caddy")

MIB = 2**20
HEAD = b"POST /memories/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


class Proxy:
    """The proxy before a gateway, and a user of that gateway."""

    def __init__(self, server: RunningServer, port: int) -> None:
        self.server = server
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        key = requests.post(f"{server.url}/users", json={"user_id": "ann"}, timeout=10).json()["user_key"]
        self.headers = {"Authorization": f"Bearer {key}"}

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def serves(self) -> bool:
        health = requests.get(f"{self.url}/health", timeout=10)
        found = requests.get(f"{self.url}/resources", headers=self.headers, timeout=10)
        return (health.status_code, found.status_code) == (200, 200)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder, port = tmp_path_factory.mktemp("proxy"), free_port()
    with running_server(folder, MEMORY_GATEWAY_TRUSTED_PROXIES="127.0.0.1") as server:
        command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(PROJECT / "deploy" / "Caddyfile")]
        env = {
            "DOMAIN": f"http://127.0.0.1:{port}",
            "GATEWAY": "127.0.0.1",
            "GATEWAY_PORT": server.url.rpartition(":")[2],
            "HOME": str(folder),
            "PATH": os.environ["PATH"],
        }
        with (folder / "caddy.log").open("wb") as log, subprocess.Popen(command, env=env, stderr=log) as process:
            try:
                started = Proxy(server, port)
                wait_until(lambda: _answers(started))
                yield started
            finally:
                process.terminate()


def _answers(proxy: Proxy) -> bool:
    try:
        return proxy.serves()
    except requests.ConnectionError:
        return False


def _send(client: socket.socket, data: bytes, times: int) -> int:
    """Send until the connection is closed; return how often."""
    sent = 0
    with contextlib.suppress(OSError):
        while sent < times:
            client.sendall(data)
            sent += 1
    return sent


def _endless_head(client: socket.socket) -> None:
    client.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
    assert _send(client, b"a" * 65536, 1000) < 1000


def _endless_headers(client: socket.socket) -> None:
    client.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1")
    assert _send(client, b"\r\nX:a" * 13_000, 1000) < 1000


def _too_large_body(client: socket.socket) -> None:
    client.sendall(HEAD + b"Content-Length: 40000000\r\n\r\n")
    _send(client, b"a" * 400_000, 100)
    assert client.recv(65536).startswith(b"HTTP/1.1 413 ")


def _too_large_chunked_body(client: socket.socket) -> None:
    client.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    assert _send(client, b"61a80\r\n%b\r\n" % (b"a" * 400_000), 1000) < 1000


@pytest.mark.parametrize("attack", [_endless_head, _endless_headers, _too_large_body, _too_large_chunked_body])
def test_what_is_too_large_is_cut_off(proxy: Proxy, attack: Callable[[socket.socket], None]) -> None:
    before = proxy.server.rss_bytes().current
    for _ in range(5):
        with proxy.connect() as client, contextlib.suppress(ConnectionError):
            attack(client)
        assert proxy.serves()
    assert proxy.server.rss_bytes().current - before <= 10 * MIB


@pytest.mark.parametrize(
    ("count", "start", "rest"),
    [
        (1300, b"", b""),
        (200, b"", b"GET /health HTTP/1.1\r\n"),
        (200, HEAD + b"Content-Length: 100000\r\n\r\n", b'{"query": "aaaaaaaaa'),
    ],
    ids=["idle sockets", "slow heads", "slow bodies"],
)
def test_slow_clients_delay_no_others(proxy: Proxy, count: int, start: bytes, rest: bytes) -> None:
    before = proxy.server.rss_bytes().current
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(proxy.connect()) for _ in range(count)]
        for position in range(5):
            for client in slow:
                client.sendall(rest[position : position + 1] if position else start)
            asked_at = time.monotonic()
            assert proxy.serves()
            assert time.monotonic() - asked_at < 5
        assert proxy.server.rss_bytes().current - before <= 10 * MIB


def test_the_proxy_leaves_idle_connections_before_the_gateway_closes_them() -> None:
    """Otherwise a request may be sent into a connection that is being closed, and the proxy answers 502."""
    command = ["caddy", "adapt", "--adapter", "caddyfile", "--config", str(PROJECT / "deploy" / "Caddyfile")]
    adapted = subprocess.run(command, env={**os.environ, "DOMAIN": "localhost"}, capture_output=True, check=True)
    transport = _found(json.loads(adapted.stdout), "transport")
    assert transport["keep_alive"]["idle_timeout"] / 1e9 <= settings.HTTP_KEEP_ALIVE_SECONDS - 10


def _found(document: Any, name: str) -> Any:
    """Return the first value of this name in a JSON document; None if there is none."""
    inner = document.values() if isinstance(document, dict) else document if isinstance(document, list) else ()
    if isinstance(document, dict) and name in document:
        return document[name]
    return next((one for one in (_found(value, name) for value in inner) if one is not None), None)


@pytest.mark.slow
def test_slow_heads_end_in_time(proxy: Proxy) -> None:
    with proxy.connect() as silent, proxy.connect() as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        for client in (silent, slow):
            client.settimeout(20)
            assert b"HTTP/1.1 200" not in client.recv(65536)


def test_uploads_of_the_largest_size_pass(proxy: Proxy) -> None:
    png = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR"
    files = {"file": ("large.png", png + bytes(25 * MIB - len(png)))}
    sent = requests.post(f"{proxy.url}/resources", files=files, headers=proxy.headers, timeout=120)
    assert sent.status_code == 200, sent.text
