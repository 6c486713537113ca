"""One file over http(s) from an address that was checked: connected to exactly that, never led elsewhere, never slower
or larger than allowed.

The name in the address may answer differently the next time, so it is not looked up again; TLS still proves the name.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import string
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit

from requests.utils import DEFAULT_CA_BUNDLE_PATH

from engine.port import EngineUnavailable, Unreadable
from engine.upstream.transport import Deadline
from memory_gateway.core.addresses import DEFAULT_PORTS
from memory_gateway.core.bounded import CHUNK_BYTES

CONNECT_SECONDS = 5.0
_TEMPORARY = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
_GZIP = {"gzip", "x-gzip"}
_GZIP_WINDOW_BITS = 31


@dataclass(frozen=True, slots=True)
class Target:
    """An http(s) address that was taken apart; `addresses` are those of the host that may be connected to."""

    is_secure: bool
    host: str
    port: int
    authority: str
    path: str
    addresses: tuple[str, ...]

    @classmethod
    def of(cls, uri: str, addresses: Iterable[str]) -> Target:
        """`uri` must have passed `core.addresses`."""
        parts = urlsplit(uri)
        scheme = parts.scheme.lower()
        host = (parts.hostname or "").encode("idna").decode("ascii")
        port = parts.port or DEFAULT_PORTS[scheme]
        name = f"[{host}]" if ":" in host else host
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return cls(
            is_secure=scheme == "https",
            host=host,
            port=port,
            authority=name if port == DEFAULT_PORTS[scheme] else f"{name}:{port}",
            # What is signed must arrive as it was signed: nothing but what no request line can hold is encoded.
            path=quote(path, safe=string.punctuation),
            addresses=tuple(addresses),
        )


def trusted_authorities() -> ssl.SSLContext:
    """Those of this machine, where an operator may have added one, and those of the `requests` package."""
    context = ssl.create_default_context()
    context.load_verify_locations(DEFAULT_CA_BUNDLE_PATH)
    return context


def download(target: Target, *, deadline: Deadline, max_bytes: int, tls: ssl.SSLContext) -> Generator[bytes]:
    """The file in pieces. Close the iterator if it is left early.

    Errors: `Unreadable` where another try cannot help, `EngineUnavailable` where it may. Their sentences say nothing of
    the address, which may be a secret.
    """
    with _plain_words(), closing(_connected(target, deadline, tls)) as sock:
        connection = http.client.HTTPConnection(target.host, target.port)
        connection.sock = _TimedSocket(sock, deadline)
        headers = {"Host": target.authority, "User-Agent": "memory-gateway", "Accept": "*/*", "Connection": "close"}
        connection.request("GET", target.path, headers=headers)
        with connection.getresponse() as response:
            _require_file(response, max_bytes)
            yield from _limited(_decoded(response, max_bytes), max_bytes)


class _TimedSocket:
    """A socket for `http.client` on which everything together ends by the deadline."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock = sock
        self._deadline = deadline

    def sendall(self, data: Any) -> None:
        self._sock.settimeout(self._deadline.timeout())
        self._sock.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._sock, self._deadline))

    def close(self) -> None:
        """Whoever opened the socket closes it."""


class _TimedReader(io.RawIOBase):
    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(self._deadline.timeout())
        return self._sock.recv_into(buffer)


def _connected(target: Target, deadline: Deadline, tls: ssl.SSLContext) -> socket.socket:
    """The handshake of TLS may take as long as the connection."""
    sock = _reached(target, deadline)
    if not target.is_secure:
        return sock
    try:
        return tls.wrap_socket(sock, server_hostname=target.host)
    except BaseException:
        sock.close()
        raise


def _reached(target: Target, deadline: Deadline) -> socket.socket:
    """The first of the addresses that takes the connection. Errors: OSError of the last one."""
    failure: OSError = socket.gaierror("the host has no address")
    for address in target.addresses:
        try:
            return socket.create_connection((address, target.port), min(CONNECT_SECONDS, deadline.timeout()))
        except OSError as error:
            failure = error
    raise failure


def _require_file(response: http.client.HTTPResponse, max_bytes: int) -> None:
    status = response.status
    if status in _TEMPORARY or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise EngineUnavailable(f"The address answered {_named(status)}.")
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        raise Unreadable("The address leads on to another one: give the address where the file itself is.")
    if status != HTTPStatus.OK:
        raise Unreadable(f"The address answered {_named(status)}.")
    if response.length is not None and response.length > max_bytes:
        raise _too_large(max_bytes)


def _named(status: int) -> str:
    """The number with our own word for it: the server's may be anything."""
    return f"{status} {HTTPStatus(status).phrase}" if status in set(HTTPStatus) else str(status)


def _decoded(response: http.client.HTTPResponse, max_bytes: int) -> Iterator[bytes]:
    """The file itself; some stores send what they keep compressed as it is, though nobody asked for that."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    pieces = _limited(_pieces(response), max_bytes)
    if encoding in _GZIP:
        return _inflated(pieces)
    if encoding != "identity":
        raise Unreadable("The address sends the file compressed in a way that is not read here.")
    return pieces


def _pieces(response: http.client.HTTPResponse) -> Iterator[bytes]:
    while piece := response.read(CHUNK_BYTES):
        yield piece
    if response.length:
        raise _broken_off()


def _inflated(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Never more than a chunk at a time, however small its source."""
    inflate = zlib.decompressobj(_GZIP_WINDOW_BITS)
    for piece in pieces:
        rest = piece
        while rest:
            yield inflate.decompress(rest, CHUNK_BYTES)
            rest = inflate.unconsumed_tail
        if inflate.eof:
            return
    raise _broken_off()


def _limited(pieces: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > max_bytes:
            raise _too_large(max_bytes)
        yield piece


def _too_large(max_bytes: int) -> Unreadable:
    return Unreadable(f"The file is larger than {max_bytes} bytes (MEMORY_GATEWAY_MAX_UPLOAD_BYTES).")


def _broken_off() -> EngineUnavailable:
    return EngineUnavailable("The address broke off in the middle of the file.")


@contextmanager
def _plain_words() -> Iterator[None]:
    """What can go wrong on a connection, in sentences without the address; a cause kept behind them might name it."""
    try:
        yield
    except TimeoutError:
        raise EngineUnavailable("The address did not answer in time.") from None
    except ssl.SSLCertVerificationError:
        raise Unreadable("The address could not prove by its TLS certificate that it is its host.") from None
    except http.client.IncompleteRead:
        raise _broken_off() from None
    except OSError:
        raise EngineUnavailable("The address cannot be reached.") from None
    except (http.client.HTTPException, zlib.error, ValueError):
        raise Unreadable("The address answered with something that is no file over HTTP.") from None
