"""Concurrent decisions and writes on PostgreSQL, which has concurrent writers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from django.db import connection, connections, transaction

from accounts.audit import Actor
from engines.embedded.engine import EmbeddedEngine
from memories.models import Tombstone
from memories.services import decisions, lookup
from store import rollups
from store.models import DayCount, Memory, Session, SessionCount
from tests.conftest import Person
from tests.remote.conftest import NOON, message_of
from tests.store.decisions import delete, delete_session

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite lets one write after the other"),
]
WAIT_SECONDS = 1.0
"""The time for the other thread to proceed until it blocks."""


@pytest.fixture
def engine() -> EmbeddedEngine:
    return EmbeddedEngine()


@pytest.fixture
def in_thread() -> Iterator[Callable[[Callable[[], object]], Future[object]]]:
    """Return a function that runs work in another thread with a separate connection."""
    with ThreadPoolExecutor(1) as pool:

        def run(work: Callable[[], object]) -> Future[object]:
            def work_and_close() -> object:
                try:
                    return work()
                finally:
                    connections.close_all()

            return pool.submit(work_and_close)

        yield run


def wait(seconds: float = WAIT_SECONDS) -> None:
    threading.Event().wait(seconds)


def test_a_decision_and_an_add_do_not_deadlock(
    engine: EmbeddedEngine, alice: Person, in_thread: Callable[[Callable[[], object]], Future[object]]
) -> None:
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, "one")])
    with transaction.atomic():
        lookup.lock_user(alice.user_pk)
        adding = in_thread(lambda: engine.add(alice.owner, "chat:1", [message_of(alice.owner, "two", NOON + 1)]))
        wait()
        delete_session(alice.owner, "chat:1")
    adding.result(10)
    assert Memory.objects.count() == 2
    assert Session.objects.get().state != "live"


def test_hiding_a_memory_while_its_session_is_deleted_is_counted_once(
    engine: EmbeddedEngine, alice: Person, in_thread: Callable[[Callable[[], object]], Future[object]]
) -> None:
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, "hi", role="assistant", sender_id="main")])
    with transaction.atomic():
        lookup.lock_user(alice.user_pk)
        delete(alice.owner, Memory.objects.get().memory_id)
        deleting = in_thread(lambda: engine.delete(alice.owner, "chat:1"))
        wait()
    deleting.result(10)
    rollups.settle()
    assert not DayCount.objects.exists()
    assert not SessionCount.objects.exists()


def test_concurrent_deletions_leave_one_tombstone(
    engine: EmbeddedEngine, alice: Person, in_thread: Callable[[Callable[[], object]], Future[object]]
) -> None:
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, "one"), message_of(alice.owner, "two", NOON + 1)])
    rows = list(Memory.objects.values_list("pk", flat=True))
    first, second = Actor.operator("first"), Actor.operator("second")
    with transaction.atomic():
        assert len(decisions.delete_many(rows, actor=first)) == 2
        deleting = in_thread(lambda: decisions.delete_many(rows[::-1], actor=second))
        wait()
        assert not deleting.done()
    assert deleting.result(10) == []
    assert set(Tombstone.objects.values_list("actor", flat=True)) == {"second"}
    assert Tombstone.objects.count() == 2


def test_a_restore_waits_for_a_running_deletion(
    engine: EmbeddedEngine, alice: Person, in_thread: Callable[[Callable[[], object]], Future[object]]
) -> None:
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, "one")])
    row, operator = Memory.objects.get().pk, Actor.operator("olga")
    with transaction.atomic():
        decisions.delete_many([row], actor=operator)
        restoring = in_thread(lambda: decisions.restore_many([row], actor=operator))
        wait()
    assert len(restoring.result(10)) == 1  # type: ignore[arg-type]
    assert Memory.objects.get().state == "live"


def test_a_session_is_not_deleted_by_the_etag_from_before_an_add(
    engine: EmbeddedEngine, alice: Person, in_thread: Callable[[Callable[[], object]], Future[object]]
) -> None:
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, "one")])
    etag = alice.client.get("/sessions/chat:1").headers["ETag"]

    def delete() -> int:
        return alice.client.delete("/sessions/chat:1", headers={"If-Match": etag}).status_code

    with transaction.atomic():
        engine.add(alice.owner, "chat:1", [message_of(alice.owner, "two", NOON + 1)])
        deletion = in_thread(delete)
        wait()
    assert deletion.result(timeout=30) == 412
