"""Jobs: long actions with progress that the worker runs, and that can be stopped, resumed after a crash, and undone.

A kind of job is a `Handler` in `KINDS`. To add one, write a function that works in steps of some seconds and calls
`run.report(…)` or `run.step(…)` between them; both raise `Ended` if the job must stop. Then add its module to
`operations.tasks.HANDLERS`, so that the server imports it.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.audit import Actor, record
from core.background.leases import renewed, take
from core.background.tasks import enqueue
from core.errors import Conflict, GatewayError, NotFound
from core.messages import Translatable as _
from operations.models import Job, JobStep

logger = logging.getLogger("memory_gateway.jobs")

LEASE: Final = timedelta(seconds=30)
KEPT: Final = timedelta(days=30)
UNDO: Final = "undo"
PAUSE_SECONDS: Final = 0.02
_IS_PENDING = Q(status__in=[Job.Status.QUEUED, Job.Status.RUNNING])


class Ended(Exception):
    """Raised if the job must not continue: a stop was requested, the process ends, or another process has the lease."""


class Run:
    """A running job, for its handler. `params` are those of the request, `cursor` is the position to continue from."""

    def __init__(self, job: Job, should_end: Callable[[], bool]) -> None:
        self.job = job
        self.actor = Actor(job.actor_kind, job.actor)
        self._should_end = should_end

    @property
    def params(self) -> dict[str, Any]:
        return dict(self.job.params)

    @property
    def cursor(self) -> dict[str, Any]:
        return dict(self.job.cursor)

    def claimed(self) -> QuerySet[Job]:
        """Return a query of the job, empty if another process has its lease."""
        return Job.objects.filter(pk=self.job.pk, lease_holder=self.job.lease_holder, status=Job.Status.RUNNING)

    def report(self, done: int, total: int, *, cursor: Mapping[str, Any] | None = None) -> None:
        """Record the progress. Raises: `Ended`, which a handler must not catch.

        Call it in the transaction of a step to commit `cursor` together with the step.
        """
        values: dict[str, Any] = {"done": done, "total": total, "leased_until": timezone.now() + LEASE}
        if cursor is not None:
            values["cursor"] = dict(cursor)
        self.job.done, self.job.total, self.job.cursor = done, total, values.get("cursor", self.job.cursor)
        if not self.claimed().update(**values):
            raise Ended
        if not connection.in_atomic_block:
            self.check()

    def check(self) -> None:
        """Raise `Ended` if a stop was requested or the process ends."""
        if self._should_end():
            raise Ended
        if Job.objects.filter(pk=self.job.pk, stop_asked_at__isnull=False).exists():
            raise Ended

    def pause(self) -> None:
        """Let other processes write: waiting writers of SQLite need a gap. Raises: `Ended`, as `check`."""
        self.check()
        time.sleep(PAUSE_SECONDS)

    def step(self, changes: Sequence[Any], *, done: int, total: int, cursor: Mapping[str, Any]) -> None:
        """End a step, in its transaction: record the changes for an undo, the progress, and the cursor.

        Raises: `Ended` if another process has the lease; the step is then rolled back.
        """
        if changes:
            JobStep.objects.create(job=self.job, number=self.job.steps.count(), changes=list(changes))
        self.report(done, total, cursor=cursor)


@dataclass(frozen=True, slots=True)
class Handler:
    """The functions of one kind of job.

    `run` does the work and returns the job's result; the lease is renewed meanwhile. `finish` writes the audit event of
    the job's end, in the transaction that sets the status, also after a stop. `undo` receives the run of the undo job,
    the job to undo, and the changes of one of its steps; it undoes them in one transaction and returns the numbers of
    those that it undid and left.
    """

    run: Callable[[Run], dict[str, Any]]
    finish: Callable[[Job], None] | None = None
    undo: Callable[[Run, Job, list[Any]], tuple[int, int]] | None = None


KINDS: dict[str, Handler] = {}


def submit(kind: str, params: Mapping[str, Any], *, actor: Actor, total: int = 0, is_for_worker: bool = True) -> Job:
    """Queue a job for the worker, else for `run_now`. Raises: ValueError for an unknown kind."""
    if kind not in KINDS:
        raise ValueError(f"There is no job {kind!r}.")
    job = Job.objects.create(kind=kind, params=dict(params), actor_kind=actor.kind, actor=actor.name[:150], total=total)
    if is_for_worker:
        enqueue("run_jobs")
    return job


def interrupted_or_new(kind: str, params: Mapping[str, Any], *, actor: Actor, total: int) -> Job:
    """Return the interrupted job with these parameters, else a new one, for `run_now`."""
    pending = Job.objects.filter(_IS_PENDING, kind=kind)
    interrupted = next((job for job in pending if job.params == params), None)
    return interrupted or submit(kind, params, actor=actor, total=total, is_for_worker=False)


def get(job_id: UUID | str) -> Job:
    """Return a job. Raises: `NotFound`."""
    try:
        return Job.objects.get(pk=job_id)
    except (Job.DoesNotExist, ValidationError) as error:
        raise NotFound(_("There is no such job.")) from error


def stop(job_id: UUID | str) -> Job:
    """Request that a job ends after its current step; its changes stay and can be undone. Raises: `NotFound`."""
    job = get(job_id)
    Job.objects.filter(_IS_PENDING, pk=job.pk, stop_asked_at__isnull=True).update(stop_asked_at=timezone.now())
    with transaction.atomic():
        _set_final(Job.objects.filter(pk=job.pk, status=Job.Status.QUEUED), Job.Status.STOPPED)
    return get(job_id)


def can_undo(job: Job) -> bool:
    """Return True if a job has ended, has steps to undo, and was not undone."""
    handler = KINDS.get(job.kind)
    return bool(job.is_over and handler and handler.undo and job.undone_at is None and job.steps.exists())


def undo(job_id: UUID | str, *, actor: Actor, is_for_worker: bool = True) -> Job:
    """Start a job that undoes a job, once; later changes stay. Raises: `NotFound`, `Conflict`."""
    job = get(job_id)
    with transaction.atomic():
        is_first = Job.objects.filter(pk=job.pk, undone_at__isnull=True).update(undone_at=timezone.now())
        if not can_undo(job) or not is_first:
            raise Conflict(_("The job is running, already undone, or cannot be undone."))
        return submit(UNDO, {"job": str(job.pk)}, actor=actor, total=job.done, is_for_worker=is_for_worker)


def has_pending() -> bool:
    """Return True if a job is queued, or its process has died."""
    pending = Job.objects.filter(_IS_PENDING, kind__in=KINDS).only("lease_holder", "leased_until")
    now = timezone.now()
    return any(not job.is_held(now) for job in pending[:100])


def run_next(*, should_end: Callable[[], bool] = lambda: False) -> Job | None:
    """Run the oldest job that is queued or whose process died; return None if there is none."""
    for job in Job.objects.filter(_IS_PENDING, kind__in=KINDS).order_by("created_at")[:100]:
        if done := _run(job, should_end):
            return done
    return None


def run_now(job: Job, *, should_end: Callable[[], bool] = lambda: False) -> Job:
    """Run a job in this process; return it when it has ended, or when another process has it."""
    return _run(job, should_end) or get(job.pk)


def delete_old(now: datetime) -> int:
    """Delete jobs that ended 30 days ago; return their number."""
    return Job.objects.filter(finished_at__lt=now - KEPT).delete()[0]


def _run(job: Job, should_end: Callable[[], bool]) -> Job | None:
    """Take the lease of a job and run it; return None if another process has it."""
    pending, started_at = Job.objects.filter(_IS_PENDING, pk=job.pk), job.started_at or timezone.now()
    if not (taken := take(pending, 1, LEASE, status=Job.Status.RUNNING, started_at=started_at)):
        return None
    run = Run(taken[0], should_end)
    try:
        run.check()
        with renewed(run.claimed(), LEASE):
            result = KINDS[job.kind].run(run)
        _end(run, Job.Status.DONE, result=result)
    except Ended:
        if Job.objects.filter(pk=job.pk, stop_asked_at__isnull=False).exists():
            _end(run, Job.Status.STOPPED)
    except (OperationalError, InterfaceError):
        # The worker that claims it after its lease expired continues from its last step.
        logger.warning("The database is busy or unreachable. The job continues later: %s", job)
    except GatewayError as error:
        _end(run, Job.Status.FAILED, error=error.detail)
    except Exception:
        logger.exception("A job failed: %s", job)
        _end(run, Job.Status.FAILED, error=_("Unexpected error. See the server's log."))
    return get(job.pk)


def _end(run: Run, status: str, *, result: dict[str, Any] | None = None, error: str = "") -> None:
    with transaction.atomic():
        _set_final(run.claimed(), status, result=result or {}, error=error)


def _set_final(jobs: QuerySet[Job], status: str, **values: Any) -> None:
    """Set the final status of a job, if it still matches the query, and call its `finish`."""
    job = jobs.select_for_update().first()
    if job is None:
        return
    jobs.update(status=status, finished_at=timezone.now(), lease_holder="", leased_until=None, **values)
    if finish := KINDS[job.kind].finish:
        finish(get(job.pk))


def _undo(run: Run) -> dict[str, Any]:
    """Undo the steps of a job, newest first, so that each finds its rows as it left them."""
    job = get(run.params["job"])
    undo_step = KINDS[job.kind].undo
    if undo_step is None:
        raise Conflict(_("This job cannot be undone."))
    undone, left = run.cursor.get("undone", 0), run.cursor.get("left", 0)
    total = sum(map(len, job.steps.values_list("changes", flat=True)))
    while step := job.steps.filter(number__lt=run.cursor.get("before", 2**31)).order_by("-number").first():
        with transaction.atomic():
            undone_now, left_now = undo_step(run, job, step.changes)
            undone, left = undone + undone_now, left + left_now
            run.report(undone + left, total, cursor={"before": step.number, "undone": undone, "left": left})
        run.pause()
    return {"undone": undone, "left": left}


def _finish_undo(job: Job) -> None:
    """Record an undo. After a partial one, allow another for the rest."""
    undone = Job.objects.filter(pk=job.params["job"])
    if job.status != Job.Status.DONE:
        undone.update(undone_at=None)
    record_end(job, "job.undo", job.result, subject_id=job.params["job"])


def record_end(
    job: Job, action: str, detail: Mapping[str, Any], *, subject_id: str = "", users: Iterable[str] = ()
) -> None:
    """Record the end of a job with its status and users; the subject is the job itself unless another one is given."""
    subject, actor = subject_id or str(job.pk), Actor(job.actor_kind, job.actor)
    record(actor, action, subject, users=users, detail={**detail, "status": job.status})


KINDS[UNDO] = Handler(_undo, finish=_finish_undo)
