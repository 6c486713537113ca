"""Finishes what a crash or an outage left: ingestions, deletions, files. One sweeper at work for all processes.

Jobs have a thread of their own beside it, so that a long one keeps no ingestion waiting.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from django.db import close_old_connections, connections
from django.utils import timezone

from accounts.audit import Actor
from core.leases import new_holder
from engines.port import Engine
from engines.registry import get_engine
from operations import erase, jobs, leases, operator_jobs, orphans, purge
from operations.delivery_retry import HEALTH_TIMEOUT_SECONDS, Resender
from operations.embedding_worker import VectorFiller
from operations.extraction_worker import Reader
from operations.job_kinds import KINDS
from resources import queries, services
from resources.services import storage_binding
from resources.services.owed import owed_ingestions
from resources.services.storage_binding import StorageMismatch
from store import rollups

logger = logging.getLogger("memory_gateway.sweeper")

DUTY = "sweeper"
INTERVAL_SECONDS = 2.0
LEASE = timedelta(seconds=30)
FILES_EVERY = timedelta(minutes=10)
TRASH_EVERY = timedelta(days=1)
PURGED_AT_ONCE = 50
RECOVERY = timedelta(seconds=30)
"""So long an engine counts as just back: what was under way when it came back still failed, as did what the circuit
breaker held back."""
RECOVERY_PAUSE = timedelta(seconds=10)
"""Meanwhile what fails again is tried no more often than that: it may be one user's calls alone that go wrong."""
BATCH = 200


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What one round began or did. `ingestions` are done when the ingestions are, which may take longer."""

    ingestions: tuple[Future[None], ...] = ()
    deletions: int = 0
    files_removed: int = 0
    purged: int = 0


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
        self._files_due_at = self._trash_due_at = self._mismatch_due_at = clock()
        # A start after an outage is worth a try at once.
        self._away_until = clock()

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
            purged=self._purge_trash(now),
        )

    def stop(self) -> None:
        """A round is short: it runs to its end."""

    def give_back(self) -> None:
        leases.release(DUTY, self._holder)

    def _finish_deletions(self, now: datetime) -> int:
        owed = list(queries.owed_deletions(now).values_list("resource_id", flat=True)[:BATCH])
        if not owed or not self._is_storage_bound(now):
            return 0
        for resource_id in owed:
            services.finish_deletion(resource_id, engine=self._engine)
        return len(owed)

    def _remove_files(self, now: datetime) -> int:
        if now < self._files_due_at:
            return 0
        self._files_due_at = now + FILES_EVERY
        if not self._is_storage_bound(now):
            return 0
        for user_pk in erase.unfinished(begun_before=now - FILES_EVERY):
            erase.finish(user_pk, engine=self._engine)
        return orphans.clear(now) + operator_jobs.remove_old_archives(now)

    def _purge_trash(self, now: datetime) -> int:
        """A part of it in each round, until nothing is old enough for another day."""
        if now < self._trash_due_at or purge.retention() is None or not self._is_storage_bound(now):
            return 0
        counts = purge.purge_trash(actor=Actor.system(DUTY), engine=self._engine, limit=PURGED_AT_ONCE)
        purged = counts.memories + counts.sessions
        if purged < PURGED_AT_ONCE:
            self._trash_due_at = now + TRASH_EVERY
        return purged

    def _is_storage_bound(self, now: datetime) -> bool:
        """Check again before files are removed: the folder may have been unmounted or exchanged since the start."""
        try:
            storage_binding.require()
        except StorageMismatch as error:
            if now >= self._mismatch_due_at:
                self._mismatch_due_at = now + FILES_EVERY
                logger.error("No file is removed: %s", error.detail)  # noqa: TRY400  the sentence says it all
            return False
        return True

    def _note_recovery(self, now: datetime) -> None:
        """After an outage nobody waits out the backoff that grew in it."""
        waiting = queries.waiting_for_retry(now)
        if not waiting.exists():
            return
        if self._engine.health(HEALTH_TIMEOUT_SECONDS).status != "ok":
            self._away_until = now
        elif now < self._away_until + RECOVERY:
            failed_before = max(self._away_until, now - RECOVERY_PAUSE)
            waiting.filter(updated_at__lte=failed_before).update(retry_at=now)


class JobRunner:
    """Does the jobs that wait, one after the other."""

    def __init__(self, clock: Callable[[], datetime] = timezone.now) -> None:
        self._clock = clock
        self._holder = new_holder()
        self._is_stopping = False
        self._forgetting_due_at = clock()

    def sweep_once(self) -> int:
        """Until none waits; how many there were. The rollups are settled first."""
        rollups.settle()
        done = 0
        while not self._is_stopping and self._run_next():
            done += 1
        if self._clock() >= self._forgetting_due_at:
            self._forgetting_due_at = self._clock() + FILES_EVERY
            jobs.forget_old(self._clock())
        return done

    def _run_next(self) -> bool:
        job = jobs.run_next(KINDS, holder=self._holder, should_end=lambda: self._is_stopping)
        return job is not None

    def stop(self) -> None:
        """Ends the job under way after its step; the next process goes on with it."""
        self._is_stopping = True

    def give_back(self) -> None:
        """It holds nothing but the job, which a dead process's successor may take at once."""


class Rounds(Protocol):
    """Something that is done in rounds, one after the other, until it is told to stop."""

    def sweep_once(self) -> object: ...

    def stop(self) -> None: ...

    def give_back(self) -> None: ...


class SweeperThread:
    """A sweeper in a thread of its own."""

    def __init__(self, sweeper: Rounds, interval_seconds: float = INTERVAL_SECONDS) -> None:
        self._sweeper = sweeper
        self._interval_seconds = interval_seconds
        self._is_stopping = False
        self._awake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=type(sweeper).__name__.lower(), daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Begins the next round now."""
        self._awake.set()

    def ask_to_stop(self) -> None:
        self._is_stopping = True
        self._sweeper.stop()
        self._awake.set()

    def stop(self, timeout_seconds: float) -> bool:
        """Whether the round that was under way ended in time."""
        self.ask_to_stop()
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
    """Starts this process's sweeper and its jobs; a second call changes nothing.

    Raises: `StorageMismatch`.
    """
    storage_binding.require()
    with _lock:
        if not _running:
            rounds: tuple[Rounds, ...] = (Sweeper(), JobRunner(), VectorFiller(), Reader(), Resender())
            _running.extend(SweeperThread(one) for one in rounds)
            for thread in _running:
                thread.start()


def wake() -> None:
    """Has this process's sweeper and jobs look at once, if it has them."""
    with _lock:
        for thread in _running:
            thread.wake()


def stop(timeout_seconds: float) -> bool:
    """Stops this process's sweeper and jobs; whether they ended in time."""
    until = time.monotonic() + timeout_seconds
    with _lock:
        stopping, _running[:] = list(_running), []
    for thread in stopping:
        thread.ask_to_stop()
    ended = [thread.stop(max(0.0, until - time.monotonic())) for thread in stopping]
    return all(ended)
