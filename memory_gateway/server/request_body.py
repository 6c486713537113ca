"""The body of a request: how it comes over ASGI, and how a WSGI application reads it.

A body that does not arrive whole is an error for whoever reads it, never a short body. How slow a client may be is
measured while we wait for it, so that our own slowness is never held against it.
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
    """The body did not arrive; reading it in Django raises `UnreadablePostError`."""


class ClientGone(BodyError):
    """The client left."""


class TooSlow(BodyError):
    """The client stalls or drips."""


class TooMuch(BodyError):
    """More bytes came than are allowed."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client may take.

    `stall_seconds`: the longest silence, while sending and while taking an answer. After `grace_seconds` of waiting it
    must have sent `bytes_per_second` on average. `linger_seconds`: how long an answered client may go on sending, so
    that it gets to read its answer instead of meeting a closed connection.
    """

    stall_seconds: float = 30.0
    grace_seconds: float = 30.0
    bytes_per_second: int = 4096
    linger_seconds: float = 60.0


class IncomingBody:
    """The body on the event loop, part by part. `length` None means that it is not known (chunked)."""

    def __init__(self, receive: Receive, length: int | None, max_bytes: int, patience: Patience) -> None:
        self._receive = receive
        self._max_bytes = max_bytes
        self._patience = patience
        self._waited_seconds = 0.0
        self._received_bytes = 0
        self.length = length
        self.is_complete = length == 0
        self.is_broken = False

    async def part(self) -> bytes:
        """The next part; empty parts are possible. Errors: `BodyError`."""
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
            async with asyncio.timeout(self._patience.stall_seconds):
                return await self._receive()
        except TimeoutError:
            raise TooSlow("The client stopped sending.") from None
        finally:
            self._waited_seconds += loop.time() - began

    def _check_pace(self) -> None:
        due = self._patience.bytes_per_second * self._waited_seconds
        if self._waited_seconds > self._patience.grace_seconds and self._received_bytes < due and not self.is_complete:
            raise TooSlow("The client sends too slowly.")

    async def beginning(self, enough_bytes: int) -> bytes:
        """The whole body if it is small, else what came so far (nothing, if it is known to be large)."""
        if self.length is not None and self.length > enough_bytes:
            return b""
        parts = []
        while not self.is_complete and self._received_bytes <= enough_bytes:
            parts.append(await self.part())
        return b"".join(parts)

    async def discard(self) -> None:
        """Reads what the client still sends, for a while, and throws it away. Errors: `BodyError`, `TimeoutError`."""
        self._max_bytes = sys.maxsize
        async with asyncio.timeout(self._patience.linger_seconds):
            while not self.is_complete:
                await self.part()

    async def disconnected(self) -> None:
        """Returns when the client has left (or the answer has been sent)."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


class BodyStream(io.RawIOBase):
    """`wsgi.input` for a body that is pulled from the loop while a thread reads it."""

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
        """`size` bytes, fewer only at the end of the body. Errors: `BodyError`."""
        wanted = sys.maxsize if size is None or size < 0 else size
        while len(self._buffer) < wanted and not self._body.is_complete:
            self._pull()
        return self._take(wanted)

    def readline(self, size: int | None = -1, /) -> bytes:
        limit = sys.maxsize if size is None or size < 0 else size
        searched = 0
        while (found := self._buffer.find(b"\n", searched)) < 0:
            if len(self._buffer) >= limit or self._body.is_complete:
                return self._take(limit)
            searched = len(self._buffer)
            self._pull()
        return self._take(min(found + 1, limit))
