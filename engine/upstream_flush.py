"""Flushing a session so that "done" is only said of what was seen to be there.

EverOS empties a session's buffer before it extracts, so that after a failure a second flush says "no_extraction" of
what is lost, or still under way. The list call decides then. Nothing is ever added again after a flush was sent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine import upstream_journal, upstream_mirror, upstream_sessions
from engine.models import Session
from engine.port import EngineError, EngineRefused, FlushResult, OutcomeUnknown, Owner
from engine.upstream.client import Client, FlushAnswer
from engine.upstream.failures import UpstreamFailed
from engine.upstream.transport import Deadline
from memory_gateway.core.times import to_ms

logger = logging.getLogger("memory_gateway.upstream")

SEARCHABLE_SECONDS = 20.0
"""How long we look for what a flush made; EverOS says up to 15 s."""
UNDER_WAY = timedelta(minutes=6)
"""How long EverOS itself may work on a flush whose caller has gone."""
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Flush:
    client: Client
    owner: Owner
    session: Session
    deadline: Deadline
    clock: Callable[[], datetime]
    sleep: Callable[[float], None]


def flush(
    client: Client, owner: Owner, session: Session, *, clock: Callable[[], datetime], sleep: Callable[[float], None]
) -> FlushResult:
    """Errors: `OutcomeUnknown` while it cannot be known, `EngineRefused` when the upstream lost what it had, and those
    of the client."""
    run = _Flush(client, owner, session, client.deadline(), clock, sleep)
    before = (session.flushed_at, session.searchable_at)
    open_since = upstream_sessions.note_flush_sent(session, clock())
    try:
        answer = client.flush(_payload(owner, session), run.deadline)
    except OutcomeUnknown:
        raise
    except EngineError:
        upstream_sessions.restore_flush(session, *before)  # it was never sent, or taken back whole
        raise
    if answer.status == "no_extraction" and (open_since or answer.failed_before):
        return _verified(run, answer, open_since)
    return _done(run, answer)


def _payload(owner: Owner, session: Session) -> dict[str, str]:
    return {"session_id": session.engine_session_id, "app_id": owner.app_id, "project_id": owner.project_id}


def _done(run: _Flush, answer: FlushAnswer) -> FlushResult:
    """The upstream's word is believed; we only wait until its memories can be found."""
    is_expected = answer.status != "no_extraction" and upstream_journal.waits_for_episodes(run.session)
    count = _look(run, is_expected=is_expected)
    upstream_journal.note_flushed(run.session, answer.request_id)
    if is_expected and not count:
        return FlushResult("extracted", 0, answer.request_id, None)
    is_extracted = answer.status == "extracted" or count > 0
    return _ended(run, answer, count, is_extracted=is_extracted)


def _verified(run: _Flush, answer: FlushAnswer, open_since: datetime | None) -> FlushResult:
    """After a failure "no_extraction" means nothing by itself: what the list call shows counts, and what it showed
    before somebody could note it."""
    count = upstream_mirror.unnoted(run.session)
    count += _look(run, is_expected=not count)
    if count:
        upstream_journal.note_flushed(run.session, answer.request_id)
        return _ended(run, answer, count, is_extracted=True)
    has_ended = bool(answer.failed_before) and all(isinstance(error, UpstreamFailed) for error in answer.failed_before)
    is_old = open_since is not None and run.clock() - open_since > UNDER_WAY
    if not has_ended and not is_old:
        raise OutcomeUnknown("The memory service may still be extracting this session.", retry_after_seconds=30)
    upstream_journal.note_flushed(run.session, answer.request_id)
    upstream_sessions.note_flush_ended(run.session, run.clock())
    raise EngineRefused("The memory service failed while extracting and lost what it held of this session.")


def _ended(run: _Flush, answer: FlushAnswer, count: int, *, is_extracted: bool) -> FlushResult:
    now = run.clock()
    upstream_sessions.note_flush_ended(run.session, now)
    return FlushResult("extracted" if is_extracted else "no_extraction", count, answer.request_id, to_ms(now))


def _look(run: _Flush, *, is_expected: bool) -> int:
    """How many new memories there are. When some are expected: waits until there are some and no more come."""
    patience = run.client.deadline(min(SEARCHABLE_SECONDS, max(run.deadline.left_seconds, 0.0)))
    count = pulled = _pull(run, patience)
    pause = _FIRST_PAUSE_SECONDS
    while is_expected and (pulled or not count) and pause < patience.left_seconds:
        run.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)
        pulled = _pull(run, patience)
        count += pulled
    return count


def _pull(run: _Flush, deadline: Deadline) -> int:
    """A listing that fails leaves the question open, not the flush undone."""
    try:
        return upstream_mirror.pull(run.client, run.owner, run.session, deadline)
    except EngineError as error:
        logger.warning("upstream: the memories of a flushed session cannot be listed: %s", error.detail)
        return 0
