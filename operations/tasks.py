"""Background tasks of operations: jobs, file clean-up, trash, integrity, unconfirmed calls to an external engine."""

import logging
from datetime import timedelta
from itertools import islice
from typing import Final

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.utils import timezone
from django_tasks import task

from accounts import audit, audit_chain, controls, expiry, idempotency, oauth, oidc, portal_links, sessions, sign_in
from accounts.audit import Actor
from core.background.tasks import PROCESS, Round, in_each_process, in_threads, periodic
from core.persistence import database_errors
from memories.services import search_log
from operations import bulk, erase, files, jobs, operator_jobs, periodic_tasks
from operations.cleanup import incognito, orphans, purge
from operations.external import engine_deletion
from operations.external.delivery_retry import DeliveryRetry
from operations.importers import import_from, import_gateway
from remote import former_moves, sources
from resources.services import refused, storage_binding
from store import derived, rollups
from store.index import keyword
from store.models import Session
from webhooks.services import delivery as webhook_delivery

CLEAN_UP_EVERY: Final = timedelta(minutes=10)
PURGES_PER_RUN: Final = 50
INDEXED_BATCHES: Final = 4
LINKED_SESSIONS: Final = 100
HANDLERS: Final = (bulk, import_from, import_gateway, operator_jobs)
"""The modules that add their kinds of jobs to `jobs.KINDS` when they are imported."""


logger = logging.getLogger("memory_gateway.database")

INCOGNITO_EVERY: Final = timedelta(seconds=15)
SEALED_EVERY: Final = timedelta(minutes=1)
_SHOWN_CHARS = 500


@periodic(every=CLEAN_UP_EVERY, at_start=True)
def clean_up(run: Round) -> int:
    """Finish erasures; remove what is old or has no row. Return the number of removed files."""
    now = run.clock()
    idempotency.forget_old(now)
    controls.forget_old(now)
    audit.add_missing_subjects(now)
    may_purge = purge.may_purge(now)
    if may_purge:
        oauth.forget_old(now)
        oidc.forget_old(now)
        portal_links.forget_old(now)
        sessions.clear_expired()
        sign_in.forget_old(now)
        audit.delete_old(now)
        if settings.MEMORY_GATEWAY_AUDIT_DAYS:
            audit_chain.drop_old(now, settings.MEMORY_GATEWAY_AUDIT_DAYS)
        jobs.delete_old(now)
        webhook_delivery.delete_old(now)
        search_log.delete_old(now)
        refused.delete_old(now)
    if not storage_binding.may_remove_files():
        return 0
    for user_pk in erase.unfinished(begun_before=now - CLEAN_UP_EVERY):
        erase.finish(user_pk)
    return orphans.clear(now) + files.remove_old_archives(now) if may_purge else 0


@periodic(every=SEALED_EVERY)
def seal_audit_trail(run: Round) -> bool:
    """Chain the new audit events; return True if more wait."""
    return audit_chain.seal(run.clock())


@periodic(every=INCOGNITO_EVERY, when=lambda: incognito.ended(timezone.now()).exists(), at_start=True)
def purge_incognito(_run: Round) -> None:
    """Purge the incognito sessions that have ended, also after a jump of the clock."""
    incognito.purge_ended()


@periodic(every=timedelta(days=1))
def purge_trash(run: Round) -> bool:
    """Purge a part of the trash; return True if there may be more."""
    if purge.retention() is None or not storage_binding.may_remove_files() or not purge.may_purge(run.clock()):
        return False
    counts = purge.purge_trash(actor=Actor.system("worker"), limit=PURGES_PER_RUN)
    return max(counts.memories + counts.sessions, counts.resources) >= PURGES_PER_RUN


def _has_due() -> bool:
    return bool(periodic_tasks.due(timezone.now()))


@in_threads(repeat_when=_has_due)
@task(queue_name="maintenance")
def maintain(run: Round = PROCESS) -> None:
    """Run the periodic tasks that are due, one after the other."""
    periodic_tasks.run_due(run)


@in_threads(repeat_when=lambda: rollups.has_pending() or jobs.has_pending())
@task(queue_name="jobs")
def run_jobs(run: Round = PROCESS) -> None:
    """Settle the rollups and run jobs until none is queued.

    A stop ends the running job after its step; another process continues it.
    """
    rollups.settle()
    while not run.should_end() and jobs.run_next(should_end=run.should_end) is not None:
        pass


@periodic(when=lambda: bool(derived.pending_count()))
def index_words(run: Round) -> bool:
    """Put a part of the memories that wait into the keyword index; return True if there may be more."""
    for _ in islice(derived.fill(), INDEXED_BATCHES):
        if run.should_end():
            return False
    return bool(derived.pending_count())


@periodic(every=timedelta(days=1))
def merge_keywords(_run: Round) -> bool:
    """Merge a part of the keyword index; return True if there may be more."""
    return keyword.merge()


@periodic(when=lambda: sources.not_linked().exists())
def link_sources(run: Round) -> bool:
    """Link sessions of an older version to what a remote derived from them; return True if there may be more."""
    for pk in sources.not_linked()[:LINKED_SESSIONS]:
        if run.should_end():
            return True
        with transaction.atomic():
            sources.link(Session.objects.select_for_update().select_related("user").get(pk=pk))
    return sources.not_linked().exists()


@periodic(every=timedelta(days=1))
def end_former_moves(_run: Round) -> None:
    """Remove the hidden sessions of interrupted moves of an older version."""
    former_moves.end_former_moves()


@in_each_process(every=timedelta(days=1))
def check_integrity(_run: Round) -> None:
    """Check a SQLite database; record and log damage. Each process must detect it itself to stop writing."""
    if connection.vendor == "sqlite" and not database_errors.is_damaged() and (found := _damage()):
        database_errors.note_damage()
        logger.critical("%s Details: %s", database_errors.DAMAGED, found)


_delivery_retry: Final = DeliveryRetry()


@in_threads(repeat_when=_delivery_retry.has_work)
@task(queue_name="deliveries")
def retry_deliveries(run: Round = PROCESS) -> int:
    """Send messages to the remote, and retry unconfirmed calls."""
    expiry.end_all_due()
    return _delivery_retry(run)


@in_threads(repeat_when=engine_deletion.has_work)
@task(queue_name="deliveries")
def delete_in_engine(run: Round = PROCESS) -> None:
    """Delete in the remote what is due."""
    while engine_deletion.delete_in_engine(run) and not run.should_end():
        pass


def _damage() -> str:
    """Return the damage of the SQLite database, empty if none. Reads the whole file."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA quick_check(5)")
            report = "; ".join(row[0] for row in cursor.fetchall())
    except DatabaseError as error:
        if database_errors.explain(error) is None:
            raise
        report = str(error)
    return "" if report == "ok" else " ".join(report.split())[:_SHOWN_CHARS]
