"""The background worker: repeats the tasks of all apps, and thereby finishes work that a crash left pending.

Every two seconds, one thread starts the tasks that have something to do. In `manage.py worker`, one more thread listens
for work that gateways record.
"""

import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Final

from django.db import Error, close_old_connections, connection, connections
from django.utils import timezone

from core.background import tasks
from core.background.leases import new_holder
from operations import periodic_tasks
from operations.models import Lease
from resources.services import storage_binding

logger = logging.getLogger("memory_gateway.worker")

INTERVAL_SECONDS = 2.0
LISTEN_SECONDS = 1.0
MAINTENANCE: Final = "maintenance"
"""The lease that a running worker has, of all workers that run the queue `maintenance` one at a time."""
LEASE: Final = timedelta(seconds=30)


class Repeater:
    """A thread that calls a function again and again."""

    def __init__(
        self,
        name: str,
        work: Callable[[], object],
        interval_seconds: float = INTERVAL_SECONDS,
        *,
        at_end: Callable[[], object] = lambda: None,
    ) -> None:
        self._name = name
        self._work = work
        self._at_end = at_end
        self._interval_seconds = interval_seconds
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def request_stop(self) -> None:
        self._is_stopping.set()

    def stop(self, timeout_seconds: float) -> bool:
        """Stop the thread; return False if its call did not end in time."""
        self.request_stop()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while True:
                close_old_connections()
                try:
                    self._work()
                except Exception:
                    # Remaining work is still recorded as pending; the next round retries it.
                    logger.exception("%s failed", self._name)
                if self._is_stopping.wait(self._interval_seconds):
                    break
            self._at_end()
        finally:
            connections.close_all()


class Rounds:
    """Starts the tasks of this process's queues that have something to do, and shows others that a worker runs."""

    def __init__(self) -> None:
        self._holder = new_holder()
        self._has_noted_start = False

    def run_once(self) -> None:
        if tasks.runs(MAINTENANCE):
            Lease.objects.take(MAINTENANCE, self._holder, now=timezone.now(), lasts=LEASE)
            self._note_start()
        for queue in filter(tasks.runs, tasks.QUEUES):
            tasks.look(queue)

    def _note_start(self) -> None:
        """Note it in the first round that can write: a gateway starts on a disk that is full or read-only too."""
        if not self._has_noted_start:
            periodic_tasks.note_start()
            self._has_noted_start = True

    def release(self) -> None:
        """Let another process take the lease at once."""
        Lease.objects.release(MAINTENANCE, self._holder)


class Listener:
    """A thread that looks at a queue when PostgreSQL notifies that another process recorded work for it.

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
                    cursor.execute(f"LISTEN {tasks.CHANNEL}")
                while not self._is_stopping.is_set():
                    # Many at once are one look at each queue.
                    found = list(connection.connection.notifies(timeout=LISTEN_SECONDS, stop_after=1))
                    found += connection.connection.notifies(timeout=0) if found else ()
                    for queue in {notification.payload for notification in found}:
                        tasks.look(queue)
            except Error as error:
                logger.warning("Cannot listen for work, which waits for the next round: %s", error)
                self._is_stopping.wait(LISTEN_SECONDS)
            finally:
                connections.close_all()


_lock = threading.Lock()
_running: list[Repeater] = []


def start() -> None:
    """Start the worker of this process; a second call changes nothing. Raises: `StorageMismatch`."""
    storage_binding.require()
    with _lock:
        if _running:
            return
        for local in tasks.LOCAL.values():
            interval = max(local.every.total_seconds(), INTERVAL_SECONDS)
            _running.append(Repeater(local.name, partial(local.work, tasks.PROCESS), interval))
        if any(map(tasks.runs, tasks.QUEUES)):
            tasks.begin()
            rounds = Rounds()
            _running.append(Repeater("rounds", rounds.run_once, at_end=rounds.release))
        for repeater in _running:
            repeater.start()


def stop(timeout_seconds: float) -> bool:
    """Stop the worker of this process; return False if a task that it repeats did not end in time."""
    until = time.monotonic() + timeout_seconds
    with _lock:
        stopping, _running[:] = list(_running), []
    for repeater in stopping:
        repeater.request_stop()
    have_ended = tasks.end(timeout_seconds)
    ended = [repeater.stop(max(0.0, until - time.monotonic())) for repeater in stopping]
    return have_ended and all(ended)
