"""One file over http(s), from an address that was checked.

The client connects to the checked IP addresses only: the host may resolve to others the next time. TLS still proves
the host.
"""

from __future__ import annotations

import ssl
from collections.abc import Generator, Sequence
from http import HTTPStatus
from urllib.parse import urlsplit

from core.errors import EngineError, EngineUnavailable, Unreadable
from core.http_client import (
    CertificateRejected,
    Deadline,
    Disconnected,
    HttpClient,
    HttpError,
    NotHttp,
    TimedOut,
    TooLarge,
    Undecodable,
)

_HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}
_TEMPORARY = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}


def download(
    uri: str, addresses: Sequence[str], *, deadline: Deadline, max_bytes: int, tls: ssl.SSLContext | None = None
) -> Generator[bytes]:
    """Yield the file. Close the generator to stop early.

    `uri` must have passed `core.addresses`, which gave the `addresses`. Raises `Unreadable` where another try cannot
    help, `EngineUnavailable` where it may. The messages leave out the address, which may be a secret.
    """
    parts = urlsplit(uri)
    host = (parts.hostname or "").encode("idna").decode("ascii")
    name = f"[{host}]" if ":" in host else host
    base_url = f"{parts.scheme}://{name}{f':{parts.port}' if parts.port else ''}"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        with (
            HttpClient(base_url, headers=_HEADERS, addresses=addresses, tls=tls) as client,
            client.send("GET", path, None, deadline) as response,
        ):
            _require_file(response.status)
            try:
                yield from response.pieces(max_bytes)
            except Disconnected:
                raise EngineUnavailable("The address broke off in the middle of the file.") from None
    except HttpError as error:  # its causes may name the address
        raise _reason(error, max_bytes) from None
    except ValueError:
        raise _not_http() from None


def _require_file(status: int) -> None:
    if status in _TEMPORARY or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise EngineUnavailable(f"The address answered {_named(status)}.")
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        raise Unreadable("The address leads on to another one: give the address where the file itself is.")
    if status != HTTPStatus.OK:
        raise Unreadable(f"The address answered {_named(status)}.")


def _named(status: int) -> str:
    """Return the number with the standard's own phrase: the server's may be anything."""
    return f"{status} {HTTPStatus(status).phrase}" if status in set(HTTPStatus) else str(status)


def _reason(error: HttpError, max_bytes: int) -> EngineError:
    match error:
        case TooLarge():
            return Unreadable(f"The file is larger than {max_bytes} bytes (MEMORY_GATEWAY_MAX_UPLOAD_BYTES).")
        case CertificateRejected():
            return Unreadable("The address could not prove by its TLS certificate that it is its host.")
        case NotHttp():
            return _not_http()
        case Undecodable():
            return Unreadable("The address sends the file compressed in a way that is not read here.")
        case TimedOut():
            return EngineUnavailable("The address did not answer in time.")
    return EngineUnavailable("The address cannot be reached.")


def _not_http() -> Unreadable:
    return Unreadable("The address answered with something that is no file over HTTP.")
