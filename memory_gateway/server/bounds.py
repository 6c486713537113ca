"""Bounds on what clients may cost before authentication, around uvicorn's protocols.

Both classes use uvicorn's protocols through the interface of `asyncio.Protocol` only. This module imports no models: a
worker process imports it before it sets up Django.
"""

import asyncio
import contextlib
import math
import resource
from collections.abc import Iterator
from functools import partial
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState

from agents.rpc.connection_limits import MAX_HANDSHAKE_BYTES

# The least that is served. A head is refused as soon as twice as much of it, or one read of the socket, is not parsed.
MAX_HEAD_BYTES = 32 * 1024
MAX_CONNECTIONS = 4096
# Files other than client connections: databases, uploads, calls to engines, modules. A thread opens up to four.
RESERVED_FILES = 256
FILES_PER_THREAD = 4
# Below this, the server warns at startup.
FEW_CONNECTIONS = 1000
# Time for a client to read the close frame: closing immediately would drop it with the client's unread data.
LINGER_SECONDS = 2.0
# The longest header of a masked frame, and the header of a close frame with a code only.
_FRAME_HEADER_BYTES = 14
_CLOSE_FRAME_HEADER = b"\x88\x02"


def allowed_connections(threads: int) -> int:
    """Raise the soft limit of open files as needed and allowed; return the number of connections it leaves."""
    reserve = RESERVED_FILES + FILES_PER_THREAD * threads
    limit, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = MAX_CONNECTIONS + reserve
    if limit == resource.RLIM_INFINITY:
        limit = needed
    elif limit < needed:
        raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(ValueError, OSError):  # macOS reports a hard limit that it does not grant
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            limit = raised
    return max(min(limit - reserve, MAX_CONNECTIONS), limit // 4, 1)


class Places:
    """Places for the connections of a process. If all are taken, the longest idle one is aborted.

    A WebSocket keeps its place, and is idle until it is authenticated: opening many must not use up the files.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._taken: set[DirectHttp] = set()
        self._idle: dict[DirectHttp, None] = {}  # longest idle first

    def take(self, connection: "DirectHttp") -> None:
        """Give a place to a new connection, which is aborted if all others are busy."""
        self._taken.add(connection)
        self.mark_idle(connection)
        if len(self._taken) > self._number:
            oldest = next(iter(self._idle))
            self.leave(oldest)
            oldest.abort()

    def mark_idle(self, connection: "DirectHttp") -> None:
        if connection in self._taken:
            self._idle[connection] = None

    def mark_busy(self, connection: "DirectHttp") -> None:
        self._idle.pop(connection, None)

    def leave(self, connection: "DirectHttp") -> None:
        self._taken.discard(connection)
        self._idle.pop(connection, None)


class DirectHttp(asyncio.Protocol):
    """HTTP for clients without a proxy between: heads are bounded by h11, and idle connections by time and number.

    `head_seconds`: time from connecting, or from the first byte of a further request, to a complete head.
    `idle_seconds`: longest time without a request, or without the client reading any of the response.
    """

    def __init__(
        self, *, places: Places, head_seconds: float, idle_seconds: float, app_state: dict[str, Any], **options: Any
    ) -> None:
        # Created with the first byte, so that an idle connection costs little memory.
        self._create = partial(H11Protocol, app_state={**app_state, "connection": self}, **options)
        self._inner: H11Protocol | None = None
        self._places = places
        self._head_seconds = head_seconds
        self._idle_seconds = idle_seconds
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._unsent_bytes = math.inf
        self._waits_for_head = False
        self._has_left = False

    # --- asyncio.Protocol ---

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._places.take(self)
        self._end_after(self._head_seconds)

    def data_received(self, data: bytes) -> None:
        if self._inner is None:
            self._inner = self._create()
            self._inner.connection_made(self._transport)
        elif self._waits_for_head:
            self._end_after(self._head_seconds)
        self._waits_for_head = False
        try:
            for start in range(0, len(data), MAX_HEAD_BYTES):  # h11 looks at the size of incomplete heads only
                if not self._transport.is_closing():
                    self._inner.data_received(data[start : start + MAX_HEAD_BYTES])
        except h11.LocalProtocolError:  # nonsense behind a request that is already being answered
            self.abort()
        if self._is_socket:  # which has other bounds of time
            self._stop_timer()

    def eof_received(self) -> None:
        if self._inner is not None:
            self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self.leave()
        if self._inner is not None:
            self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    # --- bounds ---

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Keep the connection inside the block, in which a request is answered."""
        self._places.mark_busy(self)
        self._stop_timer()
        try:
            yield
        finally:
            self._places.mark_idle(self)
            if not (self._has_left or self._is_socket):
                self._waits_for_head = True
                self._unsent_bytes = math.inf
                self._end_after(self._idle_seconds)

    def keep(self) -> None:
        """Keep the place until the end of the connection, a WebSocket that is authenticated."""
        self._places.mark_busy(self)

    def leave(self) -> None:
        """Leave the place after the end of the connection."""
        self._has_left = True
        self._places.leave(self)
        self._stop_timer()

    def abort(self) -> None:
        self._transport.abort()

    @property
    def _is_socket(self) -> bool:
        return self._transport.get_protocol() is not self

    def _end_after(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(seconds, self._end)

    def _end(self) -> None:
        """Abort the connection unless its client still reads a response."""
        unsent_bytes = self._transport.get_write_buffer_size()
        if 0 < unsent_bytes < self._unsent_bytes:
            self._unsent_bytes = unsent_bytes
            self._end_after(self._idle_seconds)
        else:
            self.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class BoundedWebSocket(asyncio.Protocol):
    """WebSocket whose client may send one message of `MAX_HANDSHAKE_BYTES` before it is authenticated.

    More is refused (1009) before it is kept. The application calls `scope["state"]["allow_large_messages"]` after
    authentication.
    """

    def __init__(self, *, app_state: dict[str, Any], **options: Any) -> None:
        self._direct: DirectHttp | None = app_state.get("connection")
        state = {**app_state, "allow_large_messages": self._allow_large_messages}
        self._inner = WebSocketsSansIOProtocol(app_state=state, **options)
        self._room_bytes: float | None = None  # until the head of the request, which the HTTP protocol has bounded
        self._is_refused = False

    def _allow_large_messages(self) -> None:
        self._room_bytes = math.inf
        if self._direct is not None:
            self._direct.keep()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        if self._room_bytes is None:
            self._room_bytes = MAX_HANDSHAKE_BYTES + _FRAME_HEADER_BYTES
        else:
            self._room_bytes -= len(data)
        if self._room_bytes < 0:
            self._refuse(1009)
            return
        try:
            self._inner.data_received(data)
        except InvalidState:  # the client's close frame is behind a text that is not UTF-8
            self._refuse(1007)

    def _refuse(self, code: int) -> None:
        self._is_refused = True
        self._transport.write(_CLOSE_FRAME_HEADER + code.to_bytes(2))
        asyncio.get_running_loop().call_later(LINGER_SECONDS, self._transport.close)

    def eof_received(self) -> None:
        self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._direct is not None:
            self._direct.leave()
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
