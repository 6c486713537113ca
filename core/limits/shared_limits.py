"""Rate limits that all gateways of an installation count together, in Redis. Needs the extra `redis`."""

import logging
import threading
import time
from collections.abc import Hashable

from limits import RateLimitItemPerMinute
from limits.errors import StorageError
from limits.storage import RedisStorage
from limits.strategies import SlidingWindowCounterRateLimiter
from redis.backoff import NoBackoff
from redis.retry import Retry

from core.limits.rate_limit import TokenBuckets

logger = logging.getLogger("memory_gateway.limits")

TIMEOUT_SECONDS = 0.25
RETRY_SECONDS = 5.0


class RedisCounter:
    """Counts in Redis. After a failure it is not asked again for `RETRY_SECONDS`. Thread-safe."""

    def __init__(self, url: str) -> None:
        retry = Retry(NoBackoff(), 1)  # for a pooled connection that Redis has closed
        storage = RedisStorage(
            url,
            key_prefix="memory-gateway",
            wrap_exceptions=True,
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=TIMEOUT_SECONDS,
            retry=retry,  # type: ignore[arg-type]  # passed on to `redis.Redis`
        )
        self._limiter = SlidingWindowCounterRateLimiter(storage)
        self._lock = threading.Lock()
        self._retry_at = 0.0
        self._is_away = False

    def answers(self) -> bool:
        """Return True if Redis answers now."""
        return bool(self._limiter.storage.check())

    def buckets(self, per_minute: int, limit: str) -> "SharedBuckets":
        """Return the buckets of a limit, which has the same name in all gateways."""
        return SharedBuckets(per_minute, limit=limit, counter=self)

    def take(self, item: RateLimitItemPerMinute, *names: str) -> float | None:
        """Count a hit and return 0.0, or count none and return the seconds to wait; None if Redis does not answer."""
        if self._retry_at > time.monotonic():
            return None
        try:
            is_allowed = self._limiter.hit(item, *names)
            wait = 0.0 if is_allowed else self._limiter.get_window_stats(item, *names).reset_time - time.time()
        except StorageError as error:
            self._note_failure(error)
            return None
        self._is_away = False
        return wait if is_allowed else max(wait, 1.0)

    def _note_failure(self, error: StorageError) -> None:
        with self._lock:
            self._retry_at = time.monotonic() + RETRY_SECONDS
            if not self._is_away:
                logger.warning("Redis does not answer, so each process counts requests alone: %s", error.storage_error)
            self._is_away = True


class SharedBuckets(TokenBuckets):
    """A limit counted in Redis under a name, and by this process alone while Redis does not answer."""

    def __init__(self, per_minute: int, *, limit: str, counter: RedisCounter) -> None:
        super().__init__(per_minute)
        self._item = RateLimitItemPerMinute(per_minute or 1)
        self._limit = limit
        self._counter = counter

    def take(self, name: Hashable) -> float:
        """As `TokenBuckets.take`. After a refusal, `wait_seconds` knows of it without Redis."""
        wait = self._counter.take(self._item, self._limit, str(name)) if self.per_minute else 0.0
        if wait is None:
            return super().take(name)
        if wait:
            self.block(name, wait)
        return wait
