"""The HTTP client over real sockets: limits, incomplete responses, and reuse of connections."""

from __future__ import annotations

import base64
import gzip
import io
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from core.network.http_client import (
    CHUNK_BYTES,
    CertificateRejected,
    Deadline,
    Disconnected,
    HttpClient,
    HttpError,
    LimitExceeded,
    NotConnected,
    NotHttp,
    TimedOut,
    TooLarge,
    Undecodable,
    chunks,
)
from tests.store.test_fetching import tls_contexts
from tests.stub_upstream import StubUpstream
from tests.web import Answer, dripping, web_server

OK = b"HTTP/1.1 200 OK\r\n"
LONG = b"x" * 200_000
MAX_BYTES = 1_000_000


class Peer:
    """A server that sends the bytes of the n-th answer to the n-th request, and closes the connection after an answer
    that ends in `CLOSE`. `connection_of` holds the number of the connection of each of the `requests`."""

    CLOSE = b"\0hang up"

    def __init__(self, *answers: bytes, family: socket.AddressFamily = socket.AF_INET) -> None:
        self.requests: list[bytes] = []
        self.connection_of: list[int] = []
        self._answers = list(answers)
        self._listener = socket.create_server(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), family=family)
        self.port = self._listener.getsockname()[1]
        self.disconnects = threading.Semaphore(0)

    def serve(self, wrap: Callable[[socket.socket], socket.socket]) -> None:
        number = 0
        while self._answers:
            try:
                sock = wrap(self._listener.accept()[0])
            except ssl.SSLError:  # the client rejected the certificate
                continue
            except OSError:  # closed at the test's end
                return
            with sock:
                self._talk(sock, number)
            self.disconnects.release()
            number += 1

    def _talk(self, sock: socket.socket, number: int) -> None:
        while self._answers and (request := _request(sock)):
            self.requests.append(request)
            self.connection_of.append(number)
            answer = self._answers.pop(0)
            sock.sendall(answer.removesuffix(self.CLOSE))
            if answer.endswith(self.CLOSE):
                return

    def close(self) -> None:
        self._answers.clear()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def _request(sock: socket.socket) -> bytes:
    """Read one request with the body that it declares; return empty bytes at the end of the connection."""
    request = b""
    while b"\r\n\r\n" not in request:
        try:
            data = sock.recv(65536)
        except OSError:
            data = b""
        if not data:
            return b""
        request += data
    head, _, body = request.partition(b"\r\n\r\n")
    lengths = [int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    while len(body) < sum(lengths):
        body += sock.recv(65536)
    return head + b"\r\n\r\n" + body


@contextmanager
def peer(
    *answers: bytes,
    family: socket.AddressFamily = socket.AF_INET,
    wrap: Callable[[socket.socket], socket.socket] = lambda sock: sock,
) -> Iterator[Peer]:
    server = Peer(*answers, family=family)
    thread = threading.Thread(target=server.serve, args=(wrap,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join(5)


def client(port: int, pool_size: int = 2) -> HttpClient:
    return HttpClient(f"http://127.0.0.1:{port}", headers={"Accept": "application/json"}, pool_size=pool_size)


def ask(
    http: HttpClient, body: bytes | None = None, seconds: float = 5.0, max_bytes: int = MAX_BYTES
) -> tuple[int, bytes]:
    with http.send("GET" if body is None else "POST", "/a", body, Deadline.after(seconds)) as response:
        return response.status, response.body(max_bytes)


REUSABLE = {
    "a length": (OK + b"Content-Length:  4 \r\n\r\nrent", b"rent"),
    "no body": (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    "chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n2;x=y\r\nre\r\n2\r\nnt\r\n0\r\nLater: x\r\n\r\n", b"rent"),
    "after an announcement": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\n"
        + OK
        + b"Content-Length: 4\r\n\r\nrent",
        b"rent",
    ),
    "large": (OK + b"Content-Length: 200000\r\n\r\n" + LONG, LONG),
    "large in small chunks": (
        OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n",
        b"x" * 20_000,
    ),
}
NOT_REUSABLE = {
    "announced": (OK + b"Connection: close\r\nContent-Length: 4\r\n\r\nrent", b"rent"),
    "of an old server": (b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nrent", b"rent"),
    "a body that the connection ends": (OK + b"\r\nrent" + Peer.CLOSE, b"rent"),
    "after a failure": (b"HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nrent", b"rent"),
}
INCOMPLETE = {
    "nothing": Peer.CLOSE,
    "an announcement alone": b"HTTP/1.1 100 Continue\r\n\r\n" + Peer.CLOSE,
    "half a head": OK + b"Content-Le" + Peer.CLOSE,
    "half a body": OK + b"Content-Length: 4\r\n\r\nre" + Peer.CLOSE,
    "half the chunks": OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nre\r\n" + Peer.CLOSE,
    "no chunk": OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "half a gzip": OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"rent")[:-9] + Peer.CLOSE,
}
NOT_HTTP = {
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "another protocol from now on": b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nrent",
    "two lengths": OK + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nrent",
    "a length and chunks": OK + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "no length": OK + b"Content-Length: -4\r\n\r\nrent",
    "a body of unknown coding": OK + b"Transfer-Encoding: gzip\r\n\r\nrent" + Peer.CLOSE,
    "a length of 5,000 digits": OK + b"Content-Length: " + b"4" * 5000 + b"\r\n\r\nrent",
    "an endless header": OK + b"X: " + LONG,
    "endless headers": OK + b"X: y\r\n" * 40_000,
    "endless announcements": b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000,
    "an endless trailer": OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nre\r\n0\r\nX: " + LONG,
    "an endless chunk head": OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nre\r\n2;" + LONG,
}


@pytest.mark.parametrize(("answer", "body"), REUSABLE.values(), ids=REUSABLE.keys())
def test_a_connection_is_reused_after_a_complete_response(answer: bytes, body: bytes) -> None:
    with peer(answer, answer, answer) as server:
        http = client(server.port)
        assert {ask(http)[1] for _ in range(3)} == {body}
        assert server.connection_of == [0, 0, 0]


@pytest.mark.parametrize(("answer", "body"), NOT_REUSABLE.values(), ids=NOT_REUSABLE.keys())
def test_a_connection_that_will_end_or_has_failed_is_not_reused(answer: bytes, body: bytes) -> None:
    with peer(answer, answer) as server:
        http = client(server.port)
        assert [ask(http)[1] for _ in range(2)] == [body, body]
        assert server.connection_of == [0, 1]


@pytest.mark.parametrize("answer", INCOMPLETE.values(), ids=INCOMPLETE.keys())
def test_an_incomplete_response_raises_disconnected(answer: bytes) -> None:
    with peer(answer) as server, pytest.raises(Disconnected):
        ask(client(server.port))


@pytest.mark.parametrize("answer", NOT_HTTP.values(), ids=NOT_HTTP.keys())
def test_an_invalid_or_endless_response_raises_not_http(answer: bytes) -> None:
    with peer(answer) as server, pytest.raises(NotHttp):
        ask(client(server.port))


def test_bytes_after_a_response_are_not_the_next_response() -> None:
    more = OK + b"Content-Length: 4\r\n\r\nrent" + OK + b"Content-Length: 4\r\n\r\nfake"
    with peer(more, OK + b"Content-Length: 4\r\n\r\npaid") as server:
        http = client(server.port)
        assert [ask(http)[1], ask(http)[1]] == [b"rent", b"paid"]


TOO_LARGE_BODIES = {
    "declared": b"Content-Length: 1001\r\n\r\n",
    "hidden": b"\r\n" + b"x" * 1001,
    "in chunks": b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 1001 + b"0\r\n\r\n",
    "packed": b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(bytes(10**8)),
    "packed as nothing": b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"")[:10] + b"\0\0\0\xff\xff" * 50_000,
    "of trailers": b"Transfer-Encoding: chunked\r\n\r\n2\r\nre\r\n0\r\n" + b"X: y\r\n" * 50_000,
}


@pytest.mark.parametrize("answer", TOO_LARGE_BODIES.values(), ids=TOO_LARGE_BODIES.keys())
def test_a_body_above_the_limit_is_refused_in_every_framing(answer: bytes) -> None:
    with peer(OK + answer) as server, pytest.raises(TooLarge, match="1000 bytes"):
        ask(client(server.port), max_bytes=1000)


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "GZIP"])
def test_a_gzip_body_is_decompressed(encoding: str) -> None:
    packed = gzip.compress(LONG)
    head = f"Content-Encoding: {encoding}\r\nContent-Length: {len(packed)}\r\n\r\n"
    with peer(OK + head.encode() + packed, OK + b"Content-Length: 0\r\n\r\n") as server:
        http = client(server.port)
        assert [ask(http)[1], ask(http)[1]] == [LONG, b""]
        assert server.connection_of == [0, 0]


