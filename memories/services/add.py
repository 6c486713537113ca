"""Add messages to a session, and flush it."""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from django.conf import settings
from django.db import transaction

from accounts import controls
from accounts.expiry import lower
from accounts.services import lock_caller
from accounts.zones import zone_of_user
from core.errors import (
    FieldError,
    InvalidInput,
    NotFound,
    OutcomeUnknown,
    TooLarge,
    Unauthenticated,
    UnsupportedType,
)
from core.ids import check_name
from core.messages import Translatable as _
from core.network.url_policy import AddressPolicy, BadAddress, NotAllowed, check_uri
from core.redaction import masked_data
from core.zones import offset_minutes
from documents import mime_types
from documents.mime_types import ContentType
from documents.reading import sentence
from documents.sniff import HEAD_BYTES, TypeMismatch, sniff
from engines.registry import get_engine, local_engine
from memories.services import files, incognito
from memories.services.files import InlineFile
from memories.services.hygiene import is_visible, own_data, own_text
from memories.services.lookup import require_open, require_own_session
from memories.services.resends import Said, find_resent
from remote import outbox
from resources.models import Attachment
from resources.services.uploading import require_quota
from store import sessions
from store.admission import (
    Admission,
    ControlsChanged,
    Offer,
    admit,
    ask_seconds,
    require_unchanged,
    session_names,
    texts_in,
)
from store.models import Session, State, owned_by, owner_columns
from store.port import AddResult, Engine, FileReading, FlushResult, Skipped
from store.types import KEPT, ContentItem, Message, NewExpiry, Owner, Role

MAX_NAME_CHARS = 255


@dataclass(frozen=True, slots=True)
class NewContentItem:
    """One content item from the caller: `text`, an address `uri`, or the bytes `data`, which `uri` overrides.

    `ext` is a file extension without its dot. `place` is the field of its address, `warning` what is lost of the part.
    """

    type: ContentType
    text: str | None = None
    uri: str | None = None
    data: bytes | None = None
    ext: str = ""
    name: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""
    warning: str = ""


@dataclass(frozen=True, slots=True)
class NewMessage:
    """One message from the caller. `timestamp_ms` is Unix time in milliseconds, by default that of its arrival.

    `index` is its position in the request, None for that in the command: one of the request may be several here.
    """

    sender_id: str
    role: Role
    timestamp_ms: int
    parts: tuple[NewContentItem, ...]
    sender_name: str | None = None
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    tool_call_id: str | None = None
    has_time: bool = True
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    expires_at: datetime | None = None
    index: int | None = None


@dataclass(frozen=True, slots=True)
class AddCommand:
    """Messages for a session. `participants` are the people beside the user, with the names of those who have one.

    `zone` is the time zone that the request names; empty: that of the user's profile. `thoughts` is the number of parts
    that the request had and the messages lack. `expires_at` is when the session expires, `incognito` makes a new
    one incognito.
    """

    session_id: str
    messages: tuple[NewMessage, ...]
    participants: Mapping[str, str | None] = field(default_factory=dict)
    zone: str = ""
    thoughts: int = 0
    expires_at: NewExpiry = KEPT
    incognito: bool = False

    def index_of(self, position: int) -> int:
        """Return the position in the request of a message."""
        index = self.messages[position].index
        return position if index is None else index

    @property
    def indexes(self) -> set[int]:
        """Return the positions in the request of all messages."""
        return {self.index_of(position) for position in range(len(self.messages))}


def add(owner: Owner, command: AddCommand, *, engine: Engine | None = None) -> AddResult:
    """Send messages to the engine and attach their files to the session.

    Texts are cleaned (`hygiene`). Messages that the user's controls refuse are left out; those without content, and
    those that the session has already (`resends`), are skipped. A file whose address is not allowed, or that cannot be
    read, is kept as text. A refused call leaves neither a row nor a file. Raises: `InvalidInput` for an unknown sender
    and for refused addresses, `TooLarge` and `UnsupportedType` for a file, `NotFound` and `Conflict` for the session,
    `NoSpace`, `Unauthenticated` for a user who is erased meanwhile, and the engine's errors.
    """
    cleaned, redacted = _cleaned(command)
    if command.incognito:
        require_own_session(owner, command.session_id)
        incognito.begin(owner, command.session_id)
    admitted, refusal, admission = _admitted(owner, cleaned)
    if admitted.messages:
        check = partial(require_unchanged, owner.user_pk, admission)
        try:
            result = replace(_store(owner, admitted, engine, check), redacted=dict(redacted))
        except ControlsChanged:
            return add(owner, command, engine=engine)
    else:
        result = AddResult("accumulated", 0, uuid4().hex)
    return replace(result, message_count=len(cleaned.indexes), thoughts=command.thoughts, **refusal)


