"""Who stands at the door and who is inside: how many sockets and requests one process takes."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Protocol

from agents.rpc.failures import Failure, refused
from agents.rpc.limits import MAX_PENDING_CONNECTIONS, REQUESTS_IN_FLIGHT, SOCKETS_PER_TOKEN
from core.rate_limit import TokenBuckets

_BURST_SECONDS = 3


class PendingConnection(Protocol):
    def disconnect(self) -> None: ...


class ConnectionLimiter:
    """To be used on one event loop only. `requests_per_second` is per token, 0 for no limit."""

    def __init__(self, *, requests_per_second: int) -> None:
        self._pending: dict[PendingConnection, None] = {}  # in the order in which they came
        self._connected: Counter[str] = Counter()
        self._semaphores: dict[str, asyncio.Semaphore] = {}
        self._requests = TokenBuckets(60 * requests_per_second, burst=_BURST_SECONDS * requests_per_second)

    def add_pending(self, connection: PendingConnection) -> None:
        """Whoever has waited longest is sent away when there are too many: those who know a token wait for
        milliseconds only."""
        self._pending[connection] = None
        if len(self._pending) > MAX_PENDING_CONNECTIONS:
            oldest = next(iter(self._pending))
            del self._pending[oldest]
            oldest.disconnect()

    def admit(self, connection: PendingConnection, token: str) -> asyncio.Semaphore:
        """The room that the token's requests share, to be acquired for each. Errors: `Refusal` if the token holds too
        many sockets already."""
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
        """Returns when the token may send a request: who sends too many is slowed down, nobody is refused."""
        while wait_seconds := self._requests.take(token):
            await asyncio.sleep(wait_seconds)
