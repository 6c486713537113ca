"""The journal of messages sent to EverOS, so that a repeated add stays one message.

EverOS identifies a message by session, time and position in the call, and silently drops the second of two that share
them; after a flush it forgets them. So each message gets a unique time, and a confirmed message is never sent again.
`Memory.batch_id` names the call of unconfirmed messages and the flush of flushed ones; it is empty for buffered ones.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import orjson
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, Max, Min, OuterRef, Q, QuerySet
from django.utils import timezone

from core import readable
from core.errors import TimestampOutOfRange
from core.messages import Message as _
from core.persistence import files, sql
from core.persistence.file_keys import file_key
from remote import sessions as external_sessions
from store.models import IS_JOURNAL_ENTRY, DeliveryState, Memory, Session
from store.types import FILE_SPAN_MS, PARTICIPANT_CATEGORY, ContentItem, Message, Owner, Role

_FIRST_MS = 10**12  # 9 September 2001
_ROWS_AT_ONCE = 200
_FROM_JOURNAL = """
    FROM store_memory
    WHERE user_id = %s AND app_id = %s AND project_id = %s AND session_id = %s
      AND delivery_state <> ''
"""
_SYSTEM = "full_context_system"
"""The category of messages that are never sent, because EverOS refuses their role."""
_IS_OF_PEOPLE = Q(category__in=("full_context_user", PARTICIPANT_CATEGORY))
"""Messages that EverOS makes episodes of."""
_IS_UNCONFIRMED = Q(delivery_state=DeliveryState.UNCONFIRMED)
_IS_BUFFERED = Q(delivery_state=DeliveryState.BUFFERED)


@dataclass(frozen=True, slots=True)
class Buffered:
    """Messages that the next flush takes: their last row, and the time of the last user message.

    `last_user_ms` is None without a user message. Then no episode follows, because EverOS files episodes under users.
    """

    last_row: int | None
    last_user_ms: int | None


@dataclass(frozen=True, slots=True)
class Entry:
    """A message and the time (Unix milliseconds) that identifies it in EverOS."""

    message: Message
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages that are sent in one call, always in this order. `is_new`: never sent before."""

    batch_id: str
    entries: tuple[Entry, ...]
    is_new: bool


def record_messages(owner: Owner, session_id: str, messages: Sequence[Message]) -> tuple[Session, list[Batch]]:
    """Record the messages, and return the batches to send: new messages and unconfirmed batches.

    Raises: `EngineRefused` for a deleted session, `TimestampOutOfRange`.
    """
    named = _by_memory_id(session_id, messages)  # hashes files, so before the transaction
    with transaction.atomic():
        session = external_sessions.claim(owner, session_id)
        return session, _append(session, named)


def append(session: Session, messages: Sequence[Message]) -> list[Batch]:
    """Record messages of a session that the caller has locked, and return the batches to send.

    Call inside a transaction. Raises: `TimestampOutOfRange`.
    """
    return _append(session, _by_memory_id(session.session_id, messages))


def _by_memory_id(session_id: str, messages: Sequence[Message]) -> dict[str, Message]:
    """Return the messages by memory id. Raises: `TimestampOutOfRange`."""
    if any(message.timestamp_ms < _FIRST_MS for message in messages):
        raise TimestampOutOfRange(
            _("timestamp: EverOS cannot store messages from before 9 September 2001; the embedded engine can.")
        )
    return {memory_id_of(session_id, message): message for message in messages}


def _append(session: Session, wanted: Mapping[str, Message]) -> list[Batch]:
    names = f"AND memory_id IN ({sql.slots(wanted)})"
    found = _select_entries("memory_id, delivery_state, batch_id", session, names, list(wanted))
    known = {memory_id for memory_id, *_ in found}
    unconfirmed_ids = {batch_id for _, state, batch_id in found if state == DeliveryState.UNCONFIRMED}
    batches = _batches(session, unconfirmed_ids, wanted) if unconfirmed_ids else []
    new = {memory_id: message for memory_id, message in wanted.items() if memory_id not in known}
    if new:
        batches.append(_write(session, new))
    return batches


def unconfirmed(session: Session) -> list[Batch]:
    """Return the session's batches that were sent without an answer."""
    pending = entries(session).filter(_IS_UNCONFIRMED).order_by()
    return _batches(session, set(pending.values_list("batch_id", flat=True).distinct()), {})


