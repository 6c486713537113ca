"""The bridge behind a real server process: what clients do to it over sockets."""

from __future__ import annotations

import hashlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.forked import PROJECT
from tests.memory_gateway.bridge_app import MAX_BODY_BYTES
from tests.server import free_port, resident_memory

MIB = 2**20


class Site:
    """The server of `bridge_app`."""

    def __init__(self, port: int, process: subprocess.Popen[bytes], log: Path) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.process = process
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def talk(self, *pieces: bytes, pause_seconds: float = 0.0) -> bytes:
        """Sends the pieces and returns all that comes until the server closes the connection."""
        with self.connect() as client:
            for piece in pieces:
                client.sendall(piece)
                time.sleep(pause_seconds)
            return read_all(client)

    def events(self) -> list[str]:
        return list(requests.get(f"{self.url}/events", timeout=10).json())

    def wait_for_event(self, name: str, count: int = 1) -> None:
        deadline = time.monotonic() + 60
        while self.events().count(name) < count:
            assert time.monotonic() < deadline, f"no {name} in {self.events()}\n{self.log}"
            time.sleep(0.05)


def read_all(client: socket.socket) -> bytes:
    received = b""
    while part := client.recv(65536):
        received += part
    return received


def head(method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *lines, "", ""]).encode()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    log = tmp_path_factory.mktemp("bridge") / "log"
    port = free_port()
    command = ["uvicorn", "tests.memory_gateway.bridge_app:application", "--port", str(port)]
    options = ["--http", "httptools", "--ws", "none", "--no-access-log", "--log-level", "error", "--lifespan", "off"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *command, *options],
            cwd=PROJECT,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        )
    site = Site(port, process, log)
    try:
        deadline = time.monotonic() + 60
        while not _answers(site):
            assert process.poll() is None, site.log
            assert time.monotonic() < deadline, site.log
            time.sleep(0.05)
        yield site
    finally:
        process.kill()
        process.wait(timeout=10)


def _answers(site: Site) -> bool:
    try:
        return requests.get(f"{site.url}/ping", timeout=2).ok
    except requests.ConnectionError:
        return False


def test_a_whole_body_reaches_the_application_small_and_large(site: Site) -> None:
    for size in (0, 1, 256 * 1024, 256 * 1024 + 1, 5 * MIB):
        data = os.urandom(size)
        answer = requests.post(f"{site.url}/echo", data=data, timeout=20).json()
        assert (answer["size"], answer["sha256"]) == (size, hashlib.sha256(data).hexdigest())


def test_a_chunked_body_without_length_reaches_the_application_whole(site: Site) -> None:
    for size in (0, 1000, 3 * MIB):
        data = os.urandom(size)
        pieces = (data[start : start + 10_000] for start in range(0, size, 10_000))
        answer = requests.post(f"{site.url}/echo", data=pieces, timeout=20).json()
        assert (answer["size"], answer["sha256"]) == (size, hashlib.sha256(data).hexdigest())


def test_large_bodies_have_separate_threads(site: Site) -> None:
    assert requests.post(f"{site.url}/echo", data=b"x", timeout=20).json()["thread"].startswith("request-")
    assert requests.post(f"{site.url}/echo", data=bytes(MIB), timeout=20).json()["thread"].startswith("upload-")


