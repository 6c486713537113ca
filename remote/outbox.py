"""The outbox: messages for EverOS, in the order of their adds, each sent once.

An entry is stored with its memories. A call of unknown outcome is verified, then repeated; a confirmed message is never
sent again, one with a decision is withheld.

Ours, because EverOS identifies a message by session, time and position in the call, silently drops the second of two
that share them, and forgets all after a flush: each gets a unique time. Not chosen: a broker; erasures would have to
search it.

A message costs a row; a session has one call at a time.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid4

import orjson
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Exists, Max, Min, OuterRef, Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.utils import timezone

from core import readable
from core.events import publish
from core.ids import parse_session_id
from core.persistence import files, sql
from core.persistence.file_keys import file_key
from remote import sources
from remote.models import OutboxEntry
from store import writes
from store.admission import is_held
from store.ledger import Override
from store.models import IS_PURGED, Memory, Session, State, owned_by
from store.types import FILE_SPAN_MS, METADATA, PARTICIPANT_CATEGORY, TAGS, ContentItem, Message, Owner, Role

_FIRST_MS = 10**12  # 9 September 2001
_ROWS_AT_ONCE = 200
_OCCUPIED = """
    SELECT time_ms, span_ms FROM remote_outboxentry
    WHERE session_id = %s AND base_url IN ('', %s) AND time_ms > %s ORDER BY time_ms
"""
_SYSTEM = "full_context_system"
"""The category of messages that are never sent, because EverOS refuses their role."""
_IS_OF_PEOPLE = Q(category__in=("full_context_user", PARTICIPANT_CATEGORY))
"""Messages that EverOS makes episodes of."""
_State = OutboxEntry.State
_IS_UNCONFIRMED = Q(state=_State.UNCONFIRMED)
_IS_BUFFERED = Q(state=_State.BUFFERED)
_IS_PENDING = Q(state=_State.PENDING)
_IS_SENT = Q(state__in=(_State.UNCONFIRMED, _State.BUFFERED))
_IS_WAITING = Q(state__in=(_State.PENDING, _State.UNCONFIRMED))
_IS_HELD_BACK = Q(state__in=(_State.WITHHELD, _State.REFUSED))
MAX_MESSAGES: Final = 200
"""The most messages of a call: another user waits for it."""
MAX_CAUSE_CHARS: Final = 500
_SESSIONS_READ: Final = 20
_WITHDRAWN: Final = ContentItem("text", text="…")


@dataclass(frozen=True, slots=True)
class Buffered:
    """Messages that the next flush takes: their last row, and the time of the last user message.

    `last_user_ms` is None without a user message. Then no episode follows, because EverOS files episodes under users.
    """

    last_row: int | None
    last_user_ms: int | None


@dataclass(frozen=True, slots=True)
class TimedMessage:
    """A message and the time (Unix milliseconds) that identifies it in EverOS."""

    message: Message
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages that are sent in one call, always in this order. `is_new`: never sent before."""

    call_id: str
    entries: tuple[TimedMessage, ...]
    is_new: bool


def by_id(session_id: str, messages: Iterable[Message]) -> dict[str, Message]:
    """Return the messages by message id, each once. Reads their files."""
    return {message_id_of(session_id, message): message for message in messages}


def known(session: Session, named: Mapping[str, Message]) -> set[str]:
    """Return the ids of messages that the outbox has; refused ones wait again. The caller has locked the session."""
    found = entries(session).filter(message_id__in=list(named))
    wait_again(found)
    return set(found.values_list("message_id", flat=True))


def wait_again(found: QuerySet[OutboxEntry]) -> int:
    """Let the refused ones of these entries wait again, and return their number."""
    return found.filter(state=_State.REFUSED).update(state=_State.PENDING, cause="")


