"""Several calls at once for one caller, but never so many that the others wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from typing import TypeVar

_T = TypeVar("_T")


def in_window(executor: Executor, calls: Sequence[Callable[[], _T]], size: int) -> list[_T]:
    """The results in order, at most `size` calls at a time. Errors: the first call's that fails; calls that have not
    begun are not made then. A single call runs in the caller's own thread."""
    if len(calls) == 1:
        return [calls[0]()]
    results: dict[int, _T] = {}
    running: dict[Future[_T], int] = {}
    waiting = iter(enumerate(calls))
    try:
        while len(results) < len(calls):
            while len(running) < size and (following := next(waiting, None)):
                running[executor.submit(following[1])] = following[0]
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                results[running.pop(done)] = done.result()
    finally:
        for future in running:
            future.cancel()
    return [results[position] for position in range(len(calls))]
