"""Ingest a few resources at a time in this process, fairly: one user never takes every slot."""

from __future__ import annotations

import logging
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from uuid import UUID

from django.db import connections

logger = logging.getLogger("memory_gateway.ingestion")


@dataclass(frozen=True, slots=True)
class _Job:
    resource_id: str
    user_pk: UUID
    given: tuple[Hashable, ...]
    future: Future[None] = field(default_factory=Future)

    @property
    def key(self) -> tuple[Hashable, ...]:
        return self.resource_id, *self.given


class IngestionPool:
    """Run `work(resource_id, *given)` in threads, which end with their database connections when idle.

    Users take turns. With two slots or more, a user's jobs use at most all but one.
    """

    def __init__(self, work: Callable[..., object], slots: int) -> None:
        self._work = work
        self._slots = slots
        self._slots_per_user = max(1, slots - 1)
        self._lock = threading.Lock()
        self._is_idle = threading.Condition(self._lock)
        self._jobs: dict[tuple[Hashable, ...], _Job] = {}
        self._waiting: OrderedDict[UUID, deque[_Job]] = OrderedDict()
        self._running: Counter[UUID] = Counter()
        self._threads = 0

    def submit(self, resource_id: str, user_pk: UUID, *given: Hashable) -> Future[None]:
        """Return a future of the job. A queued or running job with the same arguments is not submitted twice."""
        job = _Job(resource_id, user_pk, given)
        with self._lock:
            if known := self._jobs.get(job.key):
                return known.future
            self._jobs[job.key] = job
            self._waiting.setdefault(user_pk, deque()).append(job)
            self._start_threads()
            return job.future

    def wait_until_idle(self, timeout_seconds: float) -> bool:
        """Return True once all jobs are done and their threads have ended, False at the timeout."""
        with self._is_idle:
            return self._is_idle.wait_for(lambda: not self._jobs and not self._threads, timeout_seconds)

    def _start_threads(self) -> None:
        while self._running.total() < self._slots and (job := self._next()):
            self._threads += 1
            threading.Thread(target=self._run, args=(job,), name="ingestion", daemon=True).start()

    def _next(self) -> _Job | None:
        """Take the next job of the user whose turn it is, or None; the lock is held."""
        for user_pk, jobs in self._waiting.items():
            if self._running[user_pk] < self._slots_per_user:
                job = jobs.popleft()
                self._waiting.move_to_end(user_pk)
                if not jobs:
                    del self._waiting[user_pk]
                self._running[user_pk] += 1
                return job
        return None

    def _run(self, first: _Job) -> None:
        job: _Job | None = first
        try:
            while job is not None:
                self._do(job)
                job = self._follow(job)
        finally:
            connections.close_all()
            with self._is_idle:
                self._threads -= 1
                self._is_idle.notify_all()

    def _do(self, job: _Job) -> None:
        try:
            self._work(job.resource_id, *job.given)
        except Exception:
            # The row is still pending; the worker retries it.
            logger.exception("The ingestion of %s broke off", job.resource_id)

    def _follow(self, done: _Job) -> _Job | None:
        with self._lock:
            self._running[done.user_pk] -= 1
            if not self._running[done.user_pk]:
                del self._running[done.user_pk]
            del self._jobs[done.key]
            following = self._next()
            # Another user's job may be allowed to run now.
            self._start_threads()
        done.future.set_result(None)
        return following
