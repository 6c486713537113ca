"""HTTP with a deadline for the whole call: a urllib3 pool whose sockets never outlive it.

urllib3 knows a timeout per read only; a peer that sends one byte a second would hold a thread forever. Here each read
and write of the socket gets what is left of the call's time. (`requests` above it would cost as much again per call.)
"""

from __future__ import annotations

import http.client
import io
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool, Timeout, make_headers
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util import parse_url

CONNECT_TIMEOUT_SECONDS = 3.0


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


_current: ContextVar[Deadline] = ContextVar("upstream_deadline")


@contextmanager
def ends_by(deadline: Deadline) -> Iterator[None]:
    """Calls made inside, in this thread, end by the deadline."""
    token = _current.set(deadline)
    try:
        yield
    finally:
        _current.reset(token)


class _DeadlineReader(io.RawIOBase):
    """A socket's bytes; each read waits no longer than the deadline of the call that the answer belongs to."""

    def __init__(self, file: io.RawIOBase, sock: socket.socket, deadline: Deadline) -> None:
        self._file = file
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._deadline.timeout())
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_DeadlineReader(self.fp.detach(), sock, _current.get()))

    def begin(self) -> None:
        """EverOS hangs up after a 500 without announcing it: a connection that saw one is not used again."""
        super().begin()
        if self.status >= 500:
            self.will_close = True


class _Sending:
    """Notes that something was sent, and gives the sending what is left of the call's time."""

    response_class: type[http.client.HTTPResponse] = _Response
    sock: Any

    def send(self, data: Any) -> None:
        deadline = _current.get()
        if self.sock is None:
            self.connect()  # type: ignore[attr-defined]
        self.sock.settimeout(deadline.timeout())
        deadline.is_sent = True
        super().send(data)  # type: ignore[misc]


class _Connection(_Sending, HTTPConnection):
    pass


class _SecureConnection(_Sending, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class Upstream:
    """The connections to one address, for threads to share: `pool_size` are kept open. No cookies, no redirects,
    nothing from the environment. Each call must run inside `ends_by`."""

    def __init__(self, base_url: str, pool_size: int) -> None:
        url = parse_url(base_url)
        self._path = (url.path or "").rstrip("/")
        self._headers = make_headers(basic_auth=unquote(url.auth)) if url.auth else {}
        host = url.host or ""
        if url.scheme == "https":
            self._pool: HTTPConnectionPool = _SecurePool(
                host, url.port, maxsize=pool_size, cert_reqs="CERT_REQUIRED", ca_certs=DEFAULT_CA_BUNDLE_PATH
            )
        else:
            self._pool = _Pool(host, url.port, maxsize=pool_size)

    def send(
        self, method: str, path: str, body: Any, headers: dict[str, str], timeout_seconds: float
    ) -> BaseHTTPResponse:
        """The answer with its body unread: to be read, and given back by `finish`. `body` is bytes, or an iterable that
        knows its length. Errors: urllib3's and the socket's own."""
        length = {"Content-Length": str(len(body))} if body is not None else {}
        return self._pool.urlopen(
            method,
            self._path + path,
            body=body,
            headers={**headers, **self._headers, **length},
            timeout=Timeout(connect=min(CONNECT_TIMEOUT_SECONDS, timeout_seconds), read=timeout_seconds),
            retries=False,
            redirect=False,
            preload_content=False,
            decode_content=False,
        )


@contextmanager
def finished(response: BaseHTTPResponse) -> Iterator[BaseHTTPResponse]:
    """Gives the connection back at the end, closed if the body was not read to its end."""
    try:
        yield response
    finally:
        response.close()
        response.release_conn()