def record(
    session: Session,
    named: Mapping[str, Message],
    memory_ids: Mapping[str, Sequence[str]],
    *,
    withheld: Collection[str] = (),
) -> None:
    """Record new messages of a session that the caller has locked. Call inside a transaction.

    `memory_ids` are the memories that were stored for each. Those in `withheld` are not sent.
    """
    if not named:
        return
    times = _free_times(session, list(named.values()))
    rows = [
        OutboxEntry(
            user_id=session.user_id,
            app_id=session.app_id,
            project_id=session.project_id,
            session_id=session.pk,
            base_url=settings.MEMORY_GATEWAY_BACKEND_BASE_URL,
            message_id=message_id,
            memory_ids=list(memory_ids.get(message_id, ())),
            category=message.category,
            agent_id="" if message.role == "user" else message.sender_id,
            message=as_json(message),
            time_ms=time_ms,
            span_ms=message.span_ms,
            state=_State.PENDING if _is_taken(message) and message_id not in withheld else _State.WITHHELD,
            recorded_at=timezone.now(),
        )
        for (message_id, message), time_ms in zip(named.items(), times, strict=True)
    ]
    with connection.cursor() as cursor:
        sql.insert(cursor, rows)


def _is_taken(message: Message) -> bool:
    """Return False for the system role, which EverOS refuses, and for times that it would read as seconds."""
    return message.role != "system" and message.timestamp_ms >= _FIRST_MS


def send_all_again(session: Session) -> None:
    """Let the messages of a session wait for the remote, in the order of their times, also those that it has.

    Messages without text, those that expire and those that a remote does not take stay as they are. Call inside a
    transaction that has locked the session.
    """
    here = of_attached(session).exclude(message={}).exclude(state=_State.PURGED)
    ending = Q(session=session.pk) & (Q(expires_at__isnull=False) | Q(session__expires_at__isnull=False))
    expiring = set(Memory.objects.filter(ending).values_list("memory_id", flat=True))
    rows = [row for row in here if _is_taken(message_of(row)) and expiring.isdisjoint(row.memory_ids)]
    OutboxEntry.objects.filter(pk__in=[row.pk for row in rows]).delete()
    rows.sort(key=lambda row: row.time_ms)
    for row in rows:
        row.pk = None  # a new one: entries are sent in the order of their keys
        row.base_url = settings.MEMORY_GATEWAY_BACKEND_BASE_URL
        row.state, row.recorded_at, row.sent_at = _State.PENDING, timezone.now(), None
        row.call_id = row.flush_id = row.cause = ""
    with connection.cursor() as cursor:
        sql.insert(cursor, rows)


def withhold_memories(session: Session, memory_ids: Collection[str]) -> None:
    """Do not send messages with one of these memories."""
    waiting = of_attached(session).filter(_IS_PENDING)
    _update([row for row in waiting if not set(row.memory_ids).isdisjoint(memory_ids)], state=_State.WITHHELD)


def waiting_memories(session: Session) -> set[str]:
    """Return the memories of messages that wait for the attached remote and will be sent."""
    waiting = list(of_attached(session).filter(_IS_PENDING))
    held = withdrawn(session, [row for row in waiting if row.memory_ids])
    return {name for row in waiting if row.pk not in held for name in row.memory_ids}


def not_derived_from(session: Session) -> set[str]:
    """Return the memories of messages that the attached remote refused, or whose files it never gets; "" if unknown."""
    rows = of_attached(session).filter(_IS_HELD_BACK).exclude(message={})
    found = [row for row in rows if row.state == _State.REFUSED or _has_files(message_of(row))]
    return {name for row in found for name in (row.memory_ids or [""])}


def _has_files(message: Message) -> bool:
    return any(item.text is None for item in message.content)


def whole_flushes(session: Session) -> set[str]:
    """Return the flushes, of all remotes, whose messages can all be sent again."""
    flushed = entries(session).exclude(flush_id="").order_by()
    is_sent = Q(state=_State.FLUSHED) & ~Q(message={})
    found = flushed.values("flush_id").annotate(lost=Count("pk", filter=~is_sent))
    return {one["flush_id"] for one in found if not one["lost"]}


