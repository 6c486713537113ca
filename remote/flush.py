"""Flush a session, and report success only after EverOS lists the memories.

EverOS empties a session's buffer before it extracts. After a failure, a second flush therefore answers "no_extraction"
for messages that are lost or still being extracted. So after a failure, and after "no_extraction" for a session with
user messages, the listed memories decide. No message is added again after a flush was sent.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction

from core.errors import EngineError, OutcomeUnknown
from core.events import publish
from core.messages import Translatable as _
from core.network.http_client import Deadline
from core.times import to_ms
from remote import mirror, outbox, remote_sessions, resend, sources
from remote.client.client import Client, FlushAnswer
from remote.client.failures import Lost, UpstreamFailed
from store.models import Session
from store.port import FlushResult
from store.types import Owner

logger = logging.getLogger("memory_gateway.remote")

SEARCHABLE_SECONDS = 20.0
"""The longest wait for the memories of a flush. EverOS documents up to 15 s."""
MAX_EXTRACTION_TIME = timedelta(minutes=6)
"""The longest time that EverOS works on a flush whose caller disconnected."""
_QUIET_SECONDS = 4.0
"""The time without a new memory after which waiting ends."""
_MIN_PAUSE_SECONDS = 0.2
_MAX_PAUSE_SECONDS = 1.0
_QUERY_CHARS = 300
_TOP_K = 20


class Flush:
    """One flush of a session: `send` it, then `settle` its answer."""

    def __init__(
        self,
        client: Client,
        owner: Owner,
        session: Session,
        *,
        clock: Callable[[], datetime],
        sleep: Callable[[float], None],
    ) -> None:
        self._client = client
        self._owner = owner
        self._session = session
        self._clock = clock
        self._sleep = sleep
        self._deadline = client.deadline()
        self._buffered = outbox.buffered(session)
        self._open_since: datetime | None = None
        """When an earlier, still unconfirmed flush was sent."""

    def send(self) -> FlushAnswer:
        """Ask EverOS to extract the session.

        No message may be added to the session until this returns, because it would be unknown if the flush took it.
        Raises: the errors of the client.
        """
        session, owner = self._session, self._owner
        before = session.flushed_at, session.searchable_at
        self._open_since = remote_sessions.mark_flush_sent(session, self._clock())
        payload = {"session_id": session.engine_session_id, **owner.scope}
        try:
            if self._open_since is not None and session.kind == Session.Kind.RESOURCE and self._is_listed():
                return FlushAnswer("", None, is_verified=True)
            return self._client.flush(payload, self._deadline, self._is_listed)
        except OutcomeUnknown:
            raise
        except EngineError:
            session.flushed_at, session.searchable_at = before  # the flush was not carried out
            session.save(update_fields=["flushed_at", "searchable_at"])
            raise

    def settle(self, answer: FlushAnswer) -> FlushResult:
        """Wait for the memories of the flush, and return its result.

        Raises: `OutcomeUnknown` while the result cannot be known, `Lost` if EverOS lost the messages.
        """
        needs_check = self._open_since or answer.failed_before or self._buffered.last_user_ms is not None
        if answer.is_verified or (answer.status == "no_extraction" and needs_check):
            return self._settle_verified(answer)
        # EverOS's answer is reliable here, only its search may lag behind. If memories are missing, the flush stays
        # open and is checked later.
        is_expected = answer.status != "no_extraction" and self._buffered.last_user_ms is not None
        count, is_found = self._wait_for_memories(is_expected=is_expected)
        if is_expected and not is_found:
            with transaction.atomic():
                count += outbox.mark_flushed(self._session, answer.request_id, self._buffered)
                self._publish()
            return FlushResult("extracted", count, answer.request_id, None)
        return self._end(answer, count, is_extracted=answer.status == "extracted" or count > 0)

    def _settle_verified(self, answer: FlushAnswer) -> FlushResult:
        """Settle the flush by the memories that EverOS lists.

        "no_extraction" proves nothing after a failure or for a session with unflushed user messages. If no memories are
        expected, none are lost.
        """
        count = mirror.unlinked(self._session).count()
        is_pending = outbox.expects_memories(self._session) and not self._is_complete(count)
        count += self._wait_for_memories(is_expected=is_pending)[0]
        if not is_pending or self._is_complete(count):
            return self._end(answer, count, is_extracted=count > 0)
        failed = answer.failed_before
        has_ended = bool(failed) and all(isinstance(error, UpstreamFailed) for error in failed)
        is_old = self._open_since is not None and self._clock() - self._open_since > MAX_EXTRACTION_TIME
        if not has_ended and not is_old:
            raise OutcomeUnknown(_("The memory engine may still be extracting this session."), retry_after_seconds=30)
        ended = self._end(answer, count, is_extracted=True)
        if not count:
            raise Lost(_("The memory engine failed during the extraction and lost the messages of this session."))
        return ended

    def _end(self, answer: FlushAnswer, count: int, *, is_extracted: bool) -> FlushResult:
        """Mark messages and session as flushed in one transaction, and return the result.

        An open flush without buffered messages could not be verified.
        """
        now = self._clock()
        with transaction.atomic():
            kept = outbox.mark_flushed(self._session, answer.request_id, self._buffered)
            count, is_extracted = count + kept, is_extracted or kept > 0
            remote_sessions.mark_flush_ended(self._session, now)
            resend.end(self._session)
            if is_extracted:
                self._publish()
        return FlushResult("extracted" if is_extracted else "no_extraction", count, answer.request_id, to_ms(now))

    def _publish(self) -> None:
        if self._session.kind != Session.Kind.RESOURCE:  # which has its own events
            owner, session_id = self._owner, self._session.session_id
            publish("session.flushed", owner.user_pk, **owner.scope, session_ids=[session_id])

    def _is_complete(self, count: int) -> bool:
        """Return True if the `count` unlinked copies cover the messages that the flush took.

        Without a user message there is no time to compare, and one copy suffices.
        """
        if self._buffered.last_user_ms is None:
            return count > 0
        return mirror.are_complete(mirror.unlinked(self._session), self._buffered.last_user_ms)

    def _is_listed(self) -> bool:
        """Return True if EverOS lists the memories of the flush, so that it need not be sent again."""
        if self._buffered.last_row is None:
            return False
        self._pull(self._deadline)
        return self._is_complete(mirror.unlinked(self._session).count())

    def _wait_for_memories(self, *, is_expected: bool) -> tuple[int, bool]:
        """Return the number of new memories, and True if all expected ones can be found.

        Ends early if no more arrive for `_QUIET_SECONDS`.
        """
        time_limit = self._client.deadline(min(SEARCHABLE_SECONDS, max(self._deadline.left_seconds, 0.0)))
        count = pulled = self._pull(time_limit)
        pause, quiet = _MIN_PAUSE_SECONDS, 0.0
        while is_expected:
            is_complete = self._is_complete(count)
            if is_complete and not pulled and self._is_found(time_limit):
                return count, True
            if pause >= time_limit.left_seconds or (count and not is_complete and quiet > _QUIET_SECONDS):
                return count, False
            self._sleep(pause)
            pulled = self._pull(time_limit)
            count, quiet = count + pulled, 0.0 if pulled else quiet + pause
            pause = min(pause * 1.5, _MAX_PAUSE_SECONDS)
        return count, True

    def _is_found(self, deadline: Deadline) -> bool:
        """Return True if EverOS's search finds the latest copy by its own text.

        EverOS lists a memory some moments before its search finds it.
        """
        latest = mirror.unlinked(self._session).order_by("-created_at_ms", "-pk").first()
        if latest is None:
            return True
        query = {
            "user_id": self._owner.remote_name,
            **self._owner.scope,
            "query": latest.original_text[:_QUERY_CHARS],
            "method": "keyword",
            "top_k": _TOP_K,
            "filters": {"session_id": self._session.engine_session_id},
        }
        try:
            found = self._client.search(query, deadline)
        except EngineError as error:
            logger.warning("EverOS: cannot search the memories of a flushed session: %s", error.detail)
            return False
        return any(record.id == latest.memory_id for record in found.episodes)

    def _pull(self, deadline: Deadline) -> int:
        """Copy the session's memories and return the number of new ones; 0 if EverOS cannot list them."""
        try:
            return mirror.pull(self._client, self._owner, self._session, deadline)
        except EngineError as error:
            logger.warning("EverOS: cannot list the memories of a flushed session: %s", error.detail)
            return 0