@pytest.mark.parametrize("answer", [b"Content-Encoding: br\r\n\r\nrent", b"Content-Encoding: gzip\r\n\r\nrent"])
def test_a_body_that_cannot_be_decompressed_is_refused(answer: bytes) -> None:
    with peer(OK + answer + Peer.CLOSE) as server, pytest.raises(Undecodable):
        ask(client(server.port))


def test_an_unread_body_closes_its_connection() -> None:
    with peer(OK + b"Content-Length: 4\r\n\r\nre", OK + b"Content-Length: 0\r\n\r\n") as server:
        http = client(server.port)
        with http.send("GET", "/a", None, Deadline.after(5)) as response:
            assert response.status == 200
        ask(http)
        assert server.connection_of == [0, 1]


def test_a_pooled_connection_that_the_peer_closed_is_replaced() -> None:
    answer = OK + b"Content-Length: 0\r\n\r\n"
    with peer(answer + Peer.CLOSE, answer) as server:
        http = client(server.port)
        ask(http)
        server.disconnects.acquire()
        ask(http)
        assert server.connection_of == [0, 1]


@pytest.mark.parametrize(("pool_size", "connections"), [(1, 3), (2, 2)])
def test_the_pool_keeps_no_more_connections_than_its_size(pool_size: int, connections: int) -> None:
    with StubUpstream() as stub:
        http = HttpClient(stub.url, headers={}, pool_size=pool_size)
        for _ in range(2):
            with (
                http.send("GET", "/health", None, Deadline.after(5)) as one,
                http.send("GET", "/health", None, Deadline.after(5)) as other,
            ):
                assert one.body(MAX_BYTES) == other.body(MAX_BYTES) != b""
        assert stub.connections == connections


