"""Retries and circuit breaker for calls to EverOS."""

import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from core.errors import EngineUnavailable, OutcomeUnknown
from core.messages import Translatable as _
from core.network.http_client import Deadline
from remote.client.failures import (
    CircuitOpen,
    InvalidResponse,
    NoAnswer,
    NotReached,
    ProxyFailed,
    ServiceUnavailable,
    UpstreamFailed,
)

RETRY_AFTER_SECONDS = 5
"""`Retry-After` for callers when EverOS sends none."""
OPEN_SECONDS = 5.0
MAX_FAILURES = 5
"""Consecutive failures of one user that open that user's circuit."""
MAX_FAILING_USERS = 2
"""Users whose circuits opened for lack of an answer, without one in between, that open the circuit of all users."""
MAX_TRACKED_USERS = 20_000
"""The most users with failures that the breaker tracks."""
_T = TypeVar("_T")
_NOT_RETRIED = (CircuitOpen, InvalidResponse)
_COUNTED_FAILURES = (NotReached, NoAnswer, InvalidResponse)
_FAILED_SEARCHES = (UpstreamFailed, ProxyFailed, ServiceUnavailable)
"""Answers to a search that count for its user alone: EverOS is there, and may answer others."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Up to `attempts` tries with exponential backoff from `delay_seconds` to `cap_seconds`.

    Up to half of each wait is random, so that many gateways do not retry together. A longer `Retry-After` is honored.
    """

    attempts: int = 3
    delay_seconds: float = 0.25
    cap_seconds: float = 10.0
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random

    def call(
        self, once: Callable[[], _T], deadline: Deadline, unknown: list[OutcomeUnknown], *, settle_seconds: float = 0.0
    ) -> _T:
        """Return the first answer of `once`, waiting at least `settle_seconds` after a try that may still be running.

        Failures with an unknown outcome are appended to `unknown`. Raises: a permanent error at once; otherwise, when
        no try or time is left, the last of `unknown`, or the last error if there is none.
        """
        for attempt in range(1, self.attempts + 1):
            try:
                return once()
            except EngineUnavailable as error:
                backoff = min(self.delay_seconds * 2.0 ** (attempt - 1), self.cap_seconds)
                wait_seconds = max(backoff * (1 - self.jitter() / 2), error.retry_after_seconds or 0)
                if isinstance(error, OutcomeUnknown):
                    unknown.append(error)
                    if not isinstance(error, UpstreamFailed):
                        wait_seconds = max(wait_seconds, settle_seconds)
                is_last = attempt == self.attempts or isinstance(error, _NOT_RETRIED)
                if is_last or wait_seconds >= deadline.left_seconds:
                    decisive = unknown[-1] if unknown else error
                    decisive.retry_after_seconds = decisive.retry_after_seconds or RETRY_AFTER_SECONDS
                    raise decisive from error.__cause__
                self.sleep(wait_seconds)
        raise AssertionError("at least one attempt is made")


@dataclass(slots=True)
class _Circuit:
    """Consecutive failures, and the time of the next probe."""

    failures: int = 0
    next_try_at: float = 0.0


class Breaker:
    """A circuit breaker per user, and one for all users.

    While a circuit is open, its calls fail. After `OPEN_SECONDS` one call is sent as a probe, and its outcome closes or
    reopens the circuit.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._global = _Circuit()
        self._by_user: OrderedDict[Hashable, _Circuit] = OrderedDict()
        self._lock = threading.Lock()

    def require_closed(self, user: Hashable) -> None:
        """Check that a call of the user would be sent, without probing. Raises: `CircuitOpen`."""
        with self._lock:
            self._due(user)

    @contextmanager
    def guard(self, user: Hashable, *, is_search: bool = False) -> Iterator[None]:
        """Make one call inside the block and count its outcome. Raises on entry: `CircuitOpen`.

        Another call that EverOS answers with 500 counts as answered: its content may be the cause, and searches work.
        """
        with self._lock:
            for circuit in self._due(user):  # this call is the probe; others still fail
                circuit.next_try_at = self._clock() + OPEN_SECONDS
        try:
            yield
        except _COUNTED_FAILURES:
            self._record_failure(user, is_answer=False)
            raise
        except _FAILED_SEARCHES:
            if is_search:
                self._record_failure(user, is_answer=True)
            else:
                self._record_success(user)
            raise
        except BaseException:
            self._record_success(user)  # a refusal is an answer too
            raise
        self._record_success(user)

    def _record_failure(self, user: Hashable, *, is_answer: bool) -> None:
        with self._lock:
            own = self._by_user.setdefault(user, _Circuit())
            own.failures += 1
            own.next_try_at = self._clock() + OPEN_SECONDS
            if is_answer:
                self._global.failures = 0
            else:
                self._global.failures += own.failures == MAX_FAILURES
                self._global.next_try_at = own.next_try_at
            self._by_user.move_to_end(user)
            if len(self._by_user) > MAX_TRACKED_USERS:
                self._by_user.popitem(last=False)

    def _due(self, user: Hashable) -> list[_Circuit]:
        """Return the open circuits that are due to be probed; the lock is held. Raises: `CircuitOpen`."""
        own = self._by_user.get(user, _Circuit())
        limits = ((own, MAX_FAILURES), (self._global, MAX_FAILING_USERS))
        opened = [circuit for circuit, limit in limits if circuit.failures >= limit]
        wait_seconds = max((circuit.next_try_at for circuit in opened), default=0.0) - self._clock()
        if opened and wait_seconds > 0:
            raise CircuitOpen(
                _("The memory engine cannot be reached."), retry_after_seconds=max(1, round(wait_seconds))
            )
        return opened

    def _record_success(self, user: Hashable) -> None:
        with self._lock:
            if self._global.failures >= MAX_FAILING_USERS:
                self._by_user.clear()
            self._by_user.pop(user, None)
            self._global.failures = 0
