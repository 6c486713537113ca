"""Threads that an event loop hands blocking work to."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections import Counter, deque
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

_Result = TypeVar("_Result")


class _Job(NamedTuple):
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    context: contextvars.Context
    call: Callable[[], Any]
    caller: Hashable


class Pool:
    """At most `size` threads, started as they are needed, and at most half of them for one caller; work beyond that
    waits its turn, and what waits for one caller's share holds up nobody else.

    `concurrent.futures` would do, but its threads hold the process at exit, and it costs more per call. `run` is to
    be called on one event loop only: the counters are touched there and nowhere else.
    """

    def __init__(self, size: int, name: str) -> None:
        self._size = size
        self._share = max(1, size // 2)
        self._name = name
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._threads = 0
        self._busy: Counter[Hashable] = Counter()
        self._waiting: dict[Hashable, deque[_Job]] = {}

    def run(self, call: Callable[[], _Result], caller: Hashable) -> asyncio.Future[_Result]:
        """Calls in a thread, with a copy of the present context variables; what it raises, the future raises."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Result] = loop.create_future()
        job = _Job(future, loop, contextvars.copy_context(), call, caller)
        if self._busy[caller] < self._share:
            self._begin(job)
        else:
            self._waiting.setdefault(caller, deque()).append(job)
        return future

    def _begin(self, job: _Job) -> None:
        self._busy[job.caller] += 1
        if self._busy.total() > self._threads < self._size:
            self._threads += 1
            threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
        self._jobs.put(job)

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
            job.loop.call_soon_threadsafe(self._settle, job, result, error)
        except RuntimeError:
            return False
        return True

    def _settle(self, job: _Job, result: Any, error: BaseException | None) -> None:
        self._end(job.caller)
        if job.future.cancelled():
            return
        if error is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)

    def _end(self, caller: Hashable) -> None:
        """The caller's next work goes on with the share."""
        self._busy[caller] -= 1
        if waiting := self._waiting.get(caller):
            self._begin(waiting.popleft())
            if not waiting:
                del self._waiting[caller]
        elif not self._busy[caller]:
            del self._busy[caller]
