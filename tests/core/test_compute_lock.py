"""`ComputeLock` lets one thread compute at a time, and a holder that hangs delays the others only briefly."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from core.limits.concurrency import ComputeLock, search_lock
from core.persistence.sql import search_lock_on_sqlite


def max_concurrent(lock: ComputeLock, threads: int, *, release_while_working: bool) -> int:
    """Return the largest number of threads that worked at the same time."""
    at_work, maximum, counting = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal at_work, maximum
        with counting:
            at_work += 1
            maximum = max(maximum, at_work)
        time.sleep(0.01)
        with counting:
            at_work -= 1

    def use_lock() -> None:
        with lock.held():
            if release_while_working:
                with lock.released():
                    work()
            else:
                work()

    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(use_lock) for _ in range(threads)]:
            future.result()
    return maximum


def test_one_thread_computes_at_a_time() -> None:
    assert max_concurrent(ComputeLock(timeout_seconds=10), 8, release_while_working=False) == 1


def test_waiting_threads_wait_longer_than_the_timeout_while_the_lock_changes_hands() -> None:
    assert max_concurrent(ComputeLock(timeout_seconds=0.3), 64, release_while_working=False) == 1  # 64 times 10 ms


def test_released_lets_other_threads_compute() -> None:
    assert max_concurrent(ComputeLock(timeout_seconds=10), 8, release_while_working=True) > 1


def test_the_lock_is_held_again_after_released() -> None:
    lock = ComputeLock(timeout_seconds=0.01)
    with lock.held():
        with lock.released():
            pass
        assert is_taken(lock)
    assert not is_taken(lock)


def test_a_holder_that_hangs_blocks_others_only_until_the_timeout() -> None:
    lock = ComputeLock(timeout_seconds=0.01)
    with lock.held(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(max_concurrent, lock, 1, release_while_working=False).result(timeout=5) == 1
        assert is_taken(lock)  # the thread that proceeded without the lock did not release it


def test_a_thread_that_comes_late_does_not_wait_for_a_holder_that_had_its_time() -> None:
    lock, began = ComputeLock(timeout_seconds=10), time.monotonic()
    with lock.held():
        lock._acquired_at -= 10
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(max_concurrent, lock, 1, release_while_working=False).result(timeout=9) == 1
    assert time.monotonic() - began < 9


def test_an_exception_releases_the_lock() -> None:
    lock = ComputeLock(timeout_seconds=10)
    with pytest.raises(ValueError, match="bad"), lock.held():
        raise ValueError("bad")
    assert not is_taken(lock)


def test_released_without_holding_the_lock_does_nothing() -> None:
    lock = ComputeLock(timeout_seconds=0.01)
    with lock.released():
        pass
    with lock.held():
        assert is_taken(lock)


def test_searches_take_the_lock_on_sqlite_only() -> None:
    with search_lock_on_sqlite():
        assert is_taken(search_lock) == (connection.vendor == "sqlite")


def is_taken(lock: ComputeLock) -> bool:
    return lock._lock.locked()
