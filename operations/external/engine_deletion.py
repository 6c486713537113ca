"""Delete in the external engine what was purged, erased or moved out of it.

`remote.deletions` records what is pending. The worker repeats a failed call with backoff, up to a day, until
the engine accepts it.
"""

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final
from uuid import UUID

from core.background.tasks import Round
from core.errors import EngineError
from engines.registry import attached_remote
from operations.models import Lease
from remote import deletions
from resources.services.claims import retry_delay
from store.models import PendingDeletion
from store.port import HEALTH_TIMEOUT_SECONDS, Remote

logger = logging.getLogger("memory_gateway.worker")

LEASE: Final = timedelta(seconds=30)
ROUND: Final = timedelta(seconds=150)
BATCH: Final = 200
IDS_PER_CALL: Final = 50
MAX_WAIT: Final = timedelta(days=1)


def has_work() -> bool:
    """Return True if a remote is attached, and deletions in it are recorded."""
    return attached_remote() is not None and deletions.is_enabled() and PendingDeletion.objects.exists()


def delete_in_engine(run: Round) -> bool:
    """Send due deletions, in one process at a time; return True if there may be more."""
    engine, now = attached_remote(), run.clock()
    if engine is None or not deletions.is_enabled():
        return False
    deletions.forget_accepted(now - deletions.KEPT)
    if not deletions.due(now, 1) or not engine.capabilities()["delete"]:
        return False
    with Lease.objects.held("delete_in_engine", LEASE, run.clock) as is_held:
        if not is_held:
            return False
        rows = deletions.due(now, BATCH)
        is_done = _send(engine, rows, run, now + ROUND)
    return is_done and len(rows) == BATCH


def delete_of_user(user_key: UUID, seconds: float, engine: Remote) -> None:
    """Send all pending deletions of a user, also postponed ones, for about `seconds`; leave the rest to the worker."""
    if not engine.capabilities()["delete"]:
        return
    run = Round()
    until = run.clock() + timedelta(seconds=seconds)
    while rows := deletions.due(run.clock(), BATCH, user_key):
        is_done = _send(engine, rows, run, until)
        if not is_done or any(row.attempts for row in deletions.due(run.clock(), 1, user_key)):
            break


def _send(engine: Remote, rows: list[PendingDeletion], run: Round, until: datetime) -> bool:
    """Send deletions. Return False if they were not all sent because time is up or the engine is unavailable."""
    for group in _grouped(rows):
        if run.should_end() or run.clock() > until:
            return False
        try:
            count = engine.delete_permanently(group)
        except EngineError as error:
            logger.warning("The remote did not accept a deletion, which is retried later: %s", error.detail)
            wait = retry_delay(group[0].attempts + 1, MAX_WAIT)
            deletions.postpone(group, run.clock() + max(wait, timedelta(seconds=error.retry_after_seconds or 0)))
            if engine.health(HEALTH_TIMEOUT_SECONDS).status != "ok":
                return False
        else:
            deletions.accept(group, count, run.clock())
    return True


def _grouped(rows: list[PendingDeletion]) -> Iterator[list[PendingDeletion]]:
    """Yield the deletions of one call: memories of one user and scope, or one session or agent."""

    def key(row: PendingDeletion) -> tuple[str, ...]:
        scope = (str(row.user_key), row.owner_id, row.app_id, row.project_id)
        return scope if row.memory_id else (*scope, str(row.pk))

    for _, group in groupby(sorted(rows, key=key), key):
        of_call = list(group)
        for start in range(0, len(of_call), IDS_PER_CALL):
            yield of_call[start : start + IDS_PER_CALL]
