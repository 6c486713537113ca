"""The worker: reconciliation of resources, periodic tasks, leases and the worker threads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction
from django.test import override_settings
from django.utils import timezone
from django_tasks import task_backends

from accounts.audit import Actor
from core.background import tasks
from core.background.leases import claimed, new_holder, release_all
from core.background.tasks import Periodic, Round, wait_until_idle
from core.errors import EngineUnavailable
from core.ids import new_resource_id
from operations import jobs, periodic_tasks, worker
from operations.models import Job, Lease
from operations.tasks import clean_up
from operations.worker import Repeater
from resources import services
from resources.models import Resource
from resources.services.unfinished import unfinished_ingestions
from resources.tasks import RECOVERY_PAUSE, Reconciler
from store.models import PendingExtraction
from tests.conftest import Person
from tests.fake_engine import RecordingEngine
from tests.resources.forms import files_below, stored_resource
from tests.resources.queueing import ingesting_by
from tests.resources.test_purge import delete_and_purge

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 10
LEASE = timedelta(seconds=30)
DUMMY = {"default": {"BACKEND": "django_tasks.backends.dummy.DummyBackend", "QUEUES": []}}


class Report(NamedTuple):
    ingestions: int
    deletions: int


class ReconcilerHarness:
    """A reconciler with a recording engine and an adjustable clock."""

    def __init__(self) -> None:
        self.engine = RecordingEngine()
        self.now = timezone.now()
        self.reconciler = Reconciler(engine=self.engine)

    def ingest(self, resource_id: str, **_: object) -> None:
        services.ingest(resource_id, engine=self.engine)

    def run_round(self) -> Report:
        """Run one round and wait for its ingestions."""
        self.now = max(self.now, timezone.now())
        ingestions, deletions = self.reconciler.ingest(self.now), self.reconciler.finish_deletions(self.now)
        assert not wait(ingestions, SECONDS).not_done
        assert wait_until_idle(SECONDS)
        return Report(len(ingestions), deletions)


@pytest.fixture
def harness() -> Iterator[ReconcilerHarness]:
    created = ReconcilerHarness()
    with ingesting_by(created.ingest, slots=2):
        yield created


def test_resources_left_by_a_crash_are_ingested(alice: Person, harness: ReconcilerHarness) -> None:
    host, pid, _ = new_holder().rsplit(":", 2)
    soon = timezone.now() + timedelta(seconds=30)
    left = [
        stored_resource(alice),
        stored_resource(alice, status="ingesting", lease_holder=f"{host}:{pid}:earlier", leased_until=soon),
        stored_resource(alice, status="ingesting", lease_holder="elsewhere:1:x", leased_until=timezone.now()),
        stored_resource(alice, status="failed", retry_at=timezone.now()),
    ]
    assert harness.run_round().ingestions == len(left)
    assert set(Resource.objects.values_list("status", flat=True)) == {"extracted"}
    assert sorted(session for _, session, _ in harness.engine.added) == sorted(made.session_id for made in left)


def test_leased_and_finished_resources_are_not_ingested(alice: Person, harness: ReconcilerHarness) -> None:
    soon = timezone.now() + timedelta(minutes=5)
    stored_resource(alice, status="ingesting", lease_holder="elsewhere:1:x", leased_until=soon)
    stored_resource(alice, status="ingesting", lease_holder=new_holder(), leased_until=soon)
    stored_resource(alice, status="failed", error_message="for good")
    stored_resource(alice, status="empty")
    assert harness.run_round().ingestions == 0
    assert harness.engine.calls == []


def test_a_retry_waits_until_it_is_due(alice: Person, harness: ReconcilerHarness) -> None:
    harness.run_round()
    resource = stored_resource(alice, status="failed", retry_at=timezone.now() + timedelta(minutes=5))
    harness.now += timedelta(minutes=1)
    assert harness.run_round().ingestions == 0
    harness.now += timedelta(minutes=6)
    assert harness.run_round().ingestions == 1
    assert Resource.objects.get(pk=resource.pk).status == "extracted"


def test_failures_of_one_user_do_not_delay_others(alice: Person, bob: Person) -> None:
    due = timezone.now() - timedelta(minutes=1)
    for _ in range(5):
        stored_resource(alice, status="failed", retry_at=due)
    stored_resource(bob, status="failed", retry_at=due)
    assert [item.user_id for item in unfinished_ingestions(timezone.now(), 3)] == [
        alice.user_pk,
        bob.user_pk,
        alice.user_pk,
    ]


def test_the_end_of_an_outage_ends_backoff(alice: Person, harness: ReconcilerHarness) -> None:
    harness.engine.is_up = False
    stored_resource(alice, status="failed", retry_at=timezone.now() + timedelta(hours=1))
    assert harness.run_round().ingestions == 0
    harness.engine.is_up = True
    assert harness.run_round().ingestions == 1


def test_a_failure_right_after_an_outage_is_retried_once_without_backoff(
    alice: Person, harness: ReconcilerHarness
) -> None:
    harness.engine.is_up = False
    resource = stored_resource(alice, status="failed", retry_at=timezone.now() + timedelta(hours=1))
    assert harness.run_round().ingestions == 0
    harness.engine.is_up = True
    harness.engine.failures = {"add": [EngineUnavailable("held back")]}
    assert harness.run_round().ingestions == 1
    Resource.objects.filter(pk=resource.pk).update(status="failed", retry_at=harness.now + timedelta(hours=1))
    assert harness.run_round().ingestions == 0  # not in each round: the failure may be permanent
    harness.now += RECOVERY_PAUSE
    assert harness.run_round().ingestions == 1
    Resource.objects.filter(pk=resource.pk).update(status="failed", retry_at=harness.now + timedelta(hours=1))
    harness.now += timedelta(minutes=1)
    assert harness.run_round().ingestions == 0


def test_an_interrupted_deletion_is_finished(alice: Person, storage: Path, harness: ReconcilerHarness) -> None:
    resource = stored_resource(alice)
    harness.engine.failures = {"delete": [EngineUnavailable("away")]}
    delete_and_purge(alice, resource.resource_id, engine=harness.engine)
    assert harness.run_round().deletions == 0
    harness.now += timedelta(minutes=1)
    assert harness.run_round().deletions == 1
    assert harness.run_round().deletions == 0
    assert harness.engine.deleted == [resource.session_id]
    assert files_below(storage) == []
    assert Resource.objects.get().retry_at is None


def test_only_old_files_without_a_row_are_moved(alice: Person, storage: Path) -> None:
    kept = stored_resource(alice)
    deleted = stored_resource(alice, state="purged")
    orphan = storage / str(alice.user_pk) / new_resource_id() / "content.txt"
    fresh = storage / str(alice.user_pk) / new_resource_id() / "content.txt"
    attachment = storage / str(alice.user_pk) / "memory_attachments" / "a.png"
    old_upload, new_upload = storage / ".incoming" / "old", storage / ".incoming" / "new"
    for path in (orphan, fresh, attachment, old_upload, new_upload):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    for path in (orphan, attachment, old_upload, storage / kept.storage_path, storage / deleted.storage_path):
        make_old(path)
    assert clean_up(Round()) == 3
    expected = [fresh, attachment, new_upload, storage / kept.storage_path]
    left = files_below(storage)
    quarantined = [path for path in left if path.startswith(".quarantine/")]
    assert sorted(path.split("/")[3] for path in quarantined) == sorted([orphan.parent.name, deleted.resource_id])
    assert left == sorted([*quarantined, *(str(path.relative_to(storage)) for path in expected)])


@dataclass
class Clock:
    """A clock that a test sets, and the periodic task that it runs."""

    now: datetime
    answers: list[object] = field(default_factory=list)
    runs: int = 0

    def work(self, _round: Round) -> object:
        self.runs += 1
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def round(self, later: timedelta = timedelta(0)) -> int:
        """Run the periodic tasks as a process that just started; return how often the task has run until now."""
        self.now += later
        periodic_tasks.run_due(Round(clock=lambda: self.now))
        return self.runs

    def declare(self, every: timedelta, when: Callable[[], bool] = lambda: True) -> None:
        tasks.PERIODIC["tests"] = Periodic("tests", self.work, every, when)


DAY = timedelta(days=1)


@pytest.fixture
def clock() -> Iterator[Clock]:
    """Replace the periodic tasks by one that is due daily."""
    declared = dict(tasks.PERIODIC)
    tasks.PERIODIC.clear()
    created = Clock(timezone.now())
    created.declare(DAY)
    yield created
    tasks.PERIODIC.clear()
    tasks.PERIODIC.update(declared)


def test_a_daily_task_runs_once_a_day_however_often_processes_start(clock: Clock) -> None:
    hour = timedelta(hours=1)
    assert [clock.round(later) for later in (hour, hour, 21 * hour, 2 * hour, hour)] == [1, 1, 1, 2, 2]
    assert clock.round(3 * DAY) == 3  # an overdue one runs at once, and not for each day that passed


def test_a_task_that_heals_what_a_killed_process_left_runs_when_a_worker_starts(clock: Clock) -> None:
    tasks.PERIODIC["tests"] = tasks.PERIODIC["tests"]._replace(at_start=True)
    assert [clock.round(), clock.round()] == [1, 1]
    periodic_tasks.note_start()
    assert [clock.round(), clock.round()] == [2, 2]


def test_a_task_that_has_more_to_do_runs_again(clock: Clock) -> None:
    clock.answers = [False, True, 1, False]
    assert [clock.round(), clock.round(), clock.round(DAY), clock.round(), clock.round()] == [1, 1, 2, 3, 3]


def test_a_failed_task_is_repeated_soon_and_does_not_delay_others(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    other = Clock(clock.now)
    tasks.PERIODIC["other"] = Periodic("other", other.work, DAY, lambda: True)
    clock.answers = [ZeroDivisionError()]
    assert [clock.round(), other.runs] == [1, 1]
    assert "The periodic task tests failed" in caplog.text
    assert [clock.round(periodic_tasks.RETRY / 2), clock.round(periodic_tasks.RETRY)] == [1, 2]


def test_only_one_process_runs_a_periodic_task(clock: Clock) -> None:
    Lease.objects.create(name="tests", lease_holder="elsewhere:1:x", leased_until=clock.now + LEASE)
    assert clock.round() == 0
    assert clock.round(2 * LEASE) == 1  # it was killed, and the task is still due


def test_a_time_that_a_wrong_clock_wrote_delays_no_task(clock: Clock) -> None:
    assert clock.round(timedelta(days=3650)) == 1
    assert clock.round(timedelta(days=-3650)) == 2
    assert clock.round(DAY / 2) == 2


def test_a_task_that_is_not_needed_writes_nothing(clock: Clock) -> None:
    clock.declare(timedelta(0), when=lambda: False)
    assert clock.round() == 0
    assert not Lease.objects.exists()


def test_every_app_has_its_tasks_declared() -> None:
    assert list(tasks.PERIODIC) == [
        "find_missing_vectors",
        "finish_deletions",
        "clean_up",
        "seal_audit_trail",
        "purge_incognito",
        "purge_trash",
        "index_words",
        "merge_keywords",
        "link_sources",
        "end_former_moves",
        "alert_of_queues",
    ]
    assert {task.name: task.queue_name for task in tasks.repeated()} == {
        "embed": "embeddings",
        "extract": "extraction",
        "describe_pictures": "extraction",
        "transcribe": "extraction",
        "ingest_pending": "ingestion",
        "deliver_webhooks": "webhooks",
        "maintain": "maintenance",
        "end_expired": "maintenance",
        "run_jobs": "jobs",
        "retry_deliveries": "deliveries",
        "delete_in_engine": "deliveries",
    }
    assert set(tasks.LOCAL) == {"write_search_log", "check_integrity"}


def test_a_worker_runs_what_is_pending_and_overdue_and_shows_that_it_is_there(
    alice: Person, storage: Path, clock: Clock
) -> None:
    resource = stored_resource(alice)
    Lease.objects.create(name="tests", due_at=clock.now - DAY)
    worker.start()
    try:
        assert eventually(lambda: Resource.objects.get(pk=resource.pk).status == "extracted")
        assert eventually(lambda: clock.runs == 1)
        assert Lease.objects.get(name=worker.MAINTENANCE).is_held(timezone.now())
    finally:
        assert worker.stop(SECONDS)
    assert not Lease.objects.exclude(lease_holder="").exists()


def test_a_failed_round_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    rounds = 0

    def broken() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            raise ZeroDivisionError

    repeater = Repeater("tests", broken, interval_seconds=0.01)
    repeater.start()
    try:
        assert eventually(lambda: rounds > 1)
    finally:
        assert repeater.stop(SECONDS)
    assert "tests failed" in caplog.text


@pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite has one writing process")
@pytest.mark.parametrize("arguments", [("serve", "--no-worker"), ("worker",)])
def test_on_sqlite_the_server_does_all_work(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match=r"needs PostgreSQL.*manage\.py serve`, which does all work itself"):
        call_command(*arguments)


@pytest.fixture
def no_queue() -> Iterator[None]:
    tasks.limit_to(())
    yield
    tasks.limit_to(tasks.QUEUES)


def test_without_queues_a_process_has_no_threads_for_work(storage: Path, no_queue: None) -> None:
    def named() -> set[str]:
        return {thread.name for thread in threading.enumerate()}

    before = named()
    worker.start()
    try:
        assert named() - before == {"write_search_log", "check_integrity"}
    finally:
        assert worker.stop(SECONDS)


def test_pending_work_is_recorded_with_its_row_and_rolled_back_with_it(alice: Person) -> None:
    with override_settings(TASKS=DUMMY):
        with transaction.atomic():
            jobs.submit("import_from", {}, actor=Actor.command("tests"))
            transaction.set_rollback(True)
        assert task_backends["default"].results == []
        jobs.submit("import_from", {}, actor=Actor.command("tests"))
        assert [result.task.name for result in task_backends["default"].results] == ["run_jobs"]
    assert Job.objects.count() == 1


@pytest.mark.skipif(connection.vendor != "postgresql", reason="a notification of PostgreSQL")
def test_a_notification_begins_a_round(no_queue: None) -> None:
    listener, looked = worker.Listener(), threading.Event()
    declared = dict(tasks._declared)
    tasks._declared["run_jobs"] = declared["run_jobs"]._replace(when=lambda: bool(looked.set()))
    listener.start()
    try:

        def is_woken() -> bool:
            tasks.enqueue("run_jobs")
            return looked.is_set()

        assert eventually(is_woken)
    finally:
        listener.stop()
        tasks._declared.update(declared)


def claim_all(limit: int = 10) -> AbstractContextManager[list[PendingExtraction]]:
    return claimed(PendingExtraction.objects.order_by("pk"), limit, LEASE)


def pending_extractions(person: Person, number: int) -> list[PendingExtraction]:
    return [
        PendingExtraction.objects.create(user_id=person.user_pk, app_id=f"app-{place}", project_id="default")
        for place in range(number)
    ]


def test_a_claim_holds_inside_its_block_only(alice: Person) -> None:
    first, second = pending_extractions(alice, 2)
    with claim_all(1) as found, claim_all() as others:
        assert (found, others) == ([first], [second])
        with claim_all() as none:
            assert none == []
    with claim_all() as found:
        assert found == [first, second]


def test_a_claim_of_a_dead_process_is_free_at_once_and_of_another_machine_when_it_expires(alice: Person) -> None:
    here, there, late = pending_extractions(alice, 3)
    host, pid, _ = new_holder().rsplit(":", 2)
    soon = timezone.now() + LEASE
    for row, holder, until in (
        (here, f"{host}:{pid}:earlier", soon),
        (there, "elsewhere:1:x", soon),
        (late, "elsewhere:1:x", timezone.now()),
    ):
        PendingExtraction.objects.filter(pk=row.pk).update(lease_holder=holder, leased_until=until)
    with claim_all() as found:
        assert found == [here, late]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer")
def test_concurrent_claims_share_the_rows_without_a_wait(alice: Person) -> None:
    rows, claims = pending_extractions(alice, 40), []
    barrier = threading.Barrier(4)

    def claim() -> None:
        try:
            barrier.wait(SECONDS)
            with claim_all() as found:
                claims.extend(row.pk for row in found)
                barrier.wait(SECONDS)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(claims) == len(set(claims))
    assert set(claims) <= {row.pk for row in rows}
    assert len(claims) >= 10


def test_a_process_that_ends_gives_back_its_own_leases_only(alice: Person) -> None:
    mine, other = pending_extractions(alice, 2)
    soon = timezone.now() + LEASE
    PendingExtraction.objects.filter(pk=mine.pk).update(lease_holder=new_holder(), leased_until=soon)
    PendingExtraction.objects.filter(pk=other.pk).update(lease_holder="elsewhere:1:x", leased_until=soon)
    assert release_all() == 1
    with claim_all() as found:
        assert found == [mine]


def make_old(path: Path) -> None:
    """Make a file and its folder two hours old."""
    then = time.time() - 7200
    os.utime(path, (then, then))
    if path.parent.name != ".incoming":
        os.utime(path.parent, (then, then))


def eventually(condition: Callable[[], bool]) -> bool:
    for _ in range(500):
        if condition():
            return True
        time.sleep(0.01)
    return False
