"""Flush a session, and report success only after the memories were seen.

EverOS empties a session's buffer before it extracts. After a failure, a second flush therefore answers "no_extraction"
for messages that are lost or still being extracted. The list call decides then, and whenever "no_extraction" is the
answer for a session with user messages. Nothing is added again after a flush was sent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction

from core.errors import EngineError, OutcomeUnknown
from core.http_client import Deadline
from core.times import to_ms
from engines.everos import mirror
from engines.everos.client.client import Client, FlushAnswer
from engines.everos.client.failures import Lost, UpstreamFailed
from engines.port import FlushResult
from store.external import journal, sessions
from store.external.journal import Buffered
from store.models import Session
from store.types import Owner

logger = logging.getLogger("memory_gateway.upstream")

SEARCHABLE_SECONDS = 20.0
"""Longest wait for the memories of a flush. EverOS documents up to 15 s."""
MAX_EXTRACTION_TIME = timedelta(minutes=6)
"""Longest time EverOS works on a flush whose caller disconnected."""
_QUIET_SECONDS = 4.0
"""Stop waiting after this long without a new memory."""
_FIRST_PAUSE_SECONDS = 0.2
_QUERY_CHARS = 300
_BEST = 20
_LONGEST_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Flush:
    client: Client
    owner: Owner
    session: Session
    deadline: Deadline
    clock: Callable[[], datetime]
    sleep: Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Sent:
    """An answered flush and the messages it took.

    `open_since`: when an earlier, still unconfirmed flush was sent.
    """

    run: _Flush
    answer: FlushAnswer
    taken: Buffered
    open_since: datetime | None


def send(
    client: Client, owner: Owner, session: Session, *, clock: Callable[[], datetime], sleep: Callable[[float], None]
) -> Sent:
    """Ask EverOS to extract a session, and return its answer for `settle`.

    Nothing may be added to the session until this returns: the flush might take it or not. Raises: the errors of the
    client.
    """
    run = _Flush(client, owner, session, client.deadline(), clock, sleep)
    before, taken = (session.flushed_at, session.searchable_at), journal.buffered(session)
    open_since = sessions.mark_flush_sent(session, clock())
    is_done = partial(_is_listed, run, taken)
    try:
        if open_since is not None and session.kind == Session.Kind.RESOURCE and is_done():
            answer = FlushAnswer("", None, is_verified=True)
        else:
            answer = client.flush(_payload(owner, session), run.deadline, is_done)
    except OutcomeUnknown:
        raise
    except EngineError:
        sessions.restore_flush(session, *before)  # it was not carried out
        raise
    return Sent(run, answer, taken, open_since)


def settle(sent: Sent) -> FlushResult:
    """Wait for the memories of a flush, and return its result.

    Raises: `OutcomeUnknown` while the result cannot be known, `Lost` if EverOS lost the messages.
    """
    answer = sent.answer
    needs_check = sent.open_since or answer.failed_before or sent.taken.last_user_ms is not None
    if answer.is_verified or (answer.status == "no_extraction" and needs_check):
        return _settle_verified(sent)
    return _settle_reported(sent)


def _payload(owner: Owner, session: Session) -> dict[str, str]:
    return {"session_id": session.engine_session_id, "app_id": owner.app_id, "project_id": owner.project_id}


def look_again(client: Client, owner: Owner, session: Session, now: datetime) -> int:
    """Copy memories of an unconfirmed flush, and return how many were new.

    The flush ends when all of its messages are covered or EverOS can no longer be extracting. Messages still in the
    buffer are left to the next flush. Raises: the errors of the client's list call.
    """
    count = mirror.pull(client, owner, session, client.deadline())
    if session.flushed_at is None or journal.buffered(session).last_row is not None:
        return count
    last_user_ms = journal.last_user_message_ms(session)
    is_complete = last_user_ms is None or mirror.reaches(session, last_user_ms, unlinked=False)
    if is_complete or now - session.flushed_at > MAX_EXTRACTION_TIME:
        sessions.mark_flush_ended(session, now)
    return count


def recover(client: Client, owner: Owner, session: Session, now: datetime) -> int:
    """Copy the memories of a session that was settled as having none, and return how many it has.

    Links them to the session's messages. Raises: the errors of the client's list call.
    """
    mirror.pull(client, owner, session, client.deadline())
    count = mirror.count(session)
    if count:
        with transaction.atomic():
            journal.link_late_memories(session)
            sessions.mark_flush_ended(session, now)
    return count


def _settle_reported(sent: Sent) -> FlushResult:
    """Trust EverOS's answer and wait only until its memories can be found.

    The flush stays open, and is checked later, if some are still missing.
    """
    answer, session = sent.answer, sent.run.session
    is_expected = answer.status != "no_extraction" and sent.taken.last_user_ms is not None
    count, is_found = _wait_for_memories(sent, is_expected=is_expected)
    if is_expected and not is_found:
        journal.mark_flushed(session, answer.request_id, sent.taken)
        return FlushResult("extracted", count, answer.request_id, None)
    return _result(sent, count, is_extracted=answer.status == "extracted" or count > 0)


def _settle_verified(sent: Sent) -> FlushResult:
    """Settle a flush by what the list call shows.

    "no_extraction" proves nothing after a failure or for a session with unflushed user messages. If no memories are
    expected, nothing was lost.
    """
    run, failed = sent.run, sent.answer.failed_before
    count = mirror.count_unlinked(run.session)
    is_pending = journal.expects_memories(run.session) and not _is_complete(sent, count)
    count += _wait_for_memories(sent, is_expected=is_pending)[0]
    if not is_pending or _is_complete(sent, count):
        return _result(sent, count, is_extracted=count > 0)
    has_ended = bool(failed) and all(isinstance(error, UpstreamFailed) for error in failed)
    is_old = sent.open_since is not None and run.clock() - sent.open_since > MAX_EXTRACTION_TIME
    if not has_ended and not is_old:
        raise OutcomeUnknown("The memory service may still be extracting this session.", retry_after_seconds=30)
    if count:
        return _result(sent, count, is_extracted=True)
    _mark_ended(sent)
    raise Lost("The memory service failed while extracting and lost what it held of this session.")


def _result(sent: Sent, count: int, *, is_extracted: bool) -> FlushResult:
    at = to_ms(_mark_ended(sent))
    return FlushResult("extracted" if is_extracted else "no_extraction", count, sent.answer.request_id, at)


def _mark_ended(sent: Sent) -> datetime:
    """Mark messages and session as flushed in one transaction, and return the time.

    An open flush without buffered messages could not be verified.
    """
    now = sent.run.clock()
    with transaction.atomic():
        journal.mark_flushed(sent.run.session, sent.answer.request_id, sent.taken)
        sessions.mark_flush_ended(sent.run.session, now)
    return now


def _is_complete(sent: Sent, count: int) -> bool:
    """Return True if the `count` unlinked copies cover the messages that the flush took.

    Without a user message there is no time to compare, and one copy suffices.
    """
    return _covers(sent.run, sent.taken, count)


def _covers(run: _Flush, taken: Buffered, count: int) -> bool:
    if taken.last_user_ms is None:
        return count > 0
    return mirror.reaches(run.session, taken.last_user_ms, unlinked=True)


def _is_listed(run: _Flush, taken: Buffered) -> bool:
    """Return True if EverOS lists the memories of a flush, so that it need not be sent again."""
    if taken.last_row is None:
        return False
    _pull(run, run.deadline)
    return _covers(run, taken, mirror.count_unlinked(run.session))


def _wait_for_memories(sent: Sent, *, is_expected: bool) -> tuple[int, bool]:
    """Return how many new memories there are, and True if all that are expected can be found.

    Stops early when no more arrive for a while.
    """
    run = sent.run
    time_limit = run.client.deadline(min(SEARCHABLE_SECONDS, max(run.deadline.left_seconds, 0.0)))
    count = pulled = _pull(run, time_limit)
    pause, quiet = _FIRST_PAUSE_SECONDS, 0.0
    while is_expected:
        is_complete = _is_complete(sent, count)
        if is_complete and not pulled and _is_found(run, time_limit):
            return count, True
        if pause >= time_limit.left_seconds or (count and not is_complete and quiet > _QUIET_SECONDS):
            return count, False
        run.sleep(pause)
        pulled = _pull(run, time_limit)
        count, quiet = count + pulled, 0.0 if pulled else quiet + pause
        pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)
    return count, True


def _is_found(run: _Flush, deadline: Deadline) -> bool:
    """Return True if EverOS's search finds the latest copy by its own text.

    EverOS lists a memory some moments before its search finds it.
    """
    latest = mirror.latest(run.session)
    if latest is None:
        return True
    question = {
        "user_id": run.owner.user_id,
        "app_id": run.owner.app_id,
        "project_id": run.owner.project_id,
        "query": str(latest.payload.get("episode", latest.text))[:_QUERY_CHARS],
        "method": "keyword",
        "top_k": _BEST,
        "filters": {"session_id": run.session.engine_session_id},
    }
    try:
        found = run.client.search(question, deadline)
    except EngineError as error:
        logger.warning("upstream: the memories of a flushed session cannot be searched: %s", error.detail)
        return False
    return any(record.id == latest.memory_id for record in found.episodes)


def _pull(run: _Flush, deadline: Deadline) -> int:
    """Copy the session's memories and return how many were new; 0 if the listing fails, which decides nothing."""
    try:
        return mirror.pull(run.client, run.owner, run.session, deadline)
    except EngineError as error:
        logger.warning("upstream: the memories of a flushed session cannot be listed: %s", error.detail)
        return 0