def was_sent(session: Session) -> bool:
    """Return True if the attached remote may have got a message of the session."""
    return of_attached(session).exclude(_IS_HELD_BACK | _IS_PENDING).exists()


def has_unflushed(session: Session) -> bool:
    """Return True if a message waits for the attached remote, or for its next flush."""
    return of_attached(session).filter(_IS_WAITING | _IS_BUFFERED).exists()


def take(session: Session, given: Mapping[str, Message] = MappingProxyType({})) -> Batch | None:
    """Return the next messages that wait, marked as sent; None without any, and during a pause of the person.

    Those with a decision and those that expire are withheld.

    `given` are messages by id whose one-time addresses are not stored.
    """
    with transaction.atomic():
        list(Session.objects.select_for_update().filter(pk=session.pk))
        if Session.objects.filter(is_held(), pk=session.pk).exists():
            return None
        here = of_attached(session).filter(_IS_PENDING, user=session.user_id).order_by("pk")  # as in `outbox_pending`
        sent: list[OutboxEntry] = []
        while not sent and (waiting := list(here[:MAX_MESSAGES])):
            held = withdrawn(session, waiting)
            _update([row for row in waiting if row.pk in held], state=_State.WITHHELD)
            sent = [row for row in waiting if row.pk not in held]
        if not sent:
            return None
        call_id = uuid4().hex
        _update(sent, state=_State.UNCONFIRMED, call_id=call_id, sent_at=timezone.now())
    found = (TimedMessage(given.get(row.message_id) or _with_own_text(row), row.time_ms) for row in sent)
    return Batch(call_id, tuple(found), is_new=True)


def _with_own_text(row: OutboxEntry) -> Message:
    """Return the message of an entry, with the text that was read here instead of the address of a document."""
    message = message_of(row)
    if not any(_is_document_at_address(item) for item in message.content):
        return message
    names = Counter(item.name for item in message.content if item.text is None)
    passages = Memory.objects.filter(user_id=row.user_id, memory_id__in=row.memory_ids, chunk_index__isnull=False)
    texts: dict[str | None, list[str]] = {}
    for passage in passages.order_by("seq"):
        texts.setdefault(passage.payload.get("filename"), []).append(passage.text)

    def read(item: ContentItem) -> ContentItem:
        if not _is_document_at_address(item) or item.name not in texts:
            return item
        if names[item.name] > 1:  # the names of files distinguish passages
            return item.as_text()
        text = "\n\n".join(texts[item.name])
        return ContentItem("text", text=f"[TEXT: {item.name or ''}]\n{text}")

    return replace(message, content=tuple(map(read, message.content)))


def _is_document_at_address(item: ContentItem) -> bool:
    return item.uri is not None and item.file is None and item.text is None and item.type not in {"image", "audio"}


def _update(rows: Sequence[OutboxEntry], **values: Any) -> None:
    OutboxEntry.objects.filter(pk__in=[row.pk for row in rows]).update(**values)


def withdrawn(session: Session, rows: Sequence[OutboxEntry]) -> set[int]:
    """Return the entries of a session that must not be sent: all if it expires.

    Others have a memory that expires, is deleted, edited, replaced by an edited one, or gone. Files that are not read
    here have none.
    """
    if not rows:
        return set()
    if Session.objects.filter(pk=session.pk, expires_at__isnull=False).exists():
        return {row.pk for row in rows}
    ids = [memory_id for row in rows for memory_id in row.memory_ids]
    found = Memory.objects.filter(owned_by(session.owner), memory_id__in=ids, state=State.LIVE, is_replaced=False)
    edited = Override.objects.filter(row=OuterRef("pk"), undone_at__isnull=True)
    lasting = found.filter(~Exists(edited), expires_at__isnull=True)
    free = set(lasting.values_list("memory_id", flat=True)) if ids else set()
    return {row.pk for row in rows if not free.issuperset(row.memory_ids)}