def _store(owner: Owner, command: AddCommand, engine: Engine | None, check: Callable[[], None]) -> AddResult:
    """Send cleaned messages to the engine, those of incognito sessions to the one here.

    Raises: as `add` and `check`.
    """
    not_allowed, session = _check(owner, command)
    engine = local_engine() if session and incognito.extend(session) else engine or get_engine()
    skipped = _skipped(command, session)
    zone = zone_of_user(owner.user_pk, command.zone)
    messages: list[Message] = []
    attachments: dict[tuple[int, int], Attachment] = {}
    inline: list[InlineFile] = []
    for position, message in enumerate(command.messages):
        if position in skipped:
            continue
        content = []
        for index, part in enumerate(message.parts):
            item, attachment, file = _item(owner, command.session_id, part)
            if (position, index) in not_allowed:
                content.append(item.as_text())
                continue
            content.append(item)
            if attachment:
                attachments[len(messages), index] = attachment
            inline += [file] if file else []
        is_participant = message.role == "user" and message.sender_id != owner.user_id
        messages.append(
            Message(
                message.sender_id,
                message.role,
                message.timestamp_ms,
                tuple(content),
                message.sender_name or (command.participants[message.sender_id] if is_participant else None),
                message.tool_calls,
                message.tool_call_id,
                is_participant,
                offset_minutes(zone, message.timestamp_ms),
                message.tags,
                message.metadata,
                message.expires_at,
            )
        )
    if messages:
        with _stored(owner, inline):
            result = engine.add(owner, command.session_id, messages, expires_at=command.expires_at, check=check)
    else:
        _set_expiry(session, command.expires_at)
        result = AddResult("accumulated", 0, uuid4().hex)
    for one in result.kept_as_text:
        attachments.pop((one.message, one.item), None)
    if attachments:
        with transaction.atomic():
            _lock_or_drop(owner, inline)
            for file in inline:
                files.keep(file)  # a refused call with the same bytes may have removed it
            # One per session, name and address.
            Attachment.objects.bulk_create(attachments.values(), ignore_conflicts=True)
    stored = [position for position in range(len(command.messages)) if position not in skipped]
    unread = {(stored[one.message], one.item): one.cause for one in result.kept_as_text}
    return replace(
        result,
        kept_as_text=(),
        skipped=_skipped_of_request(command, skipped),
        warnings=(
            *_warnings(command, skipped, not_allowed | unread),
            *(_gap(command, stored[one.message], one.item, note) for one in result.readings for note in _noted(one)),
        ),
    )


def _admitted(owner: Owner, command: AddCommand) -> tuple[AddCommand, dict[str, Any], Admission]:
    """Return the call without what the user's controls refuse, fields of the result that count it, and the admission.

    A message stays without a refused file, unless nothing else is in it.
    """
    offers = [_offer(owner, message, command) for message in command.messages]
    places = [
        (position, place)
        for position, message in enumerate(command.messages)
        for place, part in enumerate(message.parts)
        if part.uri is not None or part.data is not None
    ]
    offers += [_offer_of_file(command.messages[position], place) for position, place in places]
    admission = admit(owner.user_pk, offers, ask_seconds=ask_seconds(owner, command.session_id))
    if not admission.refused:
        return command, {"is_paused": admission.is_paused}, admission
    first_file = len(command.messages)
    files_out = {places[one - first_file] for one in admission.refused if one >= first_file}
    kept = []
    for position, message in enumerate(command.messages):
        index = command.index_of(position)
        parts = tuple(
            replace(part, place=part.place or f"messages.{index}.content.{place}.uri")
            for place, part in enumerate(message.parts)
            if (position, place) not in files_out
        )
        is_empty = not parts and bool(message.parts) and not message.tool_calls
        if position not in admission.refused and not is_empty:
            kept.append(replace(message, parts=parts, index=index))
    reasons: dict[str, set[int]] = {}
    for one, reason in admission.refused.items():
        position = one if one < first_file else places[one - first_file][0]
        reasons.setdefault(reason, set()).add(command.index_of(position))
    admitted = replace(command, messages=tuple(kept))
    counts = {
        "refused": {reason: len(indexes) for reason, indexes in reasons.items()},
        "left_out": len(command.indexes - admitted.indexes),
        "is_paused": admission.is_paused,
    }
    return admitted, counts, admission


