"""Threads that compute take turns.

Under the interpreter's lock one thread computes at a time anyway; but every read of the database lets go of that lock
and has to get it back from all the others, so that 32 requests at once cost twice the processor time of one after
the other. Who waits for a turn here costs nothing. PostgreSQL's statements are one wait each, on a socket, while
which others had better compute.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from django.db import connection

# Whoever holds the turn may be waiting for a database that does not answer: when it has not changed hands for that
# long, the others go on without it.
PATIENCE_SECONDS = 0.05


class Turns:
    """One turn for all threads."""

    def __init__(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._patience_seconds = patience_seconds
        self._turn: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._turn.put(None)
        self._taken_at = 0.0
        self._thread = threading.local()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Around work that computes."""
        self._take()
        try:
            yield
        finally:
            self._give()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Inside of it, around waiting for somebody else's answer."""
        had_turn = self._give()
        try:
            yield
        finally:
            if had_turn:
                self._take()

    def _take(self) -> None:
        while not self._comes():
            if time.monotonic() - self._taken_at >= self._patience_seconds:
                return
        self._taken_at = time.monotonic()
        self._thread.has_turn = True

    def _comes(self) -> bool:
        try:
            self._turn.get(timeout=self._patience_seconds)
        except queue.Empty:
            return False
        return True

    def _give(self) -> bool:
        """Whether this thread had the turn."""
        if not getattr(self._thread, "has_turn", False):
            return False
        self._thread.has_turn = False
        self._turn.put(None)
        return True


searching = Turns()


def search() -> AbstractContextManager[None]:
    """The turn around a search, where one is needed."""
    return searching.taken() if connection.vendor == "sqlite" else nullcontext()
