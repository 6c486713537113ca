"""Detect file types by their first bytes, with `filetype` and rules for Office and media containers.

The file name and the client's type may only refine the result.
"""

import re
from typing import Final

import filetype
from filetype.types import archive, audio, document, image

from core.messages import MessageError
from core.messages import Translatable as _
from documents import mime_types as mt
from documents.decoding import codec_of, decode, is_text

HEAD_BYTES: Final = 8192
"""Number of bytes that `sniff` needs."""

_COMPATIBLE: Final = (
    frozenset({"image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp", "image/tiff", "image/heic"})
    | {"image/avif", "image/x-icon"},
    frozenset({"audio/mpeg", "audio/wav", "audio/flac", "audio/ogg", "audio/mp4", "audio/aac", "audio/amr"})
    | {"audio/aiff", "audio/webm"},
    frozenset({"audio/mp4", "video/mp4"}),
    frozenset({"audio/webm", "video/webm"}),
    frozenset({"audio/ogg", "video/ogg"}),
    frozenset({mt.DOC, mt.DOCX, mt.RTF}),
    frozenset({mt.XLS, mt.XLSX}),
    frozenset({mt.PPT, mt.PPTX}),
    frozenset({mt.HTML, mt.XML, mt.PLAIN}),
    frozenset({mt.SVG, mt.XML}),
    frozenset({mt.RTF, mt.PLAIN}),
    frozenset({mt.EML, mt.PLAIN}),
    frozenset({mt.MBOX, mt.PLAIN}),
    mt.PLAIN_TEXTS,
)
"""Sets of types that are easily confused: if name and bytes are of one set, the bytes decide."""

_MARKUP: Final = re.compile(rb"<script[\s>/]|<html[\s>/]|<!doctype html|<iframe[\s>]|<svg[\s>]", re.IGNORECASE)
_PROLOG: Final = re.compile(r"(?:\s+|<!--.*?-->|<\?.*?\?>)*", re.DOTALL)
_SOURCE_START: Final = re.compile(r"\s*<\?(?:php\b|=)")
_HTML_START: Final = re.compile(r"<(?:!doctype\s+html|html|head|body|script|iframe)\b", re.IGNORECASE)
_SVG_START: Final = re.compile(r"<(?:!doctype\s+svg|(?:\w+:)?svg[\s>/])", re.IGNORECASE)
_XML_START: Final = re.compile(r"\s*<\?xml\b")
_HEADER_FIELD: Final = re.compile(
    r"^(?:from|to|subject|date|received|return-path|message-id|mime-version|content-type|delivered-to|dkim-signature"
    r"|x-[\w-]+|reply-to|sender|cc):",
    re.IGNORECASE | re.MULTILINE,
)
_MAIL_START: Final = re.compile(
    r"(?=(?:[\w-]+:.*\n(?:[ \t].*\n)*)*?from:)(?=(?:[\w-]+:.*\n(?:[ \t].*\n)*)*?(?:mime-version|date|message-id):)",
    re.IGNORECASE,
)
"""Fields of a mail's header at the start of a text."""


class TypeMismatch(MessageError):
    """Raised if the bytes contradict the file name or the client's type. The message has the details."""


def sniff(head: bytes, filename: str, claimed: str | None) -> str:
    """Return the MIME type of a file by its first 8 KB; `application/octet-stream` for unknown content.

    Raises: TypeMismatch if the bytes contradict the name's extension, if they match two types, or if they have no
    certain type and contradict `claimed`.
    """
    head = head[:HEAD_BYTES]
    hints = _hints(filename, claimed)
    if not head:
        return hints[0] if hints else mt.PLAIN
    found = _find_type(head, frozenset(hints))
    if found is None:
        is_mailbox = mt.MBOX in hints and head.startswith(b"From ")  # mail may have bytes of any kind
        found = _text_type(head, hints) if is_mailbox or is_text(head) else mt.OCTET_STREAM
    elif found == mt.PDF or found.startswith(("image/", "audio/")):
        # A file that is also a web page is an attack. Text inside a PDF's objects may mention HTML.
        searched = re.split(rb"\d+ \d+ obj\b", head, maxsplit=1)[0] if found == mt.PDF else head
        if _MARKUP.search(searched):
            raise TypeMismatch(
                _("The file is %(type)s and contains a web page as well: send one or the other.", type=found)
            )
    if found == mt.PDF or found in mt.ZIP_DOCUMENTS or (found.startswith(("image/", "audio/")) and found != mt.SVG):
        hints = _hints(filename, None)  # the signature is certain, and clients send text/plain for any file
    for hint in hints:
        if found != hint and not any(found in kinds and hint in kinds for kinds in _COMPATIBLE):
            raise TypeMismatch(
                _(
                    "The file's content is %(type)s, but its name or the type sent with it says %(said)s: "
                    "send it under the name and type that it has.",
                    type=_("of an unknown binary type") if found == mt.OCTET_STREAM else found,
                    said=hint,
                )
            )
    return found


def with_charset(mime: str, sent: str | None) -> str:
    """Return the type of a text with the encoding that its sender declares, unless every reader assumes this one."""
    charset = mt.charset_of(sent) or ""
    is_text = mime.startswith("text/") or mime in mt.INLINE_TEXTS
    is_telling = charset.lower() != "us-ascii" and codec_of(charset) not in {None, "utf-8"}
    return f"{mime}; charset={charset.lower()}" if is_text and is_telling else mime


