"""Request bodies: received over ASGI, read by a WSGI application.

A body that does not arrive whole raises an error, it is never shortened. Client timeouts count only the time that the
gateway waits for the client, not the gateway's own delays.
"""

import asyncio
import io
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from core.messages import Translatable as _

_BUFFER_BYTES = 64 * 1024

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class BodyError(OSError):
    """The body did not arrive. Django raises `UnreadablePostError` for it."""


class ClientGone(BodyError):
    """The client disconnected."""


class TooSlow(BodyError):
    """The client stalls or sends too slowly."""


class TooMuch(BodyError):
    """The body exceeds the allowed size."""


@dataclass(frozen=True, slots=True)
class ClientTimeouts:
    """Timeouts for slow clients.

    `stall_seconds`: longest pause while the client sends or reads. After `grace_seconds` of waiting it must have sent
    `bytes_per_second` on average. `linger_seconds`: time for which a client may go on sending after its response, so
    that it reads the response instead of meeting a closed connection.
    """

    stall_seconds: float = 30.0
    grace_seconds: float = 30.0
    bytes_per_second: int = 4096
    linger_seconds: float = 60.0


class IncomingBody:
    """A request body received on the event loop in parts. `length` None: unknown (chunked)."""

    def __init__(self, receive: Receive, length: int | None, max_bytes: int, timeouts: ClientTimeouts) -> None:
        self._receive = receive
        self._max_bytes = max_bytes
        self._timeouts = timeouts
        self._waited_seconds = 0.0
        self._received_bytes = 0
        self.length = length
        self.is_complete = length == 0
        self.is_broken = False

    async def part(self) -> bytes:
        """Return the next part, which may be empty. Raises: `BodyError`."""
        loop, timeouts = asyncio.get_running_loop(), self._timeouts
        began = loop.time()
        try:
            async with asyncio.timeout(timeouts.stall_seconds):
                message = await self._receive()
        except TimeoutError:
            self.is_broken = True
            raise TooSlow(_("The client stopped sending.")) from None
        if message["type"] == "http.disconnect":
            self.is_broken = True
            raise ClientGone("The client disconnected while sending.")
        self._waited_seconds += loop.time() - began
        body: bytes = message.get("body", b"")
        self._received_bytes += len(body)
        self.is_complete = not message.get("more_body", False)
        if self._received_bytes > self._max_bytes:
            raise TooMuch(_("The body is larger than %(limit)s bytes.", limit=self._max_bytes))
        due = timeouts.bytes_per_second * self._waited_seconds
        if self._waited_seconds > timeouts.grace_seconds and self._received_bytes < due and not self.is_complete:
            self.is_broken = True
            raise TooSlow(_("The client sends too slowly."))
        return body

    async def beginning(self, enough_bytes: int) -> bytes:
        """Return the whole body if it is small, else the part received so far (nothing if it is known to be large)."""
        if self.length is not None and self.length > enough_bytes:
            return b""
        parts = []
        while not self.is_complete and self._received_bytes <= enough_bytes:
            parts.append(await self.part())
        return b"".join(parts)

    async def discard(self) -> None:
        """Read and drop what the client still sends, for a limited time. Raises: `BodyError`, `TimeoutError`."""
        self._max_bytes = sys.maxsize
        async with asyncio.timeout(self._timeouts.linger_seconds):
            while not self.is_complete:
                await self.part()

    async def disconnected(self) -> None:
        """Return when the client has disconnected or the response has been sent."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


class BodyStream(io.BufferedReader):
    """A `wsgi.input` stream that pulls the body from the event loop while a thread reads it.

    Reads return fewer bytes than asked only at the end of the body. Raises: `BodyError`.
    """

    def __init__(self, body: IncomingBody, loop: asyncio.AbstractEventLoop, beginning: bytes) -> None:
        super().__init__(_RawBody(body, loop, beginning), _BUFFER_BYTES)


class _RawBody(io.RawIOBase):
    def __init__(self, body: IncomingBody, loop: asyncio.AbstractEventLoop, beginning: bytes) -> None:
        super().__init__()
        self._body = body
        self._loop = loop
        self._rest = memoryview(beginning)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._rest and not self._body.is_complete:
            self._rest = memoryview(asyncio.run_coroutine_threadsafe(self._body.part(), self._loop).result())
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