def _offer(owner: Owner, message: NewMessage, command: AddCommand) -> Offer:
    """Return what a message says; one without text is known by its calls and files."""
    text = "\n".join(part.text for part in message.parts if part.text is not None)
    if not text.strip():
        text = "\n".join([*map(str, message.tool_calls), *(_identity(part) for part in message.parts)])
    called = message.sender_name or command.participants.get(message.sender_id)
    kept_with_it = [message.tool_calls, message.tags, message.metadata, called]
    sender_id = message.sender_id if message.sender_id != owner.user_id else None
    names = [message.tool_call_id, sender_id, *session_names(command.session_id)]
    at_ms = message.timestamp_ms if message.has_time else None
    return Offer("chats", text, message.role, at_ms, tuple(texts_in(kept_with_it)), [one for one in names if one])


def _offer_of_file(message: NewMessage, place: int) -> Offer:
    at_ms = message.timestamp_ms if message.has_time else None
    part = message.parts[place]
    name = part.name or (unquote(urlsplit(part.uri).path.rpartition("/")[2]) if part.uri else "")
    return Offer("files", _identity(part), at_ms=at_ms, others=tuple(texts_in([name, part.extras])))


def _identity(part: NewContentItem) -> str:
    return part.uri or (hashlib.sha256(part.data).hexdigest() if part.data is not None else part.text or "")


def _skipped_of_request(command: AddCommand, skipped: Mapping[int, str | None]) -> tuple[Skipped, ...]:
    """Return the messages of the request that left nothing in the store."""
    stored = {command.index_of(position) for position in range(len(command.messages)) if position not in skipped}
    of_request: dict[int, str | None] = {}
    for position, memory_id in sorted(skipped.items()):
        index = command.index_of(position)
        if index not in stored:
            of_request[index] = of_request.get(index) or memory_id
    return tuple(Skipped(*one) for one in of_request.items())


def _warnings(
    command: AddCommand, skipped: Collection[int], unread: Mapping[tuple[int, int], str]
) -> Iterator[FieldError]:
    """Yield what was lost of each stored part: its address was not read, or its type is unknown."""
    for position, message in enumerate(command.messages):
        for item, part in enumerate(message.parts):
            if position in skipped:
                continue
            place = part.place or f"messages.{command.index_of(position)}.content.{item}.uri"
            if cause := unread.get((position, item)):
                yield FieldError(place, _("is kept as text and was not read: %(cause)s", cause=cause))
            if part.warning:
                yield FieldError(place.removesuffix(".uri"), part.warning)


def _noted(file: FileReading) -> list[dict[str, Any]]:
    """Return the notes of a file's reading, but for pictures, which many documents have."""
    notes: list[dict[str, Any]] = file.reading.as_json()["notes"]
    return [note for note in notes if note["code"] != "images_skipped"]


def _gap(command: AddCommand, position: int, item: int, note: dict[str, Any]) -> FieldError:
    """Return a warning of what was not read of a stored file, or is doubtful."""
    place = f"messages.{command.index_of(position)}.content.{item}"
    return FieldError(command.messages[position].parts[item].place.removesuffix(".uri") or place, sentence(note))


def _set_expiry(session: Session | None, expires_at: NewExpiry) -> None:
    """Set when a session expires that gets no message."""
    if session is None:
        return
    with transaction.atomic():
        if isinstance(expires_at, datetime):
            lower(session.user_id, expires_at)
        sessions.set_expiry(session, expires_at)


