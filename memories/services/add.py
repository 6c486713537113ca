"""Appending what was said to a session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

from django.conf import settings
from django.db import transaction

from accounts.principal import Principal
from accounts.services import lock_named
from core.errors import (
    Conflict,
    FieldError,
    InvalidInput,
    NotFound,
    OutcomeUnknown,
    TooLarge,
    Unauthenticated,
    UnsupportedType,
)
from core.url_policy import AddressPolicy, BadAddress, check_uri
from documents import mime_types
from documents.mime_types import ContentType
from documents.sniff import HEAD_BYTES, TypeMismatch, sniff
from engines.port import AddResult, Engine
from engines.registry import get_engine
from memories.services import files
from memories.services.files import InlineFile
from memories.services.owned import owner_of, require_own_session
from resources.models import Attachment
from resources.services.uploading import require_quota
from store.external import journal
from store.models import Session, owned_by
from store.types import ContentItem, Message, Owner, Role

MAX_NAME_CHARS = 255


@dataclass(frozen=True, slots=True)
class Part:
    """One content item as the caller gave it: `text`, an address `uri`, or the bytes `data`. The address goes before
    the bytes; `ext` is a file ending without its dot."""

    type: ContentType
    text: str | None = None
    uri: str | None = None
    data: bytes | None = None
    ext: str = ""
    name: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Said:
    """One message as the caller gave it; `timestamp_ms` is Unix time in milliseconds."""

    sender_id: str
    role: Role
    timestamp_ms: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class AddCommand:
    session_id: str
    messages: tuple[Said, ...]
    app_id: str = "default"
    project_id: str = "default"


@dataclass(frozen=True, slots=True)
class _File:
    """A file that a message speaks of: kept by us (`inline`), or lying at an address."""

    type: ContentType
    name: str
    internal_uri: str
    inline: InlineFile | None


def add(principal: Principal, command: AddCommand, *, engine: Engine | None = None) -> AddResult:
    """Gives the messages to the engine; after it accepted them, remembers which files they came with.

    Of a refused call nothing stays, neither a row nor a file. Errors: `InvalidInput` for a sender who is not the
    caller and for addresses that must not be reached, `TooLarge` and `UnsupportedType` for a file, `NotFound` and
    `Conflict` for the session, `NoSpace`, `Unauthenticated` for a user who is erased meanwhile, and the engine's own.
    """
    owner = owner_of(principal, command.app_id, command.project_id)
    _check(owner, command)
    messages, named = _messages(owner, command.messages)
    with _kept(owner, [file.inline for file in named if file.inline]):
        result = (engine or get_engine()).add(owner, command.session_id, messages)
    _attach(owner, command.session_id, named)
    return result


def _check(owner: Owner, command: AddCommand) -> None:
    require_own_session(owner, command.session_id)
    errors = [*_sender_errors(owner, command.messages), *_address_errors(command.messages)]
    if errors:
        raise InvalidInput("; ".join(f"{error.field}: {error.message}" for error in errors[:5]), errors=errors)
    _check_sizes(command.messages)
    session = Session.objects.filter(owned_by(owner), session_id=command.session_id).first()
    if session is not None and session.deleted_at is not None:
        raise NotFound("This session was deleted for good.")
    if session is not None and session.hidden_at is not None:
        raise Conflict("This session is in the trash: restore it before adding to it.")


def _check_sizes(messages: Sequence[Said]) -> None:
    limit: int = settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES
    if any(part.data is not None and len(part.data) > limit for message in messages for part in message.parts):
        raise TooLarge(f"A file in a message must be at most {limit} bytes.")


def _sender_errors(owner: Owner, messages: Sequence[Said]) -> Iterator[FieldError]:
    """An engine files memories by their sender: anybody else's id would write into that person's memory."""
    for position, message in enumerate(messages):
        if message.role == "user" and message.sender_id != owner.user_id:
            yield FieldError(f"messages.{position}.sender_id", "must be your own user_id where the role is user")


def _address_errors(messages: Sequence[Said]) -> Iterator[FieldError]:
    policy = AddressPolicy.from_settings()
    for position, message in enumerate(messages):
        for index, part in enumerate(message.parts):
            if part.uri is not None:
                try:
                    check_uri(part.uri, policy)
                except BadAddress as error:
                    yield FieldError(f"messages.{position}.content.{index}.uri", str(error))


def _messages(owner: Owner, said: Iterable[Said]) -> tuple[list[Message], list[_File]]:
    """The messages as the engine takes them, and the files that they speak of."""
    named: list[_File] = []
    messages = []
    for message in said:
        content = []
        for part in message.parts:
            file = _file(owner.user_pk, part)
            named += [file] if file else []
            content.append(_item(part, file))
        messages.append(Message(message.sender_id, message.role, message.timestamp_ms, tuple(content)))
    return messages, named


def _file(user_pk: UUID, part: Part) -> _File | None:
    if part.uri is not None:
        return _File(part.type, _name(part, urlsplit(part.uri).path), part.uri, None)
    if part.data is None:
        return None
    inline = files.inline_file(user_pk, part.data, part.ext or _ending(part.name or ""))
    return _File(part.type, _name(part, str(inline.path)), inline.path.as_uri(), inline)


def _name(part: Part, path: str) -> str:
    """The name as given, else what the address or our own path ends with."""
    return (part.name or unquote(path.rpartition("/")[2]) or f"file.{part.ext}".rstrip("."))[:MAX_NAME_CHARS]


def _ending(name: str) -> str:
    return name.rpartition(".")[2] if "." in name else ""


def _item(part: Part, file: _File | None) -> ContentItem:
    if file is None:
        return ContentItem(part.type, text=part.text, name=part.name, extras=part.extras)
    return ContentItem(
        part.type,
        text=part.text,
        file=file.inline.path if file.inline else None,
        uri=None if file.inline else file.internal_uri,
        name=file.name,
        mime_type=_mime_type(part, file),
        extras=part.extras,
    )


def _mime_type(part: Part, file: _File) -> str | None:
    """What the ending says, else what the bytes do; nothing for an address, which its reader looks into."""
    named = mime_types.by_name(f"file.{part.ext}" if part.ext else file.name)
    if named is not None or part.data is None or file.inline is None:
        return named
    try:
        return sniff(part.data[:HEAD_BYTES], "", None)
    except TypeMismatch as error:
        raise UnsupportedType(f"{file.name}: {error}") from None


@contextmanager
def _kept(owner: Owner, inline: Sequence[InlineFile]) -> Iterator[None]:
    """The files lie on disk while the engine reads them, and go again if it refuses.

    They stay when nobody knows whether it took the messages: the same call again settles that.
    """
    written: list[InlineFile] = []
    new = {file.path: len(file.data) for file in inline if not file.path.exists()}
    if new:
        require_quota(owner.user_pk, sum(new.values()), len(new))
    try:
        for file in inline:
            if files.keep(file):
                written.append(file)  # noqa: PERF401  one by one: a failure must find those before it here
        yield
    except OutcomeUnknown:
        raise
    except BaseException:
        _drop_unattached(owner, written)
        raise


def _drop_unattached(owner: Owner, written: Sequence[InlineFile]) -> None:
    """Another call with the same bytes may have been accepted meanwhile, or wait for its outcome: then the file is that
    one's."""
    if not written:
        return
    with transaction.atomic():
        _lock_or_drop(owner, written)
        attached = Attachment.objects.filter(user_id=owner.user_pk, source=Attachment.Source.MEMORY_ADD)
        is_open = {item.file for said in journal.unconfirmed_messages(owner.user_pk) for item in said.content}
        for file in written:
            if file.path not in is_open and not attached.filter(sha256=file.sha256).exists():
                files.drop(file)


def _lock_or_drop(owner: Owner, inline: Iterable[InlineFile]) -> None:
    """Locks the user. Of one who was erased meanwhile no file stays, also none that was written after the others had
    gone. Errors: `Unauthenticated` for them."""
    try:
        lock_named(owner.user_pk, owner.user_id)
    except Unauthenticated:
        for file in inline:
            files.drop(file)
        raise


def _attach(owner: Owner, session_id: str, named: Sequence[_File]) -> None:
    """One row for each (session, name, address), however often it is sent."""
    if not named:
        return
    rows = [
        Attachment(
            user_id=owner.user_pk,
            app_id=owner.app_id,
            project_id=owner.project_id,
            session_id=session_id,
            source=Attachment.Source.MEMORY_ADD,
            type=file.type,
            name=file.name,
            internal_uri=file.internal_uri,
            sha256=file.inline.sha256 if file.inline else "",
        )
        for file in named
    ]
    inline = [file.inline for file in named if file.inline]
    with transaction.atomic():
        _lock_or_drop(owner, inline)
        for file in inline:
            files.keep(file)  # a refused call with the same bytes may have removed it
        Attachment.objects.bulk_create(rows, ignore_conflicts=True)
