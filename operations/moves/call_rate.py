"""A cap on how many calls go out in a minute, shared by all workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Pace:
    """`wait(calls)` returns when so many may go out; 0 per minute is no cap."""

    def __init__(
        self,
        per_minute: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._seconds_per_call = 60 / per_minute if per_minute else 0.0
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._free_at = clock()

    def wait(self, calls: int) -> None:
        with self._lock:
            now = self._clock()
            begins_at = max(now, self._free_at)
            self._free_at = begins_at + calls * self._seconds_per_call
        if begins_at > now:
            self._sleep(begins_at - now)
