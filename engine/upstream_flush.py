"""Flushing a session so that "done" is only said of what was seen to be there.

EverOS empties a session's buffer before it extracts, so that after a failure a second flush says "no_extraction" of
what is lost, or still under way. The list call decides then, and wherever "no_extraction" is said of a session in which
the user spoke. Nothing is ever added again after a flush was sent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction

from engine import upstream_journal, upstream_mirror, upstream_sessions
from engine.models import Session
from engine.port import EngineError, FlushResult, OutcomeUnknown, Owner
from engine.upstream.client import Client, FlushAnswer
from engine.upstream.failures import Lost, UpstreamFailed
from engine.upstream_journal import Waiting
from memory_gateway.core.http_client import Deadline
from memory_gateway.core.times import to_ms

logger = logging.getLogger("memory_gateway.upstream")

SEARCHABLE_SECONDS = 20.0
"""How long we look for what a flush made; EverOS says up to 15 s."""
UNDER_WAY = timedelta(minutes=6)
"""How long EverOS itself may work on a flush whose caller has gone."""
_QUIET_SECONDS = 4.0
"""How long nothing more has to come until we go on without."""
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
    """A flush that the upstream answered, and what it took; `open_since`: when an earlier one went out of which nobody
    knew the end."""

    run: _Flush
    answer: FlushAnswer
    taken: Waiting
    open_since: datetime | None


def send(
    client: Client, owner: Owner, session: Session, *, clock: Callable[[], datetime], sleep: Callable[[float], None]
) -> Sent:
    """Has the upstream extract. Until this returns, nothing may be added to the session: nobody could say whether the
    flush took it. Errors: those of the client."""
    run = _Flush(client, owner, session, client.deadline(), clock, sleep)
    before, taken = (session.flushed_at, session.searchable_at), upstream_journal.waiting(session)
    open_since = upstream_sessions.note_flush_sent(session, clock())
    is_done = partial(_is_listed, run, taken)
    try:
        if open_since is not None and session.kind == Session.Kind.RESOURCE and is_done():
            answer = FlushAnswer("", None, is_verified=True)
        else:
            answer = client.flush(_payload(owner, session), run.deadline, is_done)
    except OutcomeUnknown:
        raise
    except EngineError:
        upstream_sessions.restore_flush(session, *before)  # it was never sent, or taken back whole
        raise
    return Sent(run, answer, taken, open_since)


def settle(sent: Sent) -> FlushResult:
    """Waits for what it made. Errors: `OutcomeUnknown` while that cannot be known, `Lost` when the upstream lost
    what it had."""
    answer = sent.answer
    is_doubtful = sent.open_since or answer.failed_before or sent.taken.said_ms is not None
    if answer.is_verified or (answer.status == "no_extraction" and is_doubtful):
        return _verified(sent)
    return _done(sent)


def _payload(owner: Owner, session: Session) -> dict[str, str]:
    return {"session_id": session.engine_session_id, "app_id": owner.app_id, "project_id": owner.project_id}


def look_again(client: Client, owner: Owner, session: Session, now: datetime) -> int:
    """Copies what became visible since a flush of which nobody saw the end; how many. It has ended when all that was
    flushed is there, or nothing can be under way any more. What still waits in the buffer is the next flush's to
    decide. Errors: those of the client's list call."""
    count = upstream_mirror.pull(client, owner, session, client.deadline())
    if session.flushed_at is None or upstream_journal.waiting(session).last_row is not None:
        return count
    said_ms = upstream_journal.said_last_ms(session)
    is_whole = said_ms is None or upstream_mirror.reaches(session, said_ms, unnoted=False)
    if is_whole or now - session.flushed_at > UNDER_WAY:
        upstream_sessions.note_flush_ended(session, now)
    return count


def recover(client: Client, owner: Owner, session: Session, now: datetime) -> int:
    """Copy what EverOS lists of a session that was settled as having no memories, and tie it to its messages. Returns
    how many memories the session has. Errors: those of the client's list call."""
    upstream_mirror.pull(client, owner, session, client.deadline())
    count = upstream_mirror.count(session)
    if count:
        with transaction.atomic():
            upstream_journal.note_made(session)
            upstream_sessions.note_flush_ended(session, now)
    return count