def unconfirmed_sessions(since: datetime, before: datetime, now: datetime, limit: int) -> list[Session]:
    """Return sessions with unconfirmed messages that were first sent in that period and whose retry is due.

    They come with their users, round-robin by user.
    """
    sent = _retried().filter(sent_at__gte=since, sent_at__lt=before)
    sessions = Session.objects.filter(_is_due(now), pk__in=sent.values("session")).select_related("user")
    return list(sessions.annotate(turn=sql.turn_of_user("pk")).order_by("turn", "pk")[:limit])


def users_with_unconfirmed() -> list[UUID]:
    """Return the keys of users who have unconfirmed messages."""
    sent = Memory.objects.filter(_IS_UNCONFIRMED)
    return list(sent.order_by().values_list("user_id", flat=True).distinct())


def unconfirmed_flushes(since: datetime, before: datetime, now: datetime, limit: int) -> list[Session]:
    """Return chats with an unconfirmed flush sent in that period, buffered messages, and a due retry.

    They come with their users, round-robin by user. The flushes of files are retried by their ingestion.
    """
    buffered = Memory.objects.filter(_IS_BUFFERED, session=OuterRef("pk"))
    open_ones = Session.objects.filter(_is_due(now), searchable_at__isnull=True, deleted_at__isnull=True)
    open_ones = open_ones.filter(Exists(buffered), flushed_at__gte=since, flushed_at__lt=before)
    found = open_ones.exclude(kind=Session.Kind.RESOURCE).select_related("user")
    return list(found.annotate(turn=sql.turn_of_user("flushed_at")).order_by("turn", "flushed_at")[:limit])


def _is_due(now: datetime) -> Q:
    return Q(retry_at__isnull=True) | Q(retry_at__lte=now)


def unconfirmed_since(session: Session) -> datetime | None:
    """Return when the oldest unconfirmed message of a session was first sent."""
    oldest: datetime | None = entries(session).filter(_IS_UNCONFIRMED).aggregate(oldest=Min("sent_at"))["oldest"]
    return oldest


def count_given_up(before: datetime) -> int:
    """Return the number of unconfirmed messages first sent before that time, which are no longer retried."""
    return _retried().filter(sent_at__lt=before).count()


def _retried() -> QuerySet[Memory]:
    """Return the unconfirmed messages that the worker may send again, without files in the trash."""
    sent = Memory.objects.filter(_IS_UNCONFIRMED, hidden_at__isnull=True, session__deleted_at__isnull=True)
    return sent.exclude(session__kind=Session.Kind.RESOURCE, session__hidden_at__isnull=False)


def unconfirmed_messages(user_pk: UUID) -> list[Message]:
    """Return all unconfirmed messages of a user."""
    return [message_of(row) for row in Memory.objects.filter(_IS_UNCONFIRMED, user_id=user_pk)]


def replace_messages(session: Session, batch: Batch, messages: Sequence[Message]) -> Batch:
    """Replace the messages of a batch in their order. Their ids stay, so that a repeated add stores none of them again.

    Return the batch to send.
    """
    entries_by_time = {entry.timestamp_ms: message for entry, message in zip(batch.entries, messages, strict=True)}
    rows = list(entries(session).filter(batch_id=batch.batch_id))
    for row in rows:
        message = entries_by_time[row.created_at_ms]
        row.text, row.payload = _text(message), {"message": _as_json(message)}
    Memory.objects.bulk_update(rows, ["text", "payload"], batch_size=_ROWS_AT_ONCE)
    return replace(batch, entries=tuple(Entry(message, at) for at, message in entries_by_time.items()))


def confirm(session: Session, batch: Batch) -> None:
    confirmed = entries(session).filter(batch_id=batch.batch_id)
    confirmed.update(delivery_state=DeliveryState.BUFFERED, batch_id="", sent_at=None)


def has_arrived(session: Session, batch: Batch) -> bool:
    """Return True if another process confirmed the batch meanwhile."""
    return not entries(session).filter(batch_id=batch.batch_id).exists()


def drop(session: Session, batch: Batch) -> None:
    """Delete a batch that EverOS does not have."""
    entries(session).filter(batch_id=batch.batch_id).delete()


def drop_empty(session: Session, batch: Batch) -> None:
    """Delete the messages of a batch that sent nothing, except system messages, which are kept here only."""
    entries(session).filter(batch_id=batch.batch_id).exclude(category=_SYSTEM).delete()
    confirm(session, batch)


