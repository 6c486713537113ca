"""Threads that an event loop hands blocking work to."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

_Result = TypeVar("_Result")


class _Job(NamedTuple):
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    context: contextvars.Context
    call: Callable[[], Any]


class Pool:
    """At most `size` threads, started as they are needed; work beyond that waits its turn.

    `concurrent.futures` would do, but its threads hold the process at exit, and it costs more per call. `run` is to
    be called on one event loop only: the counters are touched there and nowhere else.
    """

    def __init__(self, size: int, name: str) -> None:
        self._size = size
        self._name = name
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._threads = 0
        self._busy = 0

    def run(self, call: Callable[[], _Result]) -> asyncio.Future[_Result]:
        """Calls in a thread, with a copy of the present context variables; what it raises, the future raises."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Result] = loop.create_future()
        self._busy += 1
        if self._busy > self._threads < self._size:
            self._threads += 1
            threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
        self._jobs.put(_Job(future, loop, contextvars.copy_context(), call))
        return future

    def _work(self) -> None:
        while self._carry_out(self._jobs.get()):
            pass

    def _carry_out(self, job: _Job) -> bool:
        """False once the loop is closed: nobody waits for this thread any more."""
        result, error = None, None
        try:
            if not job.future.cancelled():
                result = job.context.run(job.call)
        except BaseException as raised:  # noqa: BLE001 - not swallowed: it is raised where the future is awaited
            error = raised
        try:
            job.loop.call_soon_threadsafe(self._settle, job.future, result, error)
        except RuntimeError:
            return False
        return True

    def _settle(self, future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        self._busy -= 1
        if future.cancelled():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
