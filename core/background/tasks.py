"""Background tasks, declared by Django's Tasks interface in the `tasks.py` of each app.

Guarantees: a task means "look at this queue", and may be lost, doubled or killed: rows record what is pending. Users
take turns in each process. No text or traceback is stored.

Not chosen: django-tasks-db, django-tasks-rq, procrastinate, Celery. In a trial one user's tasks delayed another's by
all their time, and no killed task ran again within a minute. The first stores tracebacks, and begins within 154 ms
(p95, ours 83).

It costs a look every two seconds, and a thread and connection per running task.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from concurrent import futures
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Literal, NamedTuple, ParamSpec, TypeVar, get_args

from django.db import DatabaseError, close_old_connections, connection, connections, transaction
from django.utils import timezone
from django_tasks.base import Task, TaskResult

from core import monitoring
from core.limits.concurrency import FairPool

logger = logging.getLogger("memory_gateway.worker")

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Work = TypeVar("_Work", bound=Callable[..., object])

Queue = Literal["deliveries", "embeddings", "extraction", "ingestion", "jobs", "maintenance", "webhooks"]
QUEUES: Final[tuple[Queue, ...]] = get_args(Queue)
CHANNEL: Final = "memory_gateway"
"""The channel on which PostgreSQL notifies workers of tasks that other processes enqueue."""


@dataclass(slots=True)
class Round:
    """The context of one run of a task. `concurrency` is the number of calls at once, 0 for the default."""

    clock: Callable[[], datetime] = timezone.now
    should_end: Callable[[], bool] = lambda: False
    concurrency: int = 0


_is_working, _is_stopping = threading.Event(), threading.Event()
PROCESS: Final = Round(should_end=_is_stopping.is_set)
"""The context of tasks that a worker or a backend runs: they end when this process stops."""


class Periodic(NamedTuple):
    """A function that one process of the installation runs at the interval `every`; a row records when it is due.

    If it returns True, it runs again next round. While `when` is false, it is not due. `at_start`: it is due too when a
    worker starts, after a process that may have ended in the middle of its work.
    """

    name: str
    work: Callable[[Round], object]
    every: timedelta
    when: Callable[[], bool]
    at_start: bool = False


class Local(NamedTuple):
    """A function that each process repeats, also one that runs no task. `every` 0: each round."""

    name: str
    work: Callable[[Round], object]
    every: timedelta


class _Declared(NamedTuple):
    task: Task[Any, Any]
    pool: FairPool
    share: int | None
    when: Callable[[], bool] | None


PERIODIC: Final[dict[str, Periodic]] = {}
LOCAL: Final[dict[str, Local]] = {}
_declared: dict[str, _Declared] = {}
_queues: Collection[str] = QUEUES


def limit_to(queues: Collection[str], concurrency: int = 0) -> None:
    """Run only tasks of these queues in this process, `concurrency` of each at once (0: as declared).

    Tasks with a `share` keep their slots: they wait for others instead of computing. Call it before a task is enqueued.
    """
    global _queues
    _queues, PROCESS.concurrency = queues, concurrency
    for name, found in _declared.items() if concurrency else ():
        if found.share is None and found.when is None:
            _declared[name] = found._replace(pool=FairPool(concurrency, name, connections.close_all))


def runs(queue: str) -> bool:
    """Return True if this process runs the tasks of the queue."""
    return queue in _queues


def in_threads(
    slots: int = 1, *, share: int | None = None, repeat_when: Callable[[], bool] | None = None
) -> Callable[[Task[_P, _T]], Task[_P, _T]]:
    """Give a task its threads: at most `slots` in a process, `share` for one user, in turn.

    Workers repeat a task with `repeat_when` each round in which that is true: it looks for rows, and takes no ids.
    """

    def declare(task: Task[_P, _T]) -> Task[_P, _T]:
        pool = FairPool(slots, task.name, connections.close_all, share=share)
        _declared[task.name] = _Declared(task, pool, share, repeat_when)
        return task

    return declare


def periodic(
    *, every: timedelta = timedelta(0), when: Callable[[], bool] = lambda: True, at_start: bool = False
) -> Callable[[_Work], _Work]:
    """Declare a function that `operations.tasks.maintain` runs at the interval `every`, in one process of all."""

    def declare(work: _Work) -> _Work:
        PERIODIC[work.__name__] = Periodic(work.__name__, work, every, when, at_start)
        return work

    return declare


def in_each_process(*, every: timedelta = timedelta(0)) -> Callable[[_Work], _Work]:
    """Declare a function that each process repeats."""

    def declare(work: _Work) -> _Work:
        LOCAL[work.__name__] = Local(work.__name__, work, every)
        return work

    return declare


def repeated() -> list[Task[Any, Any]]:
    """Return the tasks that workers repeat."""
    return [found.task for found in _declared.values() if found.when is not None]


def enqueue(name: str, /, **ids: str) -> None:
    """Enqueue a task by its name when the transaction is committed. If that fails, a worker finds the row later."""
    transaction.on_commit(partial(_declared[name].task.enqueue, **ids), robust=True)


def start(name: str, /, **ids: str) -> TaskResult[Any]:
    """Enqueue a task now and return its result. `user` names the user whose turn it is."""
    return _declared[name].task.enqueue(**ids)


def start_here(name: str, /, **ids: str) -> Future[None]:
    """Start a task in this process, whatever the backend: for tasks that start others, which would pile up there."""
    return submit(_declared[name].task, (), ids)


def wait(result: TaskResult[Any], timeout_seconds: float) -> bool:
    """Wait until a task is done, unless other processes run it; return False at the timeout."""
    future: Future[None] | None = getattr(result, "future", None)
    return future is None or not futures.wait([future], timeout_seconds).not_done


def look(queue: str) -> None:
    """Start the repeated tasks of a queue that have something to do."""
    for found in _declared.values():
        if found.task.queue_name != queue or found.when is None:
            continue
        try:
            if found.when():
                submit(found.task, (), {})
        except Exception:
            # The work is still recorded as pending, and other tasks must not wait for it: the next round tries again.
            logger.exception("Task %s could not start", found.task.name)


def submit(task: Task[Any, Any], args: Sequence[Hashable], ids: Mapping[str, Hashable]) -> Future[None]:
    """Run a task in a thread of this process; return a future that is done after it.

    A task that waits or runs with the same ids is not started twice; one without ids that runs looks once more after
    that. The future is done at once if other processes run the task: they are notified, and find its row.
    """
    found = _declared[task.name]
    is_repeated = found.when is not None
    if runs(task.queue_name) and (_is_working.is_set() or not is_repeated):
        call = partial(_run, task, monitoring.current(), args, ids)
        key = (*args, *sorted(ids.items()))
        return found.pool.submit(key, ids.get("user"), call, again=is_repeated)
    if not runs(task.queue_name):
        _notify(task.queue_name)
    future: Future[None] = Future()
    future.set_result(None)
    return future


def begin() -> None:
    """Let this process run repeated tasks."""
    _is_stopping.clear()
    _is_working.set()


def end(timeout_seconds: float) -> bool:
    """Ask the repeated tasks of this process to end; return False if they did not in time."""
    _is_stopping.set()
    _is_working.clear()
    if not _are_idle([found for found in _declared.values() if found.when is not None], timeout_seconds):
        return False
    _is_stopping.clear()
    return True


def wait_until_idle(timeout_seconds: float) -> bool:
    """Return True once no task waits or runs in this process, False if that takes longer."""
    return _are_idle(list(_declared.values()), timeout_seconds)


def close() -> None:
    """Start no further task in this process. Those that run continue."""
    for found in _declared.values():
        found.pool.close()


def _are_idle(declared: Sequence[_Declared], timeout_seconds: float) -> bool:
    until = time.monotonic() + timeout_seconds
    return all(found.pool.wait_until_idle(max(0.0, until - time.monotonic())) for found in declared)


def _notify(queue: str) -> None:
    """Tell the workers that a queue has work. A worker that is not told finds it in its next round."""
    if connection.vendor == "postgresql":
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, queue])
        except DatabaseError as error:
            logger.warning("The workers were not notified: %s", error, extra={"cause": error})


def _run(task: Task[Any, Any], caller: object, args: Sequence[Hashable], ids: Mapping[str, Hashable]) -> None:
    """Run a task in a span that is linked to the one in which it was enqueued."""
    close_old_connections()  # of this thread, if it waited for the task
    with monitoring.span(f"task {task.name}", link=caller):
        task.call(*args, **ids)
