"""The source messages of memories: rebuild them to send them, and clear them when a memory is purged.

A purge leaves rows with an id but without text, so that they cannot be sent.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple, cast, get_args

from django.db.models import QuerySet
from django.utils import timezone

from core.errors import Unreadable
from core.persistence.file_keys import is_key
from core.persistence.files import stored_files
from core.storable import Repair
from documents.mime_types import ContentType
from engines.registry import local_engine
from memories.models import Override, Tombstone
from remote import outbox
from remote.models import OutboxEntry
from resources.models import Attachment, Resource
from resources.services.ingestion import message_of
from store import writes
from store.models import IS_PURGED, Memory, Session, State, owned_by, owner_columns
from store.text.matching import Text, sources_to_clear
from store.types import ENVELOPE, ContentItem, Message, Owner, Role


def resource_of(session: Session) -> QuerySet[Resource]:
    """Return a query of the live resource whose session this is."""
    live = Resource.objects.filter(user_id=session.user_id, session_id=session.session_id, state=State.LIVE)
    return live.select_related("user")


class Source(NamedTuple):
    """The source message of memories."""

    message: Message
    rows: Sequence[Memory]


def messages_of(session: Session, rows: Sequence[Memory]) -> list[Source]:
    """Return the source messages of some memories of a session, in order.

    A file is one message if all its passages are requested and it is available, else each passage is a message.
    """
    resource = resource_of(session).first()
    ours = Memory.objects.filter(session=session, origin=Memory.Origin.EMBEDDED)
    if resource is not None and rows and ours.count() == len(rows) and not has_purged(session):
        try:
            return [Source(message_of(resource), rows)]
        except Unreadable:
            pass
    return list(_by_row(session, rows))


def _by_row(session: Session, rows: Sequence[Memory]) -> Iterator[Source]:
    """Yield the messages of rows. The passages of a document share their time, and become its file if complete."""

    def message_key(row: Memory) -> tuple[object, ...]:
        if row.chunk_index is None:
            return (row.pk,)
        return row.created_at_ms, row.sender_id, row.payload.get("filename"), row.batch_id

    for _, group in groupby(rows, key=message_key):
        passages = list(group)
        first = passages[0]
        file = _file_of(session, passages) if first.chunk_index == 0 else None
        if file is not None:
            yield Source(_message(first, file), passages)
            continue
        for number, row in enumerate(passages):  # a millisecond apart
            name = row.payload.get("filename") if row.chunk_index is not None else None
            text = f"[TEXT: {name}]\n{row.text}" if name else row.text  # the name links a found passage to its file
            yield Source(_message(row, ContentItem("text", text=text), number), [row])


def _file_of(session: Session, passages: Sequence[Memory]) -> ContentItem | None:
    """Return the stored file of these passages, if they are complete and the file came in a message.

    Files that a message only refers to have no digest: their addresses are untrusted and not read.
    """
    row = passages[0]
    same = Memory.objects.filter(session=session, created_at_ms=row.created_at_ms).exclude(
        origin=Memory.Origin.EXTRACTED
    )
    if same.filter(chunk_index__isnull=False).count() != len(passages):
        return None
    if same.filter(IS_PURGED).exists():
        return None
    attached = Attachment.objects.filter(
        owned_by(session.owner),
        session_id=session.session_id,
        name=row.payload.get("filename") or "",
        source=Attachment.Source.MEMORY_ADD,
    ).exclude(sha256="")
    content_type = row.payload.get("content_type")
    kind = cast("ContentType", content_type if content_type in get_args(ContentType) else "doc")
    for attachment in attached:
        key = attachment.internal_uri
        if not is_key(key) or not stored_files().exists(key):
            continue
        item = ContentItem(kind, file=key, name=attachment.name, mime_type=row.payload.get("mime_type"))
        if len(attached) == 1:
            return item
        # Several files have the name: the memory id depends on the content of the right one.
        if local_engine().memory_ids(session.owner, session.session_id, _message(row, item)) == [row.memory_id]:
            return item
    return None


def _message(row: Memory, item: ContentItem, offset_ms: int = 0) -> Message:
    role = row.payload.get("role")
    known = cast("Role", role if role in get_args(Role) else "user")
    at = row.created_at_ms + offset_ms
    message = Message(row.sender_id, known, at, (item,), expires_at=row.expires_at)
    return replace(message, **{name: row.payload[name] for name in ENVELOPE if name in row.payload})


def has_purged(session: Session) -> bool:
    """Return True if a memory or message of the session was purged."""
    return Memory.objects.filter(IS_PURGED, session=session).exists()


def engine_texts(rows: Sequence[Memory]) -> list[str]:
    """Return the texts of memories as the engine wrote them, without the users' overrides."""
    overridden = Override.objects.filter(row__in=rows, undone_at__isnull=True)
    originals = dict(overridden.values_list("row_id", "original_text"))
    return [originals.get(row.pk, row.text) for row in rows]


