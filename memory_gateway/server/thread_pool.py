"""A thread pool for blocking work of an event loop, shared fairly by callers."""

import asyncio
import contextvars
import math
import queue
import threading
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, Final, NamedTuple, TypeVar

from core.concurrency import FairQueue

SLOW_SECONDS: Final = 0.1
_Result = TypeVar("_Result")


class _Job(NamedTuple):
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    context: contextvars.Context
    call: Callable[[], Any]
    caller: Hashable


class Pool:
    """A pool of at most `size` threads, started on demand; one caller gets at most `share` of them at a time.

    A call that takes longer than `SLOW_SECONDS` mostly waits for something else, such as EverOS, and leaves its
    caller's share. One caller's calls of both kinds get at most half of the threads. Further work is queued; work that
    waits for its caller's share does not delay other callers.

    `concurrent.futures` would wait for its threads at exit, and it costs more per call. Call `run` on one event loop
    only: the counters are not thread-safe.
    """

    def __init__(self, size: int, name: str, *, share: int) -> None:
        self._size = size
        self._name = name
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._threads = 0
        # A job within its caller's share begins without a hop over the event loop: `_jobs` is then its queue.
        self._queue: FairQueue[_Job] = FairQueue(math.inf, share)
        self._timers: dict[asyncio.Future[Any], asyncio.TimerHandle] = {}  # of the calls that are in a share
        self._slow: Counter[Hashable] = Counter()
        self._max_slow = size // 2 - share

    def run(self, call: Callable[[], _Result], caller: Hashable) -> asyncio.Future[_Result]:
        """Run a call in a thread, with a copy of the context variables. The future gets its result or exception."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Result] = loop.create_future()
        self._queue.put(caller, _Job(future, loop, contextvars.copy_context(), call, caller))
        self._begin()
        return future

    def _begin(self) -> None:
        while (job := self._queue.take()) is not None:
            self._start_timer(job)
            if self._queue.running + self._slow.total() > self._threads < self._size:
                self._threads += 1
                threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
            self._jobs.put(job)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            result, error = None, None
            try:
                if not job.future.cancelled():
                    result = job.context.run(job.call)
            except BaseException as raised:  # noqa: BLE001 - not swallowed: the future raises it
                error = raised
            try:
                job.loop.call_soon_threadsafe(self._settle, job, result, error)
            except RuntimeError:  # the event loop is closed
                return

    def _start_timer(self, job: _Job) -> None:
        self._timers[job.future] = job.loop.call_later(SLOW_SECONDS, self._leave_share, job)

    def _leave_share(self, job: _Job) -> None:
        """Let the next call of the same caller begin beside a slow one."""
        if self._slow[job.caller] >= self._max_slow:
            self._start_timer(job)
            return
        del self._timers[job.future]
        self._slow[job.caller] += 1
        self._queue.release(job.caller)
        self._begin()

    def _settle(self, job: _Job, result: Any, error: BaseException | None) -> None:
        """Release the thread, start the next job, and settle the future."""
        if timer := self._timers.pop(job.future, None):
            timer.cancel()
            self._queue.release(job.caller)
        else:
            self._slow -= Counter([job.caller])
        self._begin()
        if job.future.cancelled():
            return
        if error is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)
