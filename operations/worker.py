"""The background worker: finishes ingestions, deletions and file removals after a crash or an outage, and runs jobs.

Each task has a thread of its own, so that a long job delays no ingestion. Of each task with a lease, one process of all
runs the rounds.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from accounts.audit import Actor
from engines.port import Engine
from engines.registry import get_engine
from operations import erase, jobs, operator_jobs, orphans, purge
from operations.delivery_retry import HEALTH_TIMEOUT_SECONDS, DeliveryRetryTask
from operations.job_kinds import KINDS
from operations.model_tasks import EmbeddingTask, ExtractionTask
from operations.periodic import PeriodicTask
from resources import queries, services
from resources.services import storage_binding
from resources.services.owed import owed_ingestions
from resources.services.storage_binding import StorageMismatch
from store import rollups

logger = logging.getLogger("memory_gateway.worker")

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
class MaintenanceReport:
    """What one round did. `ingestions` were only started: each future ends with its ingestion."""

    ingestions: tuple[Future[None], ...] = ()
    deletions: int = 0
    files_removed: int = 0
    purged: int = 0


class MaintenanceTask(PeriodicTask):
    """Finishes ingestions and deletions, removes files and empties the trash; `engine` and `pool` default to those of
    this process."""

    lease_name = "sweeper"

    def __init__(
        self,
        *,
        engine: Engine | None = None,
        pool: services.IngestionPool | None = None,
        clock: Callable[[], datetime] = timezone.now,
    ) -> None:
        super().__init__(clock=clock)
        self._engine = engine or get_engine()
        self._pool = pool or services.ingestion_pool()
        self._files_due_at = self._trash_due_at = self._mismatch_due_at = clock()
        # A start after an outage is worth a try at once.
        self._away_until = clock()

    def run_once(self) -> MaintenanceReport | None:
        """Run one round, which is short and always completes; return None while another process has the lease."""
        now = self._clock()
        if not self._take_lease(now):
            return None
        self._note_recovery(now)
        owed = owed_ingestions(now, BATCH)
        return MaintenanceReport(
            ingestions=tuple(self._pool.submit(item.resource_id, item.user_pk) for item in owed),
            deletions=self._finish_deletions(now),
            files_removed=self._remove_files(now),
            purged=self._purge_trash(now),
        )

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
        counts = purge.purge_trash(actor=Actor.system(self.lease_name), engine=self._engine, limit=PURGED_AT_ONCE)
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


class JobRunner(PeriodicTask):
    """Runs the queued jobs, one after the other. It has no lease: each job is claimed by itself.

    A stop ends the running job after its step, and another process continues it.
    """

    def __init__(self, *, clock: Callable[[], datetime] = timezone.now) -> None:
        super().__init__(clock=clock)
        self._forgetting_due_at = clock()

    def run_once(self) -> int:
        """Settle the rollups, run jobs until none is queued and return how many ran."""
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


_lock = threading.Lock()
_running: list[PeriodicTask] = []


def start() -> None:
    """Start the periodic tasks of this process; a second call changes nothing. Raises: `StorageMismatch`."""
    storage_binding.require()
    with _lock:
        if not _running:
            _running.extend((MaintenanceTask(), JobRunner(), EmbeddingTask(), ExtractionTask(), DeliveryRetryTask()))
            for task in _running:
                task.start()


def wake() -> None:
    """Begin the next round of each task now, if this process runs them."""
    with _lock:
        for task in _running:
            task.wake()


def stop(timeout_seconds: float) -> bool:
    """Stop the tasks of this process; return False if one did not end in time."""
    until = time.monotonic() + timeout_seconds
    with _lock:
        stopping, _running[:] = list(_running), []
    for task in stopping:
        task.request_stop()
    ended = [task.stop(max(0.0, until - time.monotonic())) for task in stopping]
    return all(ended)
