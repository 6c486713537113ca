"""Send a session to the remote again, under a new id: its present memories stay until the new ones are here.

Until then, former memories are found here, the remote is not asked for the session, and new copies are not shown. Then
one transaction replaces the former memories. Those that a user deleted or edited stay: what they were derived from is
not sent again.
"""

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from remote import deletions, outbox, remote_sessions, residue, sources
from remote.engine_ids import with_mark
from remote.models import OutboxEntry, Resend
from store import derived_memories, writes
from store import sessions as store_sessions
from store.ledger import Override, Tombstone
from store.models import Memory, Session, State, owned_by
from store.types import Message, Owner

_KEPT: Final = "kept"
"""The flush of copies whose messages cannot be sent again. The remote is not asked for them."""


def can_begin(session: Session) -> bool:
    """Return False if a message of the session cannot be sent again, or must not.

    These are messages whose text was cleared, and those of a deleted or edited memory whose sources are not known.
    """
    cleared = outbox.entries(session).filter(state=OutboxEntry.State.FLUSHED, message={})
    return not cleared.exists() and not _decided(session).filter(sources=[]).exists()


def has_decided(session: Session) -> bool:
    """Return True if a user deleted or edited what the remote derived from the session."""
    return _decided(session).exists()


def begin(session: Session, lacking: Mapping[str, tuple[Message, Sequence[str]]]) -> None:
    """Let all messages of a session wait to be sent, also those that the remote lacks.

    A memory is derived again if all of its sources are sent. One that is not stays, and its sources are not sent.
    `lacking` are by message id these messages and their memories. Call inside a transaction that has locked user and
    session.
    """
    sources.link(session)
    outbox.record(
        session,
        {name: message for name, (message, _ids) in lacking.items()},
        {name: memory_ids for name, (_message, memory_ids) in lacking.items()},
    )
    if not _copies(session).exists() and not outbox.was_sent(session):
        outbox.send_all_again(session)
        return
    purged = Memory.objects.filter(session=session, state=State.PURGED, origin=Memory.Origin.REMOTE)
    _keep(session, purged)  # nothing is derived from them under the new id
    unshown = _copies(session).filter(is_covered=True).exclude(pk__in=_decided(session).values("pk"))
    writes.remove(session.owner, list(unshown))  # an earlier try did not end
    known = Resend.objects.filter(session=session).first()
    former_id, former_ids = session.engine_session_id, known.former_ids if known else []
    whole = outbox.whole_flushes(session)
    if known and known.ended_at is None:
        whole.update(_flushes_of(former_ids))
    outbox.send_all_again(session)
    copies = list(_copies(session))
    kept, held = _that_stay(session, copies, whole)
    for copy in copies:
        copy.batch_id = _KEPT if copy in kept else former_id[:64]
    writes.save(session.owner, copies, ["batch_id"])
    outbox.withhold_memories(session, held)
    residue.note_session(session)
    Resend.objects.update_or_create(
        session=session,
        defaults={
            "user_id": session.user_id,
            "base_url": settings.MEMORY_GATEWAY_BACKEND_BASE_URL,
            "former_ids": [*former_ids, former_id],
            "began_at": timezone.now(),
            "ended_at": None,
        },
    )
    session.engine_session_id = with_mark(session.session_id, f"~{secrets.token_hex(8)}")
    session.flushed_at = session.searchable_at = None
    session.save(update_fields=["engine_session_id", "flushed_at", "searchable_at"])


def _that_stay(session: Session, copies: Sequence[Memory], whole: Collection[str]) -> tuple[set[Memory], set[str]]:
    """Return the copies that are not derived again, and the ids of the messages that must not be sent for them.

    `whole` are the flushes whose messages are all sent again, in case that the sources of a copy are not known.
    """
    decided = set(_decided(session).values_list("pk", flat=True))
    kept = {copy for copy in copies if copy.pk in decided}
    shown = {copy for copy in copies if copy.state == State.LIVE} - kept
    times = sources.times_of(session, shown)
    foreign = {copy for copy in shown if copy.sources and not _is_of_its_time(copy, times)}
    held = {name for copy in kept for name in copy.sources}
    sent = outbox.waiting_memories(session)
    shown -= foreign
    while True:
        is_sent = sent - held
        new = {
            copy
            for copy in shown - kept
            if not (is_sent.issuperset(copy.sources) and (copy.sources or copy.batch_id in whole))
        }
        if not new:
            return kept | foreign, held
        kept |= new
        held |= {name for copy in new for name in copy.sources}


