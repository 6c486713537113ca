"""Who stands at the door and who is inside: how many sockets and requests one process takes."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Protocol

from agents.rpc.failures import Failure, refused
from agents.rpc.limits import MAX_STRANGERS, REQUESTS_IN_FLIGHT, SOCKETS_PER_TOKEN
from core.rate_limit import TokenBuckets

_BURST_SECONDS = 3


class Stranger(Protocol):
    def send_away(self) -> None: ...


class Doors:
    """To be used on one event loop only. `requests_per_second` is per token, 0 for no limit."""

    def __init__(self, *, requests_per_second: int) -> None:
        self._strangers: dict[Stranger, None] = {}  # in the order in which they came
        self._inside: Counter[str] = Counter()
        self._rooms: dict[str, asyncio.Semaphore] = {}
        self._requests = TokenBuckets(60 * requests_per_second, burst=_BURST_SECONDS * requests_per_second)

    def wait_outside(self, stranger: Stranger) -> None:
        """Whoever has waited longest is sent away when there are too many: those who know a token wait for
        milliseconds only."""
        self._strangers[stranger] = None
        if len(self._strangers) > MAX_STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.send_away()

    def enter(self, stranger: Stranger, token: str) -> asyncio.Semaphore:
        """The room that the token's requests share, to be acquired for each. Errors: `Refusal` if the token holds too
        many sockets already."""
        if self._inside[token] >= SOCKETS_PER_TOKEN:
            message = f"too many connections: a token may hold {SOCKETS_PER_TOKEN}"
            raise refused(Failure("UNAVAILABLE", message, details={"code": "TOO_MANY_CONNECTIONS"}))
        self._strangers.pop(stranger, None)
        self._inside[token] += 1
        return self._rooms.setdefault(token, asyncio.Semaphore(REQUESTS_IN_FLIGHT))

    def leave(self, stranger: Stranger, token: str | None) -> None:
        self._strangers.pop(stranger, None)
        if token is None:
            return
        self._inside[token] -= 1
        if not self._inside[token]:
            del self._inside[token], self._rooms[token]

    async def pace(self, token: str) -> None:
        """Returns when the token may send a request: who sends too many is slowed down, nobody is refused."""
        while wait_seconds := self._requests.take(token):
            await asyncio.sleep(wait_seconds)
