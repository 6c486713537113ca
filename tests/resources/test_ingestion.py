"""`resources.services.ingest`: the calls of the engine, and the row afterwards."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from accounts.audit import Actor
from core.background.leases import new_holder, renewed
from core.errors import EngineRefused, EngineUnavailable, Unreadable
from resources.models import Resource
from resources.services import ingest
from resources.services.claims import LEASE, Outcome, claim, held, reset, retry, retry_delay, settle
from resources.services.unfinished import Kind, unfinished_ingestions
from store.models import Memory, Session
from tests.conftest import Person
from tests.fake_engine import RecordingEngine
from tests.resources.forms import stored_resource
from tests.resources.test_delete import delete, restore
from tests.resources.test_purge import delete_and_purge

pytestmark = pytest.mark.django_db

UNAVAILABLE = EngineUnavailable("The memory engine is away.")
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
DEAD_PID = 2**22 + 1  # above the kernel's largest


@pytest.fixture
def attached(settings: Any) -> None:
    """Attach a remote that no test of this module calls."""
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = "http://127.0.0.1:9"


def run(resource: Resource, engine: RecordingEngine, delays: list[float] | None = None) -> Resource:
    return ingest(resource.resource_id, engine=engine, sleep=(delays if delays is not None else []).append)


def test_the_engine_receives_one_message_with_the_file(alice: Person, storage: Path) -> None:
    resource = stored_resource(alice, filename="合同.txt", title="T", description="D", app_id="shop")
    engine = RecordingEngine()
    assert run(resource, engine).status == "extracted"
    ((owner, session_id, (message,)),) = engine.added
    assert (owner.user_pk, owner.user_id, owner.app_id) == (alice.user_pk, "alice", "shop")
    assert session_id == f"resource:alice:{resource.resource_id}" == engine.flushed[0]
    assert (message.sender_id, message.role) == ("alice", "user")
    assert message.timestamp_ms == int(resource.created_at.timestamp() * 1000)
    (item,) = message.content
    assert (item.type, item.name, item.mime_type) == ("text", "合同.txt", "text/plain")
    assert item.file == resource.storage_path
    assert item.extras == {"resource_id": resource.resource_id, "source": "upload", "title": "T", "description": "D"}


def test_an_ingested_resource_is_not_ingested_again(alice: Person) -> None:
    resource, engine = stored_resource(alice), RecordingEngine()
    run(resource, engine)
    assert run(resource, engine).status == "extracted"
    assert len(engine.added) == 1


def test_a_file_without_memories_is_empty(alice: Person) -> None:
    assert run(stored_resource(alice), RecordingEngine(flush_status="no_extraction")).status == "empty"


def test_a_temporary_failure_is_retried_up_to_the_configured_attempts(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_BACKEND_INGEST_ATTEMPTS = 3
    settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS = 0.25
    engine = RecordingEngine(failures={"add": [UNAVAILABLE, UNAVAILABLE], "flush": [UNAVAILABLE, UNAVAILABLE]})
    delays: list[float] = []
    assert run(stored_resource(alice), engine, delays).status == "extracted"
    assert delays == [0.25] * 4


@pytest.mark.usefixtures("attached")
def test_calls_of_a_remote_are_not_repeated(alice: Person) -> None:
    engine = RecordingEngine(failures={"add": [UNAVAILABLE]})
    delays: list[float] = []
    assert run(stored_resource(alice), engine, delays).status == "failed"
    assert ([verb for verb, _ in engine.calls], delays) == (["add"], [])


def test_after_all_attempts_it_is_failed_and_retried_later(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_BACKEND_INGEST_ATTEMPTS = 2
    resource, engine = (
        stored_resource(alice),
        RecordingEngine(failures={"add": [UNAVAILABLE, UNAVAILABLE]}),
    )
    failed = run(resource, engine)
    assert (failed.status, failed.error_message) == ("failed", "The memory engine is away.")
    assert failed.retry_at is not None
    assert timedelta() < failed.retry_at - timezone.now() <= timedelta(seconds=2)
    assert (failed.lease_holder, failed.leased_until) == ("", None)
    assert run(resource, engine).status == "extracted"
    assert (Resource.objects.get().retry_at, Resource.objects.get().error_message) == (None, "")


@pytest.mark.usefixtures("attached")
def test_a_retry_is_not_earlier_than_retry_after(alice: Person) -> None:
    busy = EngineUnavailable("The memory engine is overloaded.", retry_after_seconds=60)
    failed = run(stored_resource(alice), RecordingEngine(failures={"add": [busy]}))
    assert failed.retry_at is not None
    assert failed.retry_at - timezone.now() > timedelta(seconds=50)


@pytest.mark.parametrize("error", [EngineRefused("No."), Unreadable("The PDF is encrypted.")])
def test_a_permanent_failure_is_not_retried(alice: Person, error: EngineRefused) -> None:
    engine = RecordingEngine(failures={"add": [error]})
    delays: list[float] = []
    failed = run(stored_resource(alice), engine, delays)
    assert (failed.status, failed.error_message, failed.retry_at) == ("failed", error.detail, None)
    assert delays == []


def test_a_missing_file_is_a_permanent_failure(alice: Person, storage: Path) -> None:
    resource = stored_resource(alice)
    (storage / resource.storage_path).unlink()
    failed = run(resource, RecordingEngine())
    assert (failed.status, failed.retry_at) == ("failed", None)
    assert "missing" in failed.error_message


@pytest.mark.usefixtures("attached")
def test_a_message_is_not_added_again_after_a_flush(alice: Person) -> None:
    resource = stored_resource(alice)
    engine = RecordingEngine(failures={"flush": [UNAVAILABLE]})
    assert run(resource, engine).status == "failed"
    engine.flush_status = "no_extraction"
    failed = run(resource, engine)
    assert [verb for verb, _ in engine.calls].count("add") == 1
    assert failed.status == "failed"
    assert failed.retry_at is not None  # its memories may be listed later


@pytest.mark.usefixtures("attached")
def test_existing_memories_settle_a_flush_whose_response_was_lost(alice: Person) -> None:
    resource = stored_resource(alice)
    engine = RecordingEngine(failures={"flush": [UNAVAILABLE]}, flush_status="no_extraction")
    session = Session.objects.create(
        user_id=alice.user_pk, session_id=resource.session_id, engine_session_id=resource.session_id, kind="resource"
    )
    Memory.objects.create(
        user_id=alice.user_pk, session=session, memory_id="m1", memory_type="episode", text="x", created_at_ms=1
    )
    assert [run(resource, engine).status for _ in range(2)] == ["failed", "extracted"]


def test_the_embedded_engine_gets_the_message_again_after_a_flush(alice: Person) -> None:
    resource = stored_resource(alice, flush_sent_at=timezone.now())
    engine = RecordingEngine(flush_status="no_extraction")
    assert run(resource, engine).status == "empty"
    assert len(engine.added) == 1


def test_a_resource_deleted_during_ingestion_is_ingested_after_a_restore(alice: Person, storage: Path) -> None:
    resource = stored_resource(alice)
    engine = RecordingEngine()
    engine.during_add = lambda: delete(alice, resource.resource_id)
    left = run(resource, engine)
    assert (left.state, left.status, left.lease_holder) == ("trashed", "pending", "")
    assert [verb for verb, _ in engine.calls] == ["add"]
    assert Session.objects.get().state != "live"
    engine.during_add = lambda: None
    restore(alice, resource.resource_id)
    assert Session.objects.get().state == "live"
    assert run(resource, engine).status == "extracted"


def test_a_resource_purged_during_ingestion_leaves_nothing_in_the_engine(alice: Person, storage: Path) -> None:
    resource = stored_resource(alice)
    engine = RecordingEngine()
    engine.during_add = lambda: delete_and_purge(alice, resource.resource_id, engine=engine)
    assert run(resource, engine).state == "purged"
    assert engine.flushed == []
    assert [verb for verb, _ in engine.calls] == ["add", "delete", "delete"]
    assert Resource.objects.get().retry_at is None


def test_a_deleted_resource_is_not_ingested(alice: Person) -> None:
    resource, engine = stored_resource(alice), RecordingEngine()
    delete(alice, resource.resource_id)
    assert run(resource, engine).state == "trashed"
    assert engine.added == []


@pytest.mark.parametrize(
    "columns",
    [
        {"status": "pending"},
        {"status": "failed", "retry_at": LONG_AGO},
        {"status": "failed"},
        {"status": "ingesting", "lease_holder": "killed", "leased_until": LONG_AGO},
    ],
)
def test_workers_and_operators_leave_resources_in_the_trash(alice: Person, columns: dict[str, Any]) -> None:
    seen = stored_resource(alice, **columns)
    assert [one.pk for one in unfinished_ingestions(timezone.now(), 10, kinds=Kind)] == [seen.pk]
    deleted = delete(alice, seen.pk)
    assert deleted.status == columns["status"].replace("ingesting", "pending")
    assert unfinished_ingestions(timezone.now(), 10, kinds=Kind) == []
    assert claim(seen.pk, timezone.now()) is None
    assert not reset(seen, None, timezone.now())  # the caller read the row before the deletion
    assert retry(Resource.objects.all(), actor=Actor.command("tests")) == 0
    assert restore(alice, seen.pk).status == deleted.status
    assert claim(seen.pk, timezone.now()) is not None


def test_an_unexpected_exception_leaves_a_retry(alice: Person) -> None:
    engine = RecordingEngine(during_add=lambda: 1 // 0)
    resource = stored_resource(alice)
    with pytest.raises(ZeroDivisionError):
        run(resource, engine)
    unfinished = Resource.objects.get()
    assert unfinished.status == "failed"
    assert unfinished.retry_at is not None


def test_a_claimed_resource_cannot_be_claimed_again(alice: Person) -> None:
    resource = stored_resource(alice)
    now = timezone.now()
    assert claim(resource.resource_id, now) is not None
    assert claim(resource.resource_id, now) is None
    assert run(resource, engine := RecordingEngine()).status == "ingesting"
    assert engine.calls == []


@pytest.mark.django_db(transaction=True)
def test_one_of_many_concurrent_claims_wins(alice: Person) -> None:
    workers = 6
    start = threading.Barrier(workers)

    def compete(resource_id: str) -> bool:
        start.wait(10)
        try:
            return claim(resource_id, timezone.now()) is not None
        finally:
            connection.close()

    with ThreadPoolExecutor(workers) as pool:
        for _ in range(10):
            resource_id = stored_resource(alice).resource_id
            assert sum(pool.map(compete, [resource_id] * workers)) == 1


def test_an_expired_lease_is_taken_over_and_its_holder_cannot_settle(alice: Person) -> None:
    resource = stored_resource(alice)
    now = timezone.now()
    slow = claim(resource.resource_id, now)
    assert slow is not None
    second_claim = claim(resource.resource_id, now + LEASE + timedelta(seconds=1))
    assert second_claim is not None
    assert not settle(slow, Outcome(Resource.Status.FAILED), now)
    assert settle(second_claim, Outcome(Resource.Status.EXTRACTED), now)
    assert Resource.objects.get().status == "extracted"


def test_the_lease_of_an_ended_process_is_taken_over_at_once(alice: Person) -> None:
    host, _, random = new_holder().rsplit(":", 2)
    dead, living = f"{host}:{DEAD_PID}:{random}", f"elsewhere:{DEAD_PID}:{random}"
    soon = timezone.now() + LEASE
    engine = RecordingEngine()
    unfinished = stored_resource(alice, status="ingesting", lease_holder=dead, leased_until=soon)
    held = stored_resource(alice, status="ingesting", lease_holder=living, leased_until=soon)
    assert run(unfinished, engine).status == "extracted"
    assert run(held, engine).status == "ingesting"


def test_retry_delays_grow_to_a_day() -> None:
    assert timedelta(seconds=1) <= retry_delay(1) <= timedelta(seconds=2)
    assert timedelta(seconds=4) <= retry_delay(3) <= timedelta(seconds=8)
    assert timedelta(hours=12) <= retry_delay(1000) <= timedelta(days=1)
    assert retry_delay(1000, timedelta(hours=1)) <= timedelta(hours=1)


@pytest.mark.usefixtures("attached")
def test_a_failing_file_is_retried_for_seven_days_with_backoff(alice: Person) -> None:
    """Each attempt may cost LLM calls."""
    started_at = timezone.now()
    now = [started_at]
    resource = stored_resource(alice)
    engine = RecordingEngine(failures={"add": [UNAVAILABLE] * 100})
    attempts = []
    while (due := Resource.objects.get().retry_at) is not None or not attempts:
        now[0] = due or started_at
        attempts.append(now[0] - started_at)
        ingest(resource.resource_id, engine=engine, clock=lambda: now[0])
    waits = [later - earlier for earlier, later in pairwise(attempts)]
    assert 20 <= len(attempts) <= 34
    assert all(wait <= timedelta(days=1) for wait in waits)
    assert all(wait >= timedelta(hours=12) for wait in waits[16:])
    assert sum(each < timedelta(hours=1) for each in attempts) <= 13
    assert timedelta(days=7) <= attempts[-1] <= timedelta(days=8)
    given_up = Resource.objects.get()
    assert (given_up.status, given_up.retry_at) == ("failed", None)
    assert given_up.error_message.startswith("The memory engine is away. The ingestion failed")


@pytest.mark.usefixtures("attached")
def test_a_success_resets_the_time_of_the_first_failure(alice: Person) -> None:
    resource, engine = stored_resource(alice), RecordingEngine(failures={"add": [UNAVAILABLE]})
    assert run(resource, engine).first_failed_at is not None
    assert run(resource, engine).first_failed_at is None


@pytest.mark.parametrize(("retry_at", "attempts"), [(None, 1), (datetime(2026, 1, 1, tzinfo=UTC), 8)])
def test_attempts_restart_after_a_failure_that_waited_for_an_operator(
    alice: Person, retry_at: datetime | None, attempts: int
) -> None:
    resource = stored_resource(alice)
    Resource.objects.update(status=Resource.Status.FAILED, retry_at=retry_at, attempts=7)
    claimed = claim(resource.resource_id, timezone.now())
    assert claimed is not None
    assert (claimed.attempts, claimed.status, claimed.retry_at) == (attempts, "ingesting", None)
    assert (Resource.objects.get().attempts, Resource.objects.get().retry_at) == (attempts, None)


@pytest.mark.django_db(transaction=True)
def test_the_lease_is_renewed_while_a_slow_call_runs(alice: Person) -> None:
    resource = claim(stored_resource(alice).resource_id, timezone.now())
    assert resource is not None
    later = timezone.now() + timedelta(minutes=5)
    with renewed(held(resource), LEASE, clock=lambda: later, every=timedelta(milliseconds=5)):
        assert eventually(lambda: Resource.objects.get().leased_until == later + LEASE)


def eventually(claim_holds: Any) -> bool:
    for _ in range(200):
        if claim_holds():
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize(
    ("failure", "level"),
    [(UNAVAILABLE, logging.WARNING), (EngineRefused("The document is encrypted."), logging.INFO)],
    ids=["temporary", "permanent"],
)
@pytest.mark.usefixtures("attached")
def test_a_failure_is_logged_without_the_name_of_the_file(
    alice: Person, caplog: pytest.LogCaptureFixture, failure: Exception, level: int
) -> None:
    caplog.set_level(logging.INFO)
    resource = run(stored_resource(alice), RecordingEngine(failures={"add": [failure]}))
    [record] = [record for record in caplog.records if resource.resource_id in record.getMessage()]
    assert record.levelno == level
    assert str(failure) in record.getMessage()
    assert resource.filename not in record.getMessage()