def pending_sessions(now: datetime, limit: int) -> list[Session]:
    """Return live sessions with messages that wait, and none that is unconfirmed, with their users.

    They come round-robin by user, those of a user in the order of their messages.
    """
    waiting = OutboxEntry.objects.filter(_IS_PENDING, sources.of_remote()).order_by()
    # Ingestion sends files that are not read here: it has their one-time addresses.
    waiting = waiting.exclude(session__kind=Session.Kind.RESOURCE, memory_ids=[])
    oldest = (
        waiting.values_list("user", "session").annotate(first=Min("pk")).order_by("first")
    )  # as in `outbox_pending`
    first = {session: pk for _user, session, pk in oldest[: limit * _SESSIONS_READ]}
    unknown = OutboxEntry.objects.filter(_IS_UNCONFIRMED, sources.of_remote(), session=OuterRef("pk"))
    live = Session.objects.filter(_is_due(now), ~Exists(unknown), pk__in=first, state=State.LIVE)
    live = live.exclude(is_held()).select_related("user")
    turns: Counter[UUID] = Counter()
    ordered = []
    for session in sorted(live, key=lambda one: first[one.pk]):
        ordered.append((turns[session.user_id], first[session.pk], session))
        turns[session.user_id] += 1
    return [session for _turn, _first, session in sorted(ordered, key=lambda one: one[:2])[:limit]]


def unconfirmed(session: Session, given: Mapping[str, Message] = MappingProxyType({})) -> list[Batch]:
    """Return the session's batches that were sent without an answer. `given` are messages as for `take`.

    None during a pause of the person.
    """
    if Session.objects.filter(is_held(), pk=session.pk).exists():
        return []
    pending = of_attached(session).filter(_IS_UNCONFIRMED).order_by()
    return _batches(session, set(pending.values_list("call_id", flat=True).distinct()), given)


def lacks_unread(session: Session, named: Mapping[str, Message]) -> bool:
    """Return True if EverOS lacks one of these messages that has no memory here."""
    return entries(session).filter(_IS_WAITING, message_id__in=list(named), memory_ids=[]).exists()


def unconfirmed_sessions(since: datetime, before: datetime, now: datetime, limit: int) -> list[Session]:
    """Return sessions with unconfirmed messages that were first sent in that period and whose retry is due.

    They come with their users, round-robin by user.
    """
    sent = _retried().filter(sent_at__gte=since, sent_at__lt=before)
    sessions = Session.objects.filter(_is_due(now), pk__in=sent.values("session")).exclude(is_held())
    sessions = sessions.select_related("user")
    return list(sessions.annotate(turn=sql.turn_of_user("pk")).order_by("turn", "pk")[:limit])


def users_with_waiting() -> list[UUID]:
    """Return the keys of users who have messages that EverOS has not confirmed."""
    sent = OutboxEntry.objects.filter(_IS_WAITING)
    return list(sent.order_by().values_list("user_id", flat=True).distinct())


def unconfirmed_flushes(since: datetime, before: datetime, now: datetime, limit: int) -> list[Session]:
    """Return sessions with an unconfirmed flush sent in that period, unflushed messages, and a due retry.

    They come with their users, round-robin by user. Files that only EverOS reads are flushed by their ingestion.
    """
    waiting = OutboxEntry.objects.filter(_IS_BUFFERED | _IS_PENDING, sources.of_remote(), session=OuterRef("pk"))
    open_ones = Session.objects.filter(~IS_PURGED, _is_due(now), searchable_at__isnull=True)
    open_ones = open_ones.filter(Exists(waiting), flushed_at__gte=since, flushed_at__lt=before).exclude(is_held())
    unread = OutboxEntry.objects.filter(session=OuterRef("pk"), memory_ids=[])
    found = open_ones.exclude(Exists(unread), kind=Session.Kind.RESOURCE).select_related("user")
    return list(found.annotate(turn=sql.turn_of_user("flushed_at")).order_by("turn", "flushed_at")[:limit])


