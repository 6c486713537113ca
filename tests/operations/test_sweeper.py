from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import wait
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from core.errors import EngineUnavailable
from core.ids import new_resource_id
from core.leases import new_holder
from operations.models import Lease
from operations.worker import FILES_EVERY, RECOVERY_PAUSE, MaintenanceReport, MaintenanceTask
from resources import services
from resources.models import Resource
from resources.services.owed import owed_ingestions
from tests.conftest import Person
from tests.fake_engine import RecordingEngine
from tests.resources.forms import files_below, stored_resource
from tests.resources.test_delete import principal

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 10


class Sweeping:
    """A maintenance task with a recording engine, a pool and a clock that a test can set."""

    def __init__(self) -> None:
        self.engine = RecordingEngine()
        self.pool = services.IngestionPool(lambda item: services.ingest(item, engine=self.engine), slots=2)
        self.now = timezone.now()
        self.task = MaintenanceTask(engine=self.engine, pool=self.pool, clock=self.clock)

    def clock(self) -> datetime:
        return self.now

    def sweep(self) -> MaintenanceReport:
        """One round, with its ingestions."""
        self.now = max(self.now, timezone.now())
        report = self.task.run_once()
        assert report is not None
        assert not wait(report.ingestions, SECONDS).not_done
        assert self.pool.wait_until_idle(SECONDS)
        return report


@pytest.fixture
def sweeping() -> Sweeping:
    return Sweeping()


def test_what_a_crash_left_is_ingested(alice: Person, sweeping: Sweeping) -> None:
    host, pid, _ = new_holder().rsplit(":", 2)
    soon = timezone.now() + timedelta(seconds=30)
    left = [
        stored_resource(alice),
        stored_resource(alice, status="ingesting", lease_holder=f"{host}:{pid}:earlier", leased_until=soon),
        stored_resource(alice, status="ingesting", lease_holder="elsewhere:1:x", leased_until=timezone.now()),
        stored_resource(alice, status="failed", retry_at=timezone.now()),
    ]
    assert len(sweeping.sweep().ingestions) == len(left)
    assert set(Resource.objects.values_list("status", flat=True)) == {"extracted"}
    assert sorted(session for _, session, _ in sweeping.engine.added) == sorted(made.session_id for made in left)


def test_what_is_in_living_hands_or_not_due_is_left_alone(alice: Person, sweeping: Sweeping) -> None:
    soon = timezone.now() + timedelta(minutes=5)
    stored_resource(alice, status="ingesting", lease_holder="elsewhere:1:x", leased_until=soon)
    stored_resource(alice, status="ingesting", lease_holder=new_holder(), leased_until=soon)
    stored_resource(alice, status="failed", error_message="for good")
    stored_resource(alice, status="empty")
    assert sweeping.sweep().ingestions == ()
    assert sweeping.engine.calls == []


def test_a_retry_waits_for_its_time(alice: Person, sweeping: Sweeping) -> None:
    sweeping.sweep()
    resource = stored_resource(alice, status="failed", retry_at=timezone.now() + timedelta(minutes=5))
    sweeping.now += timedelta(minutes=1)
    assert sweeping.sweep().ingestions == ()
    sweeping.now += timedelta(minutes=6)
    assert len(sweeping.sweep().ingestions) == 1
    assert Resource.objects.get(pk=resource.pk).status == "extracted"


def test_one_users_failures_keep_nobody_else_waiting(alice: Person, bob: Person) -> None:
    due = timezone.now() - timedelta(minutes=1)
    for _ in range(5):
        stored_resource(alice, status="failed", retry_at=due)
    stored_resource(bob, status="failed", retry_at=due)
    assert [item.user_pk for item in owed_ingestions(timezone.now(), 3)] == [
        alice.user_pk,
        bob.user_pk,
        alice.user_pk,
    ]


def test_nobody_waits_out_the_backoff_of_an_outage(alice: Person, sweeping: Sweeping) -> None:
    sweeping.engine.is_up = False
    stored_resource(alice, status="failed", retry_at=timezone.now() + timedelta(hours=1))
    assert sweeping.sweep().ingestions == ()
    sweeping.engine.is_up = True
    assert len(sweeping.sweep().ingestions) == 1


