"""Re-ingest: replay messages and files into an engine, and transfer deletions and overrides to the new memories.

Each session moves in one transaction, and the rows show which sessions are left: the next run continues an interrupted
one.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import Final, cast

from django.db import connections, transaction
from django.utils import timezone

from accounts.audit import Actor, record
from core.errors import Conflict, EngineUnavailable, GatewayError, existing
from core.limits.rate_limit import TokenBuckets
from core.messages import Message as _
from engines.registry import attached_remote
from operations.commands import Report, no_report
from operations.models import Job, Lease, UnmatchedDecision
from operations.moves import to_embedded, to_everos
from operations.moves.plan import (
    CALLS_PER_SESSION,
    EngineName,
    Plan,
    Target,
    Verified,
    require_engine,
    sessions_to_move,
    verify,
)
from operations.moves.replacement import Moved
from store.models import Session

KIND: Final = "reingest"
LEASE: Final = timedelta(minutes=15)
"""Longer than a session takes with all its tries. The lease is renewed after each session."""
TRIES: Final = 6
_COUNTS = ("sessions", "messages", "made", "replaced", "stayed", "carried", "kept", "unmatched")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a move: counts over all its runs, failures by session row, and the verification."""

    job: Job
    counts: dict[str, int]
    failures: dict[str, str]
    verified: Verified

    @property
    def is_ok(self) -> bool:
        return not self.failures and self.verified.is_ok


@dataclass(slots=True)
class _Run:
    job: Job
    into: EngineName | None
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
    """Run a planned move. `calls_per_minute` 0 means no limit.

    Raises: `Conflict` if another move is running, `InvalidInput`, `Stopped`.
    """
    require_engine(planned.into)
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
    """Continue the last interrupted move. Raises: `NotFound` if there is none, and the errors of `run`."""
    job = existing(
        Job.objects.filter(kind=KIND, finished_at__isnull=True).order_by("-created_at"),
        _("There is no interrupted move."),
    )
    into = cast("EngineName | None", job.params["into"])
    require_engine(into)
    calls = TokenBuckets(calls_per_minute, burst=1)
    return _execute(_Run(job, into, Target.of_params(job.params), calls, time.sleep), report, workers)


def _execute(work: _Run, report: Report, workers: int) -> Outcome:
    """Move all sessions and verify the result, in one process at a time. A stop lets running sessions finish."""
    with Lease.objects.held(KIND, LEASE) as is_held:
        if not is_held:
            raise Conflict(_("Another move is running."))
        pending = list(sessions_to_move(work.target, work.into).values_list("pk", flat=True))
        total = work.job.done + len(pending)
        for done in _move_all(work, pending, workers if work.into != "embedded" else 1):
            report("Moving sessions", work.job.done + done, total)
        report("Verifying", 0, 0)
        verified = verify(work.target, work.into)
    return _end(work, verified)


def _move_all(work: _Run, pending: list[int], workers: int) -> Iterator[int]:
    """Move the sessions; yield the number of finished ones after each."""
    if workers == 1:
        for done, session_pk in enumerate(pending, start=1):
            _move_one(work, session_pk)
            yield done
        return

    def move(session_pk: int) -> None:
        try:
            _move_one(work, session_pk)
        finally:
            connections.close_all()

    rest, done = iter(pending), 0
    with ThreadPoolExecutor(workers, thread_name_prefix="move") as executor:
        running = {executor.submit(move, session_pk) for session_pk in islice(rest, workers)}
        while running:
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                future.result()
            done += len(ended)
            yield done
            running |= {executor.submit(move, session_pk) for session_pk in islice(rest, len(ended))}


def _move_one(work: _Run, session_pk: int) -> None:
    """Move a session, and retry temporary failures. A session that fails stays in its engine."""
    for attempt in range(TRIES):
        session = Session.objects.select_related("user").filter(pk=session_pk).first()
        if session is None:
            return
        try:
            _move(work, session, is_retry=attempt > 0)
        except EngineUnavailable as error:
            work.failures[str(session_pk)] = error.detail
            if attempt + 1 < TRIES:
                work.sleep(min(2.0**attempt, 30.0))
        except GatewayError as error:
            work.failures[str(session_pk)] = error.detail
            return
        else:
            work.failures.pop(str(session_pk), None)
            return


def _move(work: _Run, session: Session, *, is_retry: bool) -> None:
    on_moved = partial(_count_session, work, session)
    if work.into == "embedded":
        to_embedded.move(session, on_moved)
        return
    if work.into is None:  # out of the present engine and in again
        to_embedded.move(session, partial(on_moved, is_half=True))
        session.refresh_from_db()
    engine = attached_remote()
    if engine is None:
        to_embedded.reread(session, on_moved)
    else:
        for _call in range(CALLS_PER_SESSION):
            while wait_seconds := work.calls.take(KIND):
                work.sleep(wait_seconds)
        to_everos.move(session, engine, on_moved, is_retry=is_retry)


def _count_session(work: _Run, session: Session, moved: Moved, *, is_half: bool = False) -> None:
    """Add a session's counts to the job, in the transaction that moves the session."""
    job = Job.objects.select_for_update().get(pk=work.job.pk)
    added = {**asdict(moved), "sessions": int(not is_half), "unmatched": len(moved.unmatched)}
    job.result = {name: job.result.get(name, 0) + added[name] for name in _COUNTS}
    job.done += int(not is_half)
    job.save(update_fields=["result", "done"])
    UnmatchedDecision.objects.bulk_create(
        UnmatchedDecision(job=job, user_id=session.user_id, session_id=session.session_id, **finding)
        for finding in moved.unmatched
    )


def _end(work: _Run, verified: Verified) -> Outcome:
    with transaction.atomic():
        job = Job.objects.select_for_update().get(pk=work.job.pk)
        counts = {name: job.result.get(name, 0) for name in _COUNTS}
        job.result = {**counts, "failures": len(work.failures), "verified": asdict(verified)}
        job.status = Job.Status.FAILED if work.failures else Job.Status.DONE
        job.finished_at = timezone.now()
        job.save()
        record(
            Actor(job.actor_kind, job.actor),
            "job.move",
            str(job.pk),
            detail={"into": work.into, **counts, "failures": len(work.failures)},
        )
    return Outcome(job, counts, work.failures, verified)
