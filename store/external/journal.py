"""The journal of messages sent to an external engine, so that a repeated add stays one message.

EverOS identifies a message by session, time and position in the call, and silently drops the second of two that share
them; after a flush it forgets them. So each message gets a unique time, and a confirmed message is never sent again.
`Memory.batch_id` holds the delivery state: `sending:{when}-…` (unconfirmed; the call, and the time in milliseconds when
it was first sent), "" (confirmed and buffered), or the id of the flush that took it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import orjson
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from core import sql
from core.errors import TimestampOutOfRange
from core.fairness import turn_of_user
from core.times import from_ms, to_ms
from store.external import sessions as external_sessions
from store.inserting import insert
from store.models import Memory, Session
from store.types import FILE_SPAN_MS, ContentItem, Message, Owner, Role

_FIRST_MS = 10**12
_SENDING = "sending:"
_ROWS_AT_ONCE = 200
_OF_SESSION = """
    FROM store_memory
    WHERE user_id = %s AND app_id = %s AND project_id = %s AND session_id = %s
      AND memory_type = 'unprocessed_message' AND origin = 'upstream'
"""


@dataclass(frozen=True, slots=True)
class Buffered:
    """Messages that the next flush takes: their last row, and the time of the last user message.

    `last_user_ms` is None without a user message. Then no episode follows, because EverOS files episodes under users.
    """

    last_row: int | None
    last_user_ms: int | None


@dataclass(frozen=True, slots=True)
class Entry:
    """A message and the time that identifies it in EverOS."""

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
            "timestamp: EverOS holds no messages from before 9 September 2001; the embedded engine does."
        )
    return {memory_id_of(session_id, message): message for message in messages}


def _append(session: Session, wanted: Mapping[str, Message]) -> list[Batch]:
    names = f"AND memory_id IN ({sql.slots(wanted)})"
    known = dict(_journalled("memory_id, batch_id", session, names, list(wanted)))
    unconfirmed_ids = {batch_id for batch_id in known.values() if batch_id.startswith(_SENDING)}
    batches = _batches(session, unconfirmed_ids, wanted) if unconfirmed_ids else []
    new = {memory_id: message for memory_id, message in wanted.items() if memory_id not in known}
    if new:
        batches.append(_write(session, new))
    return batches


def unconfirmed(session: Session) -> list[Batch]:
    """Return the session's batches that were sent without an answer."""
    waiting = _rows(session).filter(batch_id__startswith=_SENDING).order_by()
    return _batches(session, set(waiting.values_list("batch_id", flat=True).distinct()), {})


def unconfirmed_sessions(since: datetime, before: datetime, now: datetime, limit: int) -> list[Session]:
    """Return sessions with unconfirmed messages that were sent within that time and whose retry is due.

    They come with their users, round-robin by user. The range on `batch_id`, unlike a prefix match, uses the index.
    """
    sent = Memory.objects.filter(hidden_at__isnull=True, session__deleted_at__isnull=True)
    sent = sent.filter(batch_id__gte=f"{_SENDING}{to_ms(since)}", batch_id__lt=f"{_SENDING}{to_ms(before)}")
    sessions = Session.objects.filter(_is_due(now), pk__in=sent.values("session")).select_related("user")
    return list(sessions.annotate(turn=turn_of_user("pk")).order_by("turn", "pk")[:limit])


def users_with_unconfirmed() -> list[UUID]:
    """Return the keys of users who have unconfirmed messages."""
    sent = Memory.objects.filter(batch_id__gte="sending", batch_id__lt="sendinh")
    return list(sent.order_by().values_list("user_id", flat=True).distinct())


def unconfirmed_flushes(since: datetime, before: datetime, now: datetime, limit: int) -> list[Session]:
    """Return chats with an unconfirmed flush of that time, buffered messages, and a due retry.

    They come with their users, round-robin by user. The flushes of files are retried by their ingestion.
    """
    waiting = Memory.objects.filter(session=OuterRef("pk"), batch_id="", origin=Memory.Origin.UPSTREAM)
    waiting = waiting.filter(memory_type=Memory.Type.UNPROCESSED_MESSAGE)
    open_ones = Session.objects.filter(_is_due(now), searchable_at__isnull=True, deleted_at__isnull=True)
    open_ones = open_ones.filter(Exists(waiting), flushed_at__gte=since, flushed_at__lt=before)
    found = open_ones.exclude(kind=Session.Kind.RESOURCE).select_related("user")
    return list(found.annotate(turn=turn_of_user("flushed_at")).order_by("turn", "flushed_at")[:limit])


def _is_due(now: datetime) -> Q:
    return Q(retry_at__isnull=True) | Q(retry_at__lte=now)


def unconfirmed_since(session: Session) -> datetime | None:
    """Return when the oldest unconfirmed message of a session was first sent."""
    sent = _rows(session).filter(batch_id__gte="sending", batch_id__lt="sendinh").order_by("batch_id")
    batch_id = sent.values_list("batch_id", flat=True).first()
    return None if batch_id is None else from_ms(_sent_ms(batch_id))


