"""Retries, circuit breaker and concurrency limits for calls to EverOS."""

from __future__ import annotations

import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakValueDictionary

from core.errors import EngineUnavailable, OutcomeUnknown
from core.http_client import Deadline
from engines.everos.client.failures import CircuitOpen, InvalidResponse, NoAnswer, NotReached, UpstreamFailed

RETRY_AFTER_SECONDS = 5
"""`Retry-After` for callers when EverOS sends none."""
MAX_TRACKED_USERS = 20_000
"""Most users with failures that the breaker remembers."""
_T = TypeVar("_T")
_NOT_RETRIED = (CircuitOpen, InvalidResponse)
_COUNTED_FAILURES = (NotReached, NoAnswer, InvalidResponse)


@dataclass(frozen=True, slots=True)
class Retry:
    """Up to `attempts` tries with exponential backoff from `delay_seconds` to `cap_seconds`.

    Up to half of each wait is random, so that many gateways do not retry together. A longer `Retry-After` is honoured.
    """

    attempts: int = 3
    delay_seconds: float = 0.25
    cap_seconds: float = 10.0
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random

    def call(
        self,
        once: Callable[[], _T],
        deadline: Deadline,
        on_failure: Callable[[EngineUnavailable], None] | None = None,
        *,
        settle_seconds: float = 0.0,
    ) -> _T:
        """Return the first answer of `once`, waiting at least `settle_seconds` after a try that may still be running.

        Raises: a permanent error at once; otherwise, when no try or time is left, the last error, or an earlier one
        after which the call may have been carried out.
        """
        unknown: OutcomeUnknown | None = None
        for attempt in range(1, self.attempts + 1):
            try:
                return once()
            except EngineUnavailable as error:
                if isinstance(error, OutcomeUnknown):
                    unknown = error
                if on_failure:
                    on_failure(error)
                wait = self._wait_seconds(attempt, error)
                if isinstance(error, OutcomeUnknown) and not isinstance(error, UpstreamFailed):
                    wait = max(wait, settle_seconds)
                is_last = attempt == self.attempts or isinstance(error, _NOT_RETRIED)
                if is_last or wait >= deadline.left_seconds:
                    raise _with_retry_after(unknown or error) from error.__cause__
                self.sleep(wait)
        raise AssertionError("at least one attempt is made")

    def _wait_seconds(self, attempt: int, error: EngineUnavailable) -> float:
        backoff = min(self.delay_seconds * 2.0 ** (attempt - 1), self.cap_seconds)
        return max(backoff * (1 - self.jitter() / 2), error.retry_after_seconds or 0)


def _with_retry_after(error: EngineUnavailable) -> EngineUnavailable:
    error.retry_after_seconds = error.retry_after_seconds or RETRY_AFTER_SECONDS
    return error


@dataclass(slots=True)
class _Circuit:
    """Consecutive failures, and the time of the next probe."""

    failures: int = 0
    next_try_at: float = 0.0


_NO_FAILURE = _Circuit()


