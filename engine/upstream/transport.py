"""HTTP with a deadline for the whole call: a pooled `requests.Session` whose sockets never outlive it.

`requests` knows a timeout per read only; a peer that sends one byte a second would hold a thread forever. Here each
read and write of the socket gets what is left of the call's time.
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
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

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


class _Adapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}


class _Session(requests.Session):
    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """No redirect is ever looked at: `requests` would read the whole body of one, however large."""
        return None


def new_session(pool_size: int) -> requests.Session:
    """A session that threads may share: it keeps no cookies, reads no proxy or password from the environment, and
    keeps `pool_size` connections open. Each call must run inside `ends_by`."""
    session = _Session()
    session.trust_env = False
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    adapter = _Adapter(pool_connections=1, pool_maxsize=pool_size, max_retries=0)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session
