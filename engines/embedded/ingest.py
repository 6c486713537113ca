"""Convert messages to memory rows: one per text, image or sound, one per passage of a document.

Ids are derived from the content, so a message that is sent twice is stored once. Without an LLM endpoint, rules choose
the category of a text; with one, the role is the category and `engines.embedded.extraction` derives memories later.
"""

import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
from django.conf import settings

from core.errors import EngineRefused, Unreadable
from core.ids import parse_session_id
from core.messages import Translatable as _
from core.network import language_model
from core.persistence import files
from core.redaction import redact
from documents import mime_types, ocr
from documents.document import Document, limits_for, split
from documents.mime_types import is_allowed, is_picture
from documents.reader import read_document
from documents.reading import Note, Reading
from engines.embedded import extraction_rules, media
from engines.embedded.fetching import Fetch
from store import writes
from store.admission import never_kept_of
from store.models import Memory
from store.port import FileReading, KeptAsText
from store.text.succession import is_label
from store.types import ContentItem, Message, Owner
from store.writes import Draft

ReadDocument = Callable[[Path, str], Document]

_NAMESPACE = uuid.UUID("6d0a3b1e-5d0f-4f0e-9f43-6f3c0d5e7a11")
_SPEAKER = re.compile(r"([^\W\d_][\w .'’-]{0,40}?)\s?(?::\s|：)(?=\s*\S)")
_MAX_SPEAKER_WORDS = 4
MAX_SPEAKER_CHARS = 64


@dataclass(frozen=True, slots=True)
class Part:
    """The text of a message, or one of its items. `identity` depends on the message only, not on a fetched file.

    `first_id` is the id of its first memory. If that memory exists, the others of the part exist too.
    """

    identity: uuid.UUID
    first_id: str
    message: Message
    text: str | None
    item: ContentItem | None


def read_with_ocr(path: Path, mime_type: str) -> Document:
    """Return the text of a file, recognized (OCR) if the settings say so. Raises: `Unreadable`, `EngineUnavailable`."""
    engine: str = settings.MEMORY_GATEWAY_OCR
    folder: Path = settings.MEMORY_GATEWAY_DB_PATH.parent / "ocr"
    recognition = None if engine == "off" else ocr.Ocr(engine, folder, models=settings.MEMORY_GATEWAY_OCR_MODELS)
    return read_document(path, mime_type, limits=limits_for(settings.MEMORY_GATEWAY_MAX_TEXT_BYTES), ocr=recognition)


def parts_of(owner: Owner, session_id: str, messages: Iterable[Message]) -> list[Part]:
    """Return the parts of all messages in order. Raises: `EngineRefused` for an item without content."""
    return [part for message in messages for part in _parts_of_message(owner, session_id, message)]


def draft_of(part: Part, read: ReadDocument, fetch: Fetch) -> Draft:
    """Return the part's memories, unsaved and without owner and session; none for a document without text.

    A stored picture or recording that a model has to read is pending with them. Raises: `Unreadable`, and the errors of
    `fetch`.
    """
    item = part.item
    if item is None:
        return Draft.of(part.first_id, [_message(part)])
    # Pictures and sound at an address are known by their names only, so they are not fetched.
    if item.type in {"image", "audio"} and item.file is None:
        return Draft.of(part.first_id, [_media(part, item)])
    with nullcontext(item) if item.file else fetch(item) as fetched:
        if fetched.type not in {"image", "audio"}:
            rows, reading = _passages(part, fetched, read)
            return Draft.of(part.first_id, rows, reading=reading)
        rows, reading = [_media(part, fetched)], None
        if is_picture(fetched.mime_type) or fetched.mime_type == mime_types.SVG:
            with suppress(Unreadable):  # a picture is remembered by name and description in any case
                passages, reading = _passages(part, fetched, read, first=1)
                rows += passages
    pending = media.pending_of(item.file, item.mime_type) if item.file else None
    return Draft.of(part.first_id, rows, pending, reading)


def without_refused(owner: Owner, draft: Draft, *, ask_seconds: float) -> Draft:
    """Return the draft of a file without passages that its user wants never remembered; its reading counts them.

    The language model is asked for `ask_seconds` at most.

    Its first memory is the first passage that is left. Others that are stored already are left out, because what is
    refused may have changed since.
    """
    refused = never_kept_of(owner.user_pk, [memory.text for memory in draft.memories], ask_seconds=ask_seconds)
    refused -= {0} if draft.media else set()  # the name of a picture or recording, which was admitted
    if not refused:
        return draft
    kept = [memory for place, memory in enumerate(draft.memories) if place not in refused]
    known = writes.known(owner, [memory.memory_id for memory in kept[1:]])
    kept = [*kept[:1], *(memory for memory in kept[1:] if memory.memory_id not in known)]
    reading = draft.reading.noting(Note("passages_refused", len(refused))) if draft.reading else None
    return Draft.of(kept[0].memory_id if kept else draft.first_id, kept, draft.media, reading)


def may_be_text(part: Part, session_id: str) -> bool:
    """Return True for an address in a message, which is kept as text if it cannot be read; False for a resource's."""
    kind = parse_session_id(session_id).kind
    return part.item is not None and part.item.uri is not None and not part.item.is_of_resource(kind)


def as_text(part: Part) -> Draft:
    """Return the part's address as text, because its file cannot be read. Its passages replace it once they can."""
    text = part.item.as_text().text if part.item else part.text
    memory = _message(replace(part, text=text))
    memory.memory_id = description_id(part)
    return Draft.of(memory.memory_id, [memory])


