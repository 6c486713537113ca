"""HTTP client for all outgoing calls: the remote, model endpoints and downloads.

`requests` does HTTP. This module adds limits that a peer cannot bypass: one deadline for the whole call, a size limit
for the head and for the decoded body, no redirects, no proxies, cookies or credentials from the environment, and
connections to given IP addresses only. The sockets enforce the limits, because `requests` returns a connection only
after the head has arrived.
"""

import gzip
import http.client
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, Protocol, Self, TypeVar, cast

import requests
from requests.adapters import HTTPAdapter
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, InvalidHeader

from core.limits.concurrency import before_external_call
from core.messages import MessageError
from core.messages import Translatable as _

CHUNK_BYTES = 256 * 1024


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class LimitExceeded(Exception):
    """The input exceeds the allowed size."""


def chunks(source: Readable, limit_bytes: int) -> Iterator[bytes]:
    """Yield the source in chunks.

    Raises: `LimitExceeded` as soon as more than `limit_bytes` have been read.
    """
    total = 0
    while chunk := source.read(CHUNK_BYTES):
        total += len(chunk)
        if total > limit_bytes:
            raise LimitExceeded(f"more than {limit_bytes} bytes")
        yield chunk


CONNECT_SECONDS = 3.0
MAX_HEAD_BYTES = 64 * 1024
_MAX_RETRY_AFTER_SECONDS = 24 * 3600
_MAX_LENGTH_DIGITS = 18
_T = TypeVar("_T")


class HttpError(MessageError):
    """A call without a usable response. The message gives the reason, without the address.

    `was_sent` is False only if no byte of the request can have been sent.
    """

    was_sent = True


class NotConnected(HttpError):
    """The connection to the host failed."""


class CertificateRejected(HttpError):
    """The peer's certificate is not valid for the host."""


class TimedOut(HttpError):
    """The deadline passed."""


class Disconnected(HttpError):
    """The connection ended before the whole response had arrived."""


class NotHttp(HttpError):
    """The peer's response is not HTTP, or its head does not end."""


class TooLarge(HttpError):
    """The body is larger than allowed."""


class Undecodable(HttpError):
    """The body is damaged or compressed with an unknown method."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time by which a call must end: `at` is in seconds of `clock`."""

    at: float
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> Self:
        return cls(clock() + seconds, clock)

    @property
    def left_seconds(self) -> float:
        return self.at - self.clock()


