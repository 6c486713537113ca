"""The positions of `core.persistence.recent_writes`, known to all gateways by Redis. Needs the extra `redis`."""

import logging
from typing import Any, Final

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from core.persistence.recent_writes import SECONDS, UNKNOWN

logger = logging.getLogger("memory_gateway.replica")

_TIMEOUT_SECONDS: Final = 0.25
_KEY: Final = "memory-gateway/written/"


class InRedis:
    """One sorted set of one member for each caller, because Redis raises its score alone."""

    def __init__(self, url: str) -> None:
        self._redis: Any = Redis.from_url(
            url,
            socket_timeout=_TIMEOUT_SECONDS,
            socket_connect_timeout=_TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 1),  # for a pooled connection that Redis has closed
        )

    def add(self, caller: str, lsn: int) -> bool:
        try:
            with self._redis.pipeline() as pipeline:
                pipeline.zadd(_KEY + caller, {"lsn": lsn}, gt=True)
                pipeline.expire(_KEY + caller, SECONDS)
                pipeline.execute()
        except RedisError as error:
            logger.warning("Redis does not answer: %s", error, extra={"cause": error})
            return False
        return True

    def of(self, caller: str) -> int:
        try:
            score = self._redis.zscore(_KEY + caller, "lsn")
        except RedisError:
            return UNKNOWN
        return int(score or 0)
