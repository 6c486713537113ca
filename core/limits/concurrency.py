"""Bounded concurrency that is fair to users. Imports neither Django nor anything that does."""

import logging
import math
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Final, Generic, TypeVar
from weakref import WeakValueDictionary

from core.errors import EngineUnavailable
from core.messages import Translatable as _

logger = logging.getLogger("memory_gateway.worker")

# The holder of a lock may compute for long, or wait for a database that does not answer. After this time without a
# handover, others proceed without the lock.
TIMEOUT_SECONDS = 0.01
IDLE_SECONDS: Final = 5.0
"""The time for which a thread of a pool waits for another call. A new thread opens a connection."""
_MAX_IDLE: Final = 4
# Called before a wait for another service, or for the client that reads a stream: the thread pool then lets the user's
# next request begin.
before_external_call: ContextVar[Callable[[], object]] = ContextVar("before_external_call", default=lambda: None)
_T = TypeVar("_T")


class FairQueue(Generic[_T]):
    """Items that wait for a slot, in one queue per user. Users take turns; each holds at most `share` of the slots.

    Not thread-safe: callers hold a lock, or use one thread.
    """

    def __init__(self, slots: float, share: int) -> None:
        self._slots = slots
        self._share = share
        self._waiting: OrderedDict[Hashable, deque[_T]] = OrderedDict()
        self._running: Counter[Hashable] = Counter()

    @property
    def running(self) -> int:
        return self._running.total()

    def put(self, user: Hashable, item: _T) -> None:
        self._waiting.setdefault(user, deque()).append(item)

    def take(self) -> _T | None:
        """Give a slot to the next item and return it; None if no item may run now."""
        if self.running >= self._slots:
            return None
        for user, items in self._waiting.items():
            if self._running[user] < self._share:
                self._running[user] += 1
                self._waiting.move_to_end(user)
                item = items.popleft()
                if not items:
                    del self._waiting[user]
                return item
        return None

    def clear(self) -> list[_T]:
        """Remove and return the items that wait."""
        waiting = [item for items in self._waiting.values() for item in items]
        self._waiting.clear()
        return waiting

    def release(self, user: Hashable) -> None:
        """Free a slot of the user."""
        self._running[user] -= 1
        if not self._running[user]:
            del self._running[user]


class FairSemaphore:
    """A semaphore that serves users in turn. With two slots or more, one user cannot hold all of them."""

    def __init__(self, slots: int) -> None:
        self._queue: FairQueue[threading.Event] = FairQueue(slots, max(1, slots - 1))
        self._lock = threading.Lock()

    @contextmanager
    def slot(self, user: Hashable) -> Iterator[None]:
        """Wait for a slot and hold it inside the block."""
        may_run = threading.Event()
        with self._lock:
            self._queue.put(user, may_run)
            self._grant()
        may_run.wait()
        try:
            yield
        finally:
            with self._lock:
                self._queue.release(user)
                self._grant()

    def _grant(self) -> None:
        while (may_run := self._queue.take()) is not None:
            may_run.set()


@dataclass(slots=True)
class _Call:
    key: Hashable
    user: Hashable
    call: Callable[[], object]
    future: Future[None]
    is_running: bool = False
    runs_again: bool = False


class FairPool:
    """A pool of daemon threads that serves users in turn. With two slots or more, one user cannot hold all of them.

    One user holds at most `share` slots, by default all but one. A thread that is without work for `IDLE_SECONDS` calls
    `end_thread` and ends. At exit, calls are abandoned; `concurrent.futures` would wait.
    """

    def __init__(self, slots: int, name: str, end_thread: Callable[[], object], *, share: int | None = None) -> None:
        self._queue: FairQueue[_Call] = FairQueue(slots, share or max(1, slots - 1))
        self._name = name
        self._end_thread = end_thread
        self._condition = threading.Condition()
        self._calls: dict[Hashable, _Call] = {}
        self._threads = self._idle = self._waiting_for_end = 0
        self._handed: deque[_Call] = deque()  # to idle threads
        self._is_closed = False

    def submit(self, key: Hashable, user: Hashable, call: Callable[[], object], *, again: bool = False) -> Future[None]:
        """Queue a call and return a future that is done after it, even if it failed: errors are logged with the key.

        While a call with the same key waits or runs, return its future instead; with `again`, one that runs is then
        repeated once. After `close`, and if no thread can be started, it is canceled.
        """
        with self._condition:
            if queued := self._calls.get(key):
                queued.runs_again |= again and queued.is_running
                return queued.future
            queued = _Call(key, user, call, Future())
            if self._is_closed:
                _cancel(queued.future)
                return queued.future
            self._calls[key] = queued
            self._queue.put(user, queued)
            self._start_threads()
            return queued.future

    def wait_until_idle(self, timeout_seconds: float) -> bool:
        """End idle threads; return True once all calls are done and all threads have ended, False at the timeout."""
        with self._condition:
            self._waiting_for_end += 1
            self._condition.notify_all()
            try:
                return self._condition.wait_for(lambda: not self._calls and not self._threads, timeout_seconds)
            finally:
                self._waiting_for_end -= 1

    def close(self) -> None:
        """Cancel the calls that wait, and start none from now on."""
        with self._condition:
            self._is_closed = True
            for call in self._queue.clear():
                del self._calls[call.key]
                _cancel(call.future)
            self._condition.notify_all()

    def _start_threads(self) -> None:
        while (first := self._queue.take()) is not None:
            if len(self._handed) < self._idle:
                self._handed.append(first)
                self._condition.notify_all()
                continue
            try:
                threading.Thread(target=self._work, args=(first,), name=self._name, daemon=True).start()
            except RuntimeError as error:  # the system has no room; the call must not wait for ever
                logger.warning("Task %s could not start: %s", self._name, error)
                self._queue.release(first.user)
                del self._calls[first.key]
                _cancel(first.future)
            else:
                self._threads += 1

    def _work(self, first: _Call) -> None:
        running: _Call | None = first
        try:
            while running is not None:
                running = self._run(running)
        finally:
            self._end_thread()
            with self._condition:
                self._threads -= 1
                self._condition.notify_all()

    def _run(self, running: _Call) -> _Call | None:
        """Run a call, and return the next one for this thread."""
        running.is_running = True
        try:
            running.call()
        except Exception:
            logger.exception("Task %s failed: %s", self._name, running.key)
        with self._condition:
            self._queue.release(running.user)
            is_over = not running.runs_again or self._is_closed
            running.is_running = running.runs_again = False
            if is_over:
                del self._calls[running.key]
            else:
                self._queue.put(running.user, running)
            following = self._queue.take()
            self._start_threads()  # another user's call may be allowed to run now
        if is_over:
            running.future.set_result(None)
        return following or self._wait()

    def _wait(self) -> _Call | None:
        """Wait for a call in a thread without work; return None if the thread should end."""
        with self._condition:
            if self._idle >= _MAX_IDLE:
                return None
            self._idle += 1
            self._condition.wait_for(lambda: self._handed or self._is_closed or self._waiting_for_end, IDLE_SECONDS)
            self._idle -= 1
            return self._handed.popleft() if self._handed else None


