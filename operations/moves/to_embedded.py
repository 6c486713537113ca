"""Move one session from EverOS to the embedded engine, or replay a file within the embedded engine."""

from collections.abc import Callable, Sequence

from django.db import transaction

from core.errors import Unreadable
from engines.registry import local_engine
from memories.services import lookup
from operations.moves.messages import engine_texts, has_purged, resource_of
from operations.moves.replacement import Changed, Moved, OnMoved, replace
from remote import deletions, journal, sessions
from remote.staging import fresh_engine_id
from resources.models import NOT_PURGED, Resource
from resources.services.ingestion import message_of
from store.models import DeliveryState, Memory, Session
from store.port import Replay
from store.types import Message


def move(session: Session, on_moved: OnMoved) -> Moved:
    """Replay the session's journal or file, and keep copies of EverOS's memories that cannot be replayed.

    One transaction creates the new memories, transfers the decisions and removes the old ones; `on_moved(moved)` runs
    inside it. Raises: `Changed`, and `EngineUnavailable` if a file cannot be fetched now.
    """
    rows, engine = _everos_rows(session), local_engine()
    replays = [
        engine.replay(session.owner, session.session_id, message, batch_id)
        for message, batch_id in _journalled_messages(session, rows)
    ]

    def change(locked: Session, current: Sequence[Memory]) -> Moved:
        memories = [row for row in current if not row.delivery_state]
        entries = [row for row in current if row.delivery_state and journal.has_text(row)]
        stay = _not_replayed(current, replays)
        deletions.queue_session(session.owner, locked)
        moved = replace(session.owner, locked, memories, replays, stay=stay, journal=entries)
        sessions.note_left_session(locked)  # EverOS may still have its data under the old id
        locked.engine_session_id = fresh_engine_id(locked)
        if locked.searchable_at is None:
            locked.flushed_at = None
        locked.save(update_fields=["engine_session_id", "flushed_at"])
        return moved

    return _in_transaction(session, rows, _everos_rows, change, on_moved)


def reread(session: Session, on_moved: OnMoved) -> Moved:
    """Replace a file's passages and transfer their decisions, if its text has changed.

    A file that cannot be read or was partly purged keeps its passages. Raises: `Changed`,
    `EngineUnavailable`.
    """
    resource = resource_of(session).first()
    if resource is None:
        return Moved()
    rows = _passages(session)
    if has_purged(session):
        return Moved(stayed=len(rows))
    try:
        replay = local_engine().replay(session.owner, session.session_id, message_of(resource), "reread")
    except Unreadable:
        return Moved(stayed=len(rows))
    if not replay.memories or engine_texts(rows) == [memory.text for memory in replay.memories]:
        return Moved(stayed=len(rows))

    def change(locked: Session, current: Sequence[Memory]) -> Moved:
        return replace(session.owner, locked, current, [replay])

    return _in_transaction(session, rows, _passages, change, on_moved)


def _in_transaction(
    session: Session,
    rows: Sequence[Memory],
    read: Callable[[Session], list[Memory]],
    change: Callable[[Session, Sequence[Memory]], Moved],
    on_moved: OnMoved,
) -> Moved:
    """Apply `change` to the rows of a session in a transaction. Raises: `Changed` if they differ from `rows`."""
    with transaction.atomic():
        lookup.lock_user(session.user_id)
        locked = Session.objects.select_for_update().get(pk=session.pk)
        if locked.deleted_at is not None:
            return Moved()
        current = read(locked)
        if {(row.pk, row.batch_id) for row in current} != {(row.pk, row.batch_id) for row in rows}:
            raise Changed("The session was written to while it was moved.")
        moved = change(locked, current)
        on_moved(moved)
    return moved


def _everos_rows(session: Session) -> list[Memory]:
    """Return the journal of a session and the copies of EverOS's memories."""
    return list(Memory.objects.filter(session=session, origin=Memory.Origin.UPSTREAM).order_by("pk"))


def _passages(session: Session) -> list[Memory]:
    rows = Memory.objects.filter(session=session, origin=Memory.Origin.EMBEDDED, chunk_index__isnull=False)
    return list(rows.order_by("chunk_index", "pk"))


def _journalled_messages(session: Session, rows: Sequence[Memory]) -> list[tuple[Message, str]]:
    """Return the session's messages with their flushes.

    The message of a resource, also in the trash, is created again, because its file may have moved. If parts of it were
    purged, it is not replayed, because the position of the parts in the file is unknown.
    """
    entries = [row for row in rows if row.delivery_state]
    flushes = {
        row: row.batch_id if row.delivery_state == DeliveryState.FLUSHED else ""
        for row in entries
        if journal.has_text(row)
    }
    resources = Resource.objects.select_related("user").filter(session_id=session.session_id, user_id=session.user_id)
    resource = resources.filter(NOT_PURGED).first()
    if resource is None:
        return [(journal.message_of(row), batch_id) for row, batch_id in flushes.items()]
    if len(flushes) < len(entries):
        return []
    try:
        return [(message_of(resource), next(filter(None, flushes.values()), "moved"))]
    except Unreadable:
        return []


def _not_replayed(rows: Sequence[Memory], replays: Sequence[Replay]) -> set[str]:
    """Return the ids of old memories whose content was not replayed completely.

    These are memories of images and sounds, of files that cannot be read now, of messages from before the journal
    existed, and of partly purged messages.
    """
    whole = {item.batch_id for item in replays}
    partial = {item.batch_id for item in replays if not item.is_whole}
    partial |= {row.batch_id for row in rows if row.delivery_state and not journal.has_text(row)}
    is_unknown_replayed = bool(replays) and not partial
    return {
        row.memory_id
        for row in rows
        if not row.delivery_state
        and (row.batch_id in partial or row.batch_id not in whole if row.batch_id else not is_unknown_replayed)
    }
