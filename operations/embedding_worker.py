"""Gives memories the vectors that they are still owed: what a flush had no time for, and what an outage left."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from django.utils import timezone

from core.leases import new_holder
from engines.registry import get_engine
from operations import leases
from store.vectors import fill
from store.vectors.client import wanted_model

DUTY = "vectors"
LEASE = timedelta(seconds=120)
ROUND_SECONDS = 10.0


class VectorFiller:
    """Rounds under the lease "vectors". Without an embedding endpoint, or with an upstream, there is nothing to do."""

    def __init__(self, clock: Callable[[], datetime] = timezone.now) -> None:
        self._clock = clock
        self._holder = new_holder()
        self._is_stopping = False
        self._is_first = True

    def sweep_once(self) -> int:
        """Until nothing is owed or the endpoint fails; how many memories were done with."""
        if wanted_model() is None or get_engine().is_external:
            return 0
        done = 0
        while not self._is_stopping and leases.take(DUTY, self._holder, now=self._clock(), lasts=LEASE):
            if self._is_first:
                # Written while no endpoint was set, or by a transaction that did not see the first vectors.
                fill.owe_what_is_lacking()
                self._is_first = False
            if not (count := fill.fill(ROUND_SECONDS)):
                break
            done += count
        return done

    def stop(self) -> None:
        self._is_stopping = True

    def give_back(self) -> None:
        leases.release(DUTY, self._holder)