def _cleaned(command: AddCommand) -> tuple[AddCommand, Counter[str]]:
    """Return the call without recalled memories and masked values in its texts, and how many values were masked."""
    redacted: Counter[str] = Counter()

    def cleaned(part: NewContentItem) -> NewContentItem:
        text = None if part.text is None else own_text(part.text, redacted)
        return replace(part, text=text, extras=masked_data(part.extras, redacted))

    messages = tuple(
        replace(
            message,
            parts=tuple(map(cleaned, message.parts)),
            tool_calls=masked_data(message.tool_calls, Counter() if _is_text_of_calls(message) else redacted),
            tags=tuple(own_data(message.tags, redacted)),
            metadata=own_data(message.metadata, redacted),
        )
        for message in command.messages
    )
    return replace(command, messages=messages), redacted


def _is_text_of_calls(message: NewMessage) -> bool:
    """Return True if the text of a message repeats its tool calls, whose values then count once."""
    texts = [part.text or "" for part in message.parts]
    return all(str(call["function"]["arguments"]) in text for call in message.tool_calls for text in texts)


def _skipped(command: AddCommand, session: Session | None) -> dict[int, str | None]:
    """Return the positions of messages that are not stored, with the ids of the memories that they repeat."""
    skipped: dict[int, str | None] = {
        position: None for position, message in enumerate(command.messages) if not _has_content(message)
    }
    if session is None:
        return skipped
    positions = [position for position in range(len(command.messages)) if position not in skipped]
    messages = [command.messages[position] for position in positions]
    untimed = messages[0].timestamp_ms if len(messages) == 1 and not messages[0].has_time else None
    repeated = find_resent(session, [_said(message) for message in messages], now_ms=untimed)
    return skipped | dict(zip(positions, repeated, strict=False))


def _has_content(message: NewMessage) -> bool:
    return bool(message.tool_calls) or any(
        part.uri is not None or part.data is not None or is_visible(part.text or "") for part in message.parts
    )


def _said(message: NewMessage) -> Said:
    texts = [part.text for part in message.parts]
    whole = "\n".join(text for text in texts if text is not None)
    return Said(message.role, message.sender_id, None if None in texts or message.tool_calls else whole)


def flush(owner: Owner, session_id: str, *, end: bool = False, engine: Engine | None = None) -> FlushResult:
    """Turn a session's messages into memories. The result is `no_extraction` if it has none, and during a pause.

    `end` ends an incognito session. Raises: `NotFound` for a session id that names another user, `SessionEnded`, and
    the engine's errors.
    """
    require_own_session(owner, session_id)
    if end and (ending := incognito.find(owner, session_id)):
        incognito.require_open(ending)
        incognito.end(owner, session_id)
        return FlushResult("no_extraction", 0, uuid4().hex, None)
    if controls.is_paused(owner.user_pk, "chats"):
        return FlushResult("no_extraction", 0, uuid4().hex, None, is_paused=True)
    if session := incognito.find(owner, session_id):
        incognito.require_open(session)
        engine = local_engine()
    return (engine or get_engine()).flush(owner, session_id)


def _check(owner: Owner, command: AddCommand) -> tuple[dict[tuple[int, int], str], Session | None]:
    """Check a call. Return why the operator does not allow addresses, by message and part, and the session if any."""
    require_own_session(owner, command.session_id)
    not_allowed, errors = _check_addresses(command)
    for position, message in enumerate(command.messages):
        if message.role == "user" and message.sender_id not in {owner.user_id, *command.participants}:
            sender = f"messages.{command.index_of(position)}.sender_id"
            errors.append(
                FieldError(sender, _("must be your own user_id, or the id of one of participants, if the role is user"))
            )
        elif message.role != "user":
            try:
                check_name(message.sender_id)
            except ValueError as error:
                errors.append(FieldError(f"messages.{command.index_of(position)}.sender_id", error.args[0]))
    if errors:
        raise InvalidInput.of_fields(errors)
    limit: int = settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES
    parts = [part for message in command.messages for part in message.parts]
    if any(part.data is not None and len(part.data) > limit for part in parts):
        raise TooLarge(_("A file in a message must be at most %(number)s bytes.", number=limit))
    session = Session.objects.filter(owned_by(owner), session_id=command.session_id).first()
    if session is not None:
        incognito.require_open(session)
    if session is not None and session.state == State.PURGED:
        raise NotFound(_("This session was deleted permanently: choose another session_id."))
    if session is not None:
        require_open(session)
    return not_allowed, session


