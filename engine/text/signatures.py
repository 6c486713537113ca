"""What the first bytes of a binary file say that it is."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import Final

from engine.text import mime_types as mt

ZIP_MAGIC: Final = b"PK\x03\x04"
OLE_MAGIC: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PDF_JUNK_BYTES: Final = 1024
_INFLATED_BYTES: Final = 65_536

_MAGICS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"#!AMR", "audio/amr"),
    (b"%PDF-", mt.PDF),
)
_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_BMP_HEADER_SIZES: Final = frozenset({12, 40, 52, 56, 64, 108, 124})
_BRANDS: Final = {
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"heim": "image/heic",
    b"heis": "image/heic",
    b"hevc": "image/heic",
    b"mif1": "image/heic",
    b"msf1": "image/heic",
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"M4A ": "audio/mp4",
    b"M4B ": "audio/mp4",
    b"M4P ": "audio/mp4",
}
_OLE_STREAMS: Final = (
    ("WordDocument", mt.DOC),
    ("Workbook", mt.XLS),
    ("PowerPoint Document", mt.PPT),
    ("__properties_version1.0", mt.MSG),
    ("__substg1.0_", mt.MSG),
    ("__nameid_version1.0", mt.MSG),
)
_OOXML_FOLDERS: Final = ((b"word/", mt.DOCX), (b"xl/", mt.XLSX), (b"ppt/", mt.PPTX))
_OOXML_MAINS: Final = (
    (b"wordprocessingml.document.main+xml", mt.DOCX),
    (b"spreadsheetml.sheet.main+xml", mt.XLSX),
    (b"presentationml.presentation.main+xml", mt.PPTX),
)
_PACKAGE_PARTS: Final = (b"[Content_Types].xml", b"_rels/", b"docProps/")
_MIME_TYPE: Final = re.compile(rb"[a-z0-9.+/-]+")  # the next entry's "PK" ends it
_LOCAL_HEADER: Final = re.compile(rb"PK\x03\x04.{26}", re.DOTALL)


def of(head: bytes, expected: frozenset[str]) -> str | None:
    """The type of a binary file by its first bytes; None when they are no signature that we know.

    `expected` are the types that the file's name and sender say: they decide only where the bytes leave it open
    (which of Office's old formats, sound or film in the same container).
    """
    for magic, mime in _MAGICS:
        if head.startswith(magic):
            return mime
    for recognise in (_riff, _aiff, _bmp, _ogg, _iso_media, _matroska, _ole, _zip, _mpeg_audio):
        if found := recognise(head, expected):
            return found
    return _late_pdf(head)


def _riff(head: bytes, _expected: frozenset[str]) -> str | None:
    return _RIFF.get(head[8:12]) if head.startswith((b"RIFF", b"RIFX")) else None


def _aiff(head: bytes, _expected: frozenset[str]) -> str | None:
    return "audio/aiff" if head.startswith(b"FORM") and head[8:12] in {b"AIFF", b"AIFC"} else None


def _bmp(head: bytes, _expected: frozenset[str]) -> str | None:
    """Two letters are no signature: texts begin with "BM" too, so the header's fixed fields must hold."""
    is_header = head.startswith(b"BM") and head[6:10] == bytes(4) and head[15:18] == bytes(3)
    return "image/bmp" if is_header and head[14] in _BMP_HEADER_SIZES else None


def _ogg(head: bytes, _expected: frozenset[str]) -> str | None:
    if not head.startswith(b"OggS"):
        return None
    return "video/ogg" if b"theora" in head[:512] else "audio/ogg"


def _iso_media(head: bytes, expected: frozenset[str]) -> str | None:
    """MPEG-4 family: the brand says picture or sound; general brands are sound only when the name says so."""
    if head[4:8] != b"ftyp":
        return None
    if found := _BRANDS.get(head[8:12]):
        return found
    compatible = {head[place : place + 4] for place in range(16, min(int.from_bytes(head[:4]), 256), 4)}
    if pictures := compatible & {b"heic", b"avif"}:
        return _BRANDS[pictures.pop()]
    return "audio/mp4" if "audio/mp4" in expected or b"M4A " in compatible else "video/mp4"


def _matroska(head: bytes, expected: frozenset[str]) -> str | None:
    if not head.startswith(b"\x1aE\xdf\xa3"):
        return None
    return "audio/webm" if "audio/webm" in expected else "video/webm"


def _ole(head: bytes, expected: frozenset[str]) -> str | None:
    """Office's old container: stream names in the head tell which; the directory often lies further back."""
    if not head.startswith(OLE_MAGIC):
        return None
    found = {mime for name, mime in _OLE_STREAMS if name.encode("utf-16-le") in head}
    if len(found) == 1:
        return found.pop()
    # An encrypted .docx is such a container as well: reading it says that it is encrypted.
    named = expected & {mt.DOC, mt.XLS, mt.PPT, mt.MSG, mt.DOCX, mt.XLSX, mt.PPTX}
    return min(named) if named else mt.OLE


def _zip(head: bytes, expected: frozenset[str]) -> str | None:
    if head.startswith(b"PK\x05\x06"):
        return mt.ZIP
    if not head.startswith(ZIP_MAGIC):
        return None
    return _by_mimetype_entry(head) or _by_entries(head, expected) or mt.ZIP


def _by_mimetype_entry(head: bytes) -> str | None:
    """OpenDocument and EPUB put their type, stored, into a first entry named `mimetype`."""
    name_length, extra_length = int.from_bytes(head[26:28], "little"), int.from_bytes(head[28:30], "little")
    if head[30 : 30 + name_length] != b"mimetype":
        return None
    content = _inflated(head[30 + name_length + extra_length :][:120])
    named = _MIME_TYPE.match(content)
    mime = named.group().decode() if named else ""
    return mime if mime in {mt.EPUB, mt.ODT, mt.ODS, mt.ODP} else None


def _by_entries(head: bytes, expected: frozenset[str]) -> str | None:
    entries = list(_entries(head))
    for folder, mime in _OOXML_FOLDERS:
        if any(name.startswith(folder) for name, _ in entries):
            return mime
    types = next((body for name, body in entries if name == b"[Content_Types].xml"), b"")
    for main, mime in _OOXML_MAINS:
        if main in _inflated(types):
            return mime
    return _by_parts([name for name, _ in entries], expected)


def _by_parts(names: list[bytes], expected: frozenset[str]) -> str | None:
    """A package whose telling entries lie beyond the head is what its name says, if it is a package at all."""
    if any(name.startswith(_PACKAGE_PARTS) for name in names) and (named := expected & {mt.DOCX, mt.XLSX, mt.PPTX}):
        return min(named)
    if b"META-INF/container.xml" in names:
        return mt.EPUB
    if any(name in {b"content.xml", b"META-INF/manifest.xml"} for name in names):
        return min(expected & {mt.ODT, mt.ODS, mt.ODP}, default=None)
    return None


def _entries(head: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Name and what follows the local header, for each entry whose header lies in the head."""
    for match in _LOCAL_HEADER.finditer(head):
        name_at = match.end()
        lengths = head[name_at - 4 : name_at]
        name_length, extra_length = int.from_bytes(lengths[:2], "little"), int.from_bytes(lengths[2:], "little")
        yield head[name_at : name_at + name_length], head[name_at + name_length + extra_length :]


def _inflated(body: bytes) -> bytes:
    """The start of a deflated entry; the entry's own bytes when it is stored."""
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(body, _INFLATED_BYTES)
    except zlib.error:
        return body


def _mpeg_audio(head: bytes, expected: frozenset[str]) -> str | None:
    """Frames without a tag before them: a valid header, and another where the first frame ends."""
    if not _is_frame(head[:4]):
        return None
    is_adts = (head[1] & 0x06) == 0
    length = _adts_length(head) if is_adts else _layer3_length(head)
    mime = "audio/aac" if is_adts else "audio/mpeg"
    has_second = length > 0 and _is_frame(head[length : length + 4])
    return mime if has_second or mime in expected else None


def _is_frame(header: bytes) -> bool:
    """Eleven bits of sync, a known version, layer III, a bit rate and a sample rate; or AAC's sync and layer 0."""
    if len(header) < 4 or header[0] != 0xFF or header[1] & 0xE0 != 0xE0:
        return False
    if header[1] & 0xF6 == 0xF0:
        return header[2] >> 2 & 0x0F <= 12
    is_known = header[1] >> 3 & 3 != 1 and header[1] >> 1 & 3 == 1
    return is_known and header[2] >> 4 not in {0, 15} and header[2] >> 2 & 3 != 3


def _adts_length(head: bytes) -> int:
    return (head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5 if len(head) > 5 else 0


_RATES_1: Final = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_RATES_2: Final = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_SAMPLE_RATES: Final = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}


def _layer3_length(head: bytes) -> int:
    """Bytes of an MPEG layer III frame: ISO 11172-3 §2.4.3.1, and 13818-3 for the half sample rates."""
    version = head[1] >> 3 & 3
    kbits = (_RATES_1 if version == 3 else _RATES_2)[head[2] >> 4]
    sample_rate = _SAMPLE_RATES[version][head[2] >> 2 & 3]
    return (144 if version == 3 else 72) * kbits * 1000 // sample_rate + (head[2] >> 1 & 1)


def _late_pdf(head: bytes) -> str | None:
    """Readers accept up to 1 KB of junk before a PDF; a text that only speaks of PDF has no objects after it."""
    place = head.find(b"%PDF-", 0, _PDF_JUNK_BYTES)
    return mt.PDF if place > 0 and re.search(rb"\d+ \d+ obj\b", head[place:]) else None
