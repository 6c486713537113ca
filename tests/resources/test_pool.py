from __future__ import annotations

import threading
import uuid
from collections import Counter

import pytest

from resources.services import IngestionPool

ALICE, BOB = uuid.uuid4(), uuid.uuid4()
SECONDS = 10


class Gate:
    """Work that begins, says so, and goes on when it may."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._changed = threading.Condition()
        self._open = False

    def __call__(self, resource_id: str) -> None:
        with self._changed:
            self.begun.append(resource_id)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._open, SECONDS)

    def open(self) -> None:
        with self._changed:
            self._open = True
            self._changed.notify_all()

    def wait_for(self, count: int) -> list[str]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.begun) >= count, SECONDS)
            return list(self.begun)


@pytest.mark.django_db(transaction=True)
def test_one_user_never_takes_every_slot() -> None:
    gate = Gate()
    pool = IngestionPool(gate, slots=2)
    for number in range(5):
        pool.submit(f"a{number}", ALICE)
    gate.wait_for(1)
    pool.submit("b0", BOB)
    assert set(gate.wait_for(2)) == {"a0", "b0"}
    gate.open()
    assert pool.wait_until_idle(SECONDS)
    assert len(gate.begun) == 6


@pytest.mark.django_db(transaction=True)
def test_users_take_turns() -> None:
    order: list[str] = []
    start = threading.Event()

    def work(resource_id: str) -> None:
        assert start.wait(SECONDS)
        order.append(resource_id)

    pool = IngestionPool(work, slots=1)
    for resource_id, user in [("a0", ALICE), ("a1", ALICE), ("a2", ALICE), ("b0", BOB), ("b1", BOB)]:
        pool.submit(resource_id, user)
    start.set()
    assert pool.wait_until_idle(SECONDS)
    assert order == ["a0", "a1", "b0", "a2", "b1"]


@pytest.mark.django_db(transaction=True)
def test_a_resource_that_waits_or_runs_is_not_submitted_twice() -> None:
    gate = Gate()
    pool = IngestionPool(gate, slots=2)
    futures = {id(pool.submit(resource_id, ALICE)) for resource_id in ("a0", "a1") * 3}
    assert len(futures) == 2
    gate.open()
    assert pool.wait_until_idle(SECONDS)
    assert Counter(gate.begun) == {"a0": 1, "a1": 1}


@pytest.mark.django_db(transaction=True)
def test_a_defect_ends_one_job_and_not_the_pool(caplog: pytest.LogCaptureFixture) -> None:
    def work(resource_id: str) -> None:
        if resource_id == "bad":
            raise ZeroDivisionError

    pool = IngestionPool(work, slots=1)
    bad, good = pool.submit("bad", ALICE), pool.submit("good", ALICE)
    bad.result(SECONDS)
    good.result(SECONDS)
    assert "The ingestion of bad broke off" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_no_thread_stays_when_nothing_waits() -> None:
    before = threading.active_count()
    pool = IngestionPool(lambda _: None, slots=2)
    pool.submit("a0", ALICE).result(SECONDS)
    assert pool.wait_until_idle(SECONDS)
    assert threading.active_count() <= before + 1  # the last thread may be on its way out