def _is_of_its_time(copy: Memory, times: Mapping[str, int]) -> bool:
    """Return False for a copy that another message was the source of, which is not here."""
    of_sources = [times[name] // 1000 for name in copy.sources if name in times]
    return bool(of_sources) and min(of_sources) - 1 <= copy.created_at_ms // 1000 <= max(of_sources) + 1


def _flushes_of(former_ids: Sequence[str]) -> list[str]:
    """Return what stands for the flush of memories that are derived again."""
    return [name[:64] for name in former_ids]


def make_room(owner: Owner, memory_ids: Collection[str]) -> None:
    """Give memories of other remotes and of former ids other ids, if the remote uses theirs now.

    Call inside a transaction.
    """
    others = Memory.objects.filter(owned_by(owner), origin=Memory.Origin.REMOTE, memory_id__in=list(memory_ids))
    for memory in others.exclude(sources.is_present()):
        new_id = f"{memory.memory_id}~{secrets.token_hex(8)}"
        for decisions in (Tombstone.ledger, Override.objects):
            decisions.filter(row=memory).update(memory_id=new_id)
        Tombstone.ledger.filter(owned_by(owner), other_id=memory.memory_id).update(other_id=new_id)
        memory.memory_id = new_id
        writes.save(owner, [memory], ["memory_id"])


def is_open(session: Session) -> bool:
    """Return True while the session's former memories stand for it."""
    return _open(session).exists()


def end(session: Session) -> None:
    """Replace the session's former memories, if it is sent again and the remote's new memories are here.

    What a user deleted or edited meanwhile stays, and memories of messages that the remote refuses now. New memories
    that repeat them wait in the trash.
    """
    if not is_open(session):
        return
    owner = session.owner
    with transaction.atomic():
        store_sessions.lock_decisions(owner)
        locked = Session.objects.select_for_update().get(pk=session.pk)
        resend = _open(locked).first()
        if resend is None or _is_unfinished(locked):
            return
        deletions.queue_former(owner, locked, resend.former_ids)
        former = list(_copies(locked).filter(batch_id__in=_flushes_of(resend.former_ids)))
        decided = set(_decided(locked).values_list("pk", flat=True))
        kept = [copy for copy in former if copy.pk in decided]
        lost = outbox.not_derived_from(locked)
        kept += [copy for copy in former if lost and (not copy.sources or not lost.isdisjoint(copy.sources))]
        gone = [copy for copy in former if copy not in kept]
        sourced = {name for copy in former for name in copy.sources}
        _keep(locked, kept)
        for decisions in (Tombstone.ledger, Override.objects):  # ended ones remain as history
            decisions.filter(row__in=gone, undone_at__isnull=False).update(row=None)
        writes.remove(owner, gone)
        new = list(_copies(locked).filter(sources.is_present(), is_covered=True))
        sources.hold_what_repeats(locked, new, kept)
        writes.uncover(owner, new)
        sources.forget_sent(locked, new)
        derived_memories.cover_sources(owner, list(_copies(locked).values_list("pk", flat=True)), besides=sourced)
        if _copies(locked).exclude(sources.is_present()).exists():
            resend.ended_at = timezone.now()
            resend.save(update_fields=["ended_at"])
        else:
            resend.delete()


def _keep(session: Session, copies: Iterable[Memory]) -> None:
    """Mark memories as not derived again."""
    kept = list(copies)
    for copy in kept:
        copy.batch_id = _KEPT
    writes.save(session.owner, kept, ["batch_id"])


def _is_unfinished(session: Session) -> bool:
    """Return True until a flush of all messages has ended. If it made nothing of them, former memories stay for now."""
    if outbox.has_unflushed(session) or remote_sessions.is_flush_open(session):
        return True
    return outbox.expects_memories(session) and not _copies(session).filter(sources.is_present()).exists()


def _open(session: Session) -> QuerySet[Resend]:
    """Return the query of what `is_open`. Another address does not have what was sent to this one."""
    base_url = settings.MEMORY_GATEWAY_BACKEND_BASE_URL
    return Resend.objects.filter(session=session, ended_at__isnull=True, base_url=base_url)


def _copies(session: Session) -> QuerySet[Memory]:
    return Memory.objects.filter(session=session, memory_type=Memory.Type.EPISODE, origin=Memory.Origin.REMOTE)


def _decided(session: Session) -> QuerySet[Memory]:
    """Return the copies that a person deleted or edited."""
    remote = derived_memories.REMOTE
    deleted = Tombstone.objects.filter(row=OuterRef("pk"), undone_at__isnull=True)
    deleted = deleted.exclude(actor_kind=remote.kind, actor=remote.name)
    edited = Override.objects.filter(row=OuterRef("pk"), undone_at__isnull=True)
    return _copies(session).filter(Exists(deleted) | Exists(edited))