class Breaker:
    """A circuit breaker per user, and one for all users.

    After `threshold` consecutive connection failures of one user, that user's calls fail for `open_seconds`; then one
    call probes, and its outcome closes or reopens the circuit. When the circuits of `users` users have opened without a
    successful call in between, all users' calls fail in the same way.
    """

    def __init__(
        self,
        threshold: int = 5,
        open_seconds: float = 5.0,
        users: int = 2,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._threshold = threshold
        self._open_seconds = open_seconds
        self._users = users
        self._clock = clock
        self._lock = threading.Lock()
        self._by_user: OrderedDict[Hashable, _Circuit] = OrderedDict()  # users whose last call failed
        self._global = _Circuit()

    def guard(self, user: Hashable) -> _Guard:
        """Return a context manager for one call. Raises on entry: `CircuitOpen`."""
        return _Guard(self, user)

    def require_closed(self, user: Hashable) -> None:
        """Check that a call of this user would be sent, without probing. Raises: `CircuitOpen`."""
        with self._lock:
            self._due(user)

    def admit(self, user: Hashable) -> None:
        with self._lock:
            for circuit in self._due(user):  # this call is the probe; others keep waiting
                circuit.next_try_at = self._clock() + self._open_seconds

    def _due(self, user: Hashable) -> list[_Circuit]:
        """Return the open circuits that are due to be probed; the lock is held. Raises: `CircuitOpen`."""
        own = self._by_user.get(user, _NO_FAILURE)
        asked = ((own, self._threshold), (self._global, self._users))
        stopped = [circuit for circuit, most in asked if circuit.failures >= most]
        if stopped:
            wait = max(circuit.next_try_at for circuit in stopped) - self._clock()
            if wait > 0:
                raise CircuitOpen("The memory service cannot be reached.", retry_after_seconds=max(1, round(wait)))
        return stopped

    def failed(self, user: Hashable) -> None:
        with self._lock:
            own = self._by_user.setdefault(user, _Circuit())
            own.failures += 1
            self._global.failures += own.failures == self._threshold
            own.next_try_at = self._global.next_try_at = self._clock() + self._open_seconds
            self._by_user.move_to_end(user)
            if len(self._by_user) > MAX_TRACKED_USERS:
                self._by_user.popitem(last=False)

    def succeeded(self, user: Hashable) -> None:
        with self._lock:
            if self._global.failures >= self._users:
                self._by_user.clear()
            self._by_user.pop(user, None)
            self._global.failures = 0


class _Guard:
    """One call; its end is reported to the breaker. A class, because a generator would make a search 10 % slower."""

    __slots__ = ("_breaker", "_user")

    def __init__(self, breaker: Breaker, user: Hashable) -> None:
        self._breaker = breaker
        self._user = user

    def __enter__(self) -> None:
        self._breaker.admit(self._user)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, _COUNTED_FAILURES):
            self._breaker.failed(self._user)
        else:
            self._breaker.succeeded(self._user)  # a refusal is an answer too


class PerKeyLimit:
    """At most `size` calls at once for each key."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._by_key: WeakValueDictionary[Hashable, threading.Semaphore] = WeakValueDictionary()

    def slot(self, key: Hashable, deadline: Deadline) -> _Slot:
        """Return a context manager. Raises on entry: `EngineUnavailable` if no slot is free before the deadline."""
        return _Slot((self.semaphore_of(key),), deadline)

    def semaphore_of(self, key: Hashable) -> threading.Semaphore:
        with self._lock:  # a semaphore lives while a call holds or awaits it
            semaphore = self._by_key.get(key)
            if semaphore is None:
                semaphore = self._by_key[key] = threading.Semaphore(self._size)
            return semaphore


class Bulkhead:
    """At most `size` calls at once, and at most `per_user` of one user, so that hanging calls leave room for others.

    A call without a slot after half of its time fails: sent later, it could time out with an unknown outcome.
    """

    def __init__(self, size: int, per_user: int) -> None:
        self._slots = threading.Semaphore(size)
        self._per_user = PerKeyLimit(per_user)

    def slot(self, deadline: Deadline, user: Hashable) -> _Slot:
        """Return a context manager. Raises on entry: `EngineUnavailable`."""
        return _Slot((self._per_user.semaphore_of(user), self._slots), deadline.half())


class _Slot:
    """One permit of each semaphore, acquired in order and held inside `with`."""

    __slots__ = ("_deadline", "_semaphores")

    def __init__(self, semaphores: Sequence[threading.Semaphore], deadline: Deadline) -> None:
        self._semaphores = semaphores
        self._deadline = deadline

    def __enter__(self) -> None:
        for number, semaphore in enumerate(self._semaphores):
            if not semaphore.acquire(timeout=max(self._deadline.left_seconds, 0)):
                self._release(number)
                raise EngineUnavailable("The memory service has too much to do.", retry_after_seconds=1)

    def __exit__(self, *_: object) -> None:
        self._release(len(self._semaphores))

    def _release(self, number: int) -> None:
        for semaphore in self._semaphores[:number]:
            semaphore.release()
