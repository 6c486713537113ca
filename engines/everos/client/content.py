"""Convert messages to EverOS's shape: text cut into messages, files as base64 with their extension."""

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
"""Extensions that EverOS 1.0 to 1.5 has parsers for."""
_BRACES = str.maketrans("{}", "｛｝")
_READERS = threading.BoundedSemaphore(2)
"""Each document is read in a child process that may use a whole CPU core."""

WireMessage = dict[str, Any]


def has_documents(message: Message) -> bool:
    """Return True if a file was sent as it is that the gateway could read itself."""
    return any(
        item.file and not _is_inline(item, inline_documents=False) and _is_document(item) for item in message.content
    )


def wire_messages(
    message: Message, sender_id: str, timestamp_ms: int, *, inline_documents: bool = False
) -> list[WireMessage]:
    """Return one message for all short items, and one for each piece of a text file, 1 ms apart.

    EverOS identifies a message by session, time and position, so every try must produce the same ones. With
    `inline_documents`, files that the gateway can read are sent as text. Raises: `Unreadable`.
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
        head["sender_name"] = message.sender_id  # the name used in extracted text
    if message.role == "tool":
        head["tool_call_id"] = f"call_{timestamp_ms}"  # required since EverOS 1.4
    return [
        {**head, "timestamp": timestamp_ms + position, "content": content}
        for position, content in enumerate(contents[:FILE_SPAN_MS])
    ]


def without_unpaired_braces(text: str) -> str:
    """Return the text with full-width braces if its braces are unbalanced.

    EverOS 1.0 to 1.5 loses a session's buffer when its extractor meets an unpaired brace.
    """
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
    """Yield the passages of a file, each starting with the file name.

    EverOS drops the name of a text item, and a found memory is linked to its file only by that name.
    """
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
    """Return the file extension, by which EverOS chooses its parser: the name's if EverOS knows it, else the type's."""
    name = item.name or (item.file.name if item.file else urlsplit(item.uri or "").path)
    own = name.rpartition(".")[2].lower() if "." in name else ""
    if own in _EXTENSIONS:
        return own
    usual = [ending.lstrip(".") for ending in mime_types.EXTENSIONS.get(item.mime_type or "", ())]
    return next((ending for ending in usual if ending in _EXTENSIONS), usual[0] if usual else own)
