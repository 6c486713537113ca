"""A thread pool for blocking work of an event loop, shared fairly by callers."""

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
    """A pool of at most `size` threads, started on demand; one caller gets at most half of them.

    Further work is queued; work that waits for its caller's share does not delay other callers.

    `concurrent.futures` would wait for its threads at exit, and it costs more per call. Call `run` on one event loop
    only: the counters are not thread-safe.
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
        """Run a call in a thread, with a copy of the context variables. The future gets its result or exception."""
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
        while self._run_job(self._jobs.get()):
            pass

    def _run_job(self, job: _Job) -> bool:
        """Run a job. Return False once the event loop is closed, which ends the thread."""
        result, error = None, None
        try:
            if not job.future.cancelled():
                result = job.context.run(job.call)
        except BaseException as raised:  # noqa: BLE001 - not swallowed: the future raises it
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
        """Release a thread and start the caller's next job."""
        self._busy[caller] -= 1
        if waiting := self._waiting.get(caller):
            self._begin(waiting.popleft())
            if not waiting:
                del self._waiting[caller]
        elif not self._busy[caller]:
            del self._busy[caller]
