"""Periodic tasks of the installation: each has a row with the time at which it is due, which a process claims."""

import logging
from datetime import datetime, timedelta
from typing import Final

from core.background.leases import claimed
from core.background.tasks import PERIODIC, Periodic, Round
from operations.models import Lease

logger = logging.getLogger("memory_gateway.worker")

LEASE: Final = timedelta(seconds=30)
RETRY: Final = timedelta(minutes=10)
"""The longest time after which a task that failed is due again."""


def note_start() -> None:
    """Let the tasks with `at_start` be due now."""
    Lease.objects.filter(name__in=[one.name for one in PERIODIC.values() if one.at_start]).update(due_at=None)


def due(now: datetime) -> list[Periodic]:
    """Return the periodic tasks that are due and that no process runs. A task that never ran is due."""
    rows = {row.name: row for row in Lease.objects.filter(name__in=PERIODIC)}
    return [one for one in PERIODIC.values() if _is_due(one, rows.get(one.name), now) and one.when()]


def run_due(run: Round) -> None:
    """Run the periodic tasks that are due, one after the other."""
    for one in due(run.clock()):
        if run.should_end():
            return
        try:
            _run(one, run)
        except Exception:
            # The others must not wait for it, and it is due again soon.
            logger.exception("The periodic task %s failed", one.name)


def _run(one: Periodic, run: Round) -> None:
    now = run.clock()
    row, _is_new = Lease.objects.get_or_create(name=one.name)
    unchanged = Lease.objects.filter(name=one.name, due_at=row.due_at)
    if not _is_due(one, row, now):
        return
    with claimed(unchanged, 1, LEASE, clock=run.clock) as taken:
        for mine in taken:
            due_at = now + min(one.every, RETRY)
            try:
                due_at = now if one.work(run) is True else now + one.every
            finally:
                Lease.objects.filter(name=one.name, lease_holder=mine.lease_holder).update(due_at=due_at)


def _is_due(one: Periodic, row: Lease | None, now: datetime) -> bool:
    """Return True also for a time that only a clock that was wrong can have written."""
    if row is None or row.due_at is None:
        return True
    is_time = row.due_at <= now or row.due_at > now + max(one.every, RETRY)
    return is_time and not row.is_held(now)
