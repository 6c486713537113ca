"""Has the language model read what flushes owe it: beside requests, never in them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from core.leases import new_holder
from engines.registry import get_engine, local_engine
from operations import leases

DUTY = "reading"
LEASE = timedelta(seconds=300)
ROUND_SECONDS = 60.0


class Reader:
    """Rounds under the lease "reading". Without an LLM endpoint, or with an upstream, there is nothing to do."""

    def __init__(self, clock: Callable[[], datetime] = timezone.now) -> None:
        self._clock = clock
        self._holder = new_holder()
        self._is_stopping = False

    def sweep_once(self) -> int:
        """Until nothing is due or the endpoint fails; how many calls were made use of."""
        if not settings.MEMORY_GATEWAY_LLM_BASE_URL or get_engine().is_external:
            return 0
        done = 0
        while not self._is_stopping and leases.take(DUTY, self._holder, now=self._clock(), lasts=LEASE):
            if not (
                count := local_engine().extract(ROUND_SECONDS, clock=self._clock, should_end=lambda: self._is_stopping)
            ):
                break
            done += count
        return done

    def stop(self) -> None:
        self._is_stopping = True

    def give_back(self) -> None:
        leases.release(DUTY, self._holder)