def _cancel(future: Future[None]) -> None:
    future.cancel()
    future.set_running_or_notify_cancel()  # else `concurrent.futures.wait` would wait for it


class Bulkhead:
    """At most `per_key` calls of one key at once, and at most `size` of all keys together."""

    def __init__(self, per_key: int, size: int | None = None) -> None:
        self._per_key = per_key
        self._shared = threading.Semaphore(size) if size else None
        self._lock = threading.Lock()
        self._by_key: WeakValueDictionary[Hashable, threading.Semaphore] = WeakValueDictionary()

    @contextmanager
    def slot(self, key: Hashable, timeout_seconds: float) -> Iterator[None]:
        """Hold a slot inside the block. Raises on entry: `EngineUnavailable` if none becomes free in time."""
        with self._lock:  # the weak dictionary drops a semaphore that no call holds or awaits
            for_key = self._by_key.setdefault(key, threading.Semaphore(self._per_key))
        until = time.monotonic() + timeout_seconds
        with ExitStack() as acquired:
            for semaphore in filter(None, (for_key, self._shared)):
                if not semaphore.acquire(timeout=max(until - time.monotonic(), 0)):
                    raise EngineUnavailable(_("The memory engine is overloaded."), retry_after_seconds=1)
                acquired.callback(semaphore.release)
            yield


def run_bounded(calls: Sequence[Callable[[], _T]], size: int) -> list[_T]:
    """Run the calls, at most `size` at a time, and return their results in order.

    A single call runs in the caller's thread, others in copies of its context.

    Raises: the error of the first call that fails, at once; calls that have not started are skipped then.
    """
    if len(calls) <= 1:
        return [call() for call in calls]
    has_failed = threading.Event()

    def run(call: Callable[[], _T]) -> _T:
        if has_failed.is_set():
            raise CancelledError
        try:
            return call()
        except BaseException:
            has_failed.set()
            raise

    executor = ThreadPoolExecutor(size, thread_name_prefix="side-by-side")
    try:
        running = [executor.submit(copy_context().run, run, call) for call in calls]
        wait(running, return_when=FIRST_EXCEPTION)
        return [call.result() for call in running if call.done()]
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


class ComputeLock:
    """A lock that lets one thread compute at a time, to save CPU time.

    The GIL does so too, but every database read releases it and has to compete for it again: 32 concurrent requests
    cost twice the CPU time of sequential ones. Waiting for this lock costs none.
    """

    def __init__(self, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._timeout_seconds = timeout_seconds
        self._lock = threading.Lock()
        self._acquired_at = math.inf
        self._thread = threading.local()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock inside the block."""
        self._acquire()
        try:
            yield
        finally:
            self._release()

    @contextmanager
    def released(self) -> Iterator[None]:
        """Release the lock inside a block that waits for another service. Use it within `held`."""
        had_lock = self._release()
        try:
            yield
        finally:
            if had_lock:
                self._acquire()

    def _acquire(self) -> None:
        while not self._lock.acquire(timeout=max(self._left_seconds(), 0)):
            if self._left_seconds() <= 0:
                return
        self._acquired_at = time.monotonic()
        self._thread.has_lock = True

    def _left_seconds(self) -> float:
        """Return the time that the holder of the lock has left: all of it, while the lock changes hands."""
        return min(self._timeout_seconds, self._acquired_at + self._timeout_seconds - time.monotonic())

    def _release(self) -> bool:
        """Release the lock and return True if this thread held it."""
        if not getattr(self._thread, "has_lock", False):
            return False
        self._thread.has_lock = False
        self._acquired_at = math.inf
        self._lock.release()
        return True


search_lock = ComputeLock()
