"""Bounded parallel calls on a shared executor."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Executor, wait
from typing import TypeVar

_T = TypeVar("_T")


def run_bounded(executor: Executor, calls: Sequence[Callable[[], _T]], size: int) -> list[_T]:
    """Run the calls, at most `size` at a time, and return their results in order.

    A single call runs in the caller's thread. Raises: the error of the first call that fails; calls that have not
    started are skipped then.
    """
    if len(calls) == 1:
        return [calls[0]()]
    waiting = deque(enumerate(calls))
    results: dict[int, _T] = {}

    def work() -> None:
        while waiting:
            try:
                position, call = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            results[position] = call()

    workers = [executor.submit(work) for _ in range(min(size, len(calls)))]
    try:
        for done in wait(workers, return_when=FIRST_EXCEPTION).done:
            done.result()
    finally:
        waiting.clear()
        for worker in workers:
            worker.cancel()
    return [results[position] for position in range(len(calls))]
