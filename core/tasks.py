"""Background tasks. Each app registers its own in `tasks.py`; `operations.worker` repeats the periodic ones.

Rows record the pending work. `enqueue` only starts a task sooner; if it is lost, a periodic task finds the row.
"""

import threading
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple, TypeVar

from django.db import connections
from django.utils import timezone

from core import tracing
from core.concurrency import FairPool

_Work = TypeVar("_Work", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Round:
    """The context of one run of a periodic task. `renew` keeps the lease and returns False if it was lost."""

    clock: Callable[[], datetime] = timezone.now
    should_end: Callable[[], bool] = lambda: False
    renew: Callable[[], bool] = lambda: True


class Periodic(NamedTuple):
    """A task that runs at the interval `every`, at most once a round. If it returns True, it runs again next round."""

    name: str
    work: Callable[[Round], object]
    every: timedelta
    when: Callable[[], bool]


@dataclass(slots=True)
class Series:
    """Periodic tasks that one thread of each process runs in order. With a `lease`, one process at a time does."""

    name: str
    lease: timedelta | None = None
    tasks: list[Periodic] = field(default_factory=list)
    wake: threading.Event = field(default_factory=threading.Event)


_pools: dict[str, tuple[Callable[..., object], FairPool]] = {}
_series_of: dict[str, Series] = {}


def task(name: str, *, slots: int) -> Callable[[_Work], _Work]:
    """Register a function for `enqueue`: at most `slots` run at once in a process, users in turn."""

    def register(work: _Work) -> _Work:
        _pools[name] = work, FairPool(slots, name, connections.close_all)
        return work

    return register


def periodic(
    name: str,
    *,
    every: timedelta = timedelta(0),
    when: Callable[[], bool] = lambda: True,
    lease: timedelta | None = None,
    series: Series | None = None,
) -> Callable[[_Work], _Work]:
    """Register a function that the worker repeats while `when()` is true, in its own series unless one is given."""

    def register(work: _Work) -> _Work:
        _series_of[name] = found = series or Series(name, lease)
        found.tasks.append(Periodic(name, work, every, when))
        return work

    return register


def all_series() -> list[Series]:
    """Return every series with a registered task."""
    return list({id(series): series for series in _series_of.values()}.values())


def enqueue(name: str, user: Hashable = None, /, **ids: Hashable) -> Future[None]:
    """Start a task in a thread of this process and return a future that is done after it.

    A task that waits or runs with the same ids is not started twice. The worker runs periodic tasks: if it runs in this
    process, their next round begins now; their future is already done.
    """
    if name in _pools:
        work, pool = _pools[name]
        return pool.submit(tuple(sorted(ids.items())), user, partial(_run, name, tracing.current(), work, ids))
    _series_of[name].wake.set()
    future: Future[None] = Future()
    future.set_result(None)
    return future


def _run(name: str, caller: object, work: Callable[..., object], ids: Mapping[str, Hashable]) -> None:
    """Run a task in a span that is linked to the one in which it was enqueued."""
    with tracing.span(f"task {name}", link=caller):
        work(**ids)


def wait_until_idle(timeout_seconds: float) -> bool:
    """Return True once no enqueued task waits or runs in this process, False if one pool needs longer."""
    return all(pool.wait_until_idle(timeout_seconds) for _, pool in _pools.values())
