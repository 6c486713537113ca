"""Rate limits per name or client network, kept in a bounded part of this process's memory."""

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

MAX_NAMES = 20_000


class TokenBuckets:
    """Token buckets, one per name.

    A bucket starts with its maximum of `burst` tokens (default: `per_minute`) and gains `per_minute` tokens each
    minute; 0 per minute means no limit. It is stored as one number, the time when it is full again (the generic cell
    rate algorithm, ITU-T I.371). Beyond `max_names` the least recently used bucket is dropped, which bounds the memory;
    the memory storage of `limits` has no bound, and a thread that walks all names every 10 ms. Thread-safe.
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
        """Take a token and return 0.0, or take none and return the seconds until there is one."""
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

    def block(self, name: Hashable, seconds: float) -> None:
        """Let the bucket hold no token for this time."""
        with self._lock:
            self._full_at[name] = self._clock() + seconds + (self._burst - 1) * self._seconds_per_token

    def wait_seconds(self, name: Hashable) -> float:
        """Return what `take` would return, without taking a token."""
        if not self.per_minute:
            return 0.0
        now = self._clock()
        return self._wait(self._full_at.get(name, now), now)

    def _wait(self, full_at: float, now: float) -> float:
        """Return the seconds until the bucket holds a token: until it lacks no more than `burst` - 1 tokens."""
        wait = full_at - now - (self._burst - 1) * self._seconds_per_token
        return wait if wait > 1e-6 else 0.0  # smaller values are rounding errors


def network_of(address: str) -> str:
    """Return an IPv4 address (also for its IPv6-mapped form) or the /64 network of an IPv6 subscriber."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if parsed.version == 4:
        return str(parsed)
    return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, 64), strict=False))