def _hints(filename: str, claimed: str | None) -> tuple[str, ...]:
    """Return the known types given by the file name and the client, the name's first.

    Clients use their system's types: Windows sends a .csv as an Excel sheet, others send a .docx as zip. These are
    ignored, because they do not contradict the extension.
    """
    named, sent = mt.by_name(filename), mt.normalize(claimed)
    is_loose = (named in mt.PLAIN_TEXTS and sent == mt.XLS) or (named in mt.ZIP_DOCUMENTS and sent == mt.ZIP)
    if sent not in mt.EXTENSIONS or is_loose:
        sent = None
    return tuple(hint for hint in (named, sent) if hint)


def _text_type(head: bytes, hints: tuple[str, ...]) -> str:
    text = decode(head)
    if text.lstrip().startswith("{\\rtf"):
        return mt.RTF
    if markup := _markup_type(text, hints):
        return markup
    is_mail = len(_HEADER_FIELD.findall(text[:4096])) > 1
    if is_mail and text.startswith("From ") and (mt.MBOX in hints or not hints):
        return mt.MBOX
    if is_mail and (mt.EML in hints or (not hints and _MAIL_START.match(text))):
        return mt.EML
    return next((hint for hint in hints if hint in mt.PLAIN_TEXTS or hint == mt.HTML), mt.PLAIN)


def _markup_type(text: str, hints: tuple[str, ...]) -> str | None:
    """Return HTML, SVG or XML for markup; None for plain text or Markdown, which may begin like HTML."""
    if "text/markdown" in hints:
        return None
    if _SOURCE_START.match(text):
        return None
    start = _PROLOG.match(text)
    body = text[start.end() if start else 0 :]
    if _HTML_START.match(body):
        return mt.HTML
    is_xml = bool(_XML_START.match(text))
    if _SVG_START.match(body) or (is_xml and mt.SVG in hints and _SVG_START.search(body)):
        return next((hint for hint in hints if hint in {mt.SVG, mt.HTML, mt.XML, mt.PLAIN}), mt.SVG)
    if is_xml:
        return next((hint for hint in hints if hint in {mt.XML, mt.HTML, mt.PLAIN}), mt.XML)
    return None


OLE_MAGIC: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PDF_JUNK_BYTES: Final = 1024
_MATCHERS: Final = (
    *(image.Png(), image.Jpeg(), image.Gif(), image.Webp(), image.Tiff(), image.Ico(), image.Heic(), image.Avif()),
    image.Bmp(),
    *(audio.Mp3(), audio.Aac(), audio.Wav(), audio.Flac(), audio.Ogg(), audio.Amr(), audio.Aiff()),
    *(archive.Pdf(), archive.Epub(), document.Odt(), document.Ods(), document.Odp(), archive.Zip()),
)
"""Matchers of the library in order of precedence, for the types that may be uploaded."""
_WEAK_SIGNATURES: Final = frozenset({"image/bmp", "audio/mpeg", "audio/aac"})
"""Types whose signature has only two or three bytes, with which a text may begin too."""
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


def _find_type(head: bytes, expected: frozenset[str]) -> str | None:
    """Return the MIME type of a binary file; None if its first bytes have no known signature.

    `expected` are the types given by the file's name and the client. They decide only if the bytes are ambiguous:
    Office formats share a container, audio and video do too.
    """
    kind = filetype.match(head, _MATCHERS)
    found = mt.normalize(kind.mime) if kind else _type_by_rules(head, expected)
    if found == mt.ZIP:
        return _package_type(head, expected)
    if found in _WEAK_SIGNATURES and is_text(head):
        return None
    if found == "audio/ogg" and b"theora" in head[:512]:
        return "video/ogg"
    if found in {"video/mp4", "video/webm"} and (audio_type := found.replace("video", "audio")) in expected:
        return audio_type
    return found


def _type_by_rules(head: bytes, expected: frozenset[str]) -> str | None:
    if head.startswith((b"\xff\xe2", b"\xff\xe3", b"\xff\xfa")):  # MPEG 2.5, and frames with a checksum
        return "audio/mpeg"
    if head.startswith(b"\x1aE\xdf\xa3"):
        return "video/webm"
    if head[4:8] == b"ftyp":  # images and audio in the MPEG-4 container
        brands = head[8 : min(int.from_bytes(head[:4]), 256)]
        is_sound = b"M4A " in brands or b"M4B " in brands
        return _BRANDS.get(head[8:12]) or ("audio/mp4" if is_sound else "video/mp4")
    if head.startswith(OLE_MAGIC):
        return _ole_type(head, expected)
    # PDF readers accept up to 1 KB of other bytes first. A text that mentions `%PDF-` has no PDF objects after it.
    place = head.find(b"%PDF-", 0, _PDF_JUNK_BYTES)
    return mt.PDF if place > 0 and re.search(rb"\d+ \d+ obj\b", head[place:]) else None


def _ole_type(head: bytes, expected: frozenset[str]) -> str:
    """Return the type of an OLE container (old Office) by stream names, if its directory is in the head."""
    found = {mime for name, mime in _OLE_STREAMS.items() if name.encode("utf-16-le") in head}
    if len(found) == 1:
        return found.pop()
    # An encrypted .docx is an OLE container too; the reader reports the encryption.
    return min(expected & (_OOXML | set(_OLE_STREAMS.values())), default=mt.OLE)


def _package_type(head: bytes, expected: frozenset[str]) -> str:
    """Return the type of a ZIP package by its entries; if they are ambiguous, the expected type.

    The reader checks the whole package, whose first entries may be pictures.
    """
    for part, family in _PACKAGE_PARTS.items():
        if re.search(rb"PK\x03\x04.{26}" + re.escape(part), head, re.DOTALL):
            return min(family if len(family) == 1 else expected & family, default=mt.ZIP)
    is_whole = len(head) < HEAD_BYTES  # all entries were seen
    return mt.ZIP if is_whole else min(expected & mt.ZIP_DOCUMENTS, default=mt.ZIP)
