"""The targets of the command `audit_export`: a webhook or a syslog server. Each takes a batch or raises."""

import logging
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from logging.handlers import SysLogHandler
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from core.errors import InvalidInput
from core.messages import MessageError
from core.messages import Translatable as _
from core.network.http_client import Deadline, HttpClient, HttpError
from core.network.url_policy import base_and_path


class NotDelivered(MessageError):
    """A failure after which some events of a batch may not have arrived."""


Event = Mapping[str, Any]
Target = Callable[[Sequence[Event]], None]
"""Take a batch of events. Raises: `NotDelivered` if not all of them have certainly arrived."""
_SECONDS: Final = 30.0
_MAX_DATAGRAM_BYTES: Final = 8_000
_SOCKETS: Final = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}


def line(event: Event) -> bytes:
    return orjson.dumps(event)


@contextmanager
def webhook(url: str, headers: Mapping[str, str]) -> Iterator[Target]:
    """Yield a target that posts batches as JSON lines to an address. Raises: `InvalidInput` for the address."""
    if urlsplit(url).scheme not in {"http", "https"}:
        raise InvalidInput(_("The address must begin with http:// or https://."))
    base_url, path = base_and_path(url)
    try:
        http = HttpClient(base_url, headers={"Content-Type": "application/x-ndjson", **headers})
    except ValueError as error:
        raise InvalidInput(str(error)) from None

    def send(events: Sequence[Event]) -> None:
        body = b"".join(line(event) + b"\n" for event in events)
        try:
            with http.send("POST", path, body, Deadline.after(_SECONDS)) as response:
                status = response.status
        except HttpError as error:
            raise NotDelivered(_("The address did not answer: %(cause)s.", cause=error.message)) from None
        if not 200 <= status < 300:
            raise NotDelivered(_("The address answered with status %(status)s.", status=status))

    with http:
        yield send


class _SysLog(SysLogHandler):
    """A handler that raises what `logging` would swallow, and ends records on a stream with a line end (RFC 6587)."""

    append_nul = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        raise  # noqa: PLE0704 -- called in the handler's `except`


@contextmanager
def syslog(address: str) -> Iterator[Target]:
    """Yield a target that sends each event to `tcp://HOST:PORT`, `udp://HOST:PORT`, or a local socket `/dev/log`.

    Over UDP a line is at most 8,000 bytes: of an event with more users, `users_left_out` says how many are missing.
    Raises: `InvalidInput` for the address.
    """
    parts = urlsplit(address)
    is_stream = parts.scheme == "tcp"
    try:
        where: Any = address if address.startswith("/") else (parts.hostname, parts.port)
    except ValueError:
        where = (None, None)
    if not address.startswith("/") and (parts.scheme not in _SOCKETS or None in where):
        raise InvalidInput(_("The address must be tcp://HOST:PORT, udp://HOST:PORT or a socket such as /dev/log."))
    handlers: list[_SysLog] = []

    def send(events: Sequence[Event]) -> None:
        try:
            if not handlers:
                kind = None if address.startswith("/") else _SOCKETS[parts.scheme]
                handlers.append(_SysLog(where, SysLogHandler.LOG_AUTHPRIV, kind))
            for event in events:
                text = (line(event) if is_stream else _cut(event)).decode()
                text = f"memory-gateway: {text}\n" if is_stream else f"memory-gateway: {text}"
                handlers[0].emit(logging.LogRecord("audit", logging.INFO, "", 0, text, None, None))
        except OSError as error:
            close()
            raise NotDelivered(_("The syslog server cannot be reached: %(cause)s.", cause=str(error))) from None

    def close() -> None:
        while handlers:
            handlers.pop().close()

    try:
        yield send
    finally:
        close()


def _cut(event: Event) -> bytes:
    users, written = list(event["users"]), line(event)
    while len(written) > _MAX_DATAGRAM_BYTES and users:
        users = users[: len(users) // 2]
        written = line({**event, "users": users, "users_left_out": len(event["users"]) - len(users)})
    return written
