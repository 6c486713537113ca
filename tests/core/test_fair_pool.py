from __future__ import annotations

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Hashable
from concurrent.futures import Future

import pytest

from core.limits.concurrency import FairPool

ALICE, BOB = uuid.uuid4(), uuid.uuid4()
SECONDS = 10


class Pool:
    """A pool that records the threads that have ended."""

    def __init__(self, work: Callable[[str], object], slots: int) -> None:
        self.ended: list[threading.Thread] = []
        self._work: Callable[[str], object] = work
        self._pool = FairPool(slots, "tests", lambda: self.ended.append(threading.current_thread()))
        self.wait_until_idle = self._pool.wait_until_idle

    def wait_for_idle_thread(self) -> None:
        """Wait until the thread of a call that is done waits for another."""
        deadline = time.monotonic() + SECONDS
        while not self._pool._idle:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def replace(self, work: Gate) -> Gate:
        self._work = work
        return work

    def submit(self, name: str, user: Hashable) -> Future[None]:
        return self._pool.submit(name, user, lambda: self._work(name))


class Gate:
    """Work that records its start and then waits for `open`."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self._changed = threading.Condition()
        self._open = False

    def __call__(self, name: str) -> None:
        with self._changed:
            self.started.append(name)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._open, SECONDS)

    def open(self) -> None:
        with self._changed:
            self._open = True
            self._changed.notify_all()

    def wait_for(self, count: int) -> list[str]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.started) >= count, SECONDS)
            return list(self.started)


def test_one_user_cannot_hold_all_slots() -> None:
    gate = Gate()
    pool = Pool(gate, slots=2)
    for number in range(5):
        pool.submit(f"a{number}", ALICE)
    gate.wait_for(1)
    pool.submit("b0", BOB)
    assert set(gate.wait_for(2)) == {"a0", "b0"}
    gate.open()
    assert pool.wait_until_idle(SECONDS)
    assert len(gate.started) == 6


def test_users_take_turns() -> None:
    order: list[str] = []
    start = threading.Event()

    def work(name: str) -> None:
        assert start.wait(SECONDS)
        order.append(name)

    pool = Pool(work, slots=1)
    for name, user in [("a0", ALICE), ("a1", ALICE), ("a2", ALICE), ("b0", BOB), ("b1", BOB)]:
        pool.submit(name, user)
    start.set()
    assert pool.wait_until_idle(SECONDS)
    assert order == ["a0", "a1", "b0", "a2", "b1"]


def test_a_key_that_waits_or_runs_is_not_submitted_twice() -> None:
    gate = Gate()
    pool = Pool(gate, slots=2)
    futures = {id(pool.submit(name, ALICE)) for name in ("a0", "a1") * 3}
    assert len(futures) == 2
    gate.open()
    assert pool.wait_until_idle(SECONDS)
    assert Counter(gate.started) == {"a0": 1, "a1": 1}


def test_an_exception_ends_one_call_and_not_the_pool(caplog: pytest.LogCaptureFixture) -> None:
    def work(name: str) -> None:
        if name == "bad":
            raise ZeroDivisionError

    pool = Pool(work, slots=1)
    bad, good = pool.submit("bad", ALICE), pool.submit("good", ALICE)
    bad.result(SECONDS)
    good.result(SECONDS)
    assert "Task tests failed: bad" in caplog.text


def test_a_thread_without_work_ends() -> None:
    pool = Pool(lambda _: None, slots=2)
    pool.submit("a0", ALICE).result(SECONDS)
    assert pool.wait_until_idle(SECONDS)
    [thread] = pool.ended
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_a_thread_without_work_waits_for_the_next_call() -> None:
    ran_in: list[threading.Thread] = []
    pool = Pool(lambda _: ran_in.append(threading.current_thread()), slots=2)
    for number in range(5):
        pool.submit(f"a{number}", ALICE).result(SECONDS)
        pool.wait_for_idle_thread()
    assert len(set(ran_in)) == 1
    assert not pool.ended
    assert pool.wait_until_idle(SECONDS)
    assert pool.ended == ran_in[:1]


def test_the_calls_of_a_turn_run_side_by_side_after_a_pause() -> None:
    gate = Gate()
    pool = Pool(gate, slots=2)
    gate.open()
    pool.submit("a0", ALICE).result(SECONDS)
    pool.wait_for_idle_thread()
    gate = pool.replace(Gate())
    pool.submit("a1", ALICE)
    pool.submit("b1", BOB)
    assert set(gate.wait_for(2)) == {"a1", "b1"}
    gate.open()
    assert pool.wait_until_idle(SECONDS)


def test_a_call_whose_thread_cannot_start_is_canceled_and_can_be_submitted_again() -> None:
    done: list[str] = []
    pool = Pool(done.append, slots=1)
    former = threading.stack_size(2**47)  # more than a process can have
    try:
        future = pool.submit("a", ALICE)
    finally:
        threading.stack_size(former)
    assert future.cancelled()
    pool.submit("a", ALICE).result(SECONDS)
    assert done == ["a"]
    assert pool.wait_until_idle(SECONDS)