def test_repeated_headers_are_merged_and_trailers_are_ignored() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nX-Odd: early\r\n\r\n"
    head = early + OK + b"X-Odd:  a\r\nx-odd: b\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Late: c\r\n\r\n"
    with peer(head) as server, client(server.port).send("GET", "/a", None, Deadline.after(5)) as response:
        assert response.body(10) == b"x"
        assert response.headers == {"x-odd": "a, b", "transfer-encoding": "chunked"}


def test_a_response_that_arrives_before_the_whole_body_was_sent_is_returned() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            with listener.accept()[0] as sock:
                sock.recv(1)
                sock.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nmuch")
                sock.shutdown(socket.SHUT_WR)
                time.sleep(0.3)

        thread = threading.Thread(target=refuse)
        thread.start()
        http = client(listener.getsockname()[1])
        try:
            assert ask(http, b"x" * 64 * 2**20) == (413, b"much")
        finally:
            thread.join()


def test_the_deadline_ends_sending_and_reading() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for body in (None, b"x" * 32 * 2**20):
            started = time.monotonic()
            with pytest.raises(TimedOut) as late:
                client(silent.getsockname()[1]).send("POST", "/a", body, Deadline.after(0.7))
            assert time.monotonic() - started < 5
            assert late.value.was_sent


SLOW_RESPONSES = {
    "in the head": b"HTTP/1.1 200 OK\r\nX: ",
    "between headers": b"HTTP/1.1 200 OK\r\nX: y\r\n",
    "in the body": OK + b"Content-Length: 100000\r\n\r\n",
    "in a body without a length": OK + b"\r\n",
    "in a chunk's head": OK + b"Transfer-Encoding: chunked\r\n\r\n1;",
    "in a packed body": OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"")[:10],
}


