"""Send one session to the remote: what it lacks, or all again. Its memories here stay, and so do decisions.

Memories with a decision are not sent: they are found here, beside what the remote derives from the others.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from core.errors import EngineRefused, OutcomeUnknown
from core.messages import Translatable as _
from memories.models import Override
from memories.services import lookup
from operations.reingest.messages import messages_of
from operations.reingest.replacement import Done
from remote import outbox, remote_sessions, resend, sources
from remote.models import OutboxEntry
from store.models import Memory, Session, State
from store.port import Remote
from store.types import Message, Owner

_IS_SHOWN: Final = Q(state=State.LIVE, is_covered=False)


def send(session: Session, remote: Remote, *, again: bool) -> Done:
    """Have the remote derive memories from a session; `again` also from what it has.

    After an interruption, the same call continues. Raises: the errors of the remote, `OutcomeUnknown` until its
    memories are here.
    """
    owner = session.owner
    if not begin(owner, session.session_id, again=again):
        return Done(stayed=session.memories.filter(_IS_SHOWN).count())
    before = _copies(session)
    messages = outbox.of_attached(session).filter(state=OutboxEntry.State.PENDING).count()
    remote.flush(owner, session.session_id)
    session.refresh_from_db()
    if resend.is_open(session) or remote_sessions.is_flush_open(session):
        raise OutcomeUnknown(_("The memory engine does not list this session's memories yet."), retry_after_seconds=5)
    refused = outbox.of_attached(session).filter(state=OutboxEntry.State.REFUSED).first()
    if refused is not None:
        raise EngineRefused(refused.cause)
    after = _copies(session)
    return Done(messages, len(after - before), len(before - after), len(before & after))


def _copies(session: Session) -> set[int]:
    copies = session.memories.filter(_IS_SHOWN, origin=Memory.Origin.REMOTE)
    return set(copies.values_list("pk", flat=True))


def undecided_rows(session: int | OuterRef) -> QuerySet[Memory]:
    """Return the messages and passages of a session (row id) that last, without a deletion or override."""
    overridden = Override.objects.filter(row=OuterRef("pk"), undone_at__isnull=True)
    rows = Memory.objects.filter(session=session, origin=Memory.Origin.EMBEDDED, state=State.LIVE, is_replaced=False)
    return rows.filter(~Exists(overridden), expires_at__isnull=True, session__expires_at__isnull=True)


def rows_not_sent(session: OuterRef) -> QuerySet[Memory]:
    """Return the undecided rows of a session that the attached remote probably lacks."""
    sent = OutboxEntry.objects.filter(sources.of_remote(), session=OuterRef("session"))
    is_waiting = Q(Exists(sent.filter(flush_id="")), memory_type=Memory.Type.UNPROCESSED_MESSAGE)
    is_sent = is_waiting | Q(Exists(sent.filter(flush_id=OuterRef("batch_id"))), ~Q(batch_id=""))
    return undecided_rows(session).exclude(is_sent)


def begin(owner: Owner, session_id: str, *, again: bool) -> bool:
    """Let messages of a session wait to be sent, unless they do; return False if there is nothing to send."""
    with transaction.atomic():
        lookup.lock_user(owner.user_pk)
        session = remote_sessions.claim(owner, session_id)
        is_running = outbox.has_unflushed(session) or remote_sessions.is_flush_open(session)
        if is_running and (resend.is_open(session) or not again):
            return True
        lacking = _lacking(session)
        if outbox.wait_again(outbox.of_attached(session)) and not (lacking or again):
            return True
        if not (lacking or again) or not resend.can_begin(session):
            return False
        resend.begin(session, lacking)
        return outbox.has_unflushed(session) or resend.is_open(session)


def _lacking(session: Session) -> Mapping[str, tuple[Message, Sequence[str]]]:
    """Return messages of undecided rows that are in no entry that can be sent as it is, and their memories, by id."""
    entries = list(outbox.of_attached(session).exclude(message={}))
    held = outbox.withdrawn(session, [entry for entry in entries if entry.memory_ids])
    known = {memory_id for entry in entries if entry.pk not in held for memory_id in entry.memory_ids}
    rows = [row for row in undecided_rows(session.pk).order_by("seq", "pk") if row.memory_id not in known]
    found = {
        message_id: (source.message, [row.memory_id for row in source.rows])
        for source in messages_of(session, rows)
        for message_id in outbox.by_id(session.session_id, [source.message])
    }
    taken = set(outbox.of_attached(session).filter(message_id__in=list(found)).values_list("message_id", flat=True))
    return {message_id: one for message_id, one in found.items() if message_id not in taken}
