"""The base of work that the server repeats in the background."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import ClassVar

from django.db import close_old_connections, connections
from django.utils import timezone

from core.leases import new_holder
from operations import leases

logger = logging.getLogger("memory_gateway.worker")

INTERVAL_SECONDS = 2.0


class PeriodicTask(ABC):
    """Work in a thread of its own, one round after the other. A subclass says what one round does.

    `lease_name` and `lease_for` are the lease of a task that runs in one process at a time; its rounds take it.
    """

    lease_name: ClassVar[str] = ""
    lease_for: ClassVar[timedelta] = timedelta(seconds=30)

    def __init__(self, *, clock: Callable[[], datetime] = timezone.now) -> None:
        self._clock = clock
        self._holder = new_holder()
        self._is_stopping = False
        self._wake_event = threading.Event()
        self._thread: threading.Thread | None = None

    @abstractmethod
    def run_once(self) -> object:
        """Run one round. A long round ends early once `_is_stopping` is set."""

    def start(self, interval_seconds: float = INTERVAL_SECONDS) -> None:
        """Start the thread, which pauses for the interval after each round."""
        self._thread = threading.Thread(
            target=self._run, args=(interval_seconds,), name=type(self).__name__, daemon=True
        )
        self._thread.start()

    def wake(self) -> None:
        """Begin the next round now."""
        self._wake_event.set()

    def request_stop(self) -> None:
        self._is_stopping = True
        self._wake_event.set()

    def stop(self, timeout_seconds: float) -> bool:
        """Stop the thread; return False if its round did not end in time."""
        self.request_stop()
        if self._thread is None:
            return True
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def release(self) -> None:
        """Let another process take the lease at once."""
        if self.lease_name:
            leases.release(self.lease_name, self._holder)

    def _take_lease(self, now: datetime) -> bool:
        return leases.take(self.lease_name, self._holder, now=now, lasts=self.lease_for)

    def _repeat(self, work: Callable[[], int]) -> int:
        """Call `work` under the lease until it returns 0; return the sum."""
        total = 0
        while not self._is_stopping and self._take_lease(self._clock()) and (count := work()):
            total += count
        return total

    def _run(self, interval_seconds: float) -> None:
        try:
            while not self._is_stopping:
                close_old_connections()
                try:
                    self.run_once()
                except Exception:
                    # What the round left is still recorded as pending, and the next round does it.
                    logger.exception("%s failed", type(self).__name__)
                self._wake_event.wait(interval_seconds)
                self._wake_event.clear()
            self.release()
        finally:
            connections.close_all()