@pytest.mark.parametrize("is_secure", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("head", SLOW_RESPONSES.values(), ids=SLOW_RESPONSES.keys())
def test_the_deadline_ends_a_response_of_slow_single_bytes(head: bytes, is_secure: bool, tmp_path: Path) -> None:
    server_tls, client_tls = tls_contexts(tmp_path, "localhost")
    with web_server(server_tls if is_secure else None) as web:
        web.pages["/a"] = dripping(head, drop=b"\0", every_seconds=0.02)
        url = web.url("", host="localhost", scheme="https" if is_secure else "http")
        http = HttpClient(url, headers={}, addresses=["127.0.0.1"], tls=client_tls)
        started = time.monotonic()
        with pytest.raises(TimedOut):
            ask(http, seconds=0.5)
        assert 0.4 < time.monotonic() - started < 3


def test_the_deadline_ends_a_call_to_a_peer_that_reads_slowly(tmp_path: Path) -> None:
    server_tls, client_tls = tls_contexts(tmp_path, "localhost")

    def receive_slowly(sock: socket.socket) -> None:
        sock.settimeout(0.2)
        with suppress(OSError):
            while sock.recv(16):
                time.sleep(0.005)

    for tls in (None, server_tls):
        with web_server(tls) as web:
            web.pages["/a"] = receive_slowly
            url = web.url("", host="localhost", scheme="https" if tls else "http")
            http = HttpClient(url, headers={}, addresses=["127.0.0.1"], tls=client_tls)
            started = time.monotonic()
            with pytest.raises(TimedOut) as late:
                ask(http, b"x" * 32 * 2**20, seconds=0.7)
            assert time.monotonic() - started < 4
            assert late.value.was_sent


def test_nothing_is_sent_after_the_deadline() -> None:
    with peer(OK) as server:
        with pytest.raises(TimedOut) as late:
            ask(client(server.port), seconds=-1)
        assert not late.value.was_sent
        assert server.requests == []


def test_a_reused_connection_has_the_deadline_of_the_new_call() -> None:
    with web_server() as web:
        web.pages["/a"] = responding_once()
        http = client(web.port)
        ask(http, seconds=60)
        started = time.monotonic()
        with pytest.raises(TimedOut):
            ask(http, seconds=0.5)
        assert time.monotonic() - started < 3
        assert len(web.heads) == 1  # over the same connection


def responding_once() -> Answer:
    """Respond once and keep the connection open without another byte."""

    def answer(sock: socket.socket) -> None:
        sock.sendall(OK + b"Content-Length: 0\r\n\r\n")
        time.sleep(2)

    return answer


def test_a_streamed_body_is_sent_with_its_length() -> None:
    class StreamedBody:
        def __len__(self) -> int:
            return 300_000

        def __iter__(self) -> Iterator[bytes]:
            yield from (letter * 100_000 for letter in (b"a", b"b", b"c"))

    with peer(OK + b"Content-Length: 0\r\n\r\n") as server:
        with client(server.port).send("POST", "/a", StreamedBody(), Deadline.after(5)):
            pass
        head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert b"\r\nContent-Length: 300000" in head
    assert b"chunked" not in head
    assert body == b"".join(StreamedBody())


def test_no_cookie_and_no_proxy_or_credentials_of_the_environment_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login alice password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    answer = OK + b"Set-Cookie: a=b; Path=/\r\nContent-Length: 0\r\n\r\n"
    with peer(answer, answer) as server:
        http = client(server.port)
        ask(http)
        ask(http)
        sent = b"".join(server.requests).lower()
    assert b"authorization" not in sent
    assert b"cookie" not in sent


def test_the_body_of_a_redirect_is_not_read() -> None:
    head = b"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 1000000\r\n\r\n"
    with peer(head) as server, client(server.port).send("GET", "/a", None, Deadline.after(5)) as response:
        assert response.status == 302
        assert len(server.requests) == 1


def test_the_client_connects_to_the_given_addresses_only() -> None:
    with peer(OK + b"Content-Length: 0\r\n\r\n") as server:
        url = f"http://127.0.0.1:{server.port}"
        with pytest.raises(NotConnected) as nowhere:
            ask(HttpClient(url, headers={}, addresses=[]))
        assert server.requests == []
        assert not nowhere.value.was_sent
        url = f"http://everos.invalid:{server.port}"
        assert ask(HttpClient(url, headers={}, addresses=["127.0.0.2", "127.0.0.1"]))[0] == 200
        assert f"\r\nHost: everos.invalid:{server.port}\r\n".encode() in server.requests[0]


def test_a_request_has_path_host_headers_credentials_and_body() -> None:
    with peer(OK + b"Content-Length: 0\r\n\r\n") as server:
        http = HttpClient(f"http://ever%40os:p%3Ass@127.0.0.1:{server.port}/base/", headers={"Accept": "text/plain"})
        ask(http, b'{"a": 1}')
        head, _, body = server.requests[0].partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ") for line in lines)}
    assert first == "POST /base/a HTTP/1.1"
    assert headers["host"] == f"127.0.0.1:{server.port}"
    assert headers["accept"] == "text/plain"
    assert headers["content-length"] == "8"
    assert base64.b64decode(headers["authorization"].removeprefix("Basic ")) == b"ever@os:p:ss"
    assert body == b'{"a": 1}'


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="needs IPv6")
def test_the_host_header_has_an_ipv6_address_in_brackets() -> None:
    with peer(OK + b"Content-Length: 0\r\n\r\n", family=socket.AF_INET6) as server:
        ask(HttpClient(f"http://[::1]:{server.port}", headers={}))
        assert f"\r\nHost: [::1]:{server.port}\r\n".encode() in server.requests[0]


