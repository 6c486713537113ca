"""Send messages to the remote, and retry unconfirmed calls.

Users take turns. Messages are sent again until they are confirmed, a flush is repeated until the remote lists its
memories, which are then copied. After a failed retry, the next one waits half as long as the call has been
unconfirmed, at most a day. After seven days, calls are retried only if an operator runs `manage.py ingest --failed`
or the client adds or flushes again.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from core.background.tasks import Round
from core.errors import EngineRefused, EngineUnavailable
from engines.registry import attached_remote
from operations.models import Lease
from remote import outbox, remote_sessions
from resources.models import Attachment
from resources.services.claims import note_searchable
from store.models import Session, owner_columns
from store.port import HEALTH_TIMEOUT_SECONDS, Remote
from store.types import Message

logger = logging.getLogger("memory_gateway.worker")

LEASE: Final = timedelta(seconds=30)
ROUND: Final = timedelta(seconds=150)
"""No call starts later in a round, in which new failures would wait for it."""
MARGIN: Final = timedelta(seconds=30)
"""The wait after a call's timeout before a message is sent again, because its call may still be running."""
BATCH: Final = 50
CHECK_INTERVAL: Final = timedelta(seconds=30)
CHECK_PERIOD: Final = timedelta(hours=1)
"""The time for which an unfinished flush is checked. Later, a retry of it or `backfill memories` finds its memories."""
RETRY_PERIOD: Final = timedelta(days=7)
MAX_RETRY_WAIT: Final = timedelta(days=1)


class DeliveryRetry:
    """The periodic task that sends messages and retries unconfirmed calls, in one process at a time."""

    def __init__(self) -> None:
        self._check_due_at: datetime | None = None

    def has_work(self) -> bool:
        """Return True if a call is due."""
        now = timezone.now()
        with_flushes = self._check_due_at is None or now >= self._check_due_at
        return attached_remote() is not None and any(_due(now, is_forced=False, with_flushes=with_flushes))

    def __call__(self, run: Round, *, is_forced: bool = False) -> int:
        """Retry due calls, or all if `is_forced`; return the number of messages that arrived."""
        remote, now = attached_remote(), run.clock()
        if remote is None:
            return 0
        with_flushes = is_forced or self._check_due_at is None or now >= self._check_due_at
        if with_flushes:
            self._check_due_at = now + CHECK_INTERVAL
        if not any(_due(now, is_forced=is_forced, with_flushes=with_flushes)):
            return 0
        with Lease.objects.held("retry_deliveries", LEASE, run.clock) as is_held:
            if not is_held:
                return 0
            # Read again under the lease: another process may have retried them meanwhile.
            due = _due(now, is_forced=is_forced, with_flushes=with_flushes)
            calls = _Calls(remote, run, run.clock() + ROUND)
            calls.for_each(due.unconfirmed, calls.resend)
            pending = due.pending
            while pending and not calls.is_over:
                calls.for_each(pending, calls.send)
                waiting = outbox.pending_sessions(run.clock(), BATCH)
                pending = [session for session in waiting if session.user_id not in calls.failing]
            calls.for_each(due.open_flushes, calls.check_flush)
            calls.for_each(due.unflushed, calls.flush)
        return calls.arrived


class _Due(NamedTuple):
    unconfirmed: list[Session]
    pending: list[Session]
    open_flushes: list[Session] = []
    unflushed: list[Session] = []


def _due(now: datetime, *, is_forced: bool, with_flushes: bool) -> _Due:
    age = timedelta(days=36500) if is_forced else RETRY_PERIOD
    timeout = timedelta(seconds=settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS) + MARGIN
    due_by = now + MAX_RETRY_WAIT if is_forced else now
    unconfirmed = outbox.unconfirmed_sessions(now - age, now - timeout, due_by, BATCH)
    pending = outbox.pending_sessions(due_by, BATCH)
    if not with_flushes:
        return _Due(unconfirmed, pending)
    return _Due(
        unconfirmed,
        pending,
        remote_sessions.open_flushes(now - CHECK_PERIOD, now - MARGIN, BATCH),
        outbox.unconfirmed_flushes(now - age, now - timeout, due_by, BATCH),
    )


@dataclass(slots=True)
class _Calls:
    """The calls of one round, and the number of messages that arrived. No call starts after `until`.

    `failing` are the users with a failed call: their other sessions wait for the next round.
    """

    remote: Remote
    run: Round
    until: datetime
    failing: set[UUID] = field(default_factory=set)
    arrived: int = 0
    is_away: bool = False

    @property
    def is_over(self) -> bool:
        """Return True if no further call may start in this round."""
        return self.is_away or self.run.should_end() or self.run.clock() > self.until

    def send(self, session: Session) -> None:
        try:
            self.remote.send(session.owner, session)
        except EngineRefused as error:
            logger.warning("The remote refused a message: %s", error.detail)

    def resend(self, session: Session) -> None:
        messages = self.remote.retry_unconfirmed(session.owner, session)
        record_attachments(session, messages)
        self.arrived += len(messages)

    def check_flush(self, session: Session) -> None:
        try:
            self.remote.check_flush(session.owner, session)
        except EngineRefused as error:
            logger.warning("The memories of a flushed session cannot be listed: %s", error.detail)
        if session.kind == Session.Kind.RESOURCE and session.searchable_at is not None:
            note_searchable(session.owner, session.session_id, session.searchable_at)

    def flush(self, session: Session) -> None:
        try:
            self.remote.flush(session.owner, session.session_id)
        except EngineRefused as error:
            logger.warning("The remote refused an unconfirmed flush: %s", error.detail)
            remote_sessions.mark_flush_ended(session, self.run.clock())  # or it would be asked at every check

    def for_each(self, sessions: Iterable[Session], do: Callable[[Session], None]) -> None:
        """Call `do` for each session.

        After a failure, other sessions of the user wait for the next round, and that session for its backoff. If the
        remote is unavailable, the round ends.
        """
        for session in sessions:
            if self.is_over:
                break
            if session.user_id in self.failing:
                continue
            try:
                do(session)
            except EngineUnavailable as error:
                logger.info("An unconfirmed call is retried later: %s", error.detail)
                self.failing.add(session.user_id)
                if self.remote.health(HEALTH_TIMEOUT_SECONDS).status != "ok":
                    self.is_away = True
                    break
                now = self.run.clock()
                since = outbox.waiting_since(session) or session.flushed_at or now
                remote_sessions.schedule_retry(session, now + min((now - since) / 2, MAX_RETRY_WAIT))
            else:
                remote_sessions.schedule_retry(session, None)


def record_attachments(session: Session, messages: Iterable[Message]) -> None:
    """Record the files of messages as attachments, as a successful add does."""
    Attachment.objects.bulk_create(
        (
            Attachment(
                **owner_columns(session.owner),
                session_id=session.session_id,
                source=Attachment.Source.MEMORY_ADD,
                type=item.type,
                name=item.name or "",
                internal_uri=str(item.file) if item.file else item.uri or "",
                sha256=item.sha256,
            )
            for message in messages
            for item in message.content
            if (item.file or item.uri) and "resource_id" not in item.extras
        ),
        ignore_conflicts=True,
    )