def clear_source_messages(owner: Owner, memory: Memory) -> None:
    """Clear the messages that were deleted with a remote memory, so that they are neither shown nor sent again.

    Rows without text remain, so that a repeated message is not stored again. Call inside the transaction that purges
    the memory, before its text and its tombstone are removed, with the user locked.
    """
    session = memory.session
    if memory.origin != Memory.Origin.REMOTE or memory.state == State.PURGED or session is None:
        return
    sent = outbox.entries(session).exclude(message={}).order_by("pk")
    messages = [(entry, outbox.message_of(entry)) for entry in sent]
    is_known = memory.batch_id in {entry.flush_id for entry, _message in messages}
    to_clear = _deleted_with(owner, memory) if memory.sources else _matching(session, memory, messages)
    for entry, message in messages:
        has_files = any(item.text is None for item in message.content)  # their text is unknown
        is_named = entry.message_id in to_clear or not to_clear.isdisjoint(entry.memory_ids)
        is_of_flush = not is_known or entry.flush_id == memory.batch_id
        if is_named or (has_files and not memory.sources and is_of_flush):
            _clear(owner, session, entry, message)
    # A memory whose sources are all purged is the only one of its facts. With a part of them, it is not derived again.
    left = set(session.memories.exclude(IS_PURGED).values_list("memory_id", flat=True))
    copies = session.memories.filter(origin=Memory.Origin.REMOTE).exclude(sources=[])
    sole = [one for one in copies if left.isdisjoint(one.sources)]
    for one in sole:
        one.sources = []
    writes.save(owner, sole, ["sources"])


def clear_entry(owner: Owner, memory: Memory) -> None:
    """Clear what is in the outbox of the message of a purged memory. The files of messages stay."""
    if memory.origin != Memory.Origin.EMBEDDED:
        return
    named = outbox.of_memory(owner, memory.memory_id).exclude(message={})
    for entry in named:
        if any(item.text is not None for item in outbox.message_of(entry).content):
            _clear_text(entry)


def _deleted_with(owner: Owner, memory: Memory) -> set[str]:
    """Return the ids of the sources that were deleted with a memory and not restored since."""
    followers = Tombstone.ledger.filter(owned_by(owner), other_id=memory.memory_id, undone_at__isnull=True)
    followers = followers.filter(kind=Tombstone.Kind.DERIVED_DELETED, memory_id__in=memory.sources)
    return set(followers.values_list("memory_id", flat=True))


def _matching(session: Session, memory: Memory, messages: Sequence[tuple[OutboxEntry, Message]]) -> set[str]:
    """Return the ids of the messages that share words with a memory whose sources are not known."""
    copies = list(Memory.objects.filter(session=session, origin=Memory.Origin.REMOTE).exclude(IS_PURGED).order_by("pk"))
    texts = [Text(row.memory_id, text, row.batch_id) for row, text in zip(copies, engine_texts(copies), strict=True)]
    purged = next(text for text in texts if text.memory_id == memory.memory_id)
    said = [Text(entry.message_id, message.text, entry.flush_id) for entry, message in messages]
    return sources_to_clear(purged, texts, said)


def _clear(owner: Owner, session: Session, entry: OutboxEntry, message: Message) -> None:
    rows = outbox.memories_of(owner, [entry])
    times = {row.memory_id: (row.seq, row.created_at_ms) for row in rows}
    names = {*times, *local_engine().memory_ids(owner, session.session_id, message)}
    Tombstone.objects.filter(row__in=rows).update(row=None, reason="")
    writes.remove(owner, rows)
    writes.insert_unindexed(
        Memory(
            **owner_columns(owner),
            memory_id=name,
            session=session,
            memory_type=Memory.Type.UNPROCESSED_MESSAGE,
            text="",
            state=State.PURGED,
            seq=times.get(name, (0, 0))[0],
            created_at_ms=Repair().ms("created_at_ms", times[name][1] if name in times else entry.time_ms),
            origin=Memory.Origin.REMOTE,
            state_since=timezone.now(),
        )
        for name in sorted(names - writes.known(owner, names))
    )
    _clear_text(entry)


def _clear_text(entry: OutboxEntry) -> None:
    """Clear an entry. What the remote may have in its buffer is known as purged after the next flush."""
    is_sent = entry.state in {OutboxEntry.State.UNCONFIRMED, OutboxEntry.State.BUFFERED}
    state = entry.state if is_sent else OutboxEntry.State.PURGED
    OutboxEntry.objects.filter(pk=entry.pk).update(message={}, state=state)
