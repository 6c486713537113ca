"""Positions in PostgreSQL's log after each caller's last write, kept in Redis if set, else in this process."""

import threading
import time
from functools import cache
from typing import Final, Protocol, cast

from django.conf import settings
from django.utils.module_loading import import_string

SECONDS: Final = 60
"""A replica that lags for longer is left."""
UNKNOWN: Final = 2**53
"""No replica has replayed so much."""


class RecentWrites(Protocol):
    def add(self, caller: str, lsn: int) -> bool:
        """Remember the position, unless a later one is known. Return False if other processes cannot know it."""
        ...

    def of(self, caller: str) -> int:
        """Return the position, 0 without a recent write, `UNKNOWN` if Redis does not answer."""
        ...


@cache
def recent_writes() -> RecentWrites:
    url = settings.MEMORY_GATEWAY_REDIS_URL
    shared = "core.persistence.shared_writes.InRedis"  # by name: it needs the extra `redis`
    return cast("RecentWrites", import_string(shared)(url)) if url else InProcess()


class InProcess:
    """Thread-safe. Old positions are dropped when the number of callers has doubled."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, float]] = {}
        self._lock = threading.Lock()
        self._limit = 1000

    def add(self, caller: str, lsn: int) -> bool:
        now = time.monotonic()
        with self._lock:
            self._found[caller] = (max(lsn, self._of(caller, now)), now + SECONDS)
            if len(self._found) > self._limit:
                self._found = {name: one for name, one in self._found.items() if one[1] > now}
                self._limit = max(1000, 2 * len(self._found))
        return True

    def of(self, caller: str) -> int:
        with self._lock:
            return self._of(caller, time.monotonic())

    def _of(self, caller: str, now: float) -> int:
        lsn, until = self._found.get(caller, (0, 0.0))
        return lsn if until > now else 0
