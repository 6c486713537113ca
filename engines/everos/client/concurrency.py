"""Several calls at once for one caller, but never so many that the others wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Executor, wait
from typing import TypeVar

_T = TypeVar("_T")


def run_bounded(executor: Executor, calls: Sequence[Callable[[], _T]], size: int) -> list[_T]:
    """The results in order, at most `size` calls at a time. Errors: the first call's that fails; calls that have not
    begun are not made then. A single call runs in the caller's own thread."""
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
