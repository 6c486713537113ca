"""Read containers as trees: mail with its attachments and forwarded messages, mailboxes, and ZIP archives of documents.

Each part is read like a separate file. Its rows follow a row of the kind "part", whose text is the path of names.
"""

import binascii
import email
import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from functools import partial
from typing import Final

from documents import mime_types as mt
from documents import outlook
from documents.calendars import readable
from documents.decoding import clean, decode, detect, label_in
from documents.document import Limits
from documents.guards import DAMAGED, Refused
from documents.html import html_rows
from documents.reading import Note
from documents.rows import SEPARATOR, Row, paragraphs
from documents.sniff import HEAD_BYTES, TypeMismatch, sniff

MAX_DEPTH: Final = 3
MAX_PARTS: Final = 200
_NAME_CHARACTERS: Final = 80
_FIELDS: Final = ("Subject", "From", "To", "Cc", "Date")
_MAX_FIELD_CHARACTERS: Final = 2_000
_MBOX_FROM: Final = re.compile(rb"^From [^\r\n]*\d\d:\d\d[^\r\n]*\r?\n", re.MULTILINE)
_QUOTED_FROM: Final = re.compile(rb"^>(>*From )", re.MULTILINE)
_WITHOUT_TEXT: Final = re.compile(r"application/(?:x-)?(?:pkcs7|pgp)-(?:signature|keys)")
_CODE: Final = re.compile(r"text/(?:css|x-amp-html)|(?:text|application)/(?:x-)?javascript")
_ENCODED_FILE: Final = re.compile(
    r"^begin [0-7]{3,4} ([^\n]+)\n((?:[!-`][ -`]*\n)+)(?:\s*\n)?end[^\S\n]*$", re.MULTILINE
)
"""A file in the text of old mail (uuencode)."""
_OF_SYSTEMS: Final = re.compile(
    r"(?:.*/)?(?:\.DS_Store|Thumbs\.db|desktop\.ini)|__MACOSX/.*", re.IGNORECASE | re.DOTALL
)
_UTF_8_NAME: Final = 0x800
_WORD: Final = re.compile(r"\w+")

_UTF_7: Final = frozenset({"utf-7", "unicode-1-1-utf-7"})
Read = Callable[[bytes, str, str | None], Iterable[Row]]
"""Reads the bytes of a document of a type, with the encoding that is declared. Raises: `Refused`."""


