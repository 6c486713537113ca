"""Messages that went to an upstream without an answer are sent again until it is known that they arrived."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.utils import timezone

from engine import upstream_journal
from engine.models import Session
from engine.port import Engine, EngineUnavailable, Message, Owner
from engine.registry import get_engine
from engine.upstream_engine import UpstreamEngine
from lifecycle import leases
from resources.leases import new_holder
from resources.models import Attachment

logger = logging.getLogger("memory_gateway.sweeper")

DUTY: Final = "resending"
LEASE: Final = timedelta(minutes=5)
MARGIN: Final = timedelta(seconds=30)
"""How much longer than any call of its own a message waits: while it is under way, its caller sees to it."""
BATCH: Final = 50


class Resender:
    """Rounds under the lease "resending"."""

    def __init__(self, *, engine: Engine | None = None, clock: Callable[[], datetime] = timezone.now) -> None:
        self._engine = engine
        self._clock = clock
        self._holder = new_holder()
        self._is_stopping = False

    def sweep_once(self) -> int:
        """How many messages have arrived. Ends at the first sign that the upstream is away."""
        engine, now = self._engine or get_engine(), self._clock()
        if not isinstance(engine, UpstreamEngine):
            return 0
        patience = timedelta(seconds=settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS) + MARGIN
        doubtful = upstream_journal.doubtful_sessions(now - patience, BATCH)
        if not doubtful or not leases.take(DUTY, self._holder, now=now, lasts=LEASE):
            return 0
        return self._resend(engine, doubtful)

    def stop(self) -> None:
        """Ends the round after the session under way."""
        self._is_stopping = True

    def give_back(self) -> None:
        leases.give_back(DUTY, self._holder)

    def _resend(self, engine: UpstreamEngine, sessions: Iterable[Session]) -> int:
        count = 0
        for session in sessions:
            if self._is_stopping:
                break
            owner = Owner(session.user_id, session.user.user_id, session.app_id, session.project_id)
            try:
                arrived = engine.resend(owner, session)
            except EngineUnavailable as error:
                logger.info("What went out without an answer waits: %s", error.detail)
                break
            attach(session, arrived)
            count += len(arrived)
        return count


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
