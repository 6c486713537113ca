"""Detection of file types by their first bytes. The file's name and sender may only refine the result."""

from __future__ import annotations

import re
from typing import Final

from documents import mime_types as mt
from documents import signatures
from documents.decoding import decode, is_text
from documents.mime_types import ContentType

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
    mt.PLAIN_TEXTS,
)
"""Types that are easily confused: within a set, a different name is accepted and the bytes decide."""

_MARKUP: Final = re.compile(rb"<script[\s>/]|<html[\s>/]|<!doctype html|<iframe[\s>]|<svg[\s>]", re.IGNORECASE)
_PROLOG: Final = re.compile(r"(?:\s+|<!--.*?-->|<\?.*?\?>)*", re.DOTALL)
_HTML_START: Final = re.compile(r"<(?:!doctype\s+html|html|head|body|script|iframe)\b", re.IGNORECASE)
_SVG_START: Final = re.compile(r"<(?:!doctype\s+svg|(?:\w+:)?svg[\s>/])", re.IGNORECASE)
_XML_START: Final = re.compile(r"\s*<\?xml\b")
_HEADER_FIELD: Final = re.compile(
    r"^(?:from|to|subject|date|received|return-path|message-id|mime-version|content-type|delivered-to|dkim-signature"
    r"|x-[\w-]+|reply-to|sender|cc):",
    re.IGNORECASE | re.MULTILINE,
)


class TypeMismatch(ValueError):
    """The bytes contradict the file's name or the sender's type. The message says how."""


def sniff(head: bytes, filename: str, claimed: str | None) -> str:
    """Return the MIME type of a file by its first 8 KB; `application/octet-stream` for unknown content.

    Raises: TypeMismatch if the bytes contradict the name's extension or `claimed`, or match two types.
    """
    head = head[:HEAD_BYTES]
    hints = _hints(filename, claimed)
    if not head:
        return hints[0] if hints else mt.PLAIN
    found = signatures.find_type(head, frozenset(hints))
    if found is None:
        found = _text_type(head, hints) if is_text(head) else mt.OCTET_STREAM
    else:
        _refuse_polyglot(head, found)
    _refuse_contradiction(found, hints)
    return found


def content_type_of(mime_type: str | None, filename: str) -> ContentType:
    """Return the engine's content type of a MIME type; by the name's extension if the type is unknown."""
    mime = mt.normalise(mime_type) or mt.by_name(filename) or mt.OCTET_STREAM
    family = mime.partition("/")[0]
    if family == "image":
        return "image"
    if family == "audio":
        return "audio"
    if mime == mt.PDF:
        return "pdf"
    if mime == mt.HTML:
        return "html"
    return "text" if family == "text" or mime in mt.INLINE_TEXTS else "doc"


def extension_of(mime_type: str) -> str:
    """Return the canonical extension of a type, with its dot: always a constant, never the caller's text."""
    mime = mt.normalise(mime_type)
    if mime in mt.EXTENSIONS:
        return mt.EXTENSIONS[mime][0]
    return ".txt" if mime and mime.startswith("text/") else ".bin"


def _hints(filename: str, claimed: str | None) -> tuple[str, ...]:
    """Return the known types given by the name and the sender, the name's first.

    Senders use tables of their system: Windows sends a .csv as an Excel sheet, others send a .docx as zip. Such a claim
    does not contradict the extension.
    """
    named, sent = mt.by_name(filename), mt.normalise(claimed)
    is_loose = (named in mt.PLAIN_TEXTS and sent == mt.XLS) or (named in mt.ZIP_DOCUMENTS and sent == mt.ZIP)
    if sent not in mt.EXTENSIONS or is_loose:
        sent = None
    return tuple(hint for hint in (named, sent) if hint)


def _text_type(head: bytes, hints: tuple[str, ...]) -> str:
    text = decode(head)
    if text.lstrip().startswith("{\\rtf"):
        return mt.RTF
    markup = _markup_type(text, hints)
    if markup:
        return markup
    if mt.EML in hints and len(_HEADER_FIELD.findall(text[:4096])) > 1:
        return mt.EML
    return next((hint for hint in hints if hint in mt.PLAIN_TEXTS or hint == mt.HTML), mt.PLAIN)


def _markup_type(text: str, hints: tuple[str, ...]) -> str | None:
    """Return HTML, SVG or XML for markup; None for plain text or Markdown, which may begin like HTML."""
    if "text/markdown" in hints:
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


def _refuse_polyglot(head: bytes, found: str) -> None:
    """Check that an image, audio file or PDF is not a web page too, which only an attacker needs.

    Raises: `TypeMismatch`.
    """
    if found == mt.PDF:
        # Only the part before the objects: the objects themselves may contain text about HTML.
        head = re.split(rb"\d+ \d+ obj\b", head, maxsplit=1)[0]
    elif not found.startswith(("image/", "audio/")):
        return
    if _MARKUP.search(head):
        raise TypeMismatch(f"The file is {found} and contains a web page as well: send one or the other.")


def _refuse_contradiction(found: str, hints: tuple[str, ...]) -> None:
    for hint in hints:
        if found != hint and not any(found in kinds and hint in kinds for kinds in _COMPATIBLE):
            what = "of an unknown binary type" if found == mt.OCTET_STREAM else found
            raise TypeMismatch(
                f"The file's content is {what}, but its name or the type sent with it says {hint}: "
                "send it under the name and type that it has."
            )
