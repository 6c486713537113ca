from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from engines.everos.client.concurrency import run_bounded


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as running:
        yield running


class Busy:
    """Calls that take a while, and how many of them ran at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0
        self.most = 0
        self.made = 0

    def __call__(self, result: int) -> int:
        with self._lock:
            self._now += 1
            self.made += 1
            self.most = max(self.most, self._now)
        time.sleep(0.02 / (result + 1))
        with self._lock:
            self._now -= 1
        return result


def test_results_come_in_the_order_of_the_calls_and_no_more_run_at_once(executor: ThreadPoolExecutor) -> None:
    busy = Busy()
    assert run_bounded(executor, [partial(busy, number) for number in range(20)], 3) == list(range(20))
    assert busy.most == 3


def test_a_single_call_runs_in_the_callers_thread(executor: ThreadPoolExecutor) -> None:
    assert run_bounded(executor, [threading.current_thread], 3) == [threading.current_thread()]


def test_no_calls_have_no_results(executor: ThreadPoolExecutor) -> None:
    assert run_bounded(executor, [], 3) == []


def test_an_error_comes_at_once_and_stops_what_has_not_begun(executor: ThreadPoolExecutor) -> None:
    busy, hangs = Busy(), threading.Event()

    def fail() -> int:
        raise LookupError

    calls: list[Callable[[], int]] = [lambda: int(hangs.wait(30)), fail, *(partial(busy, 1) for _ in range(50))]
    began = time.monotonic()
    with pytest.raises(LookupError):
        run_bounded(executor, calls, 2)
    assert time.monotonic() - began < 10
    hangs.set()
    executor.shutdown()
    assert busy.made == 0