def test_the_application_is_entered_before_a_large_body_is_complete(site: Site) -> None:
    with site.connect() as client:
        client.sendall(head("POST", "/echo?large", f"Content-Length: {MIB}", "Connection: close") + bytes(MIB // 2))
        site.wait_for_event("entered large")
        client.sendall(bytes(MIB // 2))
        assert b'"size": 1048576' in read_all(client)


def test_a_truncated_small_body_never_reaches_the_application(site: Site) -> None:
    with site.connect() as client:
        client.sendall(head("POST", "/echo?half", "Content-Length: 1000") + b"half")
    time.sleep(0.3)
    assert "entered half" not in site.events()


def test_a_truncated_large_body_is_an_error_for_the_application(site: Site) -> None:
    with site.connect() as client:
        client.sendall(head("POST", "/echo?cut", "Content-Length: 900000") + bytes(500_000))
    site.wait_for_event("ClientGone cut")
    assert "read cut" not in site.events()


def test_a_truncated_chunked_body_never_reaches_the_application(site: Site) -> None:
    for size in (1000, 600_000):
        with site.connect() as client:
            client.sendall(head("POST", "/echo?endless", "Transfer-Encoding: chunked"))
            client.sendall(b"%x\r\n" % size + bytes(size) + b"\r\n")
    time.sleep(0.3)
    assert "entered endless" not in site.events()


def test_a_stalled_body_is_answered_408_and_the_connection_closed(site: Site) -> None:
    for sent in (head("POST", "/echo", "Content-Length: 1000") + b"x",
                 head("POST", "/echo", "Content-Length: 900000") + bytes(300_000),
                 head("POST", "/echo", "Transfer-Encoding: chunked") + b"3\r\nabc\r\n"):  # fmt: skip
        began = time.monotonic()
        answer = site.talk(sent)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in answer
        assert b'"code":"request_timeout"' in answer
        assert time.monotonic() - began < 5


def test_dripping_uploads_are_ended(site: Site) -> None:
    """Faster than the longest silence allowed, but far below the least pace."""
    began = time.monotonic()
    with site.connect() as client:
        client.sendall(head("POST", "/echo", "Content-Length: 900000"))
        client.settimeout(0.2)
        answer = b""
        while not answer and time.monotonic() - began < 10:
            try:
                client.sendall(b"x")
                answer = client.recv(65536)
            except TimeoutError:
                continue
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert 1.0 < time.monotonic() - began < 8


def test_slow_uploads_do_not_hold_ordinary_requests_up(site: Site) -> None:
    clients = [site.connect() for _ in range(10)]
    try:
        for client in clients:
            client.sendall(head("POST", "/echo", "Content-Length: 900000") + b"x")
        assert requests.get(f"{site.url}/ping", timeout=10).text == "pong"
        assert not select.select(clients, [], [], 0)[0], "it came after the slow ones were given up"
    finally:
        for client in clients:
            client.close()


def test_a_body_over_the_cap_is_413_and_who_reads_only_after_sending_gets_it(site: Site) -> None:
    size = MAX_BODY_BYTES + 1
    chunks = (b"%x\r\n" % MIB + bytes(MIB) + b"\r\n") * (size // MIB + 1)
    for sent in (
        head("POST", "/echo", f"Content-Length: {size}") + bytes(size),
        head("POST", "/echo", "Transfer-Encoding: chunked") + chunks + b"0\r\n\r\n",
    ):
        answer = site.talk(sent)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b'"code":"too_large"' in answer


def test_who_asks_first_is_refused_without_sending(site: Site) -> None:
    expect = head("POST", "/echo", f"Content-Length: {MAX_BODY_BYTES + 1}", "Expect: 100-continue")
    with site.connect() as client:
        client.sendall(expect)
        answer = client.recv(65536)
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_an_answer_given_before_the_body_is_read_arrives(site: Site) -> None:
    answer = site.talk(head("POST", "/ignore", f"Content-Length: {20 * MIB}") + bytes(20 * MIB))
    assert answer.endswith(b"\r\n\r\npong")


def test_a_request_with_two_lengths_is_refused(site: Site) -> None:
    both = head("POST", "/echo", "Content-Length: 5", "Transfer-Encoding: chunked") + b"0\r\n\r\n"
    assert site.talk(both).startswith(b"HTTP/1.1 400 ")
    twice = head("POST", "/echo", "Content-Length: 5", "Content-Length: 6") + b"123456"
    assert site.talk(twice).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("line", ["OPTIONS * HTTP/1.1", "CONNECT a:1 HTTP/1.1", "GET a b HTTP/1.1", "GET / HTTP/9.9"])
def test_odd_request_lines_do_not_end_the_server(site: Site, line: str) -> None:
    site.talk(f"{line}\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert requests.get(f"{site.url}/ping", timeout=10).text == "pong"


def test_head_has_the_headers_of_get_and_no_body(site: Site) -> None:
    began = time.monotonic()
    for path in ("/ping", "/large", "/stream?200"):
        answer = site.talk(head("HEAD", path, "Connection: close"))
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.endswith(b"\r\n\r\n")
    assert time.monotonic() - began < 3, "a stream that nobody will read was made"
    assert b"content-length: 4\r\n" in site.talk(head("HEAD", "/ping", "Connection: close"))


@pytest.mark.parametrize("status", [204, 304])
def test_answers_that_have_no_body_send_none(site: Site, status: int) -> None:
    answer = site.talk(head("GET", f"/empty?{status}") + head("GET", "/ping", "Connection: close"))
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    bodiless, _, next_answer = answer.partition(b"\r\n\r\n")
    assert b"content-length" not in bodiless
    assert b"transfer-encoding" not in bodiless
    assert next_answer.startswith(b"HTTP/1.1 200 ")


def test_a_stream_arrives_as_it_is_made(site: Site) -> None:
    with requests.get(f"{site.url}/stream?5", stream=True, timeout=10) as answer:
        began = time.monotonic()
        lines = answer.iter_lines()
        assert next(lines) == b"part 0"
        first = time.monotonic() - began
        assert list(lines)[-1] == b"part 4"
        assert first < (time.monotonic() - began) / 2


def test_a_stream_ends_when_its_client_leaves(site: Site) -> None:
    closed = site.events().count("closed")
    with site.connect() as client:
        client.sendall(head("GET", "/stream?1000"))
        client.recv(1000)
    began = time.monotonic()
    site.wait_for_event("closed", closed + 1)
    assert time.monotonic() - began < 2


def test_who_does_not_read_a_stream_holds_no_thread_for_long(site: Site) -> None:
    closed = site.events().count("closed")
    with site.connect() as client:
        client.sendall(head("GET", "/large"))
        site.wait_for_event("closed", closed + 1)


def test_an_exception_before_the_first_byte_is_a_500(site: Site) -> None:
    for path in ("/raise", "/break-early"):
        answer = requests.get(site.url + path, timeout=10)
        assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
        assert "broke" not in answer.text


def test_an_exception_later_breaks_the_connection_off(site: Site) -> None:
    closed = site.events().count("closed")
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        requests.get(f"{site.url}/break-late", timeout=10)
    assert site.events().count("closed") == closed + 1


def test_headers_cannot_be_forged_with_an_underscore(site: Site) -> None:
    answer = site.talk(head("GET", "/environ", "X_Forwarded_For: 6.6.6.6", "X-A: 1", "X-A: 2", "Connection: close"))
    environ: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert "HTTP_X_FORWARDED_FOR" not in environ
    assert environ["HTTP_X_A"] == "1,2"


def test_the_path_keeps_its_bytes(site: Site) -> None:
    environ = requests.get(f"{site.url}/environ%2e%2Fx?a=%20b", timeout=10).json()
    assert (environ["PATH_INFO"], environ["QUERY_STRING"]) == ("/environ./x", "a=%20b")


def test_more_requests_than_threads_are_all_answered(site: Site) -> None:
    with ThreadPoolExecutor(16) as callers:
        answers = callers.map(lambda _: requests.get(f"{site.url}/sleep?0.05", timeout=20).text, range(32))
        assert list(answers) == ["pong"] * 32


def test_a_25_mib_upload_costs_little_memory(site: Site) -> None:
    requests.post(f"{site.url}/echo", data=bytes(2 * MIB), timeout=20)
    before = resident_memory(site.process.pid).current
    uploads = [threading.Thread(target=_upload_25_mib, args=(site,)) for _ in range(4)]
    for upload in uploads:
        upload.start()
    for upload in uploads:
        upload.join()
    assert resident_memory(site.process.pid).peak - before < 16 * MIB


def _upload_25_mib(site: Site) -> None:
    answer = requests.post(f"{site.url}/echo", data=(bytes(MIB) for _ in range(25)), timeout=30)
    assert answer.json()["size"] == 25 * MIB
    answer = requests.post(f"{site.url}/echo", data=bytes(25 * MIB), timeout=30)
    assert answer.json()["size"] == 25 * MIB
