"""HTTP with a deadline for the whole call: plain sockets that are kept for the next call, and an incremental parser.

Clients at hand know a timeout per read only; a peer that sends one byte a second would hold a thread forever. Here each
read and write of the socket gets what is left of the call's time. And a call that is answered in a millisecond should
not cost as much again: `http.client` reads headers by its parser of mails.
"""

from __future__ import annotations

import socket
import ssl
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol
from urllib.parse import unquote

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3 import make_headers
from urllib3.util import parse_url, wait_for_read

CONNECT_TIMEOUT_SECONDS = 3.0
_PORTS = {"http": 80, "https": 443}
_READ_BYTES = 64 * 1024
_MAX_HEAD_BYTES = 64 * 1024
"""And as much of chunks' own heads and of trailers between two pieces of a body."""


@dataclass(slots=True)
class Deadline:
    """When a call must have ended (`at`, on `clock`), and whether anything of it was sent."""

    at: float
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    is_sent: bool = False

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> Deadline:
        return cls(clock() + seconds, clock)

    @property
    def left_seconds(self) -> float:
        return self.at - self.clock()

    def half(self) -> Deadline:
        """When half of the time that is left is over."""
        return Deadline.after(self.left_seconds / 2, self.clock)

    def timeout(self) -> float:
        """Seconds for the next step. Errors: TimeoutError when none are left."""
        if (left := self.left_seconds) <= 0:
            raise TimeoutError("the call's time is over")
        return left


class NotHttp(OSError):
    """What came is no answer over HTTP, or one whose head does not end."""


class Pieces(Protocol):
    """A body that is made while it is sent, and knows its length."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[bytes]: ...


class Response:
    """An answer on its way: status and headers (names in lower case) have come, the body is to be read. Leave it by
    `with`: the connection is kept for the next call if all of this one came, and closed if not."""

    def __init__(self, sock: socket.socket, deadline: Deadline, keep: Callable[[socket.socket], None]) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._sock = sock
        self._deadline = deadline
        self._keep = keep
        self._parser = HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._bodiless_bytes = 0
        self._is_over = False
        self._can_be_kept = True

    def __enter__(self) -> Response:
        return self

    def close(self, *_: object) -> None:
        del self._parser  # it knows us as we know it: nothing is left to the garbage collector
        if self._is_over and self._can_be_kept:
            self._keep(self._sock)
        else:
            self._sock.close()

    __exit__ = close

    def read(self) -> bytes:
        """The next piece of the body as it came, at most 64 KiB; empty at its end. Errors: OSError, also for a body
        that ends early."""
        while not self._pieces and not self._is_over:
            self._receive()
        piece = b"".join(self._pieces)
        self._pieces.clear()
        return piece

    def ask(self, head: bytes, body: bytes | Pieces) -> None:
        """Sends a request and reads the head of its answer. Errors: OSError."""
        try:
            for piece in [head + body] if isinstance(body, bytes) else chain([head], body):
                self._sock.settimeout(self._deadline.timeout())
                self._deadline.is_sent = True
                self._sock.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):  # who refuses a body early may have said so before
            self._can_be_kept = False
        while not self.status:
            self._receive()

    def _receive(self) -> None:
        self._sock.settimeout(self._deadline.timeout())
        data = self._sock.recv(_READ_BYTES)
        if not data:
            self._end()
            return
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if not self._is_over:
                raise NotHttp(str(error)) from None
            self._can_be_kept = False  # more came than the answer
        self._bodiless_bytes = 0 if self._pieces else self._bodiless_bytes + len(data)
        if self._bodiless_bytes > _MAX_HEAD_BYTES and not self._is_over:
            raise NotHttp("a head without an end")

    def _end(self) -> None:
        """The peer hung up, which ends a body without a length."""
        if not self.status or "content-length" in self.headers or "transfer-encoding" in self.headers:
            raise ConnectionResetError("the connection was closed before the answer's end")
        self._is_over, self._can_be_kept = True, False

    # What the parser calls.

    def on_message_begin(self) -> None:
        if self._is_over:
            raise NotHttp("a second answer")
        self.headers.clear()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.status:  # what follows a body is no header
            key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip()
            self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        """1xx only announces the answer. EverOS hangs up after a 500 without announcing it: a connection that saw one
        is not used again."""
        status = self._parser.get_status_code()
        if status >= 200:
            self.status = status
            self._can_be_kept &= status < 500 and self._parser.should_keep_alive()

    def on_body(self, piece: bytes) -> None:
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        self._is_over = self.status > 0


class Upstream:
    """The connections to one address, for threads to share: `pool_size` are kept open. Every request carries `headers`;
    no cookies, no redirects, nothing from the environment. Errors: ValueError for a header that no line can hold."""

    def __init__(self, base_url: str, pool_size: int, headers: Mapping[str, str]) -> None:
        url = parse_url(base_url)
        scheme, host = url.scheme or "http", url.host or ""
        port = url.port or _PORTS[scheme]
        self._address = host.strip("[]"), port
        self._tls = _tls() if scheme == "https" else None
        self._path = (url.path or "").rstrip("/")
        named = {
            "Host": host if port == _PORTS[scheme] else f"{host}:{port}",
            "User-Agent": "memory-gateway",
            **headers,
            **(make_headers(basic_auth=unquote(url.auth)) if url.auth else {}),
        }
        self._headers = "".join(_line(name, value) for name, value in named.items())
        self._pool_size = pool_size
        self._idle: deque[socket.socket] = deque()
        weakref.finalize(self, _close_all, self._idle)

    def send(self, method: str, path: str, body: bytes | Pieces | None, deadline: Deadline) -> Response:
        """The answer with its body unread. All of the call ends by the deadline, which notes whether anything was sent.
        Errors: OSError."""
        length = "" if body is None else f"Content-Length: {len(body)}\r\n"
        head = f"{method} {self._path}{path} HTTP/1.1\r\n{self._headers}{length}\r\n"
        response = Response(self._connection(deadline), deadline, self._keep)
        try:
            response.ask(head.encode("ascii"), b"" if body is None else body)
        except BaseException:
            response.close()
            raise
        return response

    def _connection(self, deadline: Deadline) -> socket.socket:
        with suppress(IndexError):
            while True:
                sock = self._idle.pop()
                if not wait_for_read(sock, 0):
                    return sock
                sock.close()  # where nothing was asked, what there is to read is the peer's goodbye
        return self._connected(deadline)

    def _connected(self, deadline: Deadline) -> socket.socket:
        try:
            sock = socket.create_connection(self._address, min(CONNECT_TIMEOUT_SECONDS, deadline.timeout()))
        except UnicodeError as error:
            raise socket.gaierror(f"no host's name: {error}") from None
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(min(CONNECT_TIMEOUT_SECONDS, deadline.timeout()))
            return self._tls.wrap_socket(sock, server_hostname=self._address[0]) if self._tls else sock
        except BaseException:
            sock.close()
            raise

    def _keep(self, sock: socket.socket) -> None:
        if len(self._idle) < self._pool_size:
            self._idle.append(sock)
        else:
            sock.close()


def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=DEFAULT_CA_BUNDLE_PATH)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _line(name: str, value: str) -> str:
    if not (value.isascii() and value.isprintable()):
        raise ValueError(f"{name} holds what no header can")
    return f"{name}: {value}\r\n"


def _close_all(idle: deque[socket.socket]) -> None:
    for sock in idle:
        sock.close()
