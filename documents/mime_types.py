"""Known file types: MIME types, file name extensions and content types."""

import re
from collections.abc import Collection
from typing import Final, Literal

ContentType = Literal["text", "image", "audio", "pdf", "html", "doc"]

OCTET_STREAM: Final = "application/octet-stream"
PLAIN: Final = "text/plain"
HTML: Final = "text/html"
XML: Final = "application/xml"
SVG: Final = "image/svg+xml"
MARKDOWN: Final = "text/markdown"
JSON: Final = "application/json"
JSON_LINES: Final = "application/x-ndjson"
NOTEBOOK: Final = "application/x-ipynb+json"
CSV: Final = "text/csv"
TSV: Final = "text/tab-separated-values"
YAML: Final = "application/yaml"
SRT: Final = "application/x-subrip"
VTT: Final = "text/vtt"
RST: Final = "text/x-rst"
ORG: Final = "text/x-org"
TEX: Final = "text/x-tex"
ASCIIDOC: Final = "text/asciidoc"
RTF: Final = "application/rtf"
EML: Final = "message/rfc822"
MBOX: Final = "application/mbox"
PDF: Final = "application/pdf"
ZIP: Final = "application/zip"
EPUB: Final = "application/epub+zip"
DOC: Final = "application/msword"
XLS: Final = "application/vnd.ms-excel"
PPT: Final = "application/vnd.ms-powerpoint"
MSG: Final = "application/vnd.ms-outlook"
OLE: Final = "application/x-ole-storage"
_OOXML: Final = "application/vnd.openxmlformats-officedocument."
DOCX: Final = _OOXML + "wordprocessingml.document"
XLSX: Final = _OOXML + "spreadsheetml.sheet"
PPTX: Final = _OOXML + "presentationml.presentation"
_ODF: Final = "application/vnd.oasis.opendocument."
ODT: Final = _ODF + "text"
ODS: Final = _ODF + "spreadsheet"
ODP: Final = _ODF + "presentation"

EXTENSIONS: Final[dict[str, tuple[str, ...]]] = {
    "image/png": (".png",),
    "image/jpeg": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "image/webp": (".webp",),
    "image/gif": (".gif",),
    "image/bmp": (".bmp", ".dib"),
    "image/tiff": (".tiff", ".tif"),
    "image/heic": (".heic", ".heif"),
    "image/avif": (".avif",),
    "image/x-icon": (".ico",),
    SVG: (".svg",),
    "audio/mpeg": (".mp3",),
    "audio/wav": (".wav",),
    "audio/flac": (".flac",),
    "audio/ogg": (".ogg", ".oga", ".opus"),
    "audio/mp4": (".m4a", ".m4b"),
    "audio/aac": (".aac",),
    "audio/amr": (".amr",),
    "audio/aiff": (".aiff", ".aif", ".aifc"),
    "audio/webm": (".weba",),
    "video/mp4": (".mp4", ".m4v", ".mov"),
    "video/webm": (".webm", ".mkv"),
    "video/ogg": (".ogv",),
    PDF: (".pdf",),
    DOC: (".doc", ".dot"),
    XLS: (".xls", ".xlt"),
    PPT: (".ppt", ".pps"),
    MSG: (".msg",),
    OLE: (".ole",),
    DOCX: (".docx",),
    XLSX: (".xlsx",),
    PPTX: (".pptx",),
    ODT: (".odt",),
    ODS: (".ods",),
    ODP: (".odp",),
    EPUB: (".epub",),
    ZIP: (".zip",),
    RTF: (".rtf",),
    EML: (".eml",),
    MBOX: (".mbox",),
    HTML: (".html", ".htm", ".xhtml", ".shtml"),
    MARKDOWN: (".md", ".markdown"),
    CSV: (".csv",),
    TSV: (".tsv",),
    JSON: (".json",),
    JSON_LINES: (".jsonl", ".ndjson"),
    NOTEBOOK: (".ipynb",),
    YAML: (".yaml", ".yml"),
    SRT: (".srt",),
    VTT: (".vtt",),
    RST: (".rst",),
    ORG: (".org",),
    TEX: (".tex",),
    ASCIIDOC: (".adoc", ".asciidoc"),
    XML: (".xml",),
    PLAIN: (".txt", ".text", ".log"),
}
"""Every type with its usual extensions, the canonical one first."""

BY_EXTENSION: Final = {extension: mime for mime, extensions in EXTENSIONS.items() for extension in extensions}

ALIASES: Final = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "image/x-ms-bmp": "image/bmp",
    "image/heif": "image/heic",
    "image/vnd.microsoft.icon": "image/x-icon",
    "image/svg": SVG,
    "audio/mp3": "audio/mpeg",
    "audio/x-mpeg": "audio/mpeg",
    "audio/wave": "audio/wav",
    "audio/x-wav": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/x-flac": "audio/flac",
    "audio/opus": "audio/ogg",
    "audio/vorbis": "audio/ogg",
    "application/ogg": "audio/ogg",
    "audio/m4a": "audio/mp4",
    "audio/x-m4a": "audio/mp4",
    "audio/x-aac": "audio/aac",
    "audio/aacp": "audio/aac",
    "audio/x-aiff": "audio/aiff",
    "audio/3gpp": "audio/mp4",
    "video/quicktime": "video/mp4",
    "video/x-matroska": "video/webm",
    "application/x-pdf": PDF,
    "application/x-rtf": RTF,
    "text/rtf": RTF,
    "text/xml": XML,
    "application/xhtml+xml": HTML,
    "text/x-markdown": MARKDOWN,
    "text/json": JSON,
    **dict.fromkeys(("application/jsonl", "application/jsonlines", "application/x-jsonlines"), JSON_LINES),
    **dict.fromkeys(("text/yaml", "text/x-yaml", "application/x-yaml"), YAML),
    "text/srt": SRT,
    "text/rst": RST,
    "text/prs.fallenstein.rst": RST,
    "text/org": ORG,
    **dict.fromkeys(("application/x-tex", "application/x-latex", "text/x-latex"), TEX),
    "text/x-log": PLAIN,
    "application/csv": "text/csv",
    "application/x-zip-compressed": ZIP,
    "application/x-zip": ZIP,
    "application/x-msg": MSG,
}
"""Other names under which clients send these types."""

