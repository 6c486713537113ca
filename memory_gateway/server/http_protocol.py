"""uvicorn's HTTP protocol with limits for unauthenticated clients.

It relies on uvicorn's internals; `tests/memory_gateway/test_http_protocol.py` detects changes in them.
"""

import asyncio
import re
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, NoReturn

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from core.errors import BadRequest, GatewayError
from core.logs import choose_request_id
from core.messages import Message as _
from core.rest import PROBLEM_CONTENT_TYPE, problem
from memory_gateway import request_log
from memory_gateway.server.connections import ConnectionTable

MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 100
# Maximum number of requests that a client may pipeline on one connection.
MAX_PIPELINED = 32
# Time and bytes for which the server reads what a refused client still sends, so that it can read the response.
LINGER_SECONDS = 1.0
LINGER_BYTES = 256 * 1024
_ABSOLUTE_FORM = re.compile(rb"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)")
_DEFAULT_PORTS = {b"http": b":80", b"https": b":443"}


class HeadTooLarge(GatewayError):
    status, code, title = 431, "head_too_large", _("Request head too large")


class TooManyConnections(GatewayError):
    status, code, title = 503, "too_many_connections", _("Too many connections")


class HttpProtocol(HttpToolsProtocol):
    """HTTP protocol that refuses long request heads, aborts slow ones and registers its connection in a table.

    `head_seconds`: time from connecting, or from the first byte of a further request, to a complete head.
    `stall_seconds`: longest time without the client reading any of the response.
    """

    def __init__(
        self, *args: Any, connections: ConnectionTable, head_seconds: float, stall_seconds: float, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self.address: str | None = None
        self._table = connections
        self._head_seconds = head_seconds
        self._stall_seconds = stall_seconds
        self._head_timer: asyncio.TimerHandle | None = None
        self._running: Any = None  # the request being answered; `cycle` is the last one that arrived
        self.headers = []
        self._piece_bytes = 0
        # Bytes since the last complete head or part of a body, counted in whole pieces.
        self._unparsed_bytes = 0
        self._refusal: GatewayError | None = None
        self._is_refused = False
        self._lingered_bytes = 0

    @property
    def _is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    # --- the connection ---

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = self._table.address_of(self.client[0] if self.client else "")
        if self._table.admit(self, open_connections=len(self.connections)):
            self._head_timer = self.loop.call_later(self._head_seconds, self._end_slow_head)
        else:
            self._is_refused = True
            self._answer(TooManyConnections("Too many connections are open. Try again later."))
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._table.remove(self)
        self._cancel_head_timer()
        self._unset_keepalive_if_required()
        if self._running is not None:
            self._tell_disconnected(self._running)  # uvicorn tells `cycle` only
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        self._table.remove(self)
        super().handle_websocket_upgrade()

    def close_now(self) -> None:
        self.transport.abort()

    # --- incoming data ---

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            self._lingered_bytes += len(data)
            if self._lingered_bytes > LINGER_BYTES and not self.transport.is_closing():
                self.transport.pause_reading()
        elif len(data) <= MAX_HEAD_BYTES:
            self._parse(data)
        else:
            for start in range(0, len(data), MAX_HEAD_BYTES):
                self._parse(data[start : start + MAX_HEAD_BYTES])
                if self._is_refused or self not in self.connections:
                    return

    def _parse(self, piece: bytes) -> None:
        """Parse at most `MAX_HEAD_BYTES` at a time, which limits what the parser keeps in memory."""
        self._piece_bytes = len(piece)
        self._unparsed_bytes += self._piece_bytes
        super().data_received(piece)
        if self._is_refused:
            return
        if self._unparsed_bytes > 2 * MAX_HEAD_BYTES or len(self.headers) > MAX_HEADERS:
            self._refuse(_head_too_large())
        elif self._head_timer is None and not self._is_busy and self in self.connections:
            self._head_timer = self.loop.call_later(self._head_seconds, self._end_slow_head)

    def on_headers_complete(self) -> None:
        is_too_large = len(self.headers) > MAX_HEADERS
        if self._unparsed_bytes > MAX_HEAD_BYTES:
            head_bytes = len(self.url) + sum(len(name) + len(value) + len(b": \r\n") for name, value in self.headers)
            is_too_large = is_too_large or head_bytes > MAX_HEAD_BYTES
        if is_too_large:
            self._stop_parsing(_head_too_large())
        if len(self.pipeline) >= MAX_PIPELINED:
            self._stop_parsing(BadRequest("Too many requests were sent before the first was answered."))
        if not self.url.startswith(b"/"):
            self._take_authority()
        self._unparsed_bytes = self._piece_bytes
        if self._head_timer is not None:
            self._cancel_head_timer()
        super().on_headers_complete()
        self._table.mark_busy(self)
        if not self.parser.should_upgrade():
            self.headers = []  # trailers must not be taken for headers

    def _take_authority(self) -> None:
        """Make the authority of an absolute-form target the host of the request, as RFC 9112 (3.2.2) says.

        A client that sends another `Host` is refused: what stands in front may have checked either of the two.
        """
        found = _ABSOLUTE_FORM.match(self.url)
        if found is None:
            return
        scheme, authority = found["scheme"].lower(), found["authority"]
        hosts = [value for name, value in self.headers if name == b"host"]
        if scheme not in _DEFAULT_PORTS or not authority or b"@" in authority:
            self._stop_parsing(BadRequest("The address of the request must begin with http:// or https:// and a host."))
        if any(_host(value, scheme) != _host(authority, scheme) for value in hosts):
            self._stop_parsing(BadRequest("The Host header names another host than the address of the request."))
        self.headers[:] = [(name, value) for name, value in self.headers if name != b"host"] + [(b"host", authority)]

    def on_body(self, body: bytes) -> None:
        self._unparsed_bytes = self._piece_bytes
        super().on_body(body)

    def _stop_parsing(self, error: GatewayError) -> NoReturn:
        """Raise through the parser, which makes `data_received` call `send_400_response`."""
        self._refusal = error
        raise error

    # --- end of requests and connections ---

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        task = self.loop.create_task(cycle.run_asgi(app))
        task.add_done_callback(self._request_ended)
        self.tasks.add(task)

    def _request_ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if self.parser is None:  # the connection is lost
            return
        if not self._is_busy or self.transport.is_closing():
            self._table.mark_idle(self)
            if self.transport.get_write_buffer_size():
                self.loop.call_later(self._stall_seconds, self._end_stalled, self.transport.get_write_buffer_size())

    def _end_stalled(self, unsent_bytes: int) -> None:
        """Abort a connection whose client reads nothing: closing it would wait for the client."""
        if self.parser is None or (self._is_busy and not self.transport.is_closing()):
            return
        still_unsent_bytes = self.transport.get_write_buffer_size()
        if still_unsent_bytes >= unsent_bytes:
            self.transport.abort()
        elif still_unsent_bytes:
            self.loop.call_later(self._stall_seconds, self._end_stalled, still_unsent_bytes)

    def _end_slow_head(self) -> None:
        self._head_timer = None
        self.transport.abort()

    def _cancel_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def send_400_response(self, msg: str) -> None:
        """Answer a request that the parser or one of its callbacks refused."""
        self._refuse(self._refusal or BadRequest("This is not a valid HTTP/1.1 request."))

    def _refuse(self, error: GatewayError) -> None:
        """Answer, then close with a delay: closing immediately can destroy the response in transit."""
        self._is_refused = True
        if self._is_busy:
            if self.cycle.response_started or self.pipeline:
                self.transport.abort()
                return
            self._tell_disconnected(self.cycle)
        self._answer(error)
        self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    @staticmethod
    def _tell_disconnected(cycle: Any) -> None:
        """Make uvicorn drop what the request still sends, and end its waiting for the body."""
        cycle.disconnected = True
        cycle.message_event.set()

    def _answer(self, error: GatewayError) -> None:
        path, _, query = getattr(self, "url", b"").decode("latin1").partition("?")
        request_log.write(
            request_id=choose_request_id(""),
            started_at=datetime.now(UTC),
            duration_ms=0.0,
            method="",
            origin="http://",
            path=path,
            query_string=query,
            client=self.client[0] if self.client else "",
            status=error.status,
        )
        body = orjson.dumps(problem(error))
        lines = [
            f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}",
            f"content-type: {PROBLEM_CONTENT_TYPE}",
            f"content-length: {len(body)}",
            "connection: close",
        ]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)


def _host(authority: bytes, scheme: bytes) -> bytes:
    """Return host and port in one spelling."""
    return authority.lower().removesuffix(b":").removesuffix(_DEFAULT_PORTS[scheme])


def _head_too_large() -> HeadTooLarge:
    return HeadTooLarge(
        f"The head of a request may have {MAX_HEAD_BYTES} bytes and {MAX_HEADERS} headers. "
        "Send a shorter address, or fewer or shorter headers."
    )
