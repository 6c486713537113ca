"""Messages to memory rows: what was said becomes one memory, a document one per passage, a picture or a sound one.

Ids are made of what they name, so that the same message, given twice, is one.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from core.errors import EngineRefused
from documents.chunks import split
from documents.document import Document, Passage
from engines.embedded.extraction import category_of
from engines.embedded.fetching import Fetch
from store.models import Memory
from store.types import ContentItem, Message, Owner

ReadDocument = Callable[[Path, str], Document]

_NAMESPACE = uuid.UUID("6d0a3b1e-5d0f-4f0e-9f43-6f3c0d5e7a11")
_SPEAKER = re.compile(r"([^\W\d_][\w .'’-]{0,40}?)\s?(?::\s|：)(?=\s*\S)")
_MAX_SPEAKER_WORDS = 4
_MAX_SPEAKER_CHARS = 64


@dataclass(frozen=True, slots=True)
class Part:
    """What one message gives at one of its items: known by `identity` before anything is read.

    `first_id` is the id of its first memory: where that exists, so do the others.
    """

    identity: uuid.UUID
    first_id: str
    message: Message
    text: str | None
    item: ContentItem | None


def parts_of(owner: Owner, session_id: str, messages: Iterable[Message]) -> list[Part]:
    """The parts of all messages in order. Errors: `EngineRefused` for an item without content."""
    return [part for message in messages for part in _parts_of_message(owner, session_id, message)]


def rows_of(part: Part, read: ReadDocument, fetch: Fetch) -> list[Memory]:
    """The part's memories, unsaved and without owner and session. Errors: `Unreadable`, and those of `fetch`.

    A document without text gives none.
    """
    if part.item is None:
        return [_turn(part)]
    if _is_mere_mention(part.item):
        return [_media(part, part.item)]
    with _at_hand(part.item, fetch) as item:
        return [_media(part, item)] if item.type in {"image", "audio"} else _passages(part, item, read)


def speaker_of(text: str, sender_id: str) -> str:
    """Who says it, as questions name them: transcripts write `Caroline: …` before what she says."""
    match = _SPEAKER.match(text)
    if match and len(match[1].split()) <= _MAX_SPEAKER_WORDS:
        return match[1]
    return sender_id[:_MAX_SPEAKER_CHARS]


def _parts_of_message(owner: Owner, session_id: str, message: Message) -> Iterator[Part]:
    told: list[str] = []
    for item in message.content:
        if item.text is not None:
            told.append(item.text)
        elif item.file is None and item.uri is None:
            raise EngineRefused("A part of the message has neither text nor file nor address.")
    text = "\n".join(told)
    if text.strip():
        yield _part(_identity(owner, session_id, message, text), message, text, None)
    for item in message.content:
        if item.text is None:
            yield _part(_identity(owner, session_id, message, _names_of(item)), message, None, item)


def _part(identity: uuid.UUID, message: Message, text: str | None, item: ContentItem | None) -> Part:
    return Part(identity, _memory_id(identity, 0), message, text, item)


def _names_of(item: ContentItem) -> list[Any]:
    """What tells one item from another: a resource by its id, other files by what is in them."""
    resource_id = item.extras.get("resource_id")
    digest = [_digest(item.file)] if item.file and not resource_id else []
    return [item.name, resource_id, *([item.uri] if item.uri else []), *digest]


def _digest(file: Path) -> str:
    """Nothing for a file that is not there: its reader says so."""
    if not file.is_file():
        return ""
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _is_mere_mention(item: ContentItem) -> bool:
    """A picture or a sound that a message only points at: nothing in it could be read, so nothing is fetched. Of a
    resource it is fetched all the same, to know that it is there."""
    return item.type in {"image", "audio"} and item.file is None and "resource_id" not in item.extras


def _at_hand(item: ContentItem, fetch: Fetch) -> AbstractContextManager[ContentItem]:
    return nullcontext(item) if item.file else fetch(item)


def _identity(owner: Owner, session_id: str, message: Message, content: str | Sequence[Any]) -> uuid.UUID:
    named = [str(owner.user_pk), owner.app_id, owner.project_id, session_id]
    named += [message.sender_id, message.role, str(message.timestamp_ms)]
    return uuid.uuid5(_NAMESPACE, orjson.dumps([*named, content]).decode())


def _memory_id(identity: uuid.UUID, number: int) -> str:
    return str(uuid.uuid5(identity, str(number)))


def _turn(part: Part) -> Memory:
    text = part.text or ""
    return _row(
        part,
        0,
        text=text,
        speaker=speaker_of(text, part.message.sender_id),
        category=category_of(part.message.role, text),
        payload={"role": part.message.role},
    )


def _media(part: Part, item: ContentItem) -> Memory:
    payload = _payload(part, item) | {"description": item.extras.get("description")}
    told = (payload["filename"], payload["title"], payload["description"])
    text = "\n".join(dict.fromkeys(str(name) for name in told if name))
    return _row(part, 0, text=text or item.type, chunk_index=0, payload=payload)


def _passages(part: Part, item: ContentItem, read: ReadDocument) -> list[Memory]:
    if item.file is None:
        return []
    passages = split(read(item.file, item.mime_type or "application/octet-stream"))
    return [
        _row(part, number, text=passage.text, chunk_index=number, payload=_passage_payload(part, item, passage))
        for number, passage in enumerate(passages)
    ]


def _passage_payload(part: Part, item: ContentItem, passage: Passage) -> dict[str, Any]:
    payload = _payload(part, item) | {
        "page": passage.page,
        "heading": passage.heading,
        "position": passage.position,
        "start": passage.start,
        "end": passage.end,
    }
    if passage.position == 0:
        payload["description"] = item.extras.get("description")
    return payload


def _payload(part: Part, item: ContentItem) -> dict[str, Any]:
    return {
        "role": part.message.role,
        "content_type": item.type,
        "filename": item.name,
        "title": item.extras.get("title"),
        "mime_type": item.mime_type,
        "resource_id": item.extras.get("resource_id"),
    }


def _row(part: Part, number: int, **fields: Any) -> Memory:
    return Memory(
        memory_id=_memory_id(part.identity, number) if number else part.first_id,
        memory_type=Memory.Type.UNPROCESSED_MESSAGE,
        sender_id=part.message.sender_id,
        agent_id="" if part.message.role == "user" else part.message.sender_id[:_MAX_SPEAKER_CHARS],
        created_at_ms=part.message.timestamp_ms,
        origin=Memory.Origin.EMBEDDED,
        **fields,
    )