TEXT_KINDS: Final = frozenset(
    {MARKDOWN, CSV, TSV, JSON, JSON_LINES, NOTEBOOK, YAML, SRT, VTT, RST, ORG, TEX, ASCIIDOC},
)
"""Texts with a grammar."""

PARSED_TEXTS: Final = TEXT_KINDS | {HTML, SVG, XML}
"""Texts that a parser reads by their grammar."""

MARKUP: Final = frozenset({HTML, XML, SVG})
"""Texts that may name their encoding themselves."""

PLAIN_TEXTS: Final = TEXT_KINDS | {PLAIN, XML}
"""Known types whose bytes are text."""

INLINE_TEXTS: Final = frozenset({JSON, XML, YAML, JSON_LINES, NOTEBOOK, SRT, "application/toml"})
"""Text under names that do not begin with `text/`."""

CONTAINERS: Final = frozenset({EML, MBOX, MSG, ZIP})
"""Types whose parts are separate documents."""

DOCUMENTS: Final = frozenset(
    {PDF, HTML, RTF, EML, MBOX, ZIP, MSG, DOC, XLS, PPT, DOCX, XLSX, PPTX, ODT, ODS, ODP, EPUB}
)
"""Types whose text needs a parser."""

ZIP_DOCUMENTS: Final = frozenset({DOCX, XLSX, PPTX, ODT, ODS, ODP, EPUB})

_SLIDES = "PowerPoint presentation slides 演示文稿 幻灯片"
_SHEET = "Excel spreadsheet workbook 电子表格"
_LETTER = "Word document 文档"
_MAIL = "mail e-mail 邮件"
_SEARCH_WORDS: Final = {
    **dict.fromkeys((PPT, PPTX, ODP), _SLIDES),
    **dict.fromkeys((XLS, XLSX, ODS), _SHEET),
    **dict.fromkeys((DOC, DOCX, ODT, RTF), _LETTER),
    **dict.fromkeys((EML, MBOX, MSG), _MAIL),
    EPUB: "e-book 电子书",
    "image": "picture image photo 图片 照片",
    "audio": "sound audio recording 录音 音频",
}


_CHARSET: Final = re.compile(r";\s*charset\s*=\s*[\"']?([\w.:+-]{1,40})", re.IGNORECASE)


def search_words_of(mime_type: object) -> str:
    """Return common words for a file type ("the PowerPoint about …"), in English and Chinese; empty for plain text."""
    mime = normalize(mime_type) or ""
    return _SEARCH_WORDS.get(mime) or _SEARCH_WORDS.get(mime.partition("/")[0], "")


def is_allowed(mime_type: str, allowed: Collection[str]) -> bool:
    """Return True if a list of types contains the type or its family (`image/*`); `*/*` contains all.

    Texts with a grammar are plain text too, whatever their types are called.
    """
    if mime_type in TEXT_KINDS - {JSON} and is_allowed(PLAIN, allowed):
        return True
    family = f"{mime_type.partition('/')[0]}/*"
    return any(name.lower() in {mime_type, family, "*/*"} for name in allowed)


def normalize(mime_type: object) -> str | None:
    """Return the canonical name of a type, in lower case and without parameters; None for an empty one or no text."""
    name = (mime_type if isinstance(mime_type, str) else "").split(";", 1)[0].strip().lower()
    if not name or name in {OCTET_STREAM, "binary/octet-stream"}:
        return None
    return ALIASES.get(name, name)


def charset_of(mime_type: object) -> str | None:
    """Return the encoding that the parameter `charset` of a type declares."""
    found = _CHARSET.search(mime_type) if isinstance(mime_type, str) else None
    return found[1] if found else None


def by_name(filename: str) -> str | None:
    """Return the type of a file name's extension; None if the extension is unknown."""
    dot = filename.rfind(".")
    return BY_EXTENSION.get(filename[dot:].strip().lower()) if dot >= 0 else None


def content_type_of(mime_type: str | None, filename: str) -> ContentType:
    """Return the engine's content type of a MIME type; if that is unknown, of the file name's extension."""
    mime = normalize(mime_type) or by_name(filename) or OCTET_STREAM
    known: dict[str, ContentType] = {"image": "image", "audio": "audio", PDF: "pdf", HTML: "html"}
    family = mime.partition("/")[0]
    is_text = family == "text" or mime in INLINE_TEXTS
    return known.get(mime) or known.get(family) or ("text" if is_text else "doc")


def extension_of(mime_type: str) -> str:
    """Return the canonical extension of a type, with its dot; always a constant, never a part of the input."""
    mime = normalize(mime_type)
    if mime in EXTENSIONS:
        return EXTENSIONS[mime][0]
    return ".txt" if mime and mime.startswith("text/") else ".bin"


def is_picture(mime: str | None) -> bool:
    """Return True for the type of an image of pixels, whose text can be recognized."""
    return mime is not None and mime.startswith("image/") and mime != SVG


def is_sound(mime: str | None) -> bool:
    """Return True for the type of a recording, which may be transcribed."""
    return mime is not None and mime.startswith("audio/")