def _is_due(now: datetime) -> Q:
    return Q(retry_at__isnull=True) | Q(retry_at__lte=now)


def waiting_since(session: Session) -> datetime | None:
    """Return when the oldest message of a session was recorded that EverOS has not confirmed."""
    oldest: datetime | None = of_attached(session).filter(_IS_WAITING).aggregate(oldest=Min("recorded_at"))["oldest"]
    return oldest


class Backlog(NamedTuple):
    """Messages that the attached remote has not confirmed, when the oldest was recorded, and those that it refused."""

    waiting: int
    oldest: datetime | None
    refused: int

    def age_seconds(self, now: datetime) -> int:
        """Return the age of the oldest message that waits, 0 without any."""
        return int((now - self.oldest).total_seconds()) if self.oldest else 0


def backlog() -> Backlog:
    """Return what waits for the attached remote. One SQL statement over small indexes."""
    found = OutboxEntry.objects.filter(sources.of_remote(), _IS_WAITING | Q(state=_State.REFUSED)).aggregate(
        waiting=Count("pk", filter=_IS_WAITING),
        oldest=Min("recorded_at", filter=_IS_WAITING),
        refused=Count("pk", filter=Q(state=_State.REFUSED)),
    )
    return Backlog(**found)


def other_remotes() -> list[str]:
    """Return the addresses of remotes that hold data, besides the attached one."""
    sent = OutboxEntry.objects.exclude(sources.of_remote()).exclude(_IS_HELD_BACK | _IS_PENDING)
    return sorted(sent.order_by().values_list("base_url", flat=True).distinct())


def count_given_up(before: datetime) -> int:
    """Return the number of unconfirmed messages first sent before that time, which are no longer retried."""
    return _retried().filter(sent_at__lt=before).count()


def _retried() -> QuerySet[OutboxEntry]:
    """Return the unconfirmed messages that the worker may send again, without files in the trash."""
    sent = OutboxEntry.objects.filter(_IS_UNCONFIRMED, sources.of_remote()).exclude(session__state=State.PURGED)
    return sent.exclude(~Q(session__state=State.LIVE), session__kind=Session.Kind.RESOURCE)


def waiting_messages(user_pk: UUID) -> list[Message]:
    """Return all messages of a user that EverOS has not confirmed."""
    return [message_of(entry) for entry in OutboxEntry.objects.filter(_IS_WAITING, user_id=user_pk)]


def messages_at(session: Session, times: Collection[int]) -> list[Message]:
    """Return the messages of a session with these times, as they were sent."""
    return [message_of(entry) for entry in of_attached(session).filter(time_ms__in=times).order_by("pk")]


def replace_messages(session: Session, batch: Batch, messages: Sequence[Message]) -> Batch:
    """Replace the messages of a batch in their order. Their ids stay, so that a repeated add stores none of them again.

    Return the batch to send.
    """
    by_time = {entry.timestamp_ms: message for entry, message in zip(batch.entries, messages, strict=True)}
    rows = list(_of_call(session, batch))
    for row in rows:
        row.message = as_json(by_time[row.time_ms])
    OutboxEntry.objects.bulk_update(rows, ["message"], batch_size=_ROWS_AT_ONCE)
    return replace(batch, entries=tuple(TimedMessage(message, at) for at, message in by_time.items()))


def confirm(session: Session, batch: Batch) -> None:
    _of_call(session, batch).update(state=_State.BUFFERED, call_id="", sent_at=None)


def has_arrived(session: Session, batch: Batch) -> bool:
    """Return True if another process confirmed the batch meanwhile."""
    return not _of_call(session, batch).exists()


