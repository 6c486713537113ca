"""Decisions and writes that cross each other on PostgreSQL, where many write at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from accounts.audit import Actor
from engines.embedded.engine import EmbeddedEngine
from memories.models import Tombstone
from memories.services import decisions, lookup
from store import rollups
from store.models import Memory, Session
from store.rollup_models import HourCount, SessionCount
from tests.conftest import Person
from tests.engines.everos.conftest import NOON, told

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite lets one write after the other"),
]
LONG_ENOUGH = 1.0
"""Seconds in which the other one gets as far as it can."""


@pytest.fixture
def engine() -> EmbeddedEngine:
    return EmbeddedEngine()


@pytest.fixture
def beside() -> Iterator[Callable[[Callable[[], object]], Future[object]]]:
    """Runs something in another thread, with a connection of its own."""
    with ThreadPoolExecutor(1) as pool:

        def run(work: Callable[[], object]) -> Future[object]:
            def closing() -> object:
                try:
                    return work()
                finally:
                    connections.close_all()

            return pool.submit(closing)

        yield run


def wait(seconds: float = LONG_ENOUGH) -> None:
    threading.Event().wait(seconds)


def test_who_decides_does_not_lock_up_with_who_adds(
    engine: EmbeddedEngine, alice: Person, beside: Callable[[Callable[[], object]], Future[object]]
) -> None:
    engine.add(alice.owner, "chat:1", [told(alice.owner, "one")])
    with transaction.atomic():
        lookup.lock_user(alice.user_pk)
        adding = beside(lambda: engine.add(alice.owner, "chat:1", [told(alice.owner, "two", NOON + 1)]))
        wait()
        engine.hide_sessions(alice.owner, ["chat:1"], timezone.now())
    adding.result(10)
    assert Memory.objects.count() == 2
    assert Session.objects.get().hidden_at is not None


def test_a_memory_hidden_while_its_session_goes_is_counted_once(
    engine: EmbeddedEngine, alice: Person, beside: Callable[[Callable[[], object]], Future[object]]
) -> None:
    engine.add(alice.owner, "chat:1", [told(alice.owner, "hi", role="assistant", sender_id="main")])
    with transaction.atomic():
        lookup.lock_user(alice.user_pk)
        engine.hide(alice.owner, [Memory.objects.get().memory_id], timezone.now())
        deleting = beside(lambda: engine.delete(alice.owner, "chat:1"))
        wait()
    deleting.result(10)
    rollups.settle()
    assert not HourCount.objects.exists()
    assert not SessionCount.objects.exists()


def test_two_who_delete_the_same_at_once_leave_one_tombstone(
    engine: EmbeddedEngine, alice: Person, beside: Callable[[Callable[[], object]], Future[object]]
) -> None:
    engine.add(alice.owner, "chat:1", [told(alice.owner, "one"), told(alice.owner, "two", NOON + 1)])
    rows = list(Memory.objects.values_list("pk", flat=True))
    first, second = Actor.operator("first"), Actor.operator("second")
    with transaction.atomic():
        assert len(decisions.delete_many(rows, actor=first)) == 2
        deleting = beside(lambda: decisions.delete_many(rows[::-1], actor=second))
        wait()
        assert not deleting.done()
    assert deleting.result(10) == []
    assert set(Tombstone.objects.values_list("actor", flat=True)) == {"second"}
    assert Tombstone.objects.count() == 2


def test_a_restoration_waits_for_the_deletion_under_way(
    engine: EmbeddedEngine, alice: Person, beside: Callable[[Callable[[], object]], Future[object]]
) -> None:
    engine.add(alice.owner, "chat:1", [told(alice.owner, "one")])
    row, operator = Memory.objects.get().pk, Actor.operator("olga")
    with transaction.atomic():
        decisions.delete_many([row], actor=operator)
        restoring = beside(lambda: decisions.restore_many([row], actor=operator))
        wait()
    assert len(restoring.result(10)) == 1  # type: ignore[arg-type]
    assert Memory.objects.get().hidden_at is None
