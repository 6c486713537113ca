"""The messages that memories of ours were made of, as another engine is to be told them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import cast, get_args
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.db.models import QuerySet

from core.errors import Unreadable
from documents.mime_types import ContentType
from engines.registry import local_engine
from operations.moves import purged
from operations.moves.result import owner_of
from resources.models import Attachment, Resource
from resources.services.ingestion import message_of
from store.models import BARE, Memory, Session
from store.types import ContentItem, Message, Role


@dataclass(frozen=True, slots=True)
class Given:
    """A message, and whether a flush took it already."""

    message: Message
    is_flushed: bool


def resource_of(session: Session) -> QuerySet[Resource]:
    """The live resource that a session was made for, if it was."""
    live = Resource.objects.filter(user_id=session.user_id, session_id=session.session_id, deleted_at__isnull=True)
    return live.select_related("user")


def given_by(session: Session, rows: Sequence[Memory]) -> list[Given]:
    """What the rows are, told anew: a file whole where all of it is wanted and it is at hand, else its passages as
    text. `rows` are memories of the session that are to be told, in their order."""
    resource = resource_of(session).first()
    if resource is not None and rows and _is_all(session, rows):
        try:
            return [Given(message_of(resource), is_flushed=True)]
        except Unreadable:
            pass
    broken = purged.broken_flushes(session)
    own = [row for row in rows if not is_taken_over(row) or row.batch_id in broken] or rows
    return list(_given_one_by_one(session, own))


def is_taken_over(row: Memory) -> bool:
    """Whether an upstream made this memory, in its own words."""
    return row.chunk_index is None and "episode" in row.payload


def _is_all(session: Session, rows: Sequence[Memory]) -> bool:
    ours = Memory.objects.filter(session=session, origin=Memory.Origin.EMBEDDED)
    return ours.count() == len(rows) and not purged.holds_bare(session)


def _given_one_by_one(session: Session, rows: Iterable[Memory]) -> Iterator[Given]:
    """A document's passages share their time; of a document in a message, the file is told if all of it is wanted."""
    for _, group in groupby(rows, key=_message_key):
        parts = list(group)
        is_flushed = parts[0].memory_type != Memory.Type.UNPROCESSED_MESSAGE
        file = _file_of(session, parts[0]) if parts[0].chunk_index == 0 and _is_whole(session, parts) else None
        if file is not None:
            yield Given(_message(parts[0], file), is_flushed)
            continue
        for number, row in enumerate(parts):
            yield Given(_message(row, ContentItem("text", text=_text_of(row)), number), is_flushed)


def _message_key(row: Memory) -> tuple[object, ...]:
    if row.chunk_index is None:
        return (row.pk,)
    return row.created_at_ms, row.sender_id, row.payload.get("filename"), row.batch_id


def _is_whole(session: Session, parts: Sequence[Memory]) -> bool:
    first = parts[0]
    same = Memory.objects.filter(session=session, created_at_ms=first.created_at_ms)
    passages = same.filter(chunk_index__isnull=False)
    return passages.count() == len(parts) and not same.filter(batch_id=BARE).exists()


def _file_of(session: Session, row: Memory) -> ContentItem | None:
    """The file that came with a message, if it still lies in our storage. What a message only points at has no digest:
    its address is its writer's word, and would read whatever lies there."""
    attached = Attachment.objects.filter(
        user_id=session.user_id,
        app_id=session.app_id,
        project_id=session.project_id,
        session_id=session.session_id,
        name=row.payload.get("filename") or "",
        source=Attachment.Source.MEMORY_ADD,
    ).exclude(sha256="")
    kept = [_item_of(row, attachment) for attachment in attached]
    if len(kept) > 1:  # of one name: the memory's id tells which
        kept = [item for item in kept if item is not None and _makes(session, row, item)]
    return kept[0] if kept else None


def _item_of(row: Memory, attachment: Attachment) -> ContentItem | None:
    path = Path(unquote(urlsplit(attachment.internal_uri).path))
    if not path.is_relative_to(settings.MEMORY_GATEWAY_STORAGE_DIR) or not path.is_file():
        return None
    content_type = row.payload.get("content_type")
    kind = cast("ContentType", content_type if content_type in get_args(ContentType) else "doc")
    return ContentItem(kind, file=path, name=attachment.name, mime_type=row.payload.get("mime_type"))


def _makes(session: Session, row: Memory, item: ContentItem) -> bool:
    """Whether our engine made the memory of this very file."""
    return local_engine().memory_ids(owner_of(session), session.session_id, _message(row, item)) == [row.memory_id]


def _text_of(row: Memory) -> str:
    """A passage says which file it stands in, so that a found memory leads back to it."""
    name = row.payload.get("filename") if row.chunk_index is not None else None
    return f"[TEXT: {name}]\n{row.text}" if name else row.text


def _message(row: Memory, item: ContentItem, offset_ms: int = 0) -> Message:
    """Passages told one by one stand a millisecond apart."""
    role = row.payload.get("role")
    known = cast("Role", role if role in get_args(Role) else "user")
    return Message(row.sender_id, known, row.created_at_ms + offset_ms, (item,))