def wait(session: Session, batch: Batch) -> None:
    """Let messages wait again, which were not carried out."""
    _of_call(session, batch).update(state=_State.PENDING, call_id="", sent_at=None)


def refuse(session: Session, batch: Batch, cause: str) -> None:
    """Mark messages as refused for good, and publish it. Their memories stay."""
    cause = cause[:MAX_CAUSE_CHARS]
    with transaction.atomic():
        refused = _of_call(session, batch).update(state=_State.REFUSED, call_id="", sent_at=None, cause=cause)
        if refused and session.state != State.PURGED:
            file = {"resource_id": resource_id} if (resource_id := _resource_id(session)) else {}
            data = {"session_id": session.session_id, **file, "cause": cause}
            publish("remote.refused", session.user_id, **session.owner.scope, **data)


def _resource_id(session: Session) -> str:
    """Return the id of the file of a session, empty for other sessions."""
    return parse_session_id(session.session_id).rest if session.kind == Session.Kind.RESOURCE else ""


def withhold(session: Session, batch: Batch) -> None:
    """Mark messages as withheld that have nothing to send."""
    _of_call(session, batch).update(state=_State.WITHHELD, call_id="", sent_at=None)


def split(session: Session, batch: Batch) -> tuple[Batch, Batch]:
    """Return the two halves of a batch that was refused as a whole."""
    middle = len(batch.entries) // 2
    first, second = batch.entries[:middle], batch.entries[middle:]
    call_id = uuid4().hex
    _of_call(session, batch).filter(time_ms__in=[one.timestamp_ms for one in second]).update(call_id=call_id)
    return replace(batch, entries=first), Batch(call_id, second, is_new=batch.is_new)


def memories_of(owner: Owner, found: Iterable[OutboxEntry]) -> list[Memory]:
    """Return the memories of entries that are stored here."""
    memory_ids = [memory_id for entry in found for memory_id in entry.memory_ids]
    memories: list[Memory] = []
    for start in range(0, len(memory_ids), _ROWS_AT_ONCE):
        part = memory_ids[start : start + _ROWS_AT_ONCE]
        memories += Memory.objects.filter(owned_by(owner), memory_id__in=part)
    return memories


def buffered(session: Session) -> Buffered:
    """Return the messages in the engine's buffer. One SQL statement."""
    rows = of_attached(session).filter(_IS_BUFFERED)
    last_user_ms = Max("time_ms", filter=_IS_OF_PEOPLE)
    return Buffered(**rows.aggregate(last_row=Max("pk"), last_user_ms=last_user_ms))


def mark_flushed(session: Session, flush_id: str, flushed: Buffered) -> int:
    """Mark the messages that a flush took, and link the memories derived from them.

    Messages added after the flush was sent stay buffered. Return the number of memories that are new for this flush and
    that EverOS does not have. Call inside a transaction.
    """
    flush_id = flush_id[:64] or uuid4().hex
    taken = of_attached(session).filter(_IS_BUFFERED, pk__lte=flushed.last_row or 0)
    said = [memory.pk for memory in memories_of(session.owner, taken)]
    for start in range(0, len(said), _ROWS_AT_ONCE):
        writes.end_buffer(Memory.objects.filter(pk__in=said[start : start + _ROWS_AT_ONCE]), flush_id)
    purged = list(taken.filter(message={}).values_list("pk", flat=True))
    cleared: dict[str, Any] = {} if sources.keeps_text(session) else {"message": {}}
    OutboxEntry.objects.filter(pk__in=purged).update(state=_State.PURGED, flush_id=flush_id)
    taken.update(state=_State.FLUSHED, flush_id=flush_id, **cleared)
    count = _flush_held_back(session)
    sources.link(session)
    return count