def _check_addresses(command: AddCommand) -> tuple[dict[tuple[int, int], str], list[FieldError]]:
    """Return why the operator does not allow some addresses, by position, and the errors of refused ones."""
    not_allowed: dict[tuple[int, int], str] = {}
    errors: list[FieldError] = []
    policy = AddressPolicy.from_settings()
    for position, message in enumerate(command.messages):
        for index, part in enumerate(message.parts):
            try:
                if part.uri is not None:
                    check_uri(part.uri, policy)
            except NotAllowed as error:
                not_allowed[position, index] = _("The address %(cause)s.", cause=error.message)
            except BadAddress as error:
                place = part.place or f"messages.{command.index_of(position)}.content.{index}.uri"
                errors.append(FieldError(place, error.message))
    return not_allowed, errors


def _item(
    owner: Owner, session_id: str, part: NewContentItem
) -> tuple[ContentItem, Attachment | None, InlineFile | None]:
    """Return a part as the engine takes it, and the row and the bytes of its file.

    The MIME type is that of the file name, else that of the bytes; None for an address, which the engine checks.
    """
    inline = None
    if part.uri is not None:
        internal_uri, path = part.uri, urlsplit(part.uri).path
    elif part.data is not None:
        _name, dot, extension = (part.name or "").rpartition(".")
        inline = files.inline_file(owner.user_pk, part.data, part.ext or (extension if dot else ""))
        internal_uri = path = inline.key
    else:
        return ContentItem(part.type, text=part.text, name=part.name, extras=part.extras), None, None
    name = (part.name or unquote(path.rpartition("/")[2]) or f"file.{part.ext}".rstrip("."))[:MAX_NAME_CHARS]
    mime_type = mime_types.by_name(f"file.{part.ext}" if part.ext else name)
    if mime_type is None and inline is not None:
        try:
            mime_type = sniff(inline.data[:HEAD_BYTES], "", None)
        except TypeMismatch as error:
            raise UnsupportedType(_("%(name)s: %(error)s", name=name, error=error.message)) from None
    item = ContentItem(
        part.type,
        text=part.text,
        file=inline.key if inline else None,
        uri=part.uri,
        name=name,
        mime_type=mime_type,
        extras=part.extras,
    )
    attachment = Attachment(
        **owner_columns(owner),
        session_id=session_id,
        source=Attachment.Source.MEMORY_ADD,
        type=part.type,
        name=name,
        internal_uri=internal_uri,
        sha256=inline.sha256 if inline else "",
    )
    return item, attachment, inline


@contextmanager
def _stored(owner: Owner, inline: Sequence[InlineFile]) -> Iterator[None]:
    """Store the files inside the block, and remove them again if the engine refuses the messages.

    They stay if the outcome is unknown, because a repeated call settles it.
    """
    written: list[InlineFile] = []
    new = {file.key: len(file.data) for file in inline if not files.exists(file)}
    if new:
        require_quota(owner.user_pk, sum(new.values()), len(new))
    try:
        for file in inline:
            if files.keep(file):
                written.append(file)  # noqa: PERF401  the handler below needs the files written before a failure
        yield
    except OutcomeUnknown:
        raise
    except BaseException:
        _drop_unattached(owner, written)
        raise


def _drop_unattached(owner: Owner, written: Sequence[InlineFile]) -> None:
    """Delete files unless another call with the same bytes has been accepted, or its outcome is unconfirmed."""
    if not written:
        return
    with transaction.atomic():
        _lock_or_drop(owner, written)
        attached = Attachment.objects.filter(user_id=owner.user_pk, source=Attachment.Source.MEMORY_ADD)
        unconfirmed_files = {
            item.file for message in outbox.waiting_messages(owner.user_pk) for item in message.content
        }
        for file in written:
            if file.key not in unconfirmed_files and not attached.filter(sha256=file.sha256).exists():
                files.drop(file)


def _lock_or_drop(owner: Owner, inline: Iterable[InlineFile]) -> None:
    """Lock the user. Raises: `Unauthenticated` for one who was erased meanwhile, whose files are deleted."""
    try:
        lock_caller(owner.user_pk, owner.user_id)
    except Unauthenticated:
        for file in inline:
            files.drop(file)
        raise