def kept_as_text(messages: Sequence[Message], unread: Sequence[tuple[Part, str]]) -> list[KeptAsText]:
    """Return the places of parts that were kept as text, with the causes."""
    return [KeptAsText(*place, cause) for part, cause in unread for place in _places(messages, part)]


def readings(messages: Sequence[Message], read: Iterable[tuple[Part, Draft | None]]) -> list[FileReading]:
    """Return the places and names of files, with what was read of them."""
    return [
        FileReading(*place, part.item.name or "", draft.reading)
        for part, draft in read
        if part.item and draft and draft.reading
        for place in _places(messages, part)
    ]


def _places(messages: Sequence[Message], part: Part) -> list[tuple[int, int]]:
    """Return the positions of a part: of its message and of its item."""
    return [
        (position, index)
        for position, message in enumerate(messages)
        for index, item in enumerate(message.content)
        if (message, item) == (part.message, part.item)
    ]


def description_of(part: Part) -> list[Memory]:
    """Return the memory of a file that cannot be read: its name, title and description; none without the latter two."""
    item = part.item
    if item is None or not (item.extras.get("title") or item.extras.get("description")):
        return []
    memory = _media(part, item)
    memory.memory_id, memory.memory_type = description_id(part), Memory.Type.EPISODE
    return [memory]


def description_id(part: Part) -> str:
    """Return the id of `description_of` and `as_text`, which the passages replace once the file can be read."""
    return str(uuid.uuid5(part.identity, "description"))


def _parts_of_message(owner: Owner, session_id: str, message: Message) -> Iterator[Part]:
    names = [str(owner.user_pk), owner.app_id, owner.project_id, session_id]
    names += [message.sender_id, message.role, str(message.timestamp_ms)]
    if message.call_identity:
        names.append(orjson.dumps(message.call_identity).decode())

    def part(content: str | Sequence[Any], text: str | None, item: ContentItem | None) -> Part:
        identity = uuid.uuid5(_NAMESPACE, orjson.dumps([*names, content]).decode())
        return Part(identity, _memory_id(identity, 0), message, text, item)

    if any(item.text is None and item.file is None and item.uri is None for item in message.content):
        raise EngineRefused(_("A message part has no text, file or address."))
    text = "\n".join(item.text for item in message.content if item.text is not None)
    if text.strip():
        yield part(text, text, None)
    for item in message.content:
        if item.text is None:
            yield part(_identity_of(item), None, item)


def _identity_of(item: ContentItem) -> list[Any]:
    """Return the values that identify an item: a resource's id, or the digest of a file (empty if it is missing)."""
    names = [item.name, item.extras.get("resource_id"), *([item.uri] if item.uri else [])]
    if item.file and not item.extras.get("resource_id"):
        names.append(files.digest_of(item.file))
    return names


def _memory_id(identity: uuid.UUID, number: int) -> str:
    return str(uuid.uuid5(identity, str(number)))


def _message(part: Part) -> Memory:
    text, message = part.text or "", part.message
    # Rules choose the category of what the user and the agent say; a participant's "I" is not the user.
    by_rule = "" if language_model.is_set() or message.is_participant else extraction_rules.category(message.role, text)
    match = _SPEAKER.match(text)  # transcripts name the speaker first: `Caroline: …`
    is_named = match is not None and len(match[1].split()) <= _MAX_SPEAKER_WORDS and not is_label(match[1])
    name = message.sender_name or message.sender_id
    speaker = match[1] if match and is_named else name[:MAX_SPEAKER_CHARS]
    return _row(part, 0, text=text, speaker=speaker, category=by_rule or message.category, payload=message.envelope)


def _media(part: Part, item: ContentItem) -> Memory:
    payload = _payload(part, item) | {"description": item.extras.get("description")}
    named = (payload["filename"], payload["title"], payload["description"])
    text = "\n".join(dict.fromkeys(str(name) for name in named if name))
    return _row(part, 0, text=text or item.type, chunk_index=0, payload=payload)


def _passages(
    part: Part, item: ContentItem, read: ReadDocument, *, first: int = 0
) -> tuple[list[Memory], Reading | None]:
    """Return a memory for each passage of a file, and its reading; `first` is the number of the first."""
    if item.file is None:
        return [], None
    if item.mime_type == mime_types.ZIP and not is_allowed(mime_types.ZIP, settings.MEMORY_GATEWAY_ALLOWED_MIME_TYPES):
        raise Unreadable(_("ZIP archives are not read here: unpack it, and send the files in it."))
    with files.local_copy(item.file) as path:
        document = read(path, item.mime_type or "application/octet-stream")
    rows = []
    for number, passage in enumerate(split(document), start=first):
        payload = _payload(part, item) | {
            "page": passage.page,
            "heading": passage.heading,
            "position": passage.position,
            "start": passage.start,
            "end": passage.end,
        }
        if passage.box:
            payload["box"] = passage.box
        if number == 0:
            payload["description"] = item.extras.get("description")
        text, _found = redact(passage.text, settings.MEMORY_GATEWAY_REDACT)
        rows.append(_row(part, number, text=text, chunk_index=number, payload=payload))
    return rows, document.reading


def _payload(part: Part, item: ContentItem) -> dict[str, Any]:
    return part.message.envelope | {
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
        agent_id="" if part.message.role == "user" else part.message.sender_id[:MAX_SPEAKER_CHARS],
        created_at_ms=part.message.timestamp_ms,
        expires_at=part.message.expires_at,
        origin=Memory.Origin.EMBEDDED,
        **fields,
    )
