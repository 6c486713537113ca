"""Long actions with progress: requested by an operator, run by the worker, stopped, resumed after a crash, undone.

A kind of job is a `Handler` in `KINDS`. Whoever adds one writes a function that does its work in steps of some seconds
and calls `run.report(…)` or `run.step(…)` between them; both end the function by an exception when it has to stop. The
module is then named in `operations.job_kinds`, so that the server knows it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.audit import Actor, record
from core.errors import Conflict, GatewayError, NotFound
from core.leases import is_free, new_holder
from operations.models import Job, JobStep

logger = logging.getLogger("memory_gateway.jobs")

LEASE: Final = timedelta(seconds=30)
KEPT: Final = timedelta(days=30)
UNDO: Final = "undo"
_TO_DO = Q(status__in=[Job.Status.QUEUED, Job.Status.RUNNING])


class Ended(Exception):
    """The job must not go on here: it was asked to stop, the process ends, or another holds it."""


class Run:
    """A job under way, as its handler sees it. `params` are what was asked for, `cursor` where to go on from."""

    def __init__(self, job: Job, holder: str, should_end: Callable[[], bool]) -> None:
        self.job = job
        self.actor = Actor(job.actor_kind, job.actor)
        self._holder = holder
        self._should_end = should_end

    @property
    def params(self) -> dict[str, Any]:
        return dict(self.job.params)

    @property
    def cursor(self) -> dict[str, Any]:
        return dict(self.job.cursor)

    def mine(self) -> QuerySet[Job]:
        """The job, as long as nobody else has taken it."""
        return Job.objects.filter(pk=self.job.pk, holder=self._holder, status=Job.Status.RUNNING)

    def report(self, done: int, total: int, *, cursor: Mapping[str, Any] | None = None) -> None:
        """Writes down how far the job came. Errors: `Ended`, which a handler lets through.

        Within the transaction of a step, `cursor` and the step stand or fall together.
        """
        values: dict[str, Any] = {"done": done, "total": total, "leased_until": timezone.now() + LEASE}
        if cursor is not None:
            values["cursor"] = dict(cursor)
        self.job.done, self.job.total, self.job.cursor = done, total, values.get("cursor", self.job.cursor)
        if not self.mine().update(**values):
            raise Ended
        if not connection.in_atomic_block:
            self.check()

    def check(self) -> None:
        """Errors: `Ended` if somebody asked the job to stop, or the process ends."""
        if self._should_end():
            raise Ended
        if Job.objects.filter(pk=self.job.pk, stop_asked_at__isnull=False).exists():
            raise Ended

    def step(self, changes: Sequence[Any], *, done: int, total: int, cursor: Mapping[str, Any]) -> None:
        """Ends a step within its transaction: progress, where to go on, and what undoing it needs.

        Errors: `Ended` if another holds the job by now; the step then never happened.
        """
        if changes:
            JobStep.objects.create(job=self.job, number=self.job.steps.count(), changes=list(changes))
        self.report(done, total, cursor=cursor)


@dataclass(frozen=True, slots=True)
class Handler:
    """`run` does the work and returns the job's result. `finish` records its end (audit) in the same transaction as
    the job's status, also when it was stopped. `undo` takes the run of the undoing job and the job to be undone."""

    run: Callable[[Run], dict[str, Any]]
    finish: Callable[[Job], None] | None = None
    undo: Callable[[Run, Job], dict[str, Any]] | None = None


KINDS: dict[str, Handler] = {}


def submit(kind: str, params: Mapping[str, Any], *, actor: Actor, total: int = 0) -> Job:
    """Has a job done soon. Errors: ValueError for an unknown kind."""
    if kind not in KINDS:
        raise ValueError(f"There is no job {kind!r}.")
    return Job.objects.create(
        kind=kind, params=dict(params), actor_kind=actor.kind, actor=actor.name[:150], total=total
    )


def get(job_id: UUID | str) -> Job:
    """Errors: `NotFound`."""
    try:
        return Job.objects.get(pk=job_id)
    except (Job.DoesNotExist, ValidationError) as error:
        raise NotFound("There is no such job.") from error


def stop(job_id: UUID | str) -> Job:
    """Asks a job to end after the step under way; what it did so far stays and can be undone. Errors: `NotFound`."""
    job = get(job_id)
    Job.objects.filter(_TO_DO, pk=job.pk, stop_asked_at__isnull=True).update(stop_asked_at=timezone.now())
    with transaction.atomic():
        _set_over(Job.objects.filter(pk=job.pk, status=Job.Status.QUEUED), Job.Status.STOPPED)
    return get(job_id)


