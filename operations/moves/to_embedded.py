"""Move one session from EverOS to the embedded engine, or replay a file within the embedded engine."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from django.db import transaction

from core.errors import Unreadable
from engines.registry import local_engine
from memories.services import lookup
from operations.moves.messages import engine_texts, has_purged, resource_of
from operations.moves.replacement import Changed, Moved, OnMoved, replace
from remote import deletions, outbox, sessions
from remote.models import OutboxEntry
from remote.staging import fresh_engine_id
from resources.models import NOT_PURGED, Resource
from resources.services.ingestion import message_of
from store import derived_memories, storage
from store.models import DeliveryState, Memory, Session
from store.port import Replay
from store.types import Message

_Row = Memory | OutboxEntry
_R = TypeVar("_R", bound=_Row)


def move(session: Session, on_moved: OnMoved) -> Moved:
    """Replay the session's sent messages or file, and keep copies of EverOS's memories that cannot be replayed.

    One transaction shows the messages again, creates memories that are not here, transfers the decisions and removes
    EverOS's memories; `on_moved(moved)` runs inside it. Raises: `Changed`, and `EngineUnavailable` if a file cannot be
    fetched now.
    """
    rows, engine = _everos_rows(session), local_engine()
    replays = [
        engine.replay(session.owner, session.session_id, message, batch_id)
        for message, batch_id in _sent_messages(session, _entries(rows))
    ]

    def change(locked: Session, current: Sequence[_Row]) -> Moved:
        memories = [row for row in current if isinstance(row, Memory)]
        entries = [entry for entry in _entries(current) if outbox.has_text(entry)]
        stay = _not_replayed(memories, _entries(current), replays)
        deletions.queue_session(session.owner, locked)
        replayed = {memory.memory_id for replay in replays for memory in replay.memories}
        messages = outbox.memories_of(session.owner, entries)
        # Content that was not replayed is in the memories that stay, which may be deleted.
        storage.remove(session.owner, [row for row in messages if row.memory_id not in replayed])
        storage.set_cover(session.owner, dict.fromkeys(replayed, storage.Cover()))
        derived_memories.forget_derived(session.owner, replayed)  # the decisions themselves are carried below
        OutboxEntry.objects.filter(pk__in=[entry.pk for entry in entries]).delete()
        moved = replace(session.owner, locked, memories, replays, stay=stay)
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
    rows: Sequence[_R],
    read: Callable[[Session], list[_R]],
    change: Callable[[Session, Sequence[_R]], Moved],
    on_moved: OnMoved,
) -> Moved:
    """Apply `change` to the rows of a session in a transaction. Raises: `Changed` if they differ from `rows`."""
    with transaction.atomic():
        lookup.lock_user(session.user_id)
        locked = Session.objects.select_for_update().get(pk=session.pk)
        if locked.deleted_at is not None:
            return Moved()
        current = read(locked)
        if set(map(_version, current)) != set(map(_version, rows)):
            raise Changed("The session was written to while it was moved.")
        moved = change(locked, current)
        on_moved(moved)
    return moved


def _version(row: _Row) -> tuple[object, ...]:
    return type(row), row.pk, row.flush_id if isinstance(row, OutboxEntry) else row.batch_id


def _everos_rows(session: Session) -> list[_Row]:
    """Return the copies of EverOS's memories in a session, and the entries of its messages."""
    copies = Memory.objects.filter(session=session, origin=Memory.Origin.UPSTREAM)
    copies = copies.exclude(delivery_state=DeliveryState.PURGED)
    return [*copies.order_by("pk"), *outbox.entries(session).order_by("pk")]


def _entries(rows: Sequence[_Row]) -> list[OutboxEntry]:
    return [row for row in rows if isinstance(row, OutboxEntry)]


def _passages(session: Session) -> list[Memory]:
    rows = Memory.objects.filter(session=session, origin=Memory.Origin.EMBEDDED, chunk_index__isnull=False)
    return list(rows.order_by("chunk_index", "pk"))


def _sent_messages(session: Session, entries: Sequence[OutboxEntry]) -> list[tuple[Message, str]]:
    """Return the session's messages with their flushes.

    The message of a resource, also in the trash, is created again, because its file may have moved. If parts of it were
    purged, it is not replayed, because the position of the parts in the file is unknown.
    """
    flushes = {entry: entry.flush_id for entry in entries if outbox.has_text(entry)}
    resources = Resource.objects.select_related("user").filter(session_id=session.session_id, user_id=session.user_id)
    resource = resources.filter(NOT_PURGED).first()
    if resource is None:
        return [(outbox.message_of(entry), batch_id) for entry, batch_id in flushes.items()]
    if len(flushes) < len(entries) or has_purged(session):
        return []
    try:
        return [(message_of(resource), next(filter(None, flushes.values()), "moved"))]
    except Unreadable:
        return []


def _not_replayed(memories: Sequence[Memory], entries: Sequence[OutboxEntry], replays: Sequence[Replay]) -> set[str]:
    """Return the ids of old memories whose content was not replayed completely.

    These are memories of images and sounds, of files that cannot be read now, of messages from before the outbox
    existed, and of partly purged messages.
    """
    whole = {item.batch_id for item in replays}
    partial = {item.batch_id for item in replays if not item.is_whole}
    partial |= {entry.flush_id for entry in entries if not outbox.has_text(entry)}
    is_unknown_replayed = bool(replays) and not partial
    return {
        row.memory_id
        for row in memories
        if (row.batch_id in partial or row.batch_id not in whole if row.batch_id else not is_unknown_replayed)
    }