def _done(sent: Sent) -> FlushResult:
    """The upstream's word is believed; we only wait until its memories can be found. Where some are still missing the
    flush stays open, and is looked after."""
    answer, session = sent.answer, sent.run.session
    is_expected = answer.status != "no_extraction" and sent.taken.said_ms is not None
    count, is_found = _look(sent, is_expected=is_expected)
    if is_expected and not is_found:
        upstream_journal.note_flushed(session, answer.request_id, sent.taken)
        return FlushResult("extracted", count, answer.request_id, None)
    return _ended(sent, count, is_extracted=answer.status == "extracted" or count > 0)


def _verified(sent: Sent) -> FlushResult:
    """Settle a flush by what the list call shows, or showed before it could be noted: "no_extraction" means nothing by
    itself after a failure, and is never EverOS's answer to words that wait. Where nothing is owed, nothing was lost."""
    run, failed = sent.run, sent.answer.failed_before
    count = upstream_mirror.unnoted(run.session)
    is_owed = upstream_journal.owes_memories(run.session) and not _is_whole(sent, count)
    count += _look(sent, is_expected=is_owed)[0]
    if not is_owed or _is_whole(sent, count):
        return _ended(sent, count, is_extracted=count > 0)
    has_ended = bool(failed) and all(isinstance(error, UpstreamFailed) for error in failed)
    is_old = sent.open_since is not None and run.clock() - sent.open_since > UNDER_WAY
    if not has_ended and not is_old:
        raise OutcomeUnknown("The memory service may still be extracting this session.", retry_after_seconds=30)
    if count:
        return _ended(sent, count, is_extracted=True)
    _note_ended(sent)
    raise Lost("The memory service failed while extracting and lost what it held of this session.")


def _ended(sent: Sent, count: int, *, is_extracted: bool) -> FlushResult:
    at = to_ms(_note_ended(sent))
    return FlushResult("extracted" if is_extracted else "no_extraction", count, sent.answer.request_id, at)


def _note_ended(sent: Sent) -> datetime:
    """Both or neither: a flush that is still open though nothing waits for it any more could not be verified. Returns
    when."""
    now = sent.run.clock()
    with transaction.atomic():
        upstream_journal.note_flushed(sent.run.session, sent.answer.request_id, sent.taken)
        upstream_sessions.note_flush_ended(sent.run.session, now)
    return now


def _is_whole(sent: Sent, count: int) -> bool:
    """Whether the copies that no flush was noted for, `count` of them, reach as far as what this one took. Where no
    user spoke nothing tells how far that is, and one will do."""
    return _covers(sent.run, sent.taken, count)


def _covers(run: _Flush, taken: Waiting, count: int) -> bool:
    if taken.said_ms is None:
        return count > 0
    return upstream_mirror.reaches(run.session, taken.said_ms, unnoted=True)


def _is_listed(run: _Flush, taken: Waiting) -> bool:
    """Return whether EverOS lists the memories of what a flush was to take, so that it need not be sent again."""
    if taken.last_row is None:
        return False
    _pull(run, run.deadline)
    return _covers(run, taken, upstream_mirror.unnoted(run.session))


def _look(sent: Sent, *, is_expected: bool) -> tuple[int, bool]:
    """How many new memories there are, and whether all that are expected can be found. Waits for that, but not where
    for some time no more come. A last look sees the later pieces of a file."""
    run = sent.run
    patience = run.client.deadline(min(SEARCHABLE_SECONDS, max(run.deadline.left_seconds, 0.0)))
    count = pulled = _pull(run, patience)
    pause, quiet = _FIRST_PAUSE_SECONDS, 0.0
    while is_expected:
        is_whole = _is_whole(sent, count)
        if is_whole and not pulled and _is_found(run, patience):
            return count, True
        if pause >= patience.left_seconds or (count and not is_whole and quiet > _QUIET_SECONDS):
            return count, False
        run.sleep(pause)
        pulled = _pull(run, patience)
        count, quiet = count + pulled, 0.0 if pulled else quiet + pause
        pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)
    return count, True


def _is_found(run: _Flush, deadline: Deadline) -> bool:
    """Whether EverOS's search finds the latest copy by its own words: its list shows a memory some moments earlier."""
    latest = upstream_mirror.latest(run.session)
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
    """A listing that fails leaves the question open, not the flush undone."""
    try:
        return upstream_mirror.pull(run.client, run.owner, run.session, deadline)
    except EngineError as error:
        logger.warning("upstream: the memories of a flushed session cannot be listed: %s", error.detail)
        return 0
