"""Limits on WebSocket connections and requests of one process."""

import asyncio
from collections import Counter
from typing import Final, Protocol

from agents.rpc.failures import Failure, refused
from core.limits.rate_limit import TokenBuckets

MAX_MESSAGE_BYTES: Final = 25 * 2**20
MAX_HANDSHAKE_BYTES: Final = 64 * 1024
"""The limit of a message before `connect` is accepted."""
MAX_OUTBOUND_BYTES: Final = 50 * 2**20
"""The limit of bytes that wait for a slow client."""
MAX_PENDING_CONNECTIONS: Final = 256
"""The limit of sockets per process without an accepted `connect`. One more disconnects the oldest."""
SOCKETS_PER_TOKEN: Final = 8
REQUESTS_IN_FLIGHT: Final = 8
"""The limit of running requests: beyond it, a socket is not read, and requests of a token wait."""
THREADS: Final = 24
"""Request threads per process: hanging requests of two tokens leave a third of them free."""
CONTROL_THREADS: Final = 2
"""Threads reserved for connecting and token checks, which busy requests then cannot block."""


_BURST_SECONDS = 3


class PendingConnection(Protocol):
    """A WebSocket that has not sent a valid `connect` yet."""

    def disconnect(self) -> None: ...


class ConnectionLimiter:
    """Limits of one event loop; not thread-safe. `requests_per_second` is per token, 0 for no limit."""

    def __init__(self, *, requests_per_second: int) -> None:
        self._pending: dict[PendingConnection, None] = {}  # oldest first
        self._connected: Counter[str] = Counter()
        self._semaphores: dict[str, asyncio.Semaphore] = {}
        self._requests = TokenBuckets(60 * requests_per_second, burst=_BURST_SECONDS * requests_per_second)

    def add_pending(self, connection: PendingConnection) -> None:
        """Register a connection, and disconnect the oldest pending one if there are too many.

        Clients with a token are pending for milliseconds only, so it is rarely one of them.
        """
        self._pending[connection] = None
        if len(self._pending) > MAX_PENDING_CONNECTIONS:
            oldest = next(iter(self._pending))
            del self._pending[oldest]
            oldest.disconnect()

    def admit(self, connection: PendingConnection, token: str) -> asyncio.Semaphore:
        """Return the semaphore of the token's requests, to be acquired for each.

        Raises: `Refusal` if the token has too many connections.
        """
        if self._connected[token] >= SOCKETS_PER_TOKEN:
            message = f"too many connections: a token may hold {SOCKETS_PER_TOKEN}"
            raise refused(Failure("UNAVAILABLE", message, details={"code": "TOO_MANY_CONNECTIONS"}))
        self._pending.pop(connection, None)
        self._connected[token] += 1
        return self._semaphores.setdefault(token, asyncio.Semaphore(REQUESTS_IN_FLIGHT))

    def remove(self, connection: PendingConnection, token: str | None) -> None:
        self._pending.pop(connection, None)
        if token is None:
            return
        self._connected[token] -= 1
        if not self._connected[token]:
            del self._connected[token], self._semaphores[token]

    async def throttle(self, token: str) -> None:
        """Wait until the token may send a request: too many requests are delayed, not refused."""
        while wait_seconds := self._requests.take(token):
            await asyncio.sleep(wait_seconds)