def check_flush(client: Client, owner: Owner, session: Session, now: datetime) -> int:
    """Copy memories of an unconfirmed flush, and return the number of new ones.

    The flush ends when all of its messages are covered or EverOS can no longer be extracting. Messages still in the
    buffer are left to the next flush. Raises: the errors of the client's list call.
    """
    count = mirror.pull(client, owner, session, client.deadline())
    if count:
        with transaction.atomic():
            sources.link(session)
    if session.flushed_at is None or outbox.buffered(session).last_row is not None:
        return count
    last_user_ms = outbox.last_user_message_ms(session)
    is_complete = last_user_ms is None or mirror.are_complete(mirror.episodes(session), last_user_ms)
    if is_complete or now - session.flushed_at > MAX_EXTRACTION_TIME:
        remote_sessions.mark_flush_ended(session, now)
        resend.end(session)
    return count


def recover(client: Client, owner: Owner, session: Session, now: datetime) -> int:
    """Copy the memories of a session whose flush ended without any, and return how many it has.

    The memories are linked to the session's messages. Raises: the errors of the client's list call.
    """
    mirror.pull(client, owner, session, client.deadline())
    count = mirror.episodes(session).count()
    if count:
        with transaction.atomic():
            sources.link(session)
            remote_sessions.mark_flush_ended(session, now)
            resend.end(session)
    return count
