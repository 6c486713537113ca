"""A lock for threads that compute.

The GIL lets one thread compute at a time, but every database read releases it and has to compete for it again: 32
concurrent requests cost twice the CPU time of sequential ones. Waiting for this lock is free. On PostgreSQL a statement
is one wait on a socket, during which other threads may compute, so the lock is not used there.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from django.db import connection

# The holder may wait for a database that does not answer. After this time without a handover, others proceed without
# the lock.
TIMEOUT_SECONDS = 0.05


class Turns:
    """A lock for computing, shared by all threads."""

    def __init__(self, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._timeout_seconds = timeout_seconds
        self._token: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._token.put(None)
        self._acquired_at = 0.0
        self._thread = threading.local()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold the lock inside the block."""
        self._acquire()
        try:
            yield
        finally:
            self._release()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Release the lock inside the block, to wait for another service. Use it within `taken`."""
        had_lock = self._release()
        try:
            yield
        finally:
            if had_lock:
                self._acquire()

    def _acquire(self) -> None:
        while not self._wait():
            if time.monotonic() - self._acquired_at >= self._timeout_seconds:
                return
        self._acquired_at = time.monotonic()
        self._thread.has_lock = True

    def _wait(self) -> bool:
        try:
            self._token.get(timeout=self._timeout_seconds)
        except queue.Empty:
            return False
        return True

    def _release(self) -> bool:
        """Release the lock and return True if this thread held it."""
        if not getattr(self._thread, "has_lock", False):
            return False
        self._thread.has_lock = False
        self._token.put(None)
        return True


searching = Turns()


def search() -> AbstractContextManager[None]:
    """Return a context manager that holds the lock during a search; a no-op on PostgreSQL."""
    return searching.taken() if connection.vendor == "sqlite" else nullcontext()
