"""Detection of binary file types by their first bytes: `filetype` for common types, Office containers here."""

from __future__ import annotations

import re
from typing import Final

import filetype
from filetype.types import archive, audio, document, image

from documents import mime_types as mt
from documents.decoding import is_text

OLE_MAGIC: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PDF_JUNK_BYTES: Final = 1024
_MATCHERS: Final = (
    *(image.Png(), image.Jpeg(), image.Gif(), image.Webp(), image.Tiff(), image.Ico(), image.Heic(), image.Avif()),
    image.Bmp(),
    *(audio.Mp3(), audio.Aac(), audio.Wav(), audio.Flac(), audio.Ogg(), audio.Amr(), audio.Aiff()),
    *(archive.Pdf(), archive.Epub(), document.Odt(), document.Ods(), document.Odp(), archive.Zip()),
)
"""In order of precedence. Other types of the library are not allowed for upload."""
_WEAK: Final = frozenset({"image/bmp", "audio/mpeg", "audio/aac"})
"""Types with a signature of two or three letters, with which texts may begin too."""
_BRANDS: Final = {
    b"avis": "image/avif",
    **dict.fromkeys((b"heix", b"heim", b"heis", b"hevc", b"mif1", b"msf1"), "image/heic"),
}
_OLE_STREAMS: Final = {
    "WordDocument": mt.DOC,
    "Workbook": mt.XLS,
    "PowerPoint Document": mt.PPT,
    "__properties_version1.0": mt.MSG,
    "__substg1.0_": mt.MSG,
    "__nameid_version1.0": mt.MSG,
}
_OOXML: Final = frozenset({mt.DOCX, mt.XLSX, mt.PPTX})
_PACKAGE_PARTS: Final = {
    b"word/": frozenset({mt.DOCX}),
    b"xl/": frozenset({mt.XLSX}),
    b"ppt/": frozenset({mt.PPTX}),
    b"META-INF/container.xml": frozenset({mt.EPUB}),
    b"META-INF/manifest.xml": frozenset({mt.ODT, mt.ODS, mt.ODP}),
    b"[Content_Types].xml": _OOXML,
    b"_rels/": _OOXML,
    b"docProps/": _OOXML,
}


def find_type(head: bytes, expected: frozenset[str]) -> str | None:
    """Return the MIME type of a binary file; None if its first bytes are no known signature.

    `expected` are the types given by the file's name and sender: they decide only where the bytes are ambiguous (the
    formats of Office, audio or video in the same container).
    """
    kind = filetype.match(head, _MATCHERS)
    found = mt.normalise(kind.mime) if kind else _beyond_library(head, expected)
    if found == mt.ZIP:
        return _package(head, expected)
    if found in _WEAK and is_text(head):
        return None
    if found == "audio/ogg" and b"theora" in head[:512]:
        return "video/ogg"
    if found in {"video/mp4", "video/webm"} and (sound := found.replace("video", "audio")) in expected:
        return sound
    return found


def _beyond_library(head: bytes, expected: frozenset[str]) -> str | None:
    if head.startswith((b"\xff\xe2", b"\xff\xe3", b"\xff\xfa")):  # MPEG 2.5, and frames with a checksum
        return "audio/mpeg"
    if head.startswith(b"\x1aE\xdf\xa3"):
        return "video/webm"
    if head[4:8] == b"ftyp":
        return _iso_media(head)
    return _ole(head, expected) if head.startswith(OLE_MAGIC) else _late_pdf(head)


def _iso_media(head: bytes) -> str:
    """Return the type of images and audio in the MPEG-4 container, for brands unknown to the library."""
    if found := _BRANDS.get(head[8:12]):
        return found
    brands = head[8 : min(int.from_bytes(head[:4]), 256)]
    return "audio/mp4" if b"M4A " in brands or b"M4B " in brands else "video/mp4"


def _ole(head: bytes, expected: frozenset[str]) -> str:
    """Return the type of Office's old container by stream names in the head; the directory is often further back."""
    found = {mime for name, mime in _OLE_STREAMS.items() if name.encode("utf-16-le") in head}
    if len(found) == 1:
        return found.pop()
    # An encrypted .docx is such a container too; the reader reports the encryption.
    return min(expected & (_OOXML | set(_OLE_STREAMS.values())), default=mt.OLE)


def _package(head: bytes, expected: frozenset[str]) -> str:
    """Return the type given by the entries; if the decisive entry is beyond the head, use the file's name."""
    for part, family in _PACKAGE_PARTS.items():
        if re.search(rb"PK\x03\x04.{26}" + re.escape(part), head, re.DOTALL):
            return min(family if len(family) == 1 else expected & family, default=mt.ZIP)
    return mt.ZIP


def _late_pdf(head: bytes) -> str | None:
    """Return PDF for a PDF after up to 1 KB of junk, which readers accept.

    Text that only mentions PDF has no objects after it.
    """
    place = head.find(b"%PDF-", 0, _PDF_JUNK_BYTES)
    return mt.PDF if place > 0 and re.search(rb"\d+ \d+ obj\b", head[place:]) else None
