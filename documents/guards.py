"""Checks on archives and PDFs before a parser reads them. They run in the sandbox, with the parser.

Headers are not trusted: sizes are counted while inflating, and an XML parser looks for declarations.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Final
from xml.parsers import expat

from documents import mime_types as mt
from documents.limits import MIB, Limits
from documents.signatures import OLE_MAGIC

ENCRYPTED: Final = "The document is encrypted or protected by a password: remove the protection and send it again."
DAMAGED: Final = (
    "The document is damaged: open it in the program that it was made with, save it anew and send it again."
)
TOO_LARGE: Final = "The document unpacks to more than we read: send it in smaller parts."

_CHUNK: Final = 65_536
_RATIO_FREE_BYTES: Final = 10 * MIB
"""Below this size a high ratio is harmless, and common: empty sheets compress very well."""
_LOCAL_HEADER: Final = struct.Struct("<4s22xHH")
_MAX_OBJECT_NUMBER: Final = 8_388_607  # PDF 32000-1, annex C


class Refused(Exception):
    """The document cannot be read. The message says why and what to do."""


def check_zip(data: bytes, mime: str, limits: Limits) -> None:
    """Check an archive.

    Raises: `Refused` if it is damaged, encrypted or a zip bomb, or if its XML declares a DTD.
    """
    if data.startswith(OLE_MAGIC):
        raise Refused(ENCRYPTED)  # Office's format for a .docx with a password
    members = _members(data)
    if len(members) > limits.zip_members:
        raise Refused(f"The document has more than {limits.zip_members:,} parts inside, which no real one has.")
    total = 0
    for member in members:
        total += _check_member(data, member, mime, limits, left=limits.zip_bytes - total)


def _members(data: bytes) -> list[zipfile.ZipInfo]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.infolist()
    except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError, struct.error) as error:
        raise Refused(DAMAGED) from error


def _check_member(data: bytes, member: zipfile.ZipInfo, mime: str, limits: Limits, *, left: int) -> int:
    """Inflate one member and return its real size in bytes."""
    if member.flag_bits & 1:
        raise Refused(ENCRYPTED)
    prolog = _Prolog()
    size = 0
    for chunk in _inflate(data, member):
        size += len(chunk)
        is_bomb = size > _RATIO_FREE_BYTES and size > limits.zip_ratio * max(1, member.compress_size)
        if size > left or is_bomb:
            raise Refused(TOO_LARGE)
        prolog.feed(chunk)
    if prolog.has_entities or (prolog.has_doctype and mime != mt.EPUB):  # EPUB's pages are XHTML with a doctype
        raise Refused("The document declares XML entities or a document type, which no office program writes.")
    return size


def _inflate(data: bytes, member: zipfile.ZipInfo) -> Iterator[bytes]:
    header = data[member.header_offset : member.header_offset + _LOCAL_HEADER.size]
    if len(header) < _LOCAL_HEADER.size:
        raise Refused(DAMAGED)
    _, name_length, extra_length = _LOCAL_HEADER.unpack(header)
    start = member.header_offset + _LOCAL_HEADER.size + name_length + extra_length
    packed = memoryview(data)[start : start + member.compress_size]
    if member.compress_type == zipfile.ZIP_STORED:
        yield from (bytes(packed[at : at + _CHUNK]) for at in range(0, len(packed), _CHUNK))
    elif member.compress_type == zipfile.ZIP_DEFLATED:
        yield from _inflate_deflated(packed)
    else:
        raise Refused(
            "The document is packed in a way that office programs do not use: save it anew and send it again."
        )


def _inflate_deflated(packed: memoryview) -> Iterator[bytes]:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    rest: bytes | memoryview = packed
    while not inflater.eof:
        try:
            chunk = inflater.decompress(rest, _CHUNK)
        except zlib.error as error:
            raise Refused(DAMAGED) from error
        rest = inflater.unconsumed_tail
        if not chunk:
            return
        yield chunk


class _RootReached(Exception):
    """The root element of an XML document was reached."""


class _Prolog:
    """A reader of a member's declarations, up to its root element, if the member is XML under any name."""

    def __init__(self) -> None:
        self.has_doctype = False
        self.has_entities = False
        self._is_over = False
        self._parser = expat.ParserCreate()
        self._parser.StartDoctypeDeclHandler = self._on_doctype
        self._parser.StartElementHandler = self._on_root
        self._parser.EntityDeclHandler = self._on_entity

    def feed(self, chunk: bytes) -> None:
        if self._is_over:
            return
        try:
            self._parser.Parse(chunk)
        except (expat.ExpatError, _RootReached):
            self._is_over = True  # the document's parser will report XML that is not well-formed

    def _on_doctype(self, _name: str, _system: str | None, _public: str | None, has_subset: int) -> None:
        self.has_doctype = True
        self.has_entities = self.has_entities or bool(has_subset)

    def _on_entity(self, *_declaration: object) -> None:
        self.has_entities = True

    def _on_root(self, _name: str, _attributes: dict[str, str]) -> None:
        raise _RootReached


def is_broken_pdf(data: bytes) -> bool:
    """Return True if a PDF's cross-reference table is missing or invalid.

    Then "no text" means damage, not an empty page.
    """
    starts: list[bytes] = re.findall(rb"startxref\s+(\d{1,12})", data[-2048:])
    if not starts:
        return True
    table = data[int(starts[-1]) + max(0, data.find(b"%PDF-", 0, 1024)) :]
    if not table.lstrip().startswith(b"xref"):
        return not re.match(rb"\s*\d+\s+\d+\s+obj", table)
    sections = re.findall(rb"^(\d+) (\d+) *$", table.partition(b"trailer")[0], re.MULTILINE)
    return any(int(first) + int(count) > _MAX_OBJECT_NUMBER for first, count in sections)
