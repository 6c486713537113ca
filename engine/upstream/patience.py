"""How long and how often the upstream is asked: retries, the circuit breaker, and how many calls run at once."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from engine.port import EngineUnavailable, OutcomeUnknown
from engine.upstream.failures import CircuitOpen, NoAnswer, NotReached, OddAnswer
from engine.upstream.transport import Deadline

RETRY_AFTER_SECONDS = 5
"""What a caller is told to wait when the upstream itself says nothing."""
_T = TypeVar("_T")
_NEVER_REPEATED = (CircuitOpen, OddAnswer)


@dataclass(frozen=True, slots=True)
class Retry:
    """Up to `attempts` tries; the wait doubles from `delay_seconds` to `cap_seconds`, with up to half of it random so
    that many gateways do not come back together. A longer `Retry-After` is honoured."""

    attempts: int = 3
    delay_seconds: float = 0.25
    cap_seconds: float = 10.0
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random

    def call(
        self, once: Callable[[], _T], deadline: Deadline, on_failure: Callable[[EngineUnavailable], None] | None = None
    ) -> _T:
        """The first answer of `once`. Errors: a permanent one at once; when no try or no time is left the last one, or
        an earlier one after which the call may have been carried out."""
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
                is_last = attempt == self.attempts or isinstance(error, _NEVER_REPEATED)
                if is_last or wait >= deadline.left_seconds:
                    raise _with_advice(unknown or error) from error.__cause__
                self.sleep(wait)
        raise AssertionError("at least one attempt is made")

    def _wait_seconds(self, attempt: int, error: EngineUnavailable) -> float:
        backoff = min(self.delay_seconds * 2.0 ** (attempt - 1), self.cap_seconds)
        return max(backoff * (1 - self.jitter() / 2), error.retry_after_seconds or 0)


def _with_advice(error: EngineUnavailable) -> EngineUnavailable:
    error.retry_after_seconds = error.retry_after_seconds or RETRY_AFTER_SECONDS
    return error


class Breaker:
    """Stops asking an upstream that is down: after `threshold` calls in a row that did not get through, nothing is
    sent for `open_seconds`; then one call probes, and its outcome closes or opens the circuit again."""

    def __init__(
        self, threshold: int = 5, open_seconds: float = 5.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._threshold = threshold
        self._open_seconds = open_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._next_try_at = 0.0

    @contextmanager
    def guard(self) -> Iterator[None]:
        """One call. Errors: `CircuitOpen` without making it."""
        self._admit()
        try:
            yield
        except (NotReached, NoAnswer):
            self._failed()
            raise
        except BaseException:
            self._succeeded()  # it answered: whatever it said, it is there
            raise
        self._succeeded()

    def _admit(self) -> None:
        with self._lock:
            if self._failures < self._threshold:
                return
            now = self._clock()
            if now < self._next_try_at:
                wait = max(1, round(self._next_try_at - now))
                raise CircuitOpen("The memory service cannot be reached.", retry_after_seconds=wait)
            self._next_try_at = now + self._open_seconds  # this call is the probe; the others go on waiting

    def _failed(self) -> None:
        with self._lock:
            self._failures += 1
            self._next_try_at = self._clock() + self._open_seconds

    def _succeeded(self) -> None:
        with self._lock:
            self._failures = 0


class Lane:
    """At most `size` calls at once; who gets no place within half of its time is told to come back, since what is sent
    with the last of it would have no known outcome."""

    def __init__(self, size: int) -> None:
        self._places = threading.BoundedSemaphore(size)

    @contextmanager
    def place(self, deadline: Deadline) -> Iterator[None]:
        if not self._places.acquire(timeout=max(deadline.left_seconds / 2, 0)):
            raise EngineUnavailable("The memory service has too much to do.", retry_after_seconds=1)
        try:
            yield
        finally:
            self._places.release()
