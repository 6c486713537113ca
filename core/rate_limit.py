"""How often a name may do something: token buckets in this process's memory, bounded however many names come."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

MAX_NAMES = 20_000


class TokenBuckets:
    """One bucket per name: `burst` tokens at first (`per_minute` unless given), and `per_minute` more with every
    minute, up to `burst` again; 0 per minute means no limit.

    A bucket is one number, the time when it is full again (the generic cell rate algorithm, ITU-T I.371). Beyond
    `max_names` the bucket that was used longest ago is forgotten, so that strangers cannot fill the memory. Threads may
    share the object; a call takes about a microsecond.
    """

    def __init__(
        self,
        per_minute: int,
        *,
        burst: int | None = None,
        max_names: int = MAX_NAMES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.per_minute = per_minute
        self._burst = per_minute if burst is None else burst
        self._seconds_per_token = 60.0 / per_minute if per_minute else 0.0
        self._max_names = max_names
        self._clock = clock
        self._full_at: OrderedDict[Hashable, float] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, name: Hashable) -> float:
        """Takes a token and returns 0.0, or takes none and returns the seconds until there is one."""
        if not self.per_minute:
            return 0.0
        with self._lock:
            now = self._clock()
            full_at = max(self._full_at.get(name, now), now)
            wait = self._wait(full_at, now)
            self._full_at[name] = full_at if wait else full_at + self._seconds_per_token
            self._full_at.move_to_end(name)
            if len(self._full_at) > self._max_names:
                self._full_at.popitem(last=False)
            return wait

    def wait_seconds(self, name: Hashable) -> float:
        """What `take` would return, without taking anything."""
        if not self.per_minute:
            return 0.0
        now = self._clock()
        return self._wait(self._full_at.get(name, now), now)

    def _wait(self, full_at: float, now: float) -> float:
        """Below one token: until the bucket is full again, more tokens than all but one have to come."""
        wait = full_at - now - (self._burst - 1) * self._seconds_per_token
        return wait if wait > 1e-6 else 0.0  # below: what adding up times rounds


class Recent:
    """What was noted of names within the last `seconds`; of too many the newest. Threads may share it."""

    def __init__(
        self, seconds: float, *, max_names: int = MAX_NAMES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = seconds
        self._max_names = max_names
        self._clock = clock
        self._noted: OrderedDict[Hashable, tuple[float, Hashable]] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, name: Hashable) -> bool:
        noted = self._noted.get(name)
        return noted is not None and self._clock() - noted[0] < self._seconds

    def get(self, name: Hashable, default: Hashable = None) -> Hashable:
        """What was noted of the name, or else `default`."""
        noted = self._noted.get(name)
        return noted[1] if noted is not None and self._clock() - noted[0] < self._seconds else default

    def note(self, name: Hashable, what: Hashable = None) -> None:
        with self._lock:
            self._noted[name] = (self._clock(), what)
            self._noted.move_to_end(name)
            if len(self._noted) > self._max_names:
                self._noted.popitem(last=False)

    def forget(self, name: Hashable) -> None:
        with self._lock:
            self._noted.pop(name, None)