def test_nor_does_who_failed_once_more_while_it_came_back(alice: Person, sweeping: Sweeping) -> None:
    sweeping.engine.is_up = False
    resource = stored_resource(alice, status="failed", retry_at=timezone.now() + timedelta(hours=1))
    assert sweeping.sweep().ingestions == ()
    sweeping.engine.is_up = True
    sweeping.engine.failures = {"add": [EngineUnavailable("held back")]}
    assert len(sweeping.sweep().ingestions) == 1
    Resource.objects.filter(pk=resource.pk).update(status="failed", retry_at=sweeping.now + timedelta(hours=1))
    assert sweeping.sweep().ingestions == ()  # not in each round: it may fail for its own reasons
    sweeping.now += RECOVERY_PAUSE
    assert len(sweeping.sweep().ingestions) == 1
    Resource.objects.filter(pk=resource.pk).update(status="failed", retry_at=sweeping.now + timedelta(hours=1))
    sweeping.now += timedelta(minutes=1)
    assert sweeping.sweep().ingestions == ()


def test_a_broken_deletion_is_finished(alice: Person, storage: Path, sweeping: Sweeping) -> None:
    resource = stored_resource(alice)
    sweeping.engine.failures = {"delete": [EngineUnavailable("away")]}
    services.delete(principal(alice), resource.resource_id, engine=sweeping.engine)
    assert sweeping.sweep().deletions == 0
    sweeping.now += timedelta(minutes=1)
    assert sweeping.sweep().deletions == 1
    assert sweeping.sweep().deletions == 0
    assert sweeping.engine.deleted == [resource.session_id]
    assert files_below(storage) == []
    assert not Resource.objects.get().cleanup_owed


def test_old_files_without_a_row_are_moved_and_no_others(alice: Person, storage: Path, sweeping: Sweeping) -> None:
    kept = stored_resource(alice)
    deleted = stored_resource(alice)
    Resource.objects.filter(pk=deleted.pk).update(status="deleted", deleted_at=timezone.now())
    orphan = storage / str(alice.user_pk) / new_resource_id() / "content.txt"
    fresh = storage / str(alice.user_pk) / new_resource_id() / "content.txt"
    attachment = storage / str(alice.user_pk) / "memory_attachments" / "a.png"
    old_upload, new_upload = storage / ".incoming" / "old", storage / ".incoming" / "new"
    for path in (orphan, fresh, attachment, old_upload, new_upload):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    for path in (orphan, attachment, old_upload, storage / kept.storage_path, storage / deleted.storage_path):
        age(path)
    assert sweeping.sweep().files_removed == 3
    expected = [fresh, attachment, new_upload, storage / kept.storage_path]
    left = files_below(storage)
    quarantined = [path for path in left if path.startswith(".quarantine/")]
    assert sorted(path.split("/")[3] for path in quarantined) == sorted([orphan.parent.name, deleted.resource_id])
    assert left == sorted([*quarantined, *(str(path.relative_to(storage)) for path in expected)])


def test_files_are_not_looked_at_in_every_round(storage: Path, sweeping: Sweeping) -> None:
    sweeping.sweep()
    left = storage / ".incoming" / "old"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.write_text("x")
    age(left)
    assert sweeping.sweep().files_removed == 0
    sweeping.now += FILES_EVERY
    assert sweeping.sweep().files_removed == 1


def test_only_one_process_runs_the_rounds(alice: Person, sweeping: Sweeping) -> None:
    other = Sweeping()
    sweeping.sweep()
    stored_resource(alice)
    assert other.task.run_once() is None
    sweeping.task.release()
    assert len(other.sweep().ingestions) == 1


def test_the_thread_sweeps_until_it_is_stopped(alice: Person, sweeping: Sweeping) -> None:
    sweeping.task.start(interval_seconds=3600)
    try:
        assert eventually(Lease.objects.exists)
        resource = stored_resource(alice)
        sweeping.task.wake()
        assert eventually(lambda: Resource.objects.get(pk=resource.pk).status == "extracted")
    finally:
        assert sweeping.task.stop(SECONDS)
    assert not Lease.objects.exists()
    assert sweeping.pool.wait_until_idle(SECONDS)


def test_a_failed_round_does_not_end_the_task(alice: Person, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MaintenanceTask):
        rounds = 0

        def run_once(self) -> MaintenanceReport | None:
            self.rounds += 1
            if self.rounds == 1:
                raise ZeroDivisionError
            return super().run_once()

    task = Broken(engine=RecordingEngine())
    task.start(interval_seconds=0.01)
    try:
        assert eventually(lambda: task.rounds > 1)
    finally:
        assert task.stop(SECONDS)
    assert "Broken failed" in caplog.text


def age(path: Path) -> None:
    """Makes a file and its folder two hours old."""
    then = time.time() - 7200
    os.utime(path, (then, then))
    if path.parent.name != ".incoming":
        os.utime(path.parent, (then, then))


def eventually(holds: Callable[[], bool]) -> bool:
    for _ in range(500):
        if holds():
            return True
        time.sleep(0.01)
    return False
