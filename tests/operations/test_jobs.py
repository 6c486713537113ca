"""Jobs run in their order, can be stopped and resumed, and are deleted after thirty days."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.audit import Actor
from core.background.leases import new_holder
from core.background.tasks import begin, end, look
from core.errors import Conflict, NotFound
from operations import jobs
from operations.jobs import Handler, Run
from operations.models import Job, JobStep

pytestmark = pytest.mark.django_db

ACTOR = Actor.operator("olga")


@pytest.fixture(autouse=True)
def counting() -> Iterator[None]:
    """Register a kind of job that counts to the parameter `to`, one step each."""

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


def result_of(job: Job) -> tuple[str, int, dict[str, Any], str]:
    job.refresh_from_db()
    assert (job.is_over, job.lease_holder, job.leased_until) == (True, "", None)
    return job.status, job.done, job.result, job.error


def test_jobs_run_in_their_order() -> None:
    first, second = submit(), submit(2)
    assert jobs.run_next() == first
    assert result_of(first) == ("done", 3, {"counted": 3}, "")
    assert jobs.run_next() == second
    assert jobs.run_next() is None
    assert (jobs.get(first.pk).actor_kind, jobs.get(first.pk).actor) == ("operator", "olga")


def test_a_failure_is_reported_and_the_next_job_runs() -> None:
    broken, refused, next_one = submit(break_at=2), submit(refuse_at=1), submit()
    for _ in range(3):
        jobs.run_next()
    assert result_of(broken) == ("failed", 2, {}, "Unexpected error. See the server's log.")
    assert result_of(refused) == ("failed", 1, {}, "This cannot be counted.")
    assert result_of(next_one)[0] == "done"


def test_a_queued_job_is_stopped_immediately() -> None:
    job = submit()
    assert jobs.stop(job.pk).status == "stopped"
    assert jobs.run_next() is None
    assert jobs.stop(job.pk).finished_at is not None


def test_only_the_job_of_a_dead_process_is_taken_over_before_its_lease_ends() -> None:
    host, pid, _ = new_holder().rsplit(":", 2)
    soon = timezone.now() + timedelta(seconds=30)
    job = submit()
    Job.objects.update(status="running", lease_holder="elsewhere:1:x", leased_until=soon)
    assert jobs.run_next() is None
    Job.objects.update(lease_holder=f"{host}:{pid}:earlier")
    assert jobs.run_next() == job


def test_a_step_without_the_lease_is_rolled_back() -> None:
    job = submit(2)

    def lose_lease(run: Run) -> dict[str, Any]:
        Job.objects.update(lease_holder="somebody else")
        run.step([1], done=1, total=2, cursor={})
        return {}

    jobs.KINDS["count"] = Handler(lose_lease)
    jobs.run_next()
    job.refresh_from_db()
    assert (job.status, job.done) == ("running", 0)


def test_unknown_kinds_and_ids_are_rejected() -> None:
    with pytest.raises(ValueError, match="no job"):
        jobs.submit("nonsense", {}, actor=ACTOR)
    for name in ("nonsense", "00000000-0000-0000-0000-000000000000"):
        with pytest.raises(NotFound):
            jobs.get(name)
    with pytest.raises(Conflict):
        jobs.undo(submit().pk, actor=ACTOR)


def test_old_jobs_are_deleted_with_their_steps() -> None:
    old, new, waiting = submit(), submit(), submit()
    jobs.run_next()
    jobs.run_next()
    Job.objects.filter(pk=old.pk).update(finished_at=timezone.now() - timedelta(days=31))
    jobs.delete_old(timezone.now())
    assert set(Job.objects.all()) == {new, waiting}
    assert set(JobStep.objects.values_list("job", flat=True)) == {new.pk}


@pytest.mark.django_db(transaction=True)
def test_the_worker_runs_jobs_and_stops_between_two_steps() -> None:
    def count_slowly(run: Run) -> dict[str, Any]:
        for number in range(1, 1000):
            time.sleep(0.01)
            run.report(number, 1000, cursor={"number": number})
        return {}

    job = submit()
    begin()
    look("jobs")
    wait_for(lambda: jobs.get(job.pk).status == "done")
    jobs.KINDS["count"] = Handler(count_slowly)
    long = submit()
    wait_for(lambda: jobs.get(long.pk).done > 2)
    assert end(5)
    assert (jobs.get(long.pk).status, jobs.get(long.pk).done < 999) == ("running", True)


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_all_kinds_are_registered() -> None:
    assert {"delete", "restore", "categorize", "undo"} <= set(jobs.KINDS)