@dataclass(slots=True)
class Tree:
    """The limits of one container and all its parts, and what was left out."""

    read: Read
    limits: Limits
    parts: int = 0
    bytes_left: int = 0
    images: int = 0
    skipped: list[str] = field(default_factory=list)
    doubtful: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.bytes_left = self.limits.zip_bytes

    @property
    def notes(self) -> list[Note]:
        skipped = Note.of("parts_skipped", self.skipped) if self.skipped else None
        images = Note("images_skipped", self.images) if self.images else None
        doubtful = Note.of("encoding_doubtful", sorted(self.doubtful)) if self.doubtful else None
        return [note for note in (skipped, images, doubtful) if note]

    def rows(self, data: bytes, mime: str, path: tuple[str, ...] = ()) -> Iterator[Row]:
        """Yield the rows of a container. Raises: `Refused`."""
        if mime == mt.MBOX:
            yield from self._mailbox(data, path)
        elif mime == mt.ZIP:
            yield from self._archive(data, path)
        elif mime == mt.MSG:
            yield from self.read(data, mime, None)
            yield from self._outlook(outlook.attachments(data), path)
        else:
            yield from self._mail(_parsed(data), path)

    def attached(self, name: str, data: bytes) -> Iterator[Row]:
        """Yield the rows of a file that is attached to a document."""
        yield from self._part(lambda: data, name, None, ())

    def _mailbox(self, data: bytes, path: tuple[str, ...]) -> Iterator[Row]:
        starts = [match.span() for match in _MBOX_FROM.finditer(data)]
        ends = [start for start, _end in starts[1:]] + [len(data)]
        for number, ((_start, begin), end) in enumerate(zip(starts, ends, strict=True), 1):
            message = _parsed(_QUOTED_FROM.sub(rb"\1", data[begin:end]))
            name = _field(message, "Subject") or str(number)
            # The messages of a mailbox are its content: they do not count as parts.
            yield from self._under((*path, name), self._mail(message, (*path, name)))

    def _archive(self, data: bytes, path: tuple[str, ...]) -> Iterator[Row]:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [
                one for one in archive.infolist() if not one.is_dir() and not _OF_SYSTEMS.fullmatch(one.filename)
            ]
            for member, name in zip(members, _names(members), strict=True):
                yield from self._part(partial(archive.read, member), name, None, path)

    def _outlook(self, attachments: outlook.Attachments, path: tuple[str, ...]) -> Iterator[Row]:
        """Yield the rows of the attachments of a message of Outlook."""
        try:
            for found, content in attachments:
                name = found or mt.OCTET_STREAM
                if isinstance(content, outlook.Message):
                    if self._takes(name, path, 0):
                        yield from self._under((*path, name), self._inner(content, (*path, name)))
                elif content:
                    yield from self._part(content, name, None, path)
                else:
                    self.skipped.append(_shown((*path, name)))
        except Refused:
            self.skipped.append(_shown((*path, "…")))

    def _inner(self, message: outlook.Message, path: tuple[str, ...]) -> Iterator[Row]:
        yield from _header(message.fields)
        yield from paragraphs(clean(message.text)) if message.text else html_rows(decode(message.html))
        yield from self._outlook(message.attachments, path)

    def _mail(self, message: Message, path: tuple[str, ...]) -> Iterator[Row]:
        yield from _header({name: value for name in _FIELDS if (value := _field(message, name))})
        attachments: list[Message] = []
        for part in _bodies(message, attachments):
            yield from self._body(part, path)
        for part in attachments:
            yield from self._attachment(part, path)

    def _body(self, part: Message, path: tuple[str, ...]) -> Iterator[Row]:
        data = _payload(part)
        is_html = part.get_content_type() == mt.HTML
        declared = part.get_content_charset() or (label_in(data, mt.HTML) if is_html else None)
        text = _text(data, self._encoding(data, declared))
        if is_html:
            yield from html_rows(text)
            return
        if part.get_param("format") == "flowed":
            text = _unflowed(text, part)
        yield from paragraphs(_ENCODED_FILE.sub("\n\n", text))
        for found in _ENCODED_FILE.finditer(text):
            yield from self._part(partial(_unencoded, found[2]), found[1].strip(), None, path)

    def _encoding(self, data: bytes, declared: str | None) -> str | None:
        """Return the encoding of a text; note one that is a guess."""
        if (declared or "").lower() in _UTF_7:
            return declared
        found = detect(data, declared=declared)
        self.doubtful |= {found.name} if found.is_doubtful else set()
        return found.name

    def _attachment(self, part: Message, path: tuple[str, ...]) -> Iterator[Row]:
        kind = part.get_content_type()
        if _WITHOUT_TEXT.fullmatch(kind) or (_CODE.fullmatch(kind) and not part.get_filename()):
            return
        if kind == mt.EML:
            inner = part.get_payload(0) if part.is_multipart() else _parsed(_payload(part))
            if isinstance(inner, Message):
                name = _file_name(part) or _field(inner, "Subject") or kind
                if self._takes(name, path, 0):
                    yield from self._under((*path, name), self._mail(inner, (*path, name)))
                return
        if kind == "multipart/encrypted":
            self.skipped.append(_shown((*path, kind)))
            return
        if part.is_multipart():  # such as a report of a delivery
            text = "\n".join(f"{name}: {value}" for one in part.walk() for name, value in one.items())
            yield from paragraphs(clean(text))
            return
        name = _file_name(part)
        if not name and kind.startswith("image/"):
            self.images += 1
            return
        charset = part.get_content_charset() if kind.startswith("text/") else None
        yield from self._part(lambda: _payload(part), name or kind, kind, path, charset)

    def _part(
        self,
        load: Callable[[], bytes],
        name: str,
        claimed: str | None,
        path: tuple[str, ...],
        charset: str | None = None,
    ) -> Iterator[Row]:
        """Yield the rows of a file in a container; note it if it cannot be read."""
        if not self._takes(name, path, 0):
            return
        try:
            data = load()
        except Refused:
            self.skipped.append(_shown((*path, name)))
            return
        if not self._takes(name, path, len(data), count=0):
            return
        mime = _type_of(data, name, claimed)
        if mt.is_picture(mime):
            self.images += 1
            return
        inside = (*path, name)
        with suppress(Refused):
            if (rows := self._rows_of(data, mime, charset, inside)) is not None:
                yield from self._under(inside, rows)
                return
        self.skipped.append(_shown(inside))

    def _rows_of(self, data: bytes, mime: str, charset: str | None, path: tuple[str, ...]) -> Iterable[Row] | None:
        """Return the rows of a file; None for a type that is not read. Raises: `Refused`."""
        if mime in mt.CONTAINERS - {mt.ZIP}:
            return self.rows(data, mime, path)
        is_text = mime in mt.PARSED_TEXTS | mt.INLINE_TEXTS or mime.startswith("text/")
        if is_text:
            charset = self._encoding(data, charset or label_in(data, mime))
        if mime in (mt.DOCUMENTS | mt.PARSED_TEXTS) - {mt.ZIP}:
            rows = list(self.read(data, mime, charset))
            if not rows and mime == mt.PDF:
                self.skipped.append(_shown(path))
            return rows
        return paragraphs(readable(_text(data, charset))) if is_text else None

    def _takes(self, name: str, path: tuple[str, ...], size: int, *, count: int = 1) -> bool:
        """Count a part and its bytes; return False and note it if it is beyond the limits."""
        is_taken = len(path) < MAX_DEPTH and self.parts + count <= MAX_PARTS and size <= self.bytes_left
        if is_taken:
            self.parts += count
            self.bytes_left -= size
        else:
            self.skipped.append(_shown((*path, name)))
        return is_taken

    def _under(self, path: tuple[str, ...], rows: Iterable[Row]) -> Iterator[Row]:
        yield "part", None, _shown(path)
        yield from rows


