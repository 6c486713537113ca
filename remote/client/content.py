"""Convert messages to EverOS's format: text files as several messages, other files as base64, encoded while sent."""

import base64
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit

import orjson

from core.errors import Unreadable
from core.messages import Translatable as _
from documents import mime_types
from documents.document import split
from documents.reader import read_document
from store.types import FILE_SPAN_MS, ContentItem, Message

MAX_MESSAGES_PER_CALL = 500
_PASSAGE_CHARS = 2000
_PIECE_BYTES = 3 * 64 * 1024  # base64 packs three bytes into four characters
_IMAGES = ("png", "jpg", "jpeg", "webp", "tiff", "tif", "bmp", "svg")
_SOUNDS = ("mp3", "wav", "m4a", "amr", "aiff", "aac", "ogg", "flac")
_OFFICE = ("docx", "doc", "pptx", "ppt", "xlsx", "xls", "pages", "key", "numbers", "odt", "ods", "odp", "rtf")
_TEXTS = ("pdf", "html", "htm", "eml", "txt", "md", "vtt", "csv", "tsv")
_EXTENSIONS = frozenset(_IMAGES + _SOUNDS + _OFFICE + _TEXTS)
"""File name extensions that EverOS 1.0 to 1.5 has parsers for."""
_BRACES = str.maketrans("{}", "｛｝")

WireMessage = dict[str, Any]


class FileContent:
    """A file in a payload, sent as base64. Raises: `Unreadable` if the file is missing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.size_bytes = path.stat().st_size
        except FileNotFoundError:
            raise Unreadable(_("The stored file is missing. Upload it again.")) from None

    def __len__(self) -> int:
        """Return the length of the base64 text in characters."""
        return 4 * -(-self.size_bytes // 3)

    def __iter__(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                yield base64.b64encode(piece)


class Body:
    """A payload as JSON with a known length, which can be read repeatedly for retries."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        files: dict[bytes, FileContent] = {}

        def placeholder(value: Any) -> str:
            if not isinstance(value, FileContent):
                raise TypeError(f"{type(value).__name__} is not JSON serializable")
            mark = secrets.token_hex(16)
            files[mark.encode()] = value
            return mark

        rest = orjson.dumps(payload, default=placeholder)
        self._parts: list[bytes | FileContent] = []
        for mark, file in files.items():
            before, _mark, rest = rest.partition(mark)
            self._parts += [before, file]
        self._parts.append(rest)

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    def __iter__(self) -> Iterator[bytes]:
        for part in self._parts:
            if isinstance(part, bytes):
                yield part
            else:
                yield from part


def has_documents(message: Message) -> bool:
    """Return True if a document of the message was sent as a file although the gateway could read its text."""
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
    others: list[dict[str, Any]] = []
    pieces: list[list[dict[str, Any]]] = []
    for item in message.content:
        if item.file is not None and _is_inline(item, inline_documents=inline_documents):
            # EverOS drops the name of a text item, but only the name links a found memory to its file.
            name = f"[TEXT: {item.name or PurePath(item.file).name}]"
            for passage in split(read_document(_path(item), item.mime_type or mime_types.PLAIN), _PASSAGE_CHARS):
                heading = f" {passage.heading}" if passage.heading else ""
                text = _without_unpaired_braces(f"{name}{heading}\n{passage.text}")
                pieces.append([{"type": "text", "text": text}])
        else:
            others.append(_wire_item(item))
    contents = [others, *pieces] if others else pieces
    head: WireMessage = {"sender_id": sender_id, "role": message.role}
    if message.sender_name or sender_id != message.sender_id:
        head["sender_name"] = message.sender_name or message.sender_id  # the name used in extracted text
    if message.role == "tool":  # required since EverOS 1.4
        head["tool_call_id"] = message.tool_call_id or f"call_{timestamp_ms}"
    messages = [
        {**head, "timestamp": timestamp_ms + position, "content": content}
        for position, content in enumerate(contents[:FILE_SPAN_MS])
    ]
    if messages and message.tool_calls:
        messages[0]["tool_calls"] = [_wire_call(call) for call in message.tool_calls]
    return messages


def _wire_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    return {**call, "function": {**function, "arguments": _without_unpaired_braces(function["arguments"])}}


def _without_unpaired_braces(text: str) -> str:
    """Return the text with full-width braces if its braces are unbalanced.

    EverOS 1.0 to 1.5 loses a session's buffer if its extractor reads an unpaired brace.
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
    mime_type = mime_types.normalize(item.mime_type) or ""
    is_text = item.type == "text" or mime_type in mime_types.PLAIN_TEXTS | mime_types.INLINE_TEXTS
    return is_text or (_is_document(item) and (inline_documents or _extension(item) not in _EXTENSIONS))


def _is_document(item: ContentItem) -> bool:
    return item.file is not None and mime_types.normalize(item.mime_type) in mime_types.DOCUMENTS


def _wire_item(item: ContentItem) -> dict[str, Any]:
    if item.text is not None:
        return {"type": "text", "text": _without_unpaired_braces(item.text)}
    wire: dict[str, Any] = {"type": "doc" if item.type == "text" else item.type}
    if item.file is not None:
        wire["base64"] = FileContent(_path(item))
    else:
        wire["uri"] = item.ingest_uri or item.uri
    wire |= {"ext": _extension(item), "name": item.name, "extras": dict(item.extras)}
    return {key: value for key, value in wire.items() if value}


def _path(item: ContentItem) -> Path:
    """Return the path of the local copy that the adapter made of a file."""
    if not isinstance(item.file, Path):
        raise TypeError("a stored file cannot be sent without a local copy")
    return item.file


def _extension(item: ContentItem) -> str:
    """Return the extension for EverOS, which chooses a parser by it: the name's if EverOS knows it, else the type's."""
    name = item.name or (PurePath(item.file).name if item.file else urlsplit(item.uri or "").path)
    extension = name.rpartition(".")[2].lower() if "." in name else ""
    if extension in _EXTENSIONS:
        return extension
    of_type = [one.lstrip(".") for one in mime_types.EXTENSIONS.get(mime_types.normalize(item.mime_type) or "", ())]
    return next((one for one in of_type if one in _EXTENSIONS), of_type[0] if of_type else extension)