def count_given_up(before: datetime) -> int:
    """Return how many unconfirmed messages were first sent before that time, and are not retried any more."""
    sent = Memory.objects.filter(hidden_at__isnull=True, session__deleted_at__isnull=True)
    return sent.filter(batch_id__gte="sending", batch_id__lt=f"{_SENDING}{to_ms(before)}").count()


def unconfirmed_messages(user_pk: UUID) -> list[Message]:
    """Return all unconfirmed messages of a user."""
    sent = Memory.objects.filter(user_id=user_pk, batch_id__gte="sending", batch_id__lt="sendinh")
    return [message_of(row) for row in sent]


def _sent_ms(batch_id: str) -> int:
    return int(batch_id.removeprefix(_SENDING).partition("-")[0])


def confirm(session: Session, batch: Batch) -> None:
    _rows(session).filter(batch_id=batch.batch_id).update(batch_id="")


def has_arrived(session: Session, batch: Batch) -> bool:
    """Return True if another process confirmed the batch meanwhile."""
    return not _rows(session).filter(batch_id=batch.batch_id).exists()


def drop(session: Session, batch: Batch) -> None:
    """Delete a batch that EverOS does not have."""
    _rows(session).filter(batch_id=batch.batch_id).delete()


def buffered(session: Session) -> Buffered:
    """Return the messages in the engine's buffer. One statement."""
    rows = _rows(session).filter(batch_id="")
    last_user_ms = Max("created_at_ms", filter=Q(category=_category("user")))
    return Buffered(**rows.aggregate(last_row=Max("pk"), last_user_ms=last_user_ms))


def mark_flushed(session: Session, flush_id: str, flushed: Buffered) -> None:
    """Mark the messages that a flush took, and link its memories to them by the same `batch_id`.

    Messages added after the flush was sent stay buffered.
    """
    batch_id = flush_id[:64] or uuid4().hex
    taken = _rows(session).filter(batch_id="", pk__lte=flushed.last_row or 0)
    taken.update(batch_id=batch_id, **_cleared_fields(session))
    _unlinked(session).update(batch_id=batch_id)


def link_late_memories(session: Session) -> None:
    """Link memories that arrived after their flush was settled to the flush that took the last messages."""
    taken = _rows(session).exclude(batch_id="").exclude(batch_id__startswith=_SENDING).order_by("-pk")
    batch_id = taken.values_list("batch_id", flat=True).first()
    if batch_id:
        _unlinked(session).update(batch_id=batch_id)


def _unlinked(session: Session) -> QuerySet[Memory]:
    return session.memories.filter(memory_type=Memory.Type.EPISODE, origin=Memory.Origin.UPSTREAM, batch_id="")


def _cleared_fields(session: Session) -> dict[str, Any]:
    """Return the fields to clear for a chat if the settings keep no transcript; the row remains against duplicates."""
    is_chat = session.kind != Session.Kind.RESOURCE
    is_cleared = is_chat and not settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY
    return {"text": "", "payload": {}} if is_cleared else {}


def has_text(row: Memory) -> bool:
    """Return True if the row still holds its message."""
    return "message" in row.payload


def is_buffered(session: Session, messages: Iterable[Message]) -> bool:
    """Return True if one of the messages is in the engine's buffer."""
    memory_ids = [memory_id_of(session.session_id, message) for message in messages]
    return _rows(session).filter(batch_id="", memory_id__in=memory_ids).exists()


def message_of(row: Memory) -> Message:
    """Return the message of a journal row."""
    return _message(row.payload["message"])


def is_flushed(row: Memory) -> bool:
    """Return True if a flush took the row's message."""
    return bool(row.batch_id) and not row.batch_id.startswith(_SENDING)


def reassign(session: Session, rows: Iterable[Memory]) -> None:
    """Move rows of another session's journal to this session.

    Messages that the session already has are not duplicated.
    """
    named = {memory_id_of(session.session_id, message_of(row)): row for row in rows if has_text(row)}
    known = set(_rows(session).filter(memory_id__in=list(named)).values_list("memory_id", flat=True))
    moved = [row for memory_id, row in named.items() if memory_id not in known]
    for memory_id, row in named.items():
        row.memory_id, row.session = memory_id, session
    Memory.objects.bulk_update(moved, ["memory_id", "session"], batch_size=_ROWS_AT_ONCE)


def last_user_message_ms(session: Session) -> int | None:
    """Return the time of the last user message of a session; None without one."""
    times = _rows(session).filter(category=_category("user")).order_by("-created_at_ms")
    return times.values_list("created_at_ms", flat=True).first()