def buffered(session: Session) -> Buffered:
    """Return the messages in the engine's buffer. One SQL statement."""
    rows = entries(session).filter(_IS_BUFFERED)
    last_user_ms = Max("created_at_ms", filter=_IS_OF_PEOPLE)
    return Buffered(**rows.aggregate(last_row=Max("pk"), last_user_ms=last_user_ms))


def mark_flushed(session: Session, flush_id: str, flushed: Buffered) -> None:
    """Mark the messages that a flush took, and link its memories to them by the same `batch_id`.

    Messages added after the flush was sent stay buffered.
    """
    batch_id = flush_id[:64] or uuid4().hex
    rows = entries(session).filter(_IS_BUFFERED, pk__lte=flushed.last_row or 0)
    # A chat is cleared if the settings keep no transcript; its rows stay to detect duplicates.
    keeps_text = session.kind == Session.Kind.RESOURCE or settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY
    cleared: dict[str, Any] = {} if keeps_text else {"text": "", "payload": {}}
    rows.update(delivery_state=DeliveryState.FLUSHED, batch_id=batch_id, **cleared)
    _unlinked(session).update(batch_id=batch_id)


def link_late_memories(session: Session) -> None:
    """Link memories that arrived after their flush was settled to the flush that took the last messages."""
    flushed = entries(session).filter(delivery_state=DeliveryState.FLUSHED).order_by("-pk")
    batch_id = flushed.values_list("batch_id", flat=True).first()
    if batch_id:
        _unlinked(session).update(batch_id=batch_id)


def _unlinked(session: Session) -> QuerySet[Memory]:
    return session.memories.filter(memory_type=Memory.Type.EPISODE, origin=Memory.Origin.UPSTREAM, batch_id="")


def has_text(row: Memory) -> bool:
    """Return True if the row still holds its message."""
    return "message" in row.payload


def is_buffered(session: Session, messages: Iterable[Message]) -> bool:
    """Return True if one of the messages is in the engine's buffer."""
    memory_ids = [memory_id_of(session.session_id, message) for message in messages]
    sent = entries(session).exclude(category=_SYSTEM)
    return sent.filter(_IS_BUFFERED, memory_id__in=memory_ids).exists()


def message_of(row: Memory) -> Message:
    """Return the message of a journal row; of one whose message cannot be read, the text alone."""
    try:
        return _message(row.payload["message"])
    except (AttributeError, KeyError, TypeError, ValueError):
        readable.log_once(repr(row.payload), f"memory {row.memory_id} (row {row.pk})", "it is not a message")
    role: Role = "system" if row.category == _SYSTEM else "assistant" if row.agent_id else "user"
    return Message(row.sender_id, role, row.created_at_ms, (ContentItem("text", text=row.text),))


def reassign(session: Session, rows: Iterable[Memory]) -> None:
    """Move rows of another session's journal to this session.

    Messages that the session already has are not duplicated.
    """
    named = {memory_id_of(session.session_id, message_of(row)): row for row in rows if has_text(row)}
    known = set(entries(session).filter(memory_id__in=list(named)).values_list("memory_id", flat=True))
    moved = [row for memory_id, row in named.items() if memory_id not in known]
    for memory_id, row in named.items():
        row.memory_id, row.session = memory_id, session
    Memory.objects.bulk_update(moved, ["memory_id", "session"], batch_size=_ROWS_AT_ONCE)


def last_user_message_ms(session: Session) -> int | None:
    """Return the time of the last user message of a session; None without one."""
    times = entries(session).filter(_IS_OF_PEOPLE).order_by("-created_at_ms")
    return times.values_list("created_at_ms", flat=True).first()


def expects_memories(session: Session) -> bool:
    """Return True if a message is buffered, or was flushed and has no known episode yet."""
    episodes = session.memories.filter(memory_type=Memory.Type.EPISODE, origin=Memory.Origin.UPSTREAM)
    lacks_episode = _IS_OF_PEOPLE & ~Q(batch_id__in=episodes.values("batch_id"))
    return entries(session).filter(_IS_BUFFERED | lacks_episode).exists()


def entries(session: Session) -> QuerySet[Memory]:
    """Return the journal of a session. With more conditions SQLite would scan all memories of the user."""
    return session.memories.filter(IS_JOURNAL_ENTRY)