def _header(fields: Mapping[str, str]) -> Iterator[Row]:
    if fields:
        yield "paragraph", None, "\n".join(f"{name}: {value}" for name, value in fields.items())


def _parsed(data: bytes) -> Message:
    """Return a message. Raises: `Refused` if its parts are nested too deeply."""
    try:
        return email.message_from_bytes(data)
    except RecursionError:
        raise Refused(DAMAGED) from None


def _bodies(message: Message, attachments: list[Message]) -> Iterator[Message]:
    """Yield the parts that are the text of a message, and add the others to `attachments`."""
    kind = message.get_content_type()
    if message.get_content_disposition() == "attachment" or kind == mt.EML:
        attachments.append(message)
    elif kind == "multipart/alternative" and message.is_multipart():
        others: list[Message] = []
        texts = [list(_bodies(part, others)) for part in _children(message)]
        attachments += others
        yield from _best([bodies for bodies in texts if bodies])
    elif message.is_multipart() and kind.startswith("multipart/") and kind != "multipart/encrypted":
        for part in _children(message):
            yield from _bodies(part, attachments)
    elif kind in {mt.PLAIN, mt.HTML} and not message.get_filename():
        yield message
    else:
        attachments.append(message)


def _best(alternatives: list[list[Message]]) -> list[Message]:
    """Return the first alternative, plain text, unless another has more than twice as many words."""
    sizes = [sum(len(_words(part)) for part in bodies) for bodies in alternatives]
    largest = max(sizes, default=0)
    return next((bodies for bodies, size in zip(alternatives, sizes, strict=True) if size * 2 >= largest), [])


def _words(part: Message) -> list[str]:
    text = _text(_payload(part), part.get_content_charset())
    if part.get_content_type() == mt.HTML:
        text = "\n".join(row for _kind, _page, row in html_rows(text))
    return _WORD.findall(text)


def _children(message: Message) -> list[Message]:
    payload = message.get_payload()
    return [part for part in payload if isinstance(part, Message)] if isinstance(payload, list) else []


def _payload(part: Message) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def _names(members: Sequence[zipfile.ZipInfo]) -> list[str]:
    """Return the names of members; programs of many countries write them in an encoding that they do not name."""
    written = [one.filename.encode("cp437") for one in members if not one.flag_bits & _UTF_8_NAME]
    encoding = detect(b"\n".join(written))
    found = "cp437" if encoding.is_doubtful else encoding.name
    return [
        one.filename if one.flag_bits & _UTF_8_NAME else clean(one.filename.encode("cp437").decode(found, "replace"))
        for one in members
    ]


def _unencoded(lines: str) -> bytes:
    """Return the bytes of a file in a text. Raises: `Refused`."""
    try:
        return b"".join(binascii.a2b_uu(line) for line in lines.splitlines())
    except binascii.Error:
        raise Refused(DAMAGED) from None


def _text(data: bytes, charset: str | None) -> str:
    """Return the text of bytes with a declared encoding. Mail alone has UTF-7, which looks like ASCII."""
    if charset and charset.lower() in _UTF_7:
        with suppress(UnicodeError):
            return clean(data.decode("utf-7"))
    return decode(data, declared=charset)


def _unflowed(text: str, part: Message) -> str:
    """Return a text whose long lines were broken after a space (RFC 3676) with these joined."""
    kept = "" if str(part.get_param("delsp")).lower() == "yes" else " "
    return re.sub(r"(?<=\S)(?<!\n--) \n(?![>\s]|-- )", kept, text)


def _field(message: Message, name: str) -> str:
    """Return the text of a header, decoded, on one line; empty if there is none."""
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), "")
    return _decoded(raw[:_MAX_FIELD_CHARACTERS])


def _decoded(raw: str) -> str:
    data = raw.encode("utf-8", "surrogateescape")
    if not data.isascii():  # eight bits without a charset
        return " ".join(clean(decode(data)).split())
    try:
        chunks = decode_header(raw)
    except HeaderParseError:
        chunks = [(raw, None)]
    text = "".join(chunk if isinstance(chunk, str) else _text(chunk, charset) for chunk, charset in chunks)
    return " ".join(clean(text).split())


def _file_name(part: Message) -> str:
    name = part.get_filename() or ""
    return _decoded(name[:_MAX_FIELD_CHARACTERS])


def _type_of(data: bytes, name: str, claimed: str | None) -> str:
    """Return the type of a part by its bytes and name, or by its bytes alone if they contradict each other."""
    for filename, kind in ((name, claimed), (name, None), ("", None)):
        try:
            return sniff(data[:HEAD_BYTES], filename, kind)
        except TypeMismatch:
            continue
    return mt.OCTET_STREAM


def _shown(path: tuple[str, ...]) -> str:
    """Return the names of a part and of the parts that it is in."""
    return SEPARATOR.join(
        name if len(name) <= _NAME_CHARACTERS else f"{name[: _NAME_CHARACTERS - 1]}…" for name in path
    )