class Body(Protocol):
    """A request body that is produced while it is sent."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[bytes]: ...


@dataclass(slots=True)
class _Exchange:
    """Limits and state of one request and its response.

    `addresses` None: connect to the addresses that the host resolves to. `limit_error` is raised when the peer has sent
    more than `receivable_bytes`.
    """

    deadline: Deadline
    addresses: Sequence[str] | None
    was_sent: bool = False
    has_head: bool = False
    receivable_bytes: int = MAX_HEAD_BYTES
    limit_error: HttpError = field(default_factory=lambda: NotHttp(_("The response headers are incomplete")))

    def left_seconds(self) -> float:
        if (left := self.deadline.left_seconds) <= 0:
            raise TimedOut(_("The response timed out"))
        return left


# `exchange` is the one that `HttpClient.send` runs in this thread: `requests` cannot pass it to the connection.
_current = threading.local()


class _Socket(socket.socket):
    """A socket limited by the deadline and the receivable bytes of the exchange."""

    exchange: _Exchange

    def send(self, *args: Any) -> int:
        return self._timed(super().send, *args)

    def sendall(self, *args: Any) -> None:
        self.exchange.was_sent = True
        self._timed(super().sendall, *args)

    def recv_into(self, *args: Any) -> int:
        count = self._timed(super().recv_into, *args)
        if not count and not self.exchange.has_head:  # http.client would accept half a head as a whole one
            raise Disconnected(_("The connection closed before the response arrived"))
        self.exchange.receivable_bytes -= count
        if self.exchange.receivable_bytes < 0:
            raise self.exchange.limit_error
        return count

    def _timed(self, operation: Callable[..., _T], *args: Any) -> _T:
        self.settimeout(self.exchange.left_seconds())
        try:
            return operation(*args)
        except TimeoutError:
            raise TimedOut(_("The response timed out")) from None


class _TlsSocket(_Socket, ssl.SSLSocket):
    """A `_Socket` with TLS."""


class _HttpResponse(http.client.HTTPResponse):
    """A response that skips every preceding 1xx response, not only 100, and closes the connection after a 5xx.

    The remote closes the connection after a 5xx without announcing it.
    """

    def _read_status(self) -> tuple[str, int, str]:
        version, status, reason = super()._read_status()  # type: ignore[misc]
        is_announcement = 100 < status < 200 and status != http.HTTPStatus.SWITCHING_PROTOCOLS
        return version, http.HTTPStatus.CONTINUE if is_announcement else status, reason

    def _check_close(self) -> bool:
        return self.status >= 500 or super()._check_close()  # type: ignore[misc]


class _Connection(HTTPConnection):
    response_class = _HttpResponse

    def _new_conn(self) -> _Socket:
        return _connect(self.host, self.port or self.default_port, _current.exchange)

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is None:
            self.connect()
        cast(_Socket, self.sock).exchange = _current.exchange
        super().request(*args, **kwargs)


class _TlsConnection(_Connection, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


def _connect(host: str, port: int, exchange: _Exchange) -> _Socket:
    """Return a socket connected to the first address that accepts. The TLS handshake gets the same timeout again."""
    names = [host] if exchange.addresses is None else exchange.addresses
    failure: HttpError = NotConnected(_("The host name cannot be resolved"))
    try:
        resolved = [entry for name in names for entry in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        raise failure from None
    for family, kind, protocol, _name, address in resolved:
        sock = _Socket(family, kind, protocol)
        try:
            sock.settimeout(min(CONNECT_SECONDS, exchange.left_seconds()))
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(min(CONNECT_SECONDS, exchange.left_seconds()))
        except TimeoutError:
            failure = TimedOut(_("The response timed out"))
        except ConnectionRefusedError:
            failure = NotConnected(_("Connection refused"))
        except OSError as error:
            failure = NotConnected(error.strerror or _("The connection failed"))
        except BaseException:
            sock.close()
            raise
        else:
            return sock
        sock.close()
    raise failure


class _Adapter(HTTPAdapter):
    def __init__(self, pool_size: int, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        super().__init__(pool_connections=1, pool_maxsize=pool_size)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **kwargs: Any) -> None:
        super().init_poolmanager(connections, maxsize, block, ssl_context=self._tls, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

    def cert_verify(self, *args: Any) -> None:
        """Add nothing to the context: it already holds the authorities and requires a certificate."""


class HttpClient:
    """A client of one server, shared by threads. It keeps up to `pool_size` connections open.

    Every request carries `headers` and the credentials of `base_url`. `addresses`: connect to these instead of the
    addresses that the host resolves to; TLS still verifies the host name.

    Raises: ValueError for a URL or header that cannot be sent.
    """

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str],
        pool_size: int = 1,
        addresses: Sequence[str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        for name, value in headers.items():
            if not (value.isascii() and value.isprintable()):
                raise ValueError(f"{name} has a value that no header can hold")
        self._template = requests.Request("GET", base_url, {"User-Agent": "memory-gateway", **headers}).prepare()
        self._base_url = (self._template.url or "").rstrip("/")
        self._addresses = addresses
        if base_url.lower().startswith("https:"):
            tls = tls or trusted_authorities()
            tls.sslsocket_class = _TlsSocket
        # Without the session of `requests`, which follows redirects, keeps cookies and reads the environment.
        self._adapter = _Adapter(pool_size, tls)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._adapter.close()

    def send(self, method: str, path: str, body: bytes | Body | None, deadline: Deadline) -> "Response":
        """Send a request and return the response with its body unread. Use it in a `with` block.

        The deadline includes reading the body. A pooled connection that the peer has closed is replaced before anything
        is sent; no request is sent twice.

        Raises: `HttpError`.
        """
        request = self._template.copy()
        request.method, request.url = method, self._base_url + path
        if body is not None:
            request.body = cast(bytes, body)
            request.headers["Content-Length"] = str(len(body))
        _current.exchange = exchange = _Exchange(deadline, self._addresses)
        before_external_call.get()()
        try:
            received = self._adapter.send(request, stream=True)
        except HttpError as error:
            error.was_sent = exchange.was_sent
            raise
        except (requests.RequestException, HTTPError) as error:
            failure = _as_http_error(error)
            failure.was_sent = exchange.was_sent
            raise failure from error
        return Response(received, exchange)


class Response:
    """A response whose head has arrived. Leaving its `with` block keeps the connection if the whole body was read."""

    def __init__(self, received: requests.Response, exchange: _Exchange) -> None:
        self.status = received.status_code
        self.headers: Mapping[str, str] = received.headers
        self._received = received
        self._exchange = exchange
        exchange.has_head = True
        if not self._is_framed():
            received.close()
            raise NotHttp(_("The response headers contradict each other"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._received.close()

    def body(self, max_bytes: int) -> bytes:
        """Return the decoded body.

        Raises: `HttpError`.
        """
        return b"".join(self.pieces(max_bytes))

    def pieces(self, max_bytes: int) -> Iterator[bytes]:
        """Yield the decoded body.

        Raises: `HttpError`; `TooLarge` as soon as more than `max_bytes` have arrived.
        """
        too_large = TooLarge(_("The response body is larger than %(number)s bytes", number=max_bytes))
        self._exchange.limit_error = too_large
        self._exchange.receivable_bytes = 2 * max_bytes + MAX_HEAD_BYTES  # for chunk headers and trailers
        if int(self.headers.get("content-length", 0)) > max_bytes:
            raise too_large
        try:
            yield from chunks(self._decoded(), max_bytes)
        except LimitExceeded:
            raise too_large from None
        except EOFError:
            raise Disconnected(_("The compressed response body is incomplete")) from None
        except (gzip.BadGzipFile, zlib.error):
            raise Undecodable(_("The compressed response body is damaged")) from None
        except HTTPError as error:
            raise _as_http_error(error) from error

    def retry_after_seconds(self, now: datetime | None = None) -> int | None:
        """Return the `Retry-After` header in seconds, at most a day; None if it is missing or invalid."""
        value = self.headers.get("retry-after", "").strip()
        if value.isdigit():
            return min(int(value), _MAX_RETRY_AFTER_SECONDS)
        try:
            moment = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (moment.astimezone(UTC) - (now or datetime.now(UTC))).total_seconds()
        return min(max(int(seconds), 0), _MAX_RETRY_AFTER_SECONDS)

    def _is_framed(self) -> bool:
        """Return False if the headers leave the end of the body unclear, and for a 1xx response, which has no body."""
        length, coding = self.headers.get("content-length"), self.headers.get("transfer-encoding")
        if coding is not None:
            return length is None and coding.strip().lower() == "chunked"
        digits = "0" if length is None else length.strip()
        return self.status >= 200 and digits.isascii() and digits.isdigit() and len(digits) <= _MAX_LENGTH_DIGITS

    def _decoded(self) -> Any:
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        if encoding in {"gzip", "x-gzip"}:
            return gzip.GzipFile(fileobj=self._received.raw)
        if encoding != "identity":
            raise Undecodable(_("The compression %(encoding)s is not supported", encoding=encoding[:40]))
        return self._received.raw


@cache
def trusted_authorities() -> ssl.SSLContext:
    """Return a TLS context that trusts the system's authorities and those of certifi.

    Operators may add an authority to the system's.
    """
    context = ssl.create_default_context()
    context.load_verify_locations(DEFAULT_CA_BUNDLE_PATH)
    return context


def _as_http_error(error: BaseException) -> HttpError:
    """Return the `HttpError` for an error of `requests` or urllib3, by its first known cause."""
    cause: BaseException | None = error
    while cause is not None:
        match cause:
            case ssl.SSLCertVerificationError():
                return CertificateRejected(_("The TLS certificate is not valid"))
            case TimeoutError():
                return TimedOut(_("The response timed out"))
            case ssl.SSLError():
                return Disconnected(_("The TLS connection failed"))
            case ConnectionError() | http.client.IncompleteRead():
                return Disconnected(_("Connection reset"))
            case http.client.HTTPException() | InvalidHeader():
                return NotHttp(_("The response is not HTTP"))
        cause = cause.__cause__ or cause.__context__
    return Disconnected(type(error).__name__)
