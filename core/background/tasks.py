"""Background tasks. Each app registers its own in `tasks.py`; `operations.worker` repeats the periodic ones.

Rows record the pending work. `enqueue` only starts a task sooner; if it is lost, a periodic task finds the row. Each
task belongs to a queue, and a process runs the tasks of the queues that `limit_to` named, by default of all.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Literal, NamedTuple, TypeVar, get_args

from django.db import DatabaseError, connection, connections
from django.utils import timezone

from core import monitoring
from core.limits.concurrency import FairPool

logger = logging.getLogger("memory_gateway.worker")

_Work = TypeVar("_Work", bound=Callable[..., object])

Queue = Literal["deliveries", "embeddings", "extraction", "ingestion", "jobs", "maintenance", "webhooks"]
QUEUES: Final[tuple[Queue, ...]] = get_args(Queue)
CHANNEL: Final = "memory_gateway"
"""The channel on which PostgreSQL notifies workers of tasks that other processes enqueue."""


@dataclass(frozen=True, slots=True)
class Round:
    """The context of one run of a periodic task. `concurrency` is the number of calls at once, 0 for the default."""

    clock: Callable[[], datetime] = timezone.now
    should_end: Callable[[], bool] = lambda: False
    concurrency: int = 0


class Periodic(NamedTuple):
    """A task that runs at the interval `every`, at most once a round. If it returns True, it runs again next round."""

    name: str
    work: Callable[[Round], object]
    every: timedelta
    when: Callable[[], bool]


@dataclass(slots=True)
class Series:
    """Periodic tasks that one thread of each process runs in order. With a `lease`, one process at a time does.

    Without a queue, every process runs them, also those that run no other task.
    """

    name: str
    queue: Queue | None = None
    lease: timedelta | None = None
    tasks: list[Periodic] = field(default_factory=list)
    wake: threading.Event = field(default_factory=threading.Event)


class _Task(NamedTuple):
    work: Callable[..., object]
    queue: Queue
    pool: FairPool
    share: int | None


_tasks: dict[str, _Task] = {}
_series_of: dict[str, Series] = {}
_queues: Collection[str] = QUEUES


def limit_to(queues: Collection[str], concurrency: int = 0) -> None:
    """Run only tasks of these queues in this process, `concurrency` of each name at once (0: as registered).

    Tasks with a `share` keep their slots: they wait for others instead of computing. Call it before a task is enqueued.
    """
    global _queues  # noqa: PLW0603
    _queues = queues
    for name, found in _tasks.items() if concurrency else ():
        if found.share is not None:
            continue
        _tasks[name] = found._replace(pool=FairPool(concurrency, name, connections.close_all))


def runs(queue: Queue | None) -> bool:
    """Return True if this process runs the tasks of the queue."""
    return queue is None or queue in _queues


def task(name: str, *, queue: Queue, slots: int, share: int | None = None) -> Callable[[_Work], _Work]:
    """Register a function for `enqueue`: at most `slots` run at once in a process, `share` of one user, in turn."""

    def register(work: _Work) -> _Work:
        _tasks[name] = _Task(work, queue, FairPool(slots, name, connections.close_all, share=share), share)
        return work

    return register


def periodic(
    name: str,
    *,
    queue: Queue | None = None,
    every: timedelta = timedelta(0),
    when: Callable[[], bool] = lambda: True,
    lease: timedelta | None = None,
    series: Series | None = None,
) -> Callable[[_Work], _Work]:
    """Register a function that the worker repeats while `when()` is true, in its own series unless one is given."""

    def register(work: _Work) -> _Work:
        _series_of[name] = found = series or Series(name, queue, lease)
        found.tasks.append(Periodic(name, work, every, when))
        return work

    return register


def all_series() -> list[Series]:
    """Return every series with a registered task."""
    return list({id(series): series for series in _series_of.values()}.values())


def enqueue(name: str, user: Hashable = None, /, **ids: Hashable) -> Future[None]:
    """Start a task in a thread of this process and return a future that is done after it.

    A task that waits or runs with the same ids is not started twice. The next round of a periodic task begins now; its
    future is already done. So is the future of a task that other processes run: they are notified, and find its row.
    """
    found = _tasks.get(name)
    queue = found.queue if found else _series_of[name].queue
    if not runs(queue):
        _notify(str(queue))
    elif found:
        key = tuple(sorted(ids.items()))
        return found.pool.submit(key, user, partial(_run, name, monitoring.current(), found.work, ids))
    else:
        _series_of[name].wake.set()
    future: Future[None] = Future()
    future.set_result(None)
    return future


def wake(queue: str) -> None:
    """Begin the next round of the periodic tasks of a queue now."""
    for series in all_series():
        if series.queue == queue:
            series.wake.set()


def _notify(queue: str) -> None:
    """Tell the workers that a queue has work. A worker that is not told finds it in its next round."""
    if connection.vendor == "postgresql":
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, queue])
        except DatabaseError as error:
            logger.warning("The workers were not notified: %s", error, extra={"cause": error})


def _run(name: str, caller: object, work: Callable[..., object], ids: Mapping[str, Hashable]) -> None:
    """Run a task in a span that is linked to the one in which it was enqueued."""
    with monitoring.span(f"task {name}", link=caller):
        work(**ids)


def wait_until_idle(timeout_seconds: float) -> bool:
    """Return True once no enqueued task waits or runs in this process, False if that takes longer."""
    until = time.monotonic() + timeout_seconds
    return all(found.pool.wait_until_idle(max(0.0, until - time.monotonic())) for found in _tasks.values())


def close() -> None:
    """Start no further enqueued task in this process. Those that run continue."""
    for found in _tasks.values():
        found.pool.close()
