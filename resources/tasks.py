"""Background tasks of resources: ingestion, and the periodic search for ingestions and deletions left pending."""

from concurrent.futures import Future
from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone
from django_tasks import task

from core.background.tasks import PROCESS, Round, in_threads, periodic
from documents.reader import MAX_CHILDREN
from engines.registry import get_engine
from resources import queries
from resources.services import storage_binding
from resources.services.deletion import finish_deletion
from resources.services.ingestion import start_ingestion, try_ingest
from resources.services.unfinished import unfinished_ingestions
from store.port import HEALTH_TIMEOUT_SECONDS, Engine

RECOVERY: Final = timedelta(seconds=30)
"""The time after the end of an outage in which failures are retried without their backoff. Calls that began in the
outage, or that the circuit breaker refused, still fail in this time."""
RECOVERY_PAUSE: Final = timedelta(seconds=10)
"""The pause between two such retries of one resource, whose failure may have another cause than the outage."""
BATCH: Final = 200


@in_threads(MAX_CHILDREN)
@task(queue_name="ingestion")
def ingest_document(user: str, resource_id: str) -> bool:  # noqa: ARG001  for the fair pool
    """Ingest a document, which the embedded engine reads in a child process of one core."""
    return try_ingest(resource_id)


@in_threads(2)
@task(queue_name="ingestion")
def ingest_text(user: str, resource_id: str) -> bool:  # noqa: ARG001  for the fair pool
    """Ingest a text, which the embedded engine reads itself."""
    return try_ingest(resource_id)


@in_threads(8)
@task(queue_name="ingestion")
def ingest_externally(user: str, resource_id: str) -> bool:  # noqa: ARG001  for the fair pool
    """Ingest a file with an external engine, which only means waiting."""
    return try_ingest(resource_id)


class Reconciler:
    """Starts pending ingestions and finishes pending deletions."""

    def __init__(self, *, engine: Engine | None = None) -> None:
        self._engine = engine
        self._outage_end: datetime | None = None

    def has_ingestions(self, now: datetime) -> bool:
        """Return True if an ingestion is due, or waits for a retry."""
        return bool(unfinished_ingestions(now, 1)) or queries.waiting_for_retry(now).exists()

    def ingest(self, now: datetime) -> list[Future[None]]:
        """Start the ingestions that are due and return their futures."""
        self._retry_after_outage(now)
        return [start_ingestion(resource) for resource in unfinished_ingestions(now, BATCH)]

    def finish_deletions(self, now: datetime) -> int:
        """Clean up deleted resources; return the number of attempts."""
        due = queries.pending_cleanups().filter(retry_at__lte=now)
        pending = list(due.values_list("resource_id", flat=True)[:BATCH])
        if not pending or not storage_binding.may_remove_files():
            return 0
        for resource_id in pending:
            finish_deletion(resource_id, engine=self._engine or get_engine())
        return len(pending)

    def _retry_after_outage(self, now: datetime) -> None:
        """Make failures due at once after an outage, in which their backoff has grown."""
        outage_end = self._outage_end or now  # the start of this process may follow an outage
        self._outage_end = outage_end
        waiting = queries.waiting_for_retry(now)
        if not waiting.exists():
            return
        if (self._engine or get_engine()).health(HEALTH_TIMEOUT_SECONDS).status != "ok":
            self._outage_end = now
        elif now < outage_end + RECOVERY:
            failed_before = max(outage_end, now - RECOVERY_PAUSE)
            waiting.filter(updated_at__lte=failed_before).update(retry_at=now)


_reconciler: Final = Reconciler()


@in_threads(repeat_when=lambda: _reconciler.has_ingestions(timezone.now()))
@task(queue_name="ingestion")
def ingest_pending(run: Round = PROCESS) -> None:
    """Start the ingestions that are due."""
    _reconciler.ingest(run.clock())


@periodic(when=lambda: queries.pending_cleanups().filter(retry_at__lte=timezone.now()).exists())
def finish_deletions(run: Round) -> None:
    """Clean up deleted resources."""
    _reconciler.finish_deletions(run.clock())
