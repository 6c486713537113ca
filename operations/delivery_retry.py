"""Retries of unconfirmed calls to EverOS: messages are delivered until they are known to have arrived, a flush is
repeated until its memories are listed, and what it brought is copied.

A failed retry waits for half as long as the call has been unconfirmed, at most a day. After seven days nothing is
retried until an operator runs `manage.py ingest --failed`, or the caller adds or flushes again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from core.errors import EngineRefused, EngineUnavailable
from engines.port import ExternalEngine
from engines.registry import external_engine
from operations.periodic import PeriodicTask
from resources.models import Attachment
from resources.services.claims import note_searchable
from store.external import journal
from store.external import sessions as upstream_sessions
from store.models import Session
from store.types import Message, Owner

logger = logging.getLogger("memory_gateway.worker")

MARGIN: Final = timedelta(seconds=30)
"""Time beyond the call's timeout before a message is sent again: until then its caller may still be waiting."""
BATCH: Final = 50
HEALTH_TIMEOUT_SECONDS: Final = 2.0
LOOK_EVERY: Final = timedelta(seconds=30)
LOOK_FOR: Final = timedelta(hours=1)
"""Later, what a broken-off flush brought is found by its retry, or by `backfill memories`."""
RETRIED_FOR: Final = timedelta(days=7)
LONGEST_RETRY: Final = timedelta(days=1)


class DeliveryRetryTask(PeriodicTask):
    """Retries unconfirmed calls. A stop ends the round after the current session."""

    lease_name = "resending"
    lease_for = timedelta(minutes=5)

    def __init__(self, *, engine: ExternalEngine | None = None, clock: Callable[[], datetime] = timezone.now) -> None:
        super().__init__(clock=clock)
        self._engine = engine
        self._look_due_at = self._leased_until = clock()

    def run_once(self) -> int:
        """Retry what is due; return how many messages have arrived."""
        return self._retry(RETRIED_FOR, is_forced=False)

    def retry_all(self) -> int:
        """Retry everything that is unconfirmed now, however old; return how many messages have arrived."""
        return self._retry(timedelta(days=36500), is_forced=True)

    def _retry(self, age: timedelta, *, is_forced: bool) -> int:
        engine, now = self._engine or external_engine(), self._clock()
        if engine is None:
            return 0
        patience = timedelta(seconds=settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS) + MARGIN
        due_by = now + LONGEST_RETRY if is_forced else now
        unconfirmed = journal.unconfirmed_sessions(now - age, now - patience, due_by, BATCH)
        unseen, unflushed = [], []
        if is_forced or now >= self._look_due_at:
            self._look_due_at = now + LOOK_EVERY
            unseen = upstream_sessions.open_flushes(now - LOOK_FOR, now - MARGIN, BATCH)
            unflushed = journal.unconfirmed_flushes(now - age, now - patience, due_by, BATCH)
        if not (unconfirmed or unseen or unflushed) or not self._take_lease(now):
            return 0
        self._leased_until = now + self.lease_for
        arrived = self._resend(engine, unconfirmed)
        self._look_again(engine, unseen)
        self._with_each(unflushed, engine, partial(_flush, engine))
        return arrived

    def _look_again(self, engine: ExternalEngine, sessions: Iterable[Session]) -> None:
        def look(session: Session) -> None:
            owner = _owner_of(session)
            try:
                engine.look_again(owner, session)
            except EngineRefused as error:
                logger.warning("upstream: what a flush brought cannot be listed: %s", error.detail)
            if session.kind == Session.Kind.RESOURCE and session.searchable_at is not None:
                note_searchable(owner, session.session_id, session.searchable_at)

        self._with_each(sessions, engine, look)

    def _resend(self, engine: ExternalEngine, sessions: Iterable[Session]) -> int:
        count = 0

        def send(session: Session) -> None:
            nonlocal count
            arrived = engine.resend(_owner_of(session), session)
            attach(session, arrived)
            count += len(arrived)

        self._with_each(sessions, engine, send)
        return count

    def _with_each(self, sessions: Iterable[Session], engine: ExternalEngine, do: Callable[[Session], None]) -> None:
        """Call `do` for each session. A user whose call fails waits for the next round, that session for its
        backoff; all wait while EverOS is away or when the lease is half over: a call may take as long as the rest."""
        failing: set[UUID] = set()
        for session in sessions:
            if self._is_stopping or self._clock() > self._leased_until - self.lease_for / 2:
                break
            if session.user_id in failing:
                continue
            try:
                do(session)
            except EngineUnavailable as error:
                logger.info("An unconfirmed call is retried later: %s", error.detail)
                failing.add(session.user_id)
                if engine.health(HEALTH_TIMEOUT_SECONDS).status != "ok":
                    break
                upstream_sessions.schedule_retry(session, self._retry_at(session))
            else:
                upstream_sessions.schedule_retry(session, None)

    def _retry_at(self, session: Session) -> datetime:
        now = self._clock()
        since = journal.unconfirmed_since(session) or session.flushed_at or now
        return now + min((now - since) / 2, LONGEST_RETRY)


def _flush(engine: ExternalEngine, session: Session) -> None:
    try:
        engine.flush(_owner_of(session), session.session_id)
    except EngineRefused as error:
        logger.warning("upstream: an unconfirmed flush is refused: %s", error.detail)


def _owner_of(session: Session) -> Owner:
    return Owner(session.user_id, session.user.user_id, session.app_id, session.project_id)


def attach(session: Session, messages: Iterable[Message]) -> None:
    """The files that came with messages, as their caller would have had them noted."""
    Attachment.objects.bulk_create(
        (
            Attachment(
                user_id=session.user_id,
                app_id=session.app_id,
                project_id=session.project_id,
                session_id=session.session_id,
                source=Attachment.Source.MEMORY_ADD,
                type=item.type,
                name=item.name or "",
                internal_uri=item.file.as_uri() if item.file else item.uri or "",
                sha256=item.file.parent.name if item.file else "",
            )
            for message in messages
            for item in message.content
            if (item.file or item.uri) and "resource_id" not in item.extras
        ),
        ignore_conflicts=True,
    )
