"""What we are given to remember, as EverOS wants it: text cut into messages, files as base64 with their ending."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from documents import mime_types
from documents.chunks import split
from documents.reader import read_document
from engines.everos.client.body import FileContent
from store.types import FILE_SPAN_MS, ContentItem, Message

MAX_MESSAGES_PER_CALL = 500
PIECE_CHARS = 2000
_IMAGES = ("png", "jpg", "jpeg", "webp", "tiff", "tif", "bmp", "svg")
_SOUNDS = ("mp3", "wav", "m4a", "amr", "aiff", "aac", "ogg", "flac")
_OFFICE = ("docx", "doc", "pptx", "ppt", "xlsx", "xls", "pages", "key", "numbers", "odt", "ods", "odp", "rtf")
_TEXTS = ("pdf", "html", "htm", "eml", "txt", "md", "vtt", "csv", "tsv")
_EXTENSIONS = frozenset(_IMAGES + _SOUNDS + _OFFICE + _TEXTS)
"""What EverOS 1.0–1.5 has parsers for."""
_BRACES = str.maketrans("{}", "｛｝")
_READERS = threading.BoundedSemaphore(2)
"""Each document that we read ourselves takes a process of its own, and may take a core."""

WireMessage = dict[str, Any]


def has_documents(message: Message) -> bool:
    """Whether something was sent as a file that we could also read ourselves."""
    return any(
        item.file and not _is_inline(item, inline_documents=False) and _is_document(item) for item in message.content
    )


def wire_messages(
    message: Message, sender_id: str, timestamp_ms: int, *, inline_documents: bool = False
) -> list[WireMessage]:
    """One message for everything short, and one for each piece of a text file, a millisecond apart.

    EverOS knows a message by session, time and position, so these must be the same at every try. With
    `inline_documents` files whose text we can read ourselves go as text too. Errors: `Unreadable`.
    """
    contents: list[list[dict[str, Any]]] = []
    others = [_wire_item(item) for item in message.content if not _is_inline(item, inline_documents=inline_documents)]
    if others:
        contents.append(others)
    for item in message.content:
        if item.file is not None and _is_inline(item, inline_documents=inline_documents):
            contents += [[{"type": "text", "text": piece}] for piece in _pieces(item.file, item)]
    head = {"sender_id": sender_id, "role": message.role}
    if sender_id != message.sender_id:
        head["sender_name"] = message.sender_id  # what the extracted text calls them
    if message.role == "tool":
        head["tool_call_id"] = f"call_{timestamp_ms}"  # EverOS refuses a tool's words without one (1.4 and later)
    return [
        {**head, "timestamp": timestamp_ms + position, "content": content}
        for position, content in enumerate(contents[:FILE_SPAN_MS])
    ]


def without_unpaired_braces(text: str) -> str:
    """EverOS loses a session's whole buffer when its extractor meets an unpaired brace (1.0–1.5), so a text with one
    gets full-width braces instead."""
    depth = 0
    for char in text:
        depth += (char == "{") - (char == "}")
        if depth < 0:
            break
    return text if depth == 0 else text.translate(_BRACES)


def _is_inline(item: ContentItem, *, inline_documents: bool) -> bool:
    if item.file is None:
        return False
    mime_type = item.mime_type or ""
    is_text = item.type == "text" or mime_type in mime_types.PLAIN_TEXTS | mime_types.INLINE_TEXTS
    return is_text or (_is_document(item) and (inline_documents or _extension(item) not in _EXTENSIONS))


def _is_document(item: ContentItem) -> bool:
    return item.file is not None and item.mime_type in mime_types.DOCUMENTS


def _pieces(file: Path, item: ContentItem) -> Iterator[str]:
    """The file name stands in front of each: EverOS drops the name of a text, and only by it can a found memory be
    tied to the file."""
    with _READERS if _is_document(item) else nullcontext():
        document = read_document(file, item.mime_type or mime_types.PLAIN)
    for passage in split(document, PIECE_CHARS):
        heading = f" {passage.heading}" if passage.heading else ""
        yield without_unpaired_braces(f"[TEXT: {item.name or file.name}]{heading}\n{passage.text}")


def _wire_item(item: ContentItem) -> dict[str, Any]:
    if item.text is not None:
        return {"type": "text", "text": without_unpaired_braces(item.text)}
    wire: dict[str, Any] = {"type": "doc" if item.type == "text" else item.type}
    if item.file is not None:
        wire["base64"] = FileContent(item.file)
    else:
        wire["uri"] = item.ingest_uri or item.uri
    wire |= {"ext": _extension(item), "name": item.name, "extras": dict(item.extras)}
    return {key: value for key, value in wire.items() if value}


def _extension(item: ContentItem) -> str:
    """The ending, without which EverOS chooses no parser: the name's own if it knows that, else the type's."""
    name = item.name or (item.file.name if item.file else urlsplit(item.uri or "").path)
    own = name.rpartition(".")[2].lower() if "." in name else ""
    if own in _EXTENSIONS:
        return own
    usual = [ending.lstrip(".") for ending in mime_types.EXTENSIONS.get(item.mime_type or "", ())]
    return next((ending for ending in usual if ending in _EXTENSIONS), usual[0] if usual else own)
