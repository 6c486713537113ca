"""HTTP over real sockets: what counts as a whole answer, and which connections are used again."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from engine.upstream.transport import Deadline, NotHttp, Upstream
from tests.engine.test_fetching import certified

OK = b"HTTP/1.1 200 OK\r\n"
LONG = b"x" * 200_000


class Peer:
    """A server that answers the n-th request it gets with the n-th of its answers, as these bytes and no others; an
    answer that ends in `HANG_UP` ends its connection too. `requests` came over connections numbered by `carried_by`."""

    HANG_UP = b"\0hang up"

    def __init__(self, *answers: bytes, family: socket.AddressFamily = socket.AF_INET) -> None:
        self.requests: list[bytes] = []
        self.carried_by: list[int] = []
        self._answers = list(answers)
        self._listener = socket.create_server(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), family=family)
        self.port = self._listener.getsockname()[1]
        self.hung_up = threading.Semaphore(0)

    def serve(self, wrap: Callable[[socket.socket], socket.socket]) -> None:
        number = 0
        while self._answers:
            try:
                sock = wrap(self._listener.accept()[0])
            except ssl.SSLError:  # who does not trust us goes away
                continue
            except OSError:  # closed at the test's end
                return
            with sock:
                self._talk(sock, number)
            self.hung_up.release()
            number += 1

    def _talk(self, sock: socket.socket, number: int) -> None:
        while self._answers and (request := _request(sock)):
            self.requests.append(request)
            self.carried_by.append(number)
            answer = self._answers.pop(0)
            sock.sendall(answer.removesuffix(self.HANG_UP))
            if answer.endswith(self.HANG_UP):
                return

    def close(self) -> None:
        self._answers.clear()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def _request(sock: socket.socket) -> bytes:
    """One request with the body that it declares; empty where there is none."""
    request = b""
    while b"\r\n\r\n" not in request:
        try:
            came = sock.recv(65536)
        except OSError:
            came = b""
        if not came:
            return b""
        request += came
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
    one = Peer(*answers, family=family)
    thread = threading.Thread(target=one.serve, args=(wrap,), daemon=True)
    thread.start()
    try:
        yield one
    finally:
        one.close()
        thread.join(5)


def upstream(port: int, pool_size: int = 2) -> Upstream:
    return Upstream(f"http://127.0.0.1:{port}", pool_size, {"Accept": "application/json"})


def ask(http: Upstream, body: bytes | None = None, seconds: float = 5.0) -> tuple[int, bytes]:
    with http.send("GET" if body is None else "POST", "/a", body, Deadline.after(seconds)) as response:
        pieces = []
        while piece := response.read():
            pieces.append(piece)
        return response.status, b"".join(pieces)


WHOLE = {
    "a length": (OK + b"Content-Length: 4\r\n\r\nrent", b"rent"),
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
LAST = {
    "announced": (OK + b"Connection: close\r\nContent-Length: 4\r\n\r\nrent", b"rent"),
    "of an old server": (b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nrent", b"rent"),
    "a body that the connection ends": (OK + b"\r\nrent" + Peer.HANG_UP, b"rent"),
    "after a failure": (b"HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nrent", b"rent"),
    "with more than the answer": (OK + b"Content-Length: 4\r\n\r\nrent and more", b"rent"),
    "with a second answer": (2 * (OK + b"Content-Length: 4\r\n\r\nrent"), b"rent"),
}
BROKEN = {
    "nothing": Peer.HANG_UP,
    "an announcement alone": b"HTTP/1.1 100 Continue\r\n\r\n" + Peer.HANG_UP,
    "half a head": OK + b"Content-Le" + Peer.HANG_UP,
    "half a body": OK + b"Content-Length: 4\r\n\r\nre" + Peer.HANG_UP,
    "half the chunks": OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nre\r\n" + Peer.HANG_UP,
    "a body of unknown coding": OK + b"Transfer-Encoding: gzip\r\n\r\nrent" + Peer.HANG_UP,
}
ODD = {
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "another protocol from now on": b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nrent",
    "two lengths": OK + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nrent",
    "a length and chunks": OK + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "no length": OK + b"Content-Length: -4\r\n\r\nrent",
    "no chunk": OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "an endless header": OK + b"X: " + LONG,
    "endless headers": OK + b"X: y\r\n" * 40_000,
    "endless announcements": b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000,
    "an endless trailer": OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nre\r\n0\r\nX: " + LONG,
    "an endless chunk head": OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nre\r\n2;" + LONG,
}


@pytest.mark.parametrize(("answer", "body"), WHOLE.values(), ids=WHOLE.keys())
def test_a_connection_whose_answer_came_whole_is_used_again(answer: bytes, body: bytes) -> None:
    with peer(answer, answer, answer) as server:
        http = upstream(server.port)
        assert {ask(http)[1] for _ in range(3)} == {body}
        assert server.carried_by == [0, 0, 0]


@pytest.mark.parametrize(("answer", "body"), LAST.values(), ids=LAST.keys())
def test_a_connection_that_may_end_or_that_holds_more_is_closed(answer: bytes, body: bytes) -> None:
    with peer(answer, answer) as server:
        http = upstream(server.port)
        assert [ask(http)[1] for _ in range(2)] == [body, body]
        assert server.carried_by == [0, 1]


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN.keys())
def test_an_answer_that_ends_early_is_none(answer: bytes) -> None:
    with peer(answer) as server, pytest.raises(ConnectionResetError):
        ask(upstream(server.port))


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD.keys())
def test_what_is_no_http_or_has_no_end_is_no_answer(answer: bytes) -> None:
    with peer(answer) as server, pytest.raises(NotHttp):
        ask(upstream(server.port))


def test_a_body_that_is_left_unread_closes_its_connection() -> None:
    with peer(OK + b"Content-Length: 4\r\n\r\nre", OK + b"Content-Length: 0\r\n\r\n") as server:
        http = upstream(server.port)
        with http.send("GET", "/a", None, Deadline.after(5)) as response:
            assert response.read() == b"re"
        ask(http)
        assert server.carried_by == [0, 1]


def test_a_connection_that_the_peer_ended_meanwhile_is_not_asked() -> None:
    answer = OK + b"Content-Length: 0\r\n\r\n"
    with peer(answer + Peer.HANG_UP, answer) as server:
        http = upstream(server.port)
        ask(http)
        server.hung_up.acquire()
        ask(http)
        assert server.carried_by == [0, 1]


def test_no_more_connections_are_kept_than_the_pool_holds() -> None:
    answer = OK + b"Content-Length: 0\r\n\r\n"
    with peer(answer, answer) as first, peer(answer) as second:
        http = upstream(first.port, pool_size=0)
        ask(http)
        ask(http)
        assert first.carried_by == [0, 1]
        assert second.carried_by == []


def test_headers_are_told_by_their_lower_names_and_trailers_not_at_all() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nX-Odd: early\r\n\r\n"
    head = early + OK + b"X-Odd:  a \r\nx-odd: b\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Late: c\r\n\r\n"
    with peer(head) as server, upstream(server.port).send("GET", "/a", None, Deadline.after(5)) as response:
        assert response.read() == b"x"
        assert response.headers == {"x-odd": "a, b", "transfer-encoding": "chunked"}


def test_a_refusal_that_comes_before_the_body_was_sent_is_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            with listener.accept()[0] as sock:
                sock.recv(1)
                sock.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nmuch")
                sock.shutdown(socket.SHUT_WR)
                time.sleep(0.3)

        thread = threading.Thread(target=refuse)
        thread.start()
        http = upstream(listener.getsockname()[1])
        try:
            assert ask(http, b"x" * 64 * 2**20) == (413, b"much")
        finally:
            thread.join()


def test_time_runs_out_while_sending_and_while_reading() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for body in (None, b"x" * 32 * 2**20):
            deadline = Deadline.after(0.7)
            started = time.monotonic()
            with pytest.raises(TimeoutError):
                upstream(silent.getsockname()[1]).send("POST", "/a", body, deadline)
            assert time.monotonic() - started < 5
            assert deadline.is_sent


def test_a_request_says_whom_it_asks_for_what_and_as_whom() -> None:
    with peer(OK + b"Content-Length: 0\r\n\r\n") as server:
        http = Upstream(f"http://ever%40os:p%3Ass@127.0.0.1:{server.port}/base/", 1, {"Accept": "text/plain"})
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
def test_an_ipv6_address_is_reached_and_named_in_brackets() -> None:
    with peer(OK + b"Content-Length: 0\r\n\r\n", family=socket.AF_INET6) as server:
        ask(Upstream(f"http://[::1]:{server.port}", 1, {}))
        assert f"\r\nHost: [::1]:{server.port}\r\n".encode() in server.requests[0]


@pytest.mark.parametrize("host", ["a..b", "x" * 70, "nobody.invalid"])
def test_a_host_that_is_none_is_not_reached(host: str) -> None:
    deadline = Deadline.after(5)
    with pytest.raises(OSError):
        Upstream(f"http://{host}", 1, {}).send("GET", "/", None, deadline)
    assert not deadline.is_sent


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\n", "a\0", "ключ"])
def test_a_header_that_no_line_can_hold_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="Authorization"):
        Upstream("http://localhost", 1, {"Authorization": value})


def test_a_certificate_that_nobody_vouches_for_ends_the_call_before_anything_is_sent(tmp_path: Path) -> None:
    server_tls, _ = certified(tmp_path, "localhost")
    deadline = Deadline.after(5)
    with peer(OK, wrap=partial(server_tls.wrap_socket, server_side=True)) as server:
        with pytest.raises(ssl.SSLCertVerificationError):
            Upstream(f"https://localhost:{server.port}", 1, {}).send("GET", "/", None, deadline)
        assert server.requests == []
    assert not deadline.is_sent
