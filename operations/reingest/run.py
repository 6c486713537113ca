"""Run a re-ingest over many sessions: several at a time, resumable, at a limited rate.

Each session is changed in transactions that leave it whole. A run notes up to which session (by row id) it is done, and
the next one continues there.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Final, cast

from django.db import connections, transaction
from django.utils import timezone

from accounts.audit import Actor, record
from core.errors import Conflict, EngineUnavailable, GatewayError, existing
from core.limits.rate_limit import TokenBuckets
from core.messages import Translatable as _
from engines.registry import attached_remote
from operations.commands import Report, no_report
from operations.models import Job, Lease
from operations.reingest import reading, sending
from operations.reingest.plan import CALLS_PER_SESSION, Into, Plan, Target, require_remote, sessions_of
from operations.reingest.replacement import Done
from store.models import Session

KIND: Final = "reingest"
LEASE: Final = timedelta(minutes=15)
"""Longer than a session takes with all its tries. The lease is renewed after each session."""
TRIES: Final = 6
_COUNTS: Final = ("sessions", "messages", "made", "replaced", "stayed", "carried", "kept")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result: counts over all runs of the job, and failures by session row."""

    job: Job
    counts: dict[str, int]
    failures: dict[str, str]

    @property
    def is_ok(self) -> bool:
        return not self.failures


@dataclass(slots=True)
class _Run:
    job: Job
    into: Into | None
    target: Target
    calls: TokenBuckets
    sleep: Callable[[float], None]
    failures: dict[str, str] = field(default_factory=dict)


def run(
    planned: Plan,
    *,
    actor: Actor,
    report: Report = no_report,
    workers: int = 4,
    calls_per_minute: int = 0,
    sleep: Callable[[float], None] = time.sleep,
) -> Outcome:
    """Carry out a plan. `calls_per_minute` 0 means no limit.

    Raises: `Conflict` if another re-ingest is running, `InvalidInput`, `Stopped`.
    """
    require_remote(planned.into)
    job = Job.objects.create(
        kind=KIND,
        params={
            "into": planned.into,
            **asdict(planned.target),
            "user_pk": planned.target.user_pk and str(planned.target.user_pk),
        },
        actor_kind=actor.kind,
        actor=actor.name[:150],
        status=Job.Status.RUNNING,
        started_at=timezone.now(),
        total=planned.sessions,
    )
    calls = TokenBuckets(calls_per_minute, burst=1)
    return _execute(_Run(job, planned.into, planned.target, calls, sleep), report, workers)


def resume(*, report: Report = no_report, workers: int = 4, calls_per_minute: int = 0) -> Outcome:
    """Continue the last interrupted run. Raises: `NotFound` if there is none, and the errors of `run`."""
    job = existing(
        Job.objects.filter(kind=KIND, finished_at__isnull=True).order_by("-created_at"),
        _("There is no interrupted re-ingest."),
    )
    into = cast("Into | None", job.params["into"])
    require_remote(into)
    calls = TokenBuckets(calls_per_minute, burst=1)
    return _execute(_Run(job, into, Target.of_params(job.params), calls, time.sleep), report, workers)


def _execute(work: _Run, report: Report, workers: int) -> Outcome:
    """Ingest all sessions again, in one process at a time. A stop lets running sessions finish."""
    with Lease.objects.held(KIND, LEASE) as is_held:
        if not is_held:
            raise Conflict(_("Another re-ingest is running."))
        left = sessions_of(work.target, work.into).filter(pk__gt=work.job.cursor.get("after", 0))
        pending = list(left.values_list("pk", flat=True))
        total = work.job.done + len(pending)
        for done in _ingest_all(work, pending, workers):
            report("Ingesting sessions", work.job.done + done, total)
    return _end(work)


def _ingest_all(work: _Run, pending: list[int], workers: int) -> Iterator[int]:
    """Ingest the sessions; yield the number of finished ones after each."""
    rest, done = iter(pending), 0
    running: dict[Future[None], int] = {}
    with ThreadPoolExecutor(workers, thread_name_prefix="reingest") as executor:

        def start(count: int) -> None:
            for _number, session_pk in zip(range(count), rest, strict=False):
                running[executor.submit(_in_thread, work, session_pk)] = session_pk

        start(workers)
        while running:
            ended, _running = wait(running, return_when=FIRST_COMPLETED)
            latest = max(running.values())
            for future in ended:
                del running[future]
                future.result()
            after = min(running.values(), default=latest + 1) - 1
            Job.objects.filter(pk=work.job.pk).update(cursor={"after": after})
            done += len(ended)
            yield done
            start(len(ended))


def _in_thread(work: _Run, session_pk: int) -> None:
    try:
        _ingest_one(work, session_pk)
    finally:
        connections.close_all()


def _ingest_one(work: _Run, session_pk: int) -> None:
    """Ingest a session, and retry temporary failures. A session that fails stays as it is."""
    for attempt in range(TRIES):
        session = Session.objects.select_related("user").filter(pk=session_pk).first()
        if session is None:
            return
        try:
            done = _ingest(work, session)
        except EngineUnavailable as error:
            work.failures[str(session_pk)] = error.detail
            if attempt + 1 < TRIES:
                work.sleep(min(2.0**attempt, 30.0))
        except GatewayError as error:
            work.failures[str(session_pk)] = error.detail
            return
        else:
            work.failures.pop(str(session_pk), None)
            _count(work, done)
            return


def _ingest(work: _Run, session: Session) -> list[Done]:
    done = [] if work.into else [reading.reread(session)]
    if remote := attached_remote():
        for _call in range(CALLS_PER_SESSION):
            while wait_seconds := work.calls.take(KIND):
                work.sleep(wait_seconds)
        done.append(sending.send(session, remote, again=work.into is None))
    return done


def _count(work: _Run, done: list[Done]) -> None:
    """Add the counts of a session to the job."""
    with transaction.atomic():
        job = Job.objects.select_for_update().get(pk=work.job.pk)
        added = {name: sum(getattr(one, name) for one in done) for name in _COUNTS[1:]}
        job.result = {name: job.result.get(name, 0) + added.get(name, 1) for name in _COUNTS}
        job.done += 1
        job.save(update_fields=["result", "done"])


def _end(work: _Run) -> Outcome:
    with transaction.atomic():
        job = Job.objects.select_for_update().get(pk=work.job.pk)
        counts = {name: job.result.get(name, 0) for name in _COUNTS}
        job.result = {**counts, "failures": len(work.failures)}
        job.status = Job.Status.FAILED if work.failures else Job.Status.DONE
        job.finished_at = timezone.now()
        job.save()
        detail = {"into": work.into, **counts, "failures": len(work.failures)}
        record(Actor(job.actor_kind, job.actor), "job.reingest", str(job.pk), detail=detail)
    return Outcome(job, counts, work.failures)
