"""Decoding of files without a declared encoding: byte order marks, then UTF-16, UTF-8, East Asian encodings, others.

East Asian encodings accept nearly any bytes. The share of common characters identifies them after a few words, because
each standard groups these characters in one block. charset-normalizer needs about 40 characters, so it decides only the
rest.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from typing import Final

from charset_normalizer import from_bytes

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE_BYTES: Final = 16_384
_UNWANTED: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_BINARY: Final = re.compile(rb"[\x00-\x06\x0e-\x19\x1c-\x1f]")
_BEYOND_ASCII: Final = re.compile(rb"[\x80-\xff]")
_COMMON: Final = {
    "gb18030": re.compile(rb"([\xa1\xa3\xb0-\xd7][\xa1-\xfe])|[\x80-\xff].", re.DOTALL),
    "cp932": re.compile(rb"([\x81-\x83\x88-\x97].)|[\xa1-\xdf]|[\x80-\xff].", re.DOTALL),
    "big5hkscs": re.compile(rb"([\xa1-\xc6].)|[\x80-\xff].", re.DOTALL),
}
"""A character beyond ASCII; as a group if it is punctuation, kana or frequent (level 1 of each standard)."""
_LETTERS_TO_JUDGE: Final = 8
"""Non-ASCII letters; fewer do not distinguish Western from Cyrillic text."""
_UNASSIGNED: Final = frozenset({"Cc", "Cn", "Co", "Cs"})


def clean(text: str) -> str:
    """Return text that every database accepts: no control characters but tab and newline, no lone surrogates."""
    return _UNWANTED.sub("", text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff"))


def decode(data: bytes, *, declared: str | None = None) -> str:
    """Decode all of `data` to clean text. Undecodable bytes become U+FFFD; a truncated last character is dropped.

    `declared` is the encoding that the file itself names (HTML's charset); it is used only if it fits.
    """
    encoding = detect(data, declared=declared)
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    return clean(decoder.decode(_without_mark(data)))


def detect(data: bytes, *, declared: str | None = None) -> str:
    """Return the name of the encoding that fits the bytes best; "cp1252" when no other does."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    if wide := _wide_encoding(data[:_SAMPLE_BYTES]):
        return wide
    if _is_utf8(data):
        return "utf-8"
    if declared and _decodes(data, declared):
        return declared
    return "utf-8" if _is_damaged_utf8(data[:_SAMPLE_BYTES]) else _legacy_encoding(data)


def is_text(head: bytes) -> bool:
    """Return True if the first bytes of a file can be text in any known encoding."""
    if any(head.startswith(mark) for mark, _ in _MARKS) or _wide_encoding(head):
        return _is_assigned(codecs.getincrementaldecoder(detect(head))("replace").decode(_without_mark(head)))
    return not _BINARY.search(head)


def _without_mark(data: bytes) -> bytes:
    return next((data[len(mark) :] for mark, _ in _MARKS if data.startswith(mark)), data)


def _is_utf8(data: bytes) -> bool:
    """Return True for UTF-8. The last character may be truncated, unless it is the only non-ASCII one."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        text = decoder.decode(data)
    except UnicodeError:
        return False
    return not (decoder.getstate()[0] and text.isascii())


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(data)
    except (UnicodeError, LookupError):
        return False
    return True


def _is_assigned(text: str) -> bool:
    """Return True if nearly all characters are assigned: random pairs of bytes decode to many unassigned ones."""
    unassigned = sum(unicodedata.category(character) in _UNASSIGNED and not character.isspace() for character in text)
    return unassigned * 100 <= len(text) and "\x00" not in text


def _is_damaged_utf8(sample: bytes) -> bool:
    """Return True for UTF-8 with a few broken bytes, as in logs, which must not garble all the rest."""
    text = sample.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    return broken * 10 <= sum(character > "\x7f" for character in text)


def _wide_encoding(sample: bytes) -> str | None:
    """Return the UTF-16 variant without a mark: ASCII's zero bytes are all at even or all at odd places."""
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if even + odd < max(2, len(sample) // 20):
        return None
    encoding = "utf-16-le" if odd > even else "utf-16-be"
    is_one_sided = min(even, odd) * 20 <= max(even, odd)
    return encoding if is_one_sided and _decodes(sample, encoding) else None


def _legacy_encoding(data: bytes) -> str:
    first = _BEYOND_ASCII.search(data)
    # From the beginning of the line, so that the sample does not begin within a character.
    start = data.rfind(b"\n", 0, first.start()) + 1 if first else 0
    sample = data[start : start + _SAMPLE_BYTES]
    share, encoding = max((_common_share(sample, name), name) for name in _COMMON)
    if share >= 0.7:
        return encoding
    if len(_BEYOND_ASCII.findall(sample)) < _LETTERS_TO_JUDGE:
        return "cp1252"
    found = from_bytes(sample, cp_isolation=["cp1252", "cp1251"]).best()
    return found.encoding if found else "cp1252"


def _common_share(sample: bytes, encoding: str) -> float:
    """Return the share, 0..1, of the characters beyond ASCII that are common in texts in this encoding."""
    characters = _COMMON[encoding].findall(sample) if _decodes(sample, encoding) else []
    return sum(map(bool, characters)) / len(characters) if characters else 0.0
