"""`run_bounded` runs calls concurrently, up to a limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

from core.limits.concurrency import run_bounded


class SlowCall:
    """A slow call that counts its calls and how many of them ran concurrently."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self.max_concurrent = 0
        self.calls_made = 0

    def __call__(self, result: int) -> int:
        with self._lock:
            self._running += 1
            self.calls_made += 1
            self.max_concurrent = max(self.max_concurrent, self._running)
        time.sleep(0.02 / (result + 1))
        with self._lock:
            self._running -= 1
        return result


def test_results_are_in_the_order_of_the_calls_and_concurrency_is_limited() -> None:
    call = SlowCall()
    assert run_bounded([partial(call, number) for number in range(20)], 3) == list(range(20))
    assert call.max_concurrent == 3


def test_a_single_call_runs_in_the_callers_thread() -> None:
    assert run_bounded([threading.current_thread], 3) == [threading.current_thread()]


def test_no_calls_have_no_results() -> None:
    assert run_bounded([], 3) == []


def test_an_error_is_raised_immediately_and_cancels_waiting_calls() -> None:
    call, released = SlowCall(), threading.Event()

    def fail() -> int:
        raise LookupError

    calls: list[Callable[[], int]] = [lambda: int(released.wait(30)), fail, *(partial(call, 1) for _ in range(50))]
    began = time.monotonic()
    with pytest.raises(LookupError):
        run_bounded(calls, 2)
    assert time.monotonic() - began < 10
    released.set()
    time.sleep(0.2)
    assert call.calls_made == 0