def _flush_held_back(session: Session) -> int:
    """End the buffer of messages that EverOS does not have, which nothing derived covers; return their number."""
    found = of_attached(session).filter(_IS_HELD_BACK, flush_id="")
    flush_id = uuid4().hex
    ids = [memory_id for memory_ids in found.values_list("memory_ids", flat=True) for memory_id in memory_ids]
    said = session.memories.filter(memory_type=Memory.Type.UNPROCESSED_MESSAGE, memory_id__in=ids)
    count = writes.end_buffer(said, flush_id)
    found.update(flush_id=flush_id)
    return count


def message_of(entry: OutboxEntry) -> Message:
    """Return the message of an entry; of one that cannot be read, nothing but its sender."""
    try:
        return message_from(entry.message)
    except (AttributeError, KeyError, TypeError, ValueError):
        readable.log_once(repr(entry.message), f"outbox entry {entry.pk}", "it is not a message")
    role: Role = "system" if entry.category == _SYSTEM else "assistant" if entry.agent_id else "user"
    texts = Memory.objects.filter(user_id=entry.user_id, memory_id__in=entry.memory_ids).order_by("seq")
    text = "\n".join(texts.values_list("text", flat=True))
    return Message(entry.agent_id or entry.user.user_id, role, entry.time_ms, (ContentItem("text", text=text),))


def last_user_message_ms(session: Session) -> int | None:
    """Return the time of the last user message of a session; None without one."""
    times = of_attached(session).filter(_IS_OF_PEOPLE).order_by("-time_ms")
    return times.values_list("time_ms", flat=True).first()


def expects_memories(session: Session) -> bool:
    """Return True if a message is buffered, or was flushed and has no known episode yet."""
    episodes = session.memories.filter(memory_type=Memory.Type.EPISODE, origin=Memory.Origin.REMOTE)
    lacks_episode = _IS_OF_PEOPLE & Q(state=_State.FLUSHED) & ~Q(flush_id__in=episodes.values("batch_id"))
    return of_attached(session).filter(_IS_BUFFERED | lacks_episode).exists()


def entries(session: Session) -> QuerySet[OutboxEntry]:
    """Return the entries of a session, of all remotes."""
    return OutboxEntry.objects.filter(session=session)


def of_attached(session: Session) -> QuerySet[OutboxEntry]:
    """Return the entries of a session for the attached remote."""
    return entries(session).filter(sources.of_remote())


def of_memory(owner: Owner, memory_id: str) -> QuerySet[OutboxEntry]:
    """Return the entries of the message that a memory is of."""
    of_session = Memory.objects.filter(owned_by(owner), memory_id=memory_id).values("session")
    found = OutboxEntry.objects.filter(session__in=of_session).annotate(names=Cast("memory_ids", TextField()))
    return found.filter(names__contains=f'"{memory_id}"')


def memory_ids_of(user_pk: UUID, message_id: str) -> list[str]:
    """Return the memories of a message: message ids were the ids of memories before messages had rows here."""
    found = OutboxEntry.objects.filter(user_id=user_pk, message_id=message_id).values_list("memory_ids", flat=True)
    return [memory_ids[0] for memory_ids in found if memory_ids]


def own_ids(owner: Owner, places: Collection[tuple[str, int]]) -> dict[tuple[str, int], str]:
    """Return the memories of EverOS's unprocessed messages, by session id and time. No statement for none."""
    if not places:
        return {}
    times = [at for _session_id, at in places]
    sent = OutboxEntry.objects.filter(sources.of_remote(), session__in=_sessions(owner, {name for name, _at in places}))
    sent = sent.filter(time_ms__gt=min(times) - FILE_SPAN_MS, time_ms__lte=max(times))
    columns = ("session__session_id", "time_ms", "memory_ids")
    return {
        (session_id, time_ms + number): memory_id
        for session_id, time_ms, memory_ids in sent.values_list(*columns)
        for number, memory_id in enumerate(memory_ids)  # the pieces of a file are a millisecond apart
        if (session_id, time_ms + number) in places
    }