def expects_memories(session: Session) -> bool:
    """Return True if a message is buffered, or was flushed and has no known episode yet."""
    made = session.memories.filter(memory_type=Memory.Type.EPISODE, origin=Memory.Origin.UPSTREAM)
    unseen = Q(category=_category("user")) & ~Q(batch_id__in=made.values("batch_id"))
    return _rows(session).filter(Q(batch_id="") | unseen).exists()


def _rows(session: Session) -> QuerySet[Memory]:
    return Memory.objects.filter(
        user_id=session.user_id,
        app_id=session.app_id,
        project_id=session.project_id,
        session=session,
        memory_type=Memory.Type.UNPROCESSED_MESSAGE,
        origin=Memory.Origin.UPSTREAM,
    )


def _journalled(columns: str, session: Session, further: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return columns of a session's rows. Plain SQL, because an add holds SQLite's write lock."""
    owner = [sql.uuid_value(session.user_id), session.app_id, session.project_id]
    return sql.rows(f"SELECT {columns} {_OF_SESSION} {further}", [*owner, session.pk, *values])


def _write(session: Session, messages: dict[str, Message]) -> Batch:
    batch_id = f"{_SENDING}{to_ms(timezone.now())}-{uuid4().hex}"
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
            category=_category(message.role),
            sender_id=message.sender_id,
            text=_text(message),
            batch_id=batch_id,
            seq=position,
            chunk_index=message.span_ms,
            payload={"message": _plain(message)},
            created_at_ms=timestamp_ms,
            origin=Memory.Origin.UPSTREAM,
        )
        for position, ((memory_id, message), timestamp_ms) in enumerate(zip(messages.items(), times, strict=True))
    ]
    with connection.cursor() as cursor:
        insert(cursor, rows)
    entries = tuple(Entry(message, time) for message, time in zip(messages.values(), times, strict=True))
    return Batch(batch_id, entries, is_new=True)


def _free_times(session: Session, messages: Sequence[Message]) -> list[int]:
    """Return for each message its own time, or the next time that no other message of the session occupies."""
    taken = _taken(session, min(message.timestamp_ms for message in messages))
    times = []
    for message in messages:
        start, span = message.timestamp_ms, message.span_ms
        for other_start, other_end in taken:
            if other_start < start + span and start < other_end:
                start = other_end
        taken = sorted([*taken, (start, start + span)])
        times.append(start)
    return times


def _taken(session: Session, since_ms: int) -> list[tuple[int, int]]:
    """Return the sorted intervals that the session's messages occupy after `since_ms`."""
    later = "AND created_at_ms > %s ORDER BY created_at_ms"
    rows = _journalled("created_at_ms, chunk_index", session, later, [since_ms - FILE_SPAN_MS])
    return [(start, start + (span or 1)) for start, span in rows]


def _batches(session: Session, batch_ids: Iterable[str], given: Mapping[str, Message]) -> list[Batch]:
    """Return the recorded batches. `given` holds messages by memory id, with addresses that are not stored."""
    found: dict[str, list[Entry]] = {}
    for row in _rows(session).filter(batch_id__in=list(batch_ids)).order_by("id"):
        message = given.get(row.memory_id) or _message(row.payload["message"])
        found.setdefault(row.batch_id, []).append(Entry(message, row.created_at_ms))
    return [Batch(batch_id, tuple(entries), is_new=False) for batch_id, entries in found.items()]


def memory_id_of(session_id: str, message: Message) -> str:
    """Return the `memory_id` of a message.

    It depends on session, sender, role, time and content, and not on the paths of files.
    """
    digest = hashlib.sha256()
    for item in message.content:
        plain = _plain_item(item) | {"file": _file_digest(item.file) if item.file else None}
        digest.update(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS))
    head = [session_id, message.sender_id, message.role, message.timestamp_ms, digest.hexdigest()]
    return f"msg_{hashlib.sha256(orjson.dumps(head)).hexdigest()}"


def _file_digest(file: Path) -> str:
    """Return the SHA-256 of a file, empty if it is missing: sending it raises the error."""
    try:
        with file.open("rb") as source:
            return hashlib.file_digest(source, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


def _category(role: Role) -> str:
    return f"full_context_{role}"


def _text(message: Message) -> str:
    return "\n".join(item.text or item.name or item.uri or "" for item in message.content)


def _plain(message: Message) -> dict[str, Any]:
    """Return the message as JSON data, with files as paths."""
    content = [_plain_item(item) | {"file": str(item.file) if item.file else None} for item in message.content]
    return {**asdict(message), "content": content}


def _plain_item(item: ContentItem) -> dict[str, Any]:
    """Return the item without its one-time address, which may be a secret."""
    return {name: value for name, value in asdict(item).items() if name != "ingest_uri"}


def _message(plain: dict[str, Any]) -> Message:
    content = [
        ContentItem(**{**item, "file": Path(item["file"]) if item["file"] else None}) for item in plain["content"]
    ]
    return Message(**{**plain, "content": tuple(content)})
