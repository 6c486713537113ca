"""Jobs of any kind: done in their order, beside ingestion, and gone after thirty days."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.audit import Actor
from core.errors import Conflict, NotFound
from core.leases import new_holder
from operations import job_kinds, jobs
from operations.jobs import Handler, Run
from operations.models import Job, JobStep
from operations.worker import JobRunner

pytestmark = pytest.mark.django_db

ACTOR = Actor.operator("olga")


@pytest.fixture(autouse=True)
def counting() -> Iterator[None]:
    """A kind of job that counts to its `to`, one step each."""

    def count(run: Run) -> dict[str, Any]:
        for number in range(run.cursor.get("number", 0) + 1, run.params["to"] + 1):
            run.step([number], done=number, total=run.params["to"], cursor={"number": number})
            run.check()
            if number == run.params.get("break_at"):
                raise ZeroDivisionError
            if number == run.params.get("refuse_at"):
                raise Conflict("This cannot be counted.")
        return {"counted": run.params["to"]}

    jobs.KINDS["count"] = Handler(count)
    yield
    del jobs.KINDS["count"]


def submit(to: int = 3, **params: Any) -> Job:
    return jobs.submit("count", {"to": to, **params}, actor=ACTOR, total=to)


def ended(job: Job) -> tuple[str, int, dict[str, Any], str]:
    job.refresh_from_db()
    assert (job.is_over, job.holder, job.leased_until) == (True, "", None)
    return job.status, job.done, job.result, job.error


def test_they_are_done_in_their_order() -> None:
    first, second = submit(), submit(2)
    assert jobs.run_next() == first
    assert ended(first) == ("done", 3, {"counted": 3}, "")
    assert jobs.run_next() == second
    assert jobs.run_next() is None
    assert (jobs.get(first.pk).actor_kind, jobs.get(first.pk).actor) == ("operator", "olga")


def test_a_failure_is_told_and_the_next_one_is_done() -> None:
    broken, refused, next_one = submit(break_at=2), submit(refuse_at=1), submit()
    for _ in range(3):
        jobs.run_next()
    assert ended(broken) == ("failed", 2, {}, "An error that the server's log describes.")
    assert ended(refused) == ("failed", 1, {}, "This cannot be counted.")
    assert ended(next_one)[0] == "done"


def test_one_that_waits_is_stopped_at_once_and_one_that_is_over_stays_so() -> None:
    job = submit()
    assert jobs.stop(job.pk).status == "stopped"
    assert jobs.run_next() is None
    assert jobs.stop(job.pk).finished_at is not None


def test_the_job_of_a_dead_process_is_taken_at_once_and_that_of_a_living_one_is_not() -> None:
    host, pid, _ = new_holder().rsplit(":", 2)
    soon = timezone.now() + timedelta(seconds=30)
    job = submit()
    Job.objects.update(status="running", holder="elsewhere:1:x", leased_until=soon)
    assert jobs.run_next() is None
    Job.objects.update(holder=f"{host}:{pid}:earlier")
    assert jobs.run_next() == job


def test_a_step_of_one_who_lost_the_job_never_happened() -> None:
    job = submit(2)

    def lose(run: Run) -> dict[str, Any]:
        Job.objects.update(holder="somebody else")
        run.step([1], done=1, total=2, cursor={})
        return {}

    jobs.KINDS["count"] = Handler(lose)
    jobs.run_next()
    job.refresh_from_db()
    assert (job.status, job.done) == ("running", 0)


def test_there_is_no_job_of_an_unknown_kind_or_id() -> None:
    with pytest.raises(ValueError, match="no job"):
        jobs.submit("nonsense", {}, actor=ACTOR)
    for name in ("nonsense", "00000000-0000-0000-0000-000000000000"):
        with pytest.raises(NotFound):
            jobs.get(name)
    with pytest.raises(Conflict):
        jobs.undo(submit().pk, actor=ACTOR)


def test_what_ended_thirty_days_ago_is_forgotten_with_its_steps() -> None:
    old, new, waiting = submit(), submit(), submit()
    jobs.run_next()
    jobs.run_next()
    Job.objects.filter(pk=old.pk).update(finished_at=timezone.now() - timedelta(days=31))
    jobs.forget_old(timezone.now())
    assert set(Job.objects.all()) == {new, waiting}
    assert set(JobStep.objects.values_list("job", flat=True)) == {new.pk}


@pytest.mark.django_db(transaction=True)
def test_a_thread_does_them_and_ends_between_two_steps() -> None:
    def slowly(run: Run) -> dict[str, Any]:
        for number in range(1, 1000):
            time.sleep(0.01)
            run.report(number, 1000, cursor={"number": number})
        return {}

    job = submit()
    task = JobRunner()
    task.start(interval_seconds=0.01)
    wait_for(lambda: jobs.get(job.pk).status == "done")
    jobs.KINDS["count"] = Handler(slowly)
    long = submit()
    task.wake()
    wait_for(lambda: jobs.get(long.pk).done > 2)
    assert task.stop(5)
    assert (jobs.get(long.pk).status, jobs.get(long.pk).done < 999) == ("running", True)


def wait_for(is_so: Any) -> None:
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_whoever_runs_jobs_knows_all_kinds() -> None:
    assert {"delete", "restore", "categorise", "undo"} <= set(job_kinds.KINDS)
