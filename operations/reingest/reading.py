"""Read a file again, and transfer the decisions about its passages to the new ones."""

from django.db import transaction

from core.errors import Unreadable
from engines.registry import local_engine
from memories.services import lookup
from operations.reingest.messages import engine_texts, has_purged, resource_of
from operations.reingest.replacement import Changed, Done, replace
from remote import outbox, resend
from resources.models import Resource
from resources.services.ingestion import message_of
from store import derived_memories, writes
from store.models import Memory, Session, State
from store.port import Replay


def reread(session: Session) -> Done:
    """Replace a file's passages in one transaction, if its text has changed. Its derived memories stay.

    A file keeps its passages that cannot be read, was partly purged, or whose derived memories a user decided about.
    Raises: `Changed`, `EngineUnavailable`.
    """
    resource = resource_of(session).first()
    if resource is None:
        return Done()
    rows = _passages(session)
    if has_purged(session) or resend.has_decided(session):
        return Done(stayed=len(rows))
    try:
        message = message_of(resource)
        replay = local_engine().replay(session.owner, session.session_id, message, "reread")
    except Unreadable:
        return Done(stayed=len(rows))
    if replay.reading:
        Resource.objects.filter(pk=resource.pk, state=State.LIVE).update(reading=replay.reading.as_json())
    if not replay.memories or engine_texts(rows) == [memory.text for memory in replay.memories]:
        return Done(stayed=len(rows))
    [message_id] = outbox.by_id(session.session_id, [message])
    with transaction.atomic():
        lookup.lock_user(session.user_id)
        locked = Session.objects.select_for_update().get(pk=session.pk)
        if locked.state == State.PURGED:
            return Done()
        current = _passages(locked)
        if {(row.pk, row.batch_id) for row in current} != {(row.pk, row.batch_id) for row in rows}:
            raise Changed("The session was written to while it was read again.")
        done = replace(session.owner, locked, current, replay)
        outbox.entries(locked).filter(message_id=message_id).update(memory_ids=_ids(replay))
        _keep_derived(locked, replay)
    return done


def _keep_derived(session: Session, replay: Replay) -> None:
    """Let what the remote derived from a file stand for its new passages."""
    derived = list(Memory.objects.filter(session=session, origin=Memory.Origin.REMOTE).exclude(sources=[]))
    for memory in derived:
        memory.sources = _ids(replay)
    writes.save(session.owner, derived, ["sources"])
    derived_memories.cover_sources(session.owner, [memory.pk for memory in derived])


def _ids(replay: Replay) -> list[str]:
    return [memory.memory_id for memory in replay.memories]


def _passages(session: Session) -> list[Memory]:
    rows = Memory.objects.filter(session=session, origin=Memory.Origin.EMBEDDED, chunk_index__isnull=False)
    return list(rows.order_by("chunk_index", "pk"))
