"""Limits on WebSocket connections and requests of one process."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Protocol

from agents.rpc.failures import Failure, refused
from agents.rpc.limits import MAX_PENDING_CONNECTIONS, REQUESTS_IN_FLIGHT, SOCKETS_PER_TOKEN
from core.rate_limit import TokenBuckets

_BURST_SECONDS = 3


class PendingConnection(Protocol):
    """A WebSocket that has not sent a valid `connect` yet."""

    def disconnect(self) -> None: ...


class ConnectionLimiter:
    """Use on one event loop only. `requests_per_second` is per token, 0 for no limit."""

    def __init__(self, *, requests_per_second: int) -> None:
        self._pending: dict[PendingConnection, None] = {}  # oldest first
        self._connected: Counter[str] = Counter()
        self._semaphores: dict[str, asyncio.Semaphore] = {}
        self._requests = TokenBuckets(60 * requests_per_second, burst=_BURST_SECONDS * requests_per_second)

    def add_pending(self, connection: PendingConnection) -> None:
        """Register a connection, and disconnect the oldest pending one if there are too many.

        Clients with a token are pending for milliseconds only.
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
