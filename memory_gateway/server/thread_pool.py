"""A thread pool for blocking work of an event loop, shared fairly by callers."""

import asyncio
import contextvars
import math
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from core.limits.concurrency import FairQueue, before_external_call

SLOW_SECONDS: Final = 0.1
COMPUTING_SHARE: Final = 0.02
"""Of `SLOW_SECONDS`. A call that uses less of the CPU waits; one that computes gets at least this on a busy machine."""
MAX_WAITING: Final = 7
_Result = TypeVar("_Result")


@dataclass(eq=False, slots=True)
class _Job:
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    context: contextvars.Context
    call: Callable[[], Any]
    caller: Hashable
    clock: int | None = None
    """The CPU clock of the thread that runs the call, where the system has one."""
    cpu_seconds: float = 0.0


class Pool:
    """A pool of at most `size` threads, started on demand; one caller gets at most `share` of them at a time.

    A call leaves its caller's share when it calls another service, if fewer than `MAX_WAITING` calls of the caller have
    left, and otherwise once it waits for `SLOW_SECONDS`. One that computes stays, because threads share the
    interpreter. All calls of one caller get at most half of the threads. Work that waits for its caller's share delays
    no other caller.

    `concurrent.futures` would wait at exit. Call `run` on one event loop only: the counters are not thread-safe.
    """

    def __init__(
        self, size: int, name: str, *, share: int, read_clock: Callable[[int], float] = time.clock_gettime
    ) -> None:
        self._size = size
        self._name = name
        self._read_clock = read_clock
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._threads = 0
        # A job within its caller's share begins without a hop over the event loop: `_jobs` is then its queue.
        self._queue: FairQueue[_Job] = FairQueue(math.inf, share)
        self._timers: dict[asyncio.Future[Any], asyncio.TimerHandle] = {}  # of the calls that are in a share
        self._outside: Counter[Hashable] = Counter()  # calls that have left their caller's share
        self._max_outside = size // 2 - share

    def run(self, call: Callable[[], _Result], caller: Hashable) -> asyncio.Future[_Result]:
        """Run a call in a thread, with a copy of the context variables. The future gets its result or exception."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Result] = loop.create_future()
        job = _Job(future, loop, contextvars.copy_context(), call, caller)
        job.context.run(before_external_call.set, partial(self._wait_outside, job))
        self._queue.put(caller, job)
        self._begin()
        return future

    def _begin(self) -> None:
        while (job := self._queue.take()) is not None:
            self._start_timer(job)
            if self._queue.running + self._outside.total() > self._threads < self._size:
                self._threads += 1
                threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
            self._jobs.put(job)

    def _work(self) -> None:
        clock = time.pthread_getcpuclockid(threading.get_ident()) if sys.platform == "linux" else None
        while True:
            job = self._jobs.get()
            result, error = None, None
            if clock is not None:
                job.cpu_seconds, job.clock = self._read_clock(clock), clock
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
        self._timers[job.future] = job.loop.call_later(SLOW_SECONDS, self._end_timer, job)

    def _end_timer(self, job: _Job) -> None:
        if self._is_computing(job) or not self._leave_share(job, self._max_outside):
            self._start_timer(job)

    def _is_computing(self, job: _Job) -> bool:
        """Return True if the call has used the CPU since it began, or since this was last asked."""
        if job.clock is None:
            return False
        before, job.cpu_seconds = job.cpu_seconds, self._read_clock(job.clock)
        return job.cpu_seconds - before >= SLOW_SECONDS * COMPUTING_SHARE

    def _wait_outside(self, job: _Job) -> None:
        """Leave the caller's share, from the thread of the call."""
        with suppress(RuntimeError):  # the event loop is closed
            job.loop.call_soon_threadsafe(self._leave_share, job, min(MAX_WAITING, self._max_outside))

    def _leave_share(self, job: _Job, limit: int) -> bool:
        """Let the next call of the same caller begin beside this one. Return False if `limit` calls have left."""
        if self._outside[job.caller] >= limit:
            return False
        if timer := self._timers.pop(job.future, None):  # else the call has left already, or ended
            timer.cancel()
            self._outside[job.caller] += 1
            self._queue.release(job.caller)
            self._begin()
        return True

    def _settle(self, job: _Job, result: Any, error: BaseException | None) -> None:
        """Release the thread, start the next job, and settle the future."""
        if timer := self._timers.pop(job.future, None):
            timer.cancel()
            self._queue.release(job.caller)
        else:
            self._outside[job.caller] -= 1
            if not self._outside[job.caller]:
                del self._outside[job.caller]
        self._begin()
        if job.future.cancelled():
            return
        if error is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)