@pytest.mark.parametrize("host", ["a..b", "x" * 70, "nobody.invalid"])
def test_an_invalid_host_raises_not_connected(host: str) -> None:
    with pytest.raises(NotConnected, match="cannot be resolved") as unknown:
        ask(HttpClient(f"http://{host}", headers={}))
    assert not unknown.value.was_sent


def test_a_closed_port_raises_not_connected() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(NotConnected, match="Connection refused") as refused:
        ask(client(port))
    assert not refused.value.was_sent


def test_was_sent_is_true_after_a_connection_reset() -> None:
    with peer(Peer.CLOSE) as server, pytest.raises(HttpError) as reset:
        ask(client(server.port))
    assert reset.value.was_sent


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\n", "a\0", "ключ"])
def test_a_header_with_control_or_non_ascii_characters_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="Authorization"):
        HttpClient("http://localhost", headers={"Authorization": value})


def test_nothing_is_sent_to_a_peer_with_an_untrusted_certificate(tmp_path: Path) -> None:
    server_tls, _ = tls_contexts(tmp_path, "localhost")
    with peer(OK, wrap=partial(server_tls.wrap_socket, server_side=True)) as server:
        with pytest.raises(CertificateRejected) as rejected:
            ask(HttpClient(f"https://localhost:{server.port}", headers={}))
        assert server.requests == []
    assert not rejected.value.was_sent


def test_a_tls_connection_is_reused(tmp_path: Path) -> None:
    server_tls, client_tls = tls_contexts(tmp_path, "localhost")
    answer = OK + b"Content-Length: 4\r\n\r\nrent"
    with peer(answer, answer, wrap=partial(server_tls.wrap_socket, server_side=True)) as server:
        http = HttpClient(f"https://localhost:{server.port}", headers={}, addresses=["127.0.0.1"], tls=client_tls)
        assert [ask(http, LONG)[1] for _ in range(2)] == [b"rent", b"rent"]
        assert server.connection_of == [0, 0]


def test_retry_after_is_read_as_seconds_and_as_date() -> None:
    now = datetime(2026, 11, 20, tzinfo=UTC)
    values = {
        "17": 17,
        "9" * 30: 86400,
        "Fri, 20 Nov 2026 00:01:00 GMT": 60,
        "Thu, 19 Nov 2026 00:00:00 GMT": 0,
        "": None,
    }
    for value, seconds in values.items():
        answer = OK + f"Retry-After: {value}\r\nContent-Length: 0\r\n\r\n".encode()
        with peer(answer) as server, client(server.port).send("GET", "/a", None, Deadline.after(5)) as response:
            assert response.retry_after_seconds(now) == seconds


def test_chunks_yields_the_whole_source_up_to_its_limit() -> None:
    data = b"x" * (2 * CHUNK_BYTES + 1)
    assert b"".join(chunks(io.BytesIO(data), len(data))) == data
    with pytest.raises(LimitExceeded):
        list(chunks(io.BytesIO(b"1234"), 3))