def can_undo(job: Job) -> bool:
    """Whether a job is over, has left something to undo, and nobody has begun to undo it."""
    handler = KINDS.get(job.kind)
    return bool(job.is_over and handler and handler.undo and job.undone_at is None and job.steps.exists())


def undo(job_id: UUID | str, *, actor: Actor) -> Job:
    """The job that undoes a job: once, and only what is still as that left it. Errors: `NotFound`, `Conflict`."""
    job = get(job_id)
    with transaction.atomic():
        mine = Job.objects.filter(pk=job.pk, undone_at__isnull=True).update(undone_at=timezone.now())
        if not can_undo(job) or not mine:
            raise Conflict("This was undone already, is still under way, or cannot be undone.")
        return submit(UNDO, {"job": str(job.pk)}, actor=actor, total=job.done)


def run_next(
    kinds: Collection[str] = KINDS.keys(),
    *,
    holder: str | None = None,
    should_end: Callable[[], bool] = lambda: False,
    clock: Callable[[], datetime] = timezone.now,
) -> Job | None:
    """Runs the oldest job of these kinds that waits or whose process died; None if there is none."""
    mine = holder or new_holder()
    for job in Job.objects.filter(_TO_DO, kind__in=kinds).order_by("created_at")[:100]:
        if _claim(job, mine, clock()):
            return _carry_out(get(job.pk), mine, should_end)
    return None


def run_now(job: Job) -> Job:
    """Runs a small job at once."""
    holder = new_holder()
    return _carry_out(get(job.pk), holder, lambda: False) if _claim(job, holder, timezone.now()) else get(job.pk)


def forget_old(now: datetime) -> int:
    """Removes jobs that ended 30 days ago; how many."""
    return Job.objects.filter(finished_at__lt=now - KEPT).delete()[0]


def _claim(job: Job, holder: str, now: datetime) -> bool:
    """Take the job by a conditional update: another process may claim it at the same moment."""
    free = Q(status=Job.Status.QUEUED) | Q(status=Job.Status.RUNNING) & is_free(job.holder, now)
    values = {"status": Job.Status.RUNNING, "holder": holder, "leased_until": now + LEASE}
    return bool(Job.objects.filter(free, pk=job.pk).update(started_at=job.started_at or now, **values))


def _carry_out(job: Job, holder: str, should_end: Callable[[], bool]) -> Job:
    run = Run(job, holder, should_end)
    try:
        run.check()
        result = KINDS[job.kind].run(run)
        _end(run, Job.Status.DONE, result=result)
    except Ended:
        if Job.objects.filter(pk=job.pk, stop_asked_at__isnull=False).exists():
            _end(run, Job.Status.STOPPED)
    except (OperationalError, InterfaceError):
        # Whoever takes it when its lease has lapsed goes on from its last step.
        logger.warning("A job met a database that is busy or away, and goes on later: %s", job)
    except GatewayError as error:
        _end(run, Job.Status.FAILED, error=error.detail)
    except Exception:
        logger.exception("A job broke off: %s", job)
        _end(run, Job.Status.FAILED, error="An error that the server's log describes.")
    return get(job.pk)


def _end(run: Run, status: str, *, result: dict[str, Any] | None = None, error: str = "") -> None:
    with transaction.atomic():
        _set_over(run.mine(), status, result=result or {}, error=error)


def _set_over(jobs: QuerySet[Job], status: str, **values: Any) -> None:
    """Ends the one job, if it is still so, and records its end."""
    job = jobs.select_for_update().first()
    if job is None:
        return
    jobs.update(status=status, finished_at=timezone.now(), holder="", leased_until=None, **values)
    if finish := KINDS[job.kind].finish:
        finish(get(job.pk))


def _undo(run: Run) -> dict[str, Any]:
    job = get(run.params["job"])
    handler = KINDS[job.kind]
    if handler.undo is None:
        raise Conflict("This cannot be undone.")
    return handler.undo(run, job)


def _finish_undo(job: Job) -> None:
    """What was undone only in part can be undone again: the rest is still as it was left."""
    undone = Job.objects.filter(pk=job.params["job"])
    if job.status != Job.Status.DONE:
        undone.update(undone_at=None)
    record(
        Actor(job.actor_kind, job.actor),
        "job.undo",
        subject_type="job",
        subject_id=job.params["job"],
        detail={**job.result, "status": job.status},
    )


KINDS[UNDO] = Handler(_undo, finish=_finish_undo)