def copies_of_remote(rows: Collection[int]) -> set[int]:
    """Return which memories (by row id) the attached remote derived. No statement for none."""
    if not rows:
        return set()
    copies = Memory.objects.filter(sources.is_of_remote(), pk__in=rows, origin=Memory.Origin.REMOTE)
    return set(copies.values_list("pk", flat=True))


def _sessions(owner: Owner, session_ids: Collection[str]) -> QuerySet[Session]:
    return Session.objects.filter(owned_by(owner), session_id__in=session_ids)


def _of_call(session: Session, batch: Batch) -> QuerySet[OutboxEntry]:
    return of_attached(session).filter(_IS_UNCONFIRMED, call_id=batch.call_id)


def _free_times(session: Session, messages: Sequence[Message]) -> list[int]:
    """Return for each message its own time, or the next time that no other message of the session occupies."""
    since_ms = min(message.timestamp_ms for message in messages) - FILE_SPAN_MS
    rows = sql.rows(_OCCUPIED, [session.pk, settings.MEMORY_GATEWAY_BACKEND_BASE_URL, since_ms])
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


def _batches(session: Session, call_ids: Iterable[str], given: Mapping[str, Message]) -> list[Batch]:
    """Return the recorded batches, with messages that are given by id.

    A message that was deleted or edited since keeps its place, which identifies the others, but not its content.
    """
    found: dict[str, list[TimedMessage]] = {}
    rows = list(entries(session).filter(_IS_UNCONFIRMED, call_id__in=list(call_ids)).order_by("id"))
    held = withdrawn(session, rows)
    for row in rows:
        message = given.get(row.message_id) or message_of(row)
        if row.pk in held:
            message = replace(message, content=(_WITHDRAWN,), tool_calls=())
        found.setdefault(row.call_id, []).append(TimedMessage(message, row.time_ms))
    return [Batch(call_id, tuple(entries), is_new=False) for call_id, entries in found.items()]


def message_id_of(session_id: str, message: Message) -> str:
    """Return the id of a message.

    It depends on session, sender, role, time and content, but not on the paths of files.
    """
    digest = hashlib.sha256()
    for item in message.content:
        plain = _item_as_json(item) | {"file": files.digest_of(item.file) if item.file else None}
        digest.update(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS))
    head = [session_id, message.sender_id, message.role, message.timestamp_ms, digest.hexdigest()]
    head += message.call_identity
    return f"msg_{hashlib.sha256(orjson.dumps(head)).hexdigest()}"


def as_json(message: Message) -> dict[str, Any]:
    """Return the message as JSON data, with files as keys."""
    content = [_item_as_json(item) | {"file": str(item.file) if item.file else None} for item in message.content]
    expires_at = {"expires_at": message.expires_at.isoformat()} if message.expires_at else {}
    plain = {name: value for name, value in asdict(message).items() if value or name not in {TAGS, METADATA}}
    del plain["expires_at"]
    return {**plain, "content": content, **expires_at}


def _item_as_json(item: ContentItem) -> dict[str, Any]:
    """Return the item without its one-time address, which may be a secret."""
    return {name: value for name, value in asdict(item).items() if name != "ingest_uri"}


def message_from(plain: dict[str, Any]) -> Message:
    """Return a message from `as_json`. Raises: `AttributeError`, `KeyError`, `TypeError`, `ValueError`."""
    content = [
        ContentItem(**{**item, "file": file_key(item["file"]) if item["file"] else None}) for item in plain["content"]
    ]
    tool_calls = tuple(plain.get("tool_calls", ()))
    expires_at = datetime.fromisoformat(plain["expires_at"]) if plain.get("expires_at") else None
    fields = {"content": tuple(content), "tool_calls": tool_calls, "expires_at": expires_at}
    return Message(**{**plain, **fields})
