"""Clean client file names of characters that could mislead a reader or a path."""

from __future__ import annotations

import re
import unicodedata

from documents.sniff import extension_of

MAX_CHARS = 255
_MAX_EXTENSION_CHARS = 20
# Direction marks: "invoice\u202efdp.exe" is shown as "invoiceexe.pdf".
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_DRIVE = re.compile(r"^[A-Za-z]:")


def clean(name: str, mime_type: str = "") -> str:
    """Return the display name: 1 to 255 characters without path, control characters and direction marks.

    Nothing else changes: mojibake stays as the client sent it.
    """
    last = re.split(r"[/\\]", name)[-1]
    visible = "".join(
        char for char in _BIDI.sub("", last) if unicodedata.category(char) not in {"Cc", "Cs", "Zl", "Zp"}
    )
    bare = _DRIVE.sub("", visible).strip()
    if not bare.strip(". "):
        return f"unnamed{extension_of(mime_type)}" if mime_type else "unnamed"
    return _shorten(bare)


def _shorten(name: str) -> str:
    if len(name) <= MAX_CHARS:
        return name
    stem, dot, extension = name.rpartition(".")
    if not stem or len(extension) > _MAX_EXTENSION_CHARS:
        return name[:MAX_CHARS]
    return stem[: MAX_CHARS - len(extension) - 1] + dot + extension
