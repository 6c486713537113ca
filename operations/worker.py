"""The background worker, which repeats the periodic tasks of all apps and finishes work that a crash left pending.

Each series of tasks has a thread, so that a long job does not delay ingestion. A series with a lease runs in one
process only. In `manage.py worker`, one more thread listens for work that gateways record.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime

from django.db import Error, close_old_connections, connection, connections
from django.utils import timezone

from core.background.leases import new_holder, renewed
from core.background.tasks import CHANNEL, Round, Series, all_series, runs, wake
from operations.models import Lease
from resources.services import storage_binding

logger = logging.getLogger("memory_gateway.worker")

INTERVAL_SECONDS = 2.0
LISTEN_SECONDS = 1.0


class Runner:
    """A thread that repeats the tasks of a series in rounds."""

    def __init__(self, series: Series, *, concurrency: int = 0, clock: Callable[[], datetime] = timezone.now) -> None:
        self._series = series
        self._clock = clock
        self._holder = new_holder()
        self._is_stopping = False
        self._round = Round(clock, lambda: self._is_stopping, concurrency)
        self._due_at = {task.name: clock() for task in series.tasks}
        self._thread: threading.Thread | None = None

    def run_once(self) -> None:
        """Run the tasks that are due, unless another process has the lease."""
        now = self._clock()
        due = [task for task in self._series.tasks if self._due_at[task.name] <= now and task.when()]
        name, lasts = self._series.name, self._series.lease
        if not due or (lasts is not None and not Lease.objects.take(name, self._holder, now=now, lasts=lasts)):
            return
        mine = Lease.objects.filter(name=name, lease_holder=self._holder)
        with nullcontext() if lasts is None else renewed(mine, lasts, clock=self._clock):
            for task in due:
                self._due_at[task.name] = now + task.every
                if task.work(self._round) is True:
                    self._due_at[task.name] = now

    def start(self, interval_seconds: float = INTERVAL_SECONDS) -> None:
        """Start the thread, which pauses for the interval after each round."""
        self._thread = threading.Thread(target=self._run, args=(interval_seconds,), name=self._series.name, daemon=True)
        self._thread.start()

    def request_stop(self) -> None:
        self._is_stopping = True
        self._series.wake.set()

    def stop(self, timeout_seconds: float) -> bool:
        """Stop the thread; return False if its round did not end in time."""
        self.request_stop()
        if self._thread is None:
            return True
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def release(self) -> None:
        """Let another process take the lease at once."""
        if self._series.lease is not None:
            Lease.objects.release(self._series.name, self._holder)

    def _run(self, interval_seconds: float) -> None:
        try:
            while not self._is_stopping:
                close_old_connections()
                try:
                    self.run_once()
                except Exception:
                    # Remaining work is still recorded as pending; the next round retries it.
                    logger.exception("A periodic task of %s failed", self._series.name)
                self._series.wake.wait(interval_seconds)
                self._series.wake.clear()
            self.release()
        finally:
            connections.close_all()


class Listener:
    """A thread that begins a round when PostgreSQL notifies that another process recorded work.

    While it cannot listen, work waits for the next round.
    """

    def __init__(self) -> None:
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="listen", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_stopping.set()
        self._thread.join(2 * LISTEN_SECONDS)

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            try:
                with connection.cursor() as cursor:
                    cursor.execute(f"LISTEN {CHANNEL}")
                while not self._is_stopping.is_set():
                    for notification in connection.connection.notifies(timeout=LISTEN_SECONDS):
                        wake(notification.payload)
            except Error as error:
                logger.warning("Cannot listen for work, which waits for the next round: %s", error)
                self._is_stopping.wait(LISTEN_SECONDS)
            finally:
                connections.close_all()


_lock = threading.Lock()
_running: list[Runner] = []


def start(concurrency: int = 0) -> None:
    """Start the periodic tasks of this process's queues; a second call changes nothing. Raises: `StorageMismatch`."""
    storage_binding.require()
    with _lock:
        if not _running:
            _running.extend(Runner(series, concurrency=concurrency) for series in all_series() if runs(series.queue))
            for runner in _running:
                runner.start()


def stop(timeout_seconds: float) -> bool:
    """Stop the periodic tasks of this process; return False if one did not end in time."""
    until = time.monotonic() + timeout_seconds
    with _lock:
        stopping, _running[:] = list(_running), []
    for runner in stopping:
        runner.request_stop()
    ended = [runner.stop(max(0.0, until - time.monotonic())) for runner in stopping]
    return all(ended)
