"""The backend of Django's Tasks interface that runs tasks in threads of this process, or notifies other processes."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from django_tasks import TaskResult, TaskResultStatus
from django_tasks.backends.base import BaseTaskBackend
from django_tasks.base import Task
from django_tasks.utils import get_random_id

from core.background import tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(TaskResult[Any]):
    """The result of a task of this backend, which keeps no results: only the future is done some day."""

    future: Future[None]


class ThreadBackend(BaseTaskBackend):
    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.queues = set(tasks.QUEUES)

    def enqueue(self, task: Task[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> TaskResult[Any]:
        """Start the task; see `tasks.submit`."""
        self.validate_task(task)
        return Started(
            task=task,
            id=get_random_id(),
            status=TaskResultStatus.READY,
            enqueued_at=timezone.now(),
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            args=list(args),
            kwargs=dict(kwargs),
            backend=self.alias,
            errors=[],
            worker_ids=[],
            future=tasks.submit(task, args, kwargs),
        )
