"""Telling an engine anew what was said and uploaded, with every decision that people made: plan, run, verify.

Each session moves in one transaction of its own, and what is still to be moved can be seen in the rows: a run that
breaks off anywhere is gone on with by the next.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final, cast

from django.db import connections, transaction
from django.utils import timezone

from accounts.audit import Actor, record
from core.errors import Conflict, EngineUnavailable, GatewayError, NotFound
from core.leases import new_holder
from engines.registry import external_engine
from operations import leases
from operations.commands import Report, Stop, no_report
from operations.models import Job, UnmatchedDecision
from operations.moves import to_embedded, to_everos
from operations.moves.call_rate import Pace
from operations.moves.plan import EngineName, Plan, Target, plan, require_engine, to_move
from operations.moves.resource_reingest import reread
from operations.moves.result import Moved
from operations.moves.verify import Verified, verify
from store.models import Session

__all__ = ["Outcome", "Plan", "Target", "plan", "resume", "run"]

logger = logging.getLogger("memory_gateway.reingest")

KIND: Final = "reingest"
LEASE: Final = timedelta(minutes=15)
"""Longer than a session takes with all its tries; renewed after each."""
TRIES: Final = 6
_COUNTS = ("sessions", "messages", "made", "replaced", "stayed", "carried", "kept", "unmatched")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to: counts over all its starts, what failed by session row, and what verifying showed."""

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
    pace: Pace
    stop: Stop
    sleep: Callable[[float], None]
    failures: dict[str, str] = field(default_factory=dict)


def run(
    planned: Plan,
    *,
    actor: Actor,
    report: Report = no_report,
    stop: Stop | None = None,
    workers: int = 4,
    calls_per_minute: int = 0,
    sleep: Callable[[float], None] = time.sleep,
) -> Outcome:
    """Carries a plan out. `calls_per_minute` 0: as fast as it goes.

    Errors: `Conflict` if another move is under way, `InvalidInput`, `Stopped`.
    """
    require_engine(planned.into)
    job = Job.objects.create(
        kind=KIND,
        params={"into": planned.into, **planned.target.params()},
        actor_kind=actor.kind,
        actor=actor.name[:150],
        status=Job.Status.RUNNING,
        started_at=timezone.now(),
        total=planned.sessions,
    )
    return _carry_out(
        _Run(job, planned.into, planned.target, Pace(calls_per_minute), stop or Stop(), sleep), report, workers
    )


def resume(
    *, report: Report = no_report, stop: Stop | None = None, workers: int = 4, calls_per_minute: int = 0
) -> Outcome:
    """Goes on with the last move that broke off. Errors: `NotFound` if none did, and those of `run`."""
    job = Job.objects.filter(kind=KIND, finished_at__isnull=True).order_by("-created_at").first()
    if job is None:
        raise NotFound("No move has broken off.")
    into = cast("EngineName | None", job.params["into"])
    require_engine(into)
    target = Target.of_params(job.params)
    return _carry_out(_Run(job, into, target, Pace(calls_per_minute), stop or Stop(), time.sleep), report, workers)


def _carry_out(work: _Run, report: Report, workers: int) -> Outcome:
    with _alone() as renew:
        waiting = list(to_move(work.target, work.into).values_list("pk", flat=True))
        total = work.job.done + len(waiting)
        for done in _move_all(work, waiting, workers if work.into != "embedded" else 1):
            renew()
            report("moving sessions", work.job.done + done, total)
        report("verifying", 0, 0)
        verified = verify(work.target, work.into)
    return _end(work, verified)


@contextmanager
def _alone() -> Iterator[Callable[[], object]]:
    """One move at a time. A process that was killed holds nobody up. Yields what renews the lease."""
    holder = new_holder()

    def take() -> bool:
        return leases.take(KIND, holder, now=timezone.now(), lasts=LEASE)

    if not take():
        raise Conflict("Another move is under way.")
    try:
        yield take
    finally:
        leases.release(KIND, holder)


def _move_all(work: _Run, waiting: list[int], workers: int) -> Iterator[int]:
    """Yields how many sessions are done. At a stop those under way are finished. Errors: `Stopped`."""
    if workers == 1:
        for done, session_pk in enumerate(waiting, start=1):
            work.stop.check()
            _move_one(work, session_pk)
            yield done
        return
    rest = iter(waiting)
    with ThreadPoolExecutor(workers, thread_name_prefix="move") as executor:
        running: set[Future[None]] = set()
        done = 0
        while True:
            while len(running) < workers and not work.stop.is_set() and (row := next(rest, None)) is not None:
                running.add(executor.submit(_in_thread, work, row))
            if not running:
                break
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                future.result()
                done += 1
            yield done
    work.stop.check()


def _in_thread(work: _Run, session_pk: int) -> None:
    try:
        _move_one(work, session_pk)
    finally:
        connections.close_all()


def _move_one(work: _Run, session_pk: int) -> None:
    """Temporary failures are tried again; others are noted, and the session stays where it is."""
    for attempt in range(TRIES):
        session = Session.objects.select_related("user").filter(pk=session_pk).first()
        if session is None or work.stop.is_set():
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
    note = partial(_note, work, session)
    engine = external_engine()
    if work.into == "embedded":
        to_embedded.move(session, note)
    elif engine is not None:
        if work.into is None:  # anew into the same: out of it, and in again
            to_embedded.move(session, lambda moved: _note(work, session, moved, is_half=True))
            session.refresh_from_db()
        work.pace.wait(4)
        to_everos.move(session, engine, note, is_retry=is_retry)
    else:
        to_embedded.move(session, lambda moved: _note(work, session, moved, is_half=True))
        reread(session, note)


def _note(work: _Run, session: Session, moved: Moved, *, is_half: bool = False) -> None:
    """Counts a session, in the transaction that moves it."""
    job = Job.objects.select_for_update().get(pk=work.job.pk)
    counts = {name: job.result.get(name, 0) for name in _COUNTS}
    added = {**asdict(moved), "sessions": int(not is_half)}
    added |= {"carried": moved.decisions.carried, "kept": moved.decisions.kept}
    added["unmatched"] = len(moved.decisions.unmatched)
    job.result = {name: counts[name] + added[name] for name in _COUNTS}
    job.done += int(not is_half)
    job.save(update_fields=["result", "done"])
    UnmatchedDecision.objects.bulk_create(
        UnmatchedDecision(job=job, user_id=session.user_id, session_id=session.session_id, **finding)
        for finding in moved.decisions.unmatched
    )


def _end(work: _Run, verified: Verified) -> Outcome:
    with transaction.atomic():
        job = Job.objects.select_for_update().get(pk=work.job.pk)
        counts = {name: job.result.get(name, 0) for name in _COUNTS}
        job.result = {**counts, "failures": len(work.failures), "verified": verified.as_dict()}
        job.status = Job.Status.FAILED if work.failures else Job.Status.DONE
        job.finished_at = timezone.now()
        job.save()
        record(
            Actor(job.actor_kind, job.actor),
            "memories.move",
            subject_type="job",
            subject_id=str(job.pk),
            detail={"into": work.into, **counts, "failures": len(work.failures)},
        )
    return Outcome(job, counts, work.failures, verified)
