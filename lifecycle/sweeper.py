"""Finishes what a crash or an outage left: ingestions, deletions, files. One sweeper at work for all processes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import close_old_connections, connections
from django.utils import timezone

from engine.port import Engine
from engine.registry import get_engine
from lifecycle import leases
from lifecycle.orphans import remove_orphans
from resources import queries, services
from resources.leases import new_holder
from resources.services.owed import owed_ingestions

logger = logging.getLogger("memory_gateway.sweeper")

DUTY = "sweeper"
INTERVAL_SECONDS = 2.0
LEASE = timedelta(seconds=30)
FILES_EVERY = timedelta(minutes=10)
HEALTH_TIMEOUT_SECONDS = 2.0
BATCH = 200


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What one round began or did. `ingestions` are done when the ingestions are, which may take longer."""

    ingestions: tuple[Future[None], ...] = ()
    deletions: int = 0
    files_removed: int = 0


class Sweeper:
    """Rounds under the lease "sweeper"; `engine`, `pool` and `clock` default to the process's own."""

    def __init__(
        self,
        *,
        engine: Engine | None = None,
        pool: services.IngestionPool | None = None,
        clock: Callable[[], datetime] = timezone.now,
    ) -> None:
        self._engine = engine or get_engine()
        self._pool = pool or services.ingestion_pool()
        self._clock = clock
        self._holder = new_holder()
        self._files_due_at = clock()
        # A start after an outage is worth a try at once.
        self._was_engine_down = True

    def sweep_once(self) -> SweepReport | None:
        """One round; None while another process sweeps."""
        now = self._clock()
        if not leases.take(DUTY, self._holder, now=now, lasts=LEASE):
            return None
        self._note_recovery(now)
        owed = owed_ingestions(now, BATCH)
        return SweepReport(
            ingestions=tuple(self._pool.submit(item.resource_id, item.user_pk) for item in owed),
            deletions=self._finish_deletions(now),
            files_removed=self._remove_files(now),
        )

    def give_back(self) -> None:
        leases.give_back(DUTY, self._holder)

    def _finish_deletions(self, now: datetime) -> int:
        owed = list(queries.owed_deletions(now).values_list("resource_id", flat=True)[:BATCH])
        for resource_id in owed:
            services.finish_deletion(resource_id, engine=self._engine)
        return len(owed)

    def _remove_files(self, now: datetime) -> int:
        if now < self._files_due_at:
            return 0
        self._files_due_at = now + FILES_EVERY
        return remove_orphans(now)

    def _note_recovery(self, now: datetime) -> None:
        """After an outage nobody waits out the backoff that grew in it."""
        waiting = queries.waiting_for_retry(now)
        if not waiting.exists():
            return
        is_down = self._engine.health(HEALTH_TIMEOUT_SECONDS).status != "ok"
        if self._was_engine_down and not is_down:
            waiting.update(retry_at=now)
        self._was_engine_down = is_down


class SweeperThread:
    """A sweeper in a thread of its own."""

    def __init__(self, sweeper: Sweeper, interval_seconds: float = INTERVAL_SECONDS) -> None:
        self._sweeper = sweeper
        self._interval_seconds = interval_seconds
        self._is_stopping = False
        self._awake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=DUTY, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Begins the next round now."""
        self._awake.set()

    def stop(self, timeout_seconds: float) -> bool:
        """Whether the round that was under way ended in time."""
        self._is_stopping = True
        self._awake.set()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                self._round()
                self._awake.wait(self._interval_seconds)
                self._awake.clear()
            self._sweeper.give_back()
        finally:
            connections.close_all()

    def _round(self) -> None:
        close_old_connections()
        try:
            self._sweeper.sweep_once()
        except Exception:
            # One bad round must not end the sweeping; what it left is still owed in the rows.
            logger.exception("A sweep broke off")


_lock = threading.Lock()
_running: list[SweeperThread] = []


def start() -> None:
    """Starts this process's sweeper; a second call changes nothing."""
    with _lock:
        if not _running:
            _running.append(SweeperThread(Sweeper()))
            _running[0].start()


def wake() -> None:
    """Has this process's sweeper look at once, if it has one."""
    with _lock:
        for thread in _running:
            thread.wake()


def stop(timeout_seconds: float) -> bool:
    """Stops this process's sweeper; whether it ended in time."""
    with _lock:
        return _running.pop().stop(timeout_seconds) if _running else True
