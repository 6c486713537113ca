"""Calendars and address cards (.ics, .vcf) as texts: without the ways in which they write lines and letters."""

import quopri
import re
from typing import Final

from documents.decoding import decode

_FOLDED: Final = re.compile(r"\n[ \t]")
"""A break in a long line."""
_ESCAPED: Final = re.compile(r"\\([,;:\\nN])")
_QUOTED: Final = re.compile(
    r"^([^\n:;]+)([^\n:]*;ENCODING=QUOTED-PRINTABLE[^\n:]*):((?:[^\n]*=\n)*[^\n]*)$", re.MULTILINE | re.IGNORECASE
)
_PICTURE: Final = re.compile(r"^(?:PHOTO|LOGO|SOUND|KEY)[;:].*\n?", re.MULTILINE | re.IGNORECASE)


def readable(text: str) -> str:
    """Return a calendar or an address card with whole lines and without pictures; another text as it is."""
    if not text.lstrip().startswith(("BEGIN:VCALENDAR", "BEGIN:VCARD")):
        return text
    text = _PICTURE.sub("", _FOLDED.sub("", _QUOTED.sub(_unquoted, text)))
    return _ESCAPED.sub(lambda match: "\n" if match[1] in "nN" else match[1], text)


def _unquoted(match: re.Match[str]) -> str:
    """Return a line with letters for their bytes (quoted-printable)."""
    charset = re.search(r"CHARSET=([\w-]+)", match[2], re.IGNORECASE)
    return f"{match[1]}:{decode(quopri.decodestring(match[3].encode()), declared=charset[1] if charset else None)}"
