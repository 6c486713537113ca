"""Request bodies: received over ASGI, read by a WSGI application.

A body that does not arrive whole raises an error, it is never shortened. Client timeouts count only the time that the
gateway waits for the client, not the gateway's own delays.
"""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

Message = MutableMapping[str, Any]
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
        """Return the next part, which may be empty.

        Raises: `BodyError`.
        """
        try:
            return await self._part()
        except (ClientGone, TooSlow):
            self.is_broken = True
            raise

    async def _part(self) -> bytes:
        message = await self._message()
        if message["type"] == "http.disconnect":
            raise ClientGone("The client left while it was sending.")
        body: bytes = message.get("body", b"")
        self._received_bytes += len(body)
        self.is_complete = not message.get("more_body", False)
        if self._received_bytes > self._max_bytes:
            raise TooMuch(f"The body is larger than {self._max_bytes} bytes.")
        self._check_pace()
        return body

    async def _message(self) -> Message:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._timeouts.stall_seconds):
                return await self._receive()
        except TimeoutError:
            raise TooSlow("The client stopped sending.") from None
        finally:
            self._waited_seconds += loop.time() - began

    def _check_pace(self) -> None:
        due = self._timeouts.bytes_per_second * self._waited_seconds
        if self._waited_seconds > self._timeouts.grace_seconds and self._received_bytes < due and not self.is_complete:
            raise TooSlow("The client sends too slowly.")

    async def beginning(self, enough_bytes: int) -> bytes:
        """Return the whole body if it is small, else the part received so far (nothing if it is known to be large)."""
        if self.length is not None and self.length > enough_bytes:
            return b""
        parts = []
        while not self.is_complete and self._received_bytes <= enough_bytes:
            parts.append(await self.part())
        return b"".join(parts)

    async def discard(self) -> None:
        """Read and drop what the client still sends, for a limited time.

        Raises: `BodyError`, `TimeoutError`.
        """
        self._max_bytes = sys.maxsize
        async with asyncio.timeout(self._timeouts.linger_seconds):
            while not self.is_complete:
                await self.part()

    async def disconnected(self) -> None:
        """Return when the client has disconnected or the response has been sent."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


class BodyStream(io.RawIOBase):
    """A `wsgi.input` stream that pulls the body from the event loop while a thread reads it."""

    def __init__(self, body: IncomingBody, loop: asyncio.AbstractEventLoop, beginning: bytes) -> None:
        super().__init__()
        self._body = body
        self._loop = loop
        self._buffer = bytearray(beginning)

    def readable(self) -> bool:
        return True

    def _pull(self) -> None:
        self._buffer += asyncio.run_coroutine_threadsafe(self._body.part(), self._loop).result()

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def read(self, size: int | None = -1) -> bytes:
        """Return `size` bytes, fewer only at the end of the body.

        Raises: `BodyError`.
        """
        count = sys.maxsize if size is None or size < 0 else size
        while len(self._buffer) < count and not self._body.is_complete:
            self._pull()
        return self._take(count)

    def readline(self, size: int | None = -1, /) -> bytes:
        limit = sys.maxsize if size is None or size < 0 else size
        searched = 0
        while (found := self._buffer.find(b"\n", searched)) < 0:
            if len(self._buffer) >= limit or self._body.is_complete:
                return self._take(limit)
            searched = len(self._buffer)
            self._pull()
        return self._take(min(found + 1, limit))