def _select_entries(columns: str, session: Session, condition: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return columns of a session's journal entries. Plain SQL is fast: an add holds SQLite's write lock meanwhile."""
    owner = [sql.uuid_value(session.user_id), session.app_id, session.project_id]
    return sql.rows(f"SELECT {columns} {_FROM_JOURNAL} {condition}", [*owner, session.pk, *values])


def _write(session: Session, messages: dict[str, Message]) -> Batch:
    batch_id, sent_at = uuid4().hex, timezone.now()
    times = _free_times(session, list(messages.values()))
    rows = [
        Memory(
            user_id=session.user_id,
            app_id=session.app_id,
            project_id=session.project_id,
            memory_id=memory_id,
            session_id=session.pk,
            agent_id="" if message.role == "user" else message.sender_id,
            memory_type=Memory.Type.UNPROCESSED_MESSAGE,
            category=message.category,
            sender_id=message.sender_id,
            text=_text(message),
            batch_id=batch_id,
            delivery_state=DeliveryState.UNCONFIRMED,
            sent_at=sent_at,
            seq=position,
            chunk_index=message.span_ms,
            payload={"message": _as_json(message)},
            created_at_ms=timestamp_ms,
            origin=Memory.Origin.UPSTREAM,
        )
        for position, ((memory_id, message), timestamp_ms) in enumerate(zip(messages.items(), times, strict=True))
    ]
    with connection.cursor() as cursor:
        sql.insert(cursor, rows)
    entries = tuple(Entry(message, time) for message, time in zip(messages.values(), times, strict=True))
    return Batch(batch_id, entries, is_new=True)


def _free_times(session: Session, messages: Sequence[Message]) -> list[int]:
    """Return for each message its own time, or the next time that no other message of the session occupies."""
    since_ms = min(message.timestamp_ms for message in messages) - FILE_SPAN_MS
    later = "AND created_at_ms > %s ORDER BY created_at_ms"
    rows = _select_entries("created_at_ms, chunk_index", session, later, [since_ms])
    occupied = [(start, start + (span or 1)) for start, span in rows]
    times = []
    for message in messages:
        start, span = message.timestamp_ms, message.span_ms
        for other_start, other_end in occupied:
            if other_start < start + span and start < other_end:
                start = other_end
        occupied = sorted([*occupied, (start, start + span)])
        times.append(start)
    return times


def _batches(session: Session, batch_ids: Iterable[str], given: Mapping[str, Message]) -> list[Batch]:
    """Return the recorded batches. `given` are messages by memory id whose one-time addresses are not stored."""
    found: dict[str, list[Entry]] = {}
    for row in entries(session).filter(batch_id__in=list(batch_ids)).order_by("id"):
        message = given.get(row.memory_id) or message_of(row)
        found.setdefault(row.batch_id, []).append(Entry(message, row.created_at_ms))
    return [Batch(batch_id, tuple(entries), is_new=False) for batch_id, entries in found.items()]


def memory_id_of(session_id: str, message: Message) -> str:
    """Return the `memory_id` of a message.

    It depends on session, sender, role, time and content, but not on the paths of files.
    """
    digest = hashlib.sha256()
    for item in message.content:
        plain = _item_as_json(item) | {"file": files.digest_of(item.file) if item.file else None}
        digest.update(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS))
    head = [session_id, message.sender_id, message.role, message.timestamp_ms, digest.hexdigest()]
    head += message.call_identity
    return f"msg_{hashlib.sha256(orjson.dumps(head)).hexdigest()}"


def _text(message: Message) -> str:
    return "\n".join(item.text or item.name or item.uri or "" for item in message.content)


def _as_json(message: Message) -> dict[str, Any]:
    """Return the message as JSON data, with files as keys."""
    content = [_item_as_json(item) | {"file": str(item.file) if item.file else None} for item in message.content]
    return {**asdict(message), "content": content}


def _item_as_json(item: ContentItem) -> dict[str, Any]:
    """Return the item without its one-time address, which may be a secret."""
    return {name: value for name, value in asdict(item).items() if name != "ingest_uri"}


def _message(plain: dict[str, Any]) -> Message:
    content = [
        ContentItem(**{**item, "file": file_key(item["file"]) if item["file"] else None}) for item in plain["content"]
    ]
    tool_calls = tuple(plain.get("tool_calls", ()))
    return Message(**{**plain, "content": tuple(content), "tool_calls": tool_calls})
