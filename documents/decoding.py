"""Decode files of unknown encoding: byte order marks, then UTF-16, UTF-8, East Asian encodings, others.

Nearly all bytes are valid in East Asian encodings. The fraction of common characters identifies them after a few words,
because each standard groups these characters in one block. charset-normalizer, which needs about 40 characters, decides
the remaining cases.
"""

import codecs
import contextlib
import re
import unicodedata
from typing import Final

from charset_normalizer import from_bytes

_BYTE_ORDER_MARKS: Final = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_SAMPLE_BYTES: Final = 16_384
_UNWANTED: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_BINARY: Final = re.compile(rb"[\x00-\x06\x0e-\x19\x1c-\x1f]")
_BEYOND_ASCII: Final = re.compile(rb"[\x80-\xff]")
_COMMON_CHARACTERS: Final = {
    "gb18030": re.compile(rb"([\xa1\xa3\xb0-\xd7][\xa1-\xfe])|[\x80-\xff].", re.DOTALL),
    "cp932": re.compile(rb"([\x81-\x83\x88-\x97].)|[\xa1-\xdf]|[\x80-\xff].", re.DOTALL),
    "big5hkscs": re.compile(rb"([\xa1-\xc6].)|[\x80-\xff].", re.DOTALL),
}
"""Patterns of one non-ASCII character; group 1 matches punctuation, kana and frequent characters (level 1)."""
_MIN_LETTERS: Final = 8
"""The fewest non-ASCII letters that distinguish Western from Cyrillic text."""
_UNASSIGNED: Final = frozenset({"Cc", "Cn", "Co", "Cs"})


def clean(text: str) -> str:
    """Return text that every database accepts: no control characters but tab and newline, no lone surrogates."""
    return _UNWANTED.sub("", text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff"))


def decode(data: bytes, *, declared: str | None = None) -> str:
    """Decode all of `data` to clean text. Undecodable bytes become U+FFFD; a truncated last character is dropped.

    `declared` is the encoding that the file itself names (HTML's charset); it is used only if it decodes the bytes.
    """
    encoding = detect(data, declared=declared)
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    return clean(decoder.decode(data))


def detect(data: bytes, *, declared: str | None = None) -> str:
    """Return the name of the encoding that fits the bytes best; "cp1252" when no other does."""
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            return encoding
    if wide := _wide_encoding(data[:_SAMPLE_BYTES]):
        return wide
    decoder = codecs.getincrementaldecoder("utf-8")()
    with contextlib.suppress(UnicodeError):
        text = decoder.decode(data)
        # The last character may be truncated, unless it is the only non-ASCII one.
        if not (decoder.getstate()[0] and text.isascii()):
            return "utf-8"
    if declared and _decodes(data, declared):
        return declared
    # A few invalid bytes, as in logs, must not make the rest unreadable.
    sample = data[:_SAMPLE_BYTES].decode("utf-8", "replace")
    is_damaged_utf8 = sample.count("\ufffd") * 10 <= sum(character > "\x7f" for character in sample)
    return "utf-8" if is_damaged_utf8 else _legacy_encoding(data)


def is_text(head: bytes) -> bool:
    """Return True if the first bytes of a file can be text in any known encoding."""
    if head.startswith(tuple(_BYTE_ORDER_MARKS)) or _wide_encoding(head):
        text = codecs.getincrementaldecoder(detect(head))("replace").decode(head)
        # Random pairs of bytes decode to many unassigned characters.
        unassigned = sum(unicodedata.category(char) in _UNASSIGNED and not char.isspace() for char in text)
        return unassigned * 100 <= len(text) and "\x00" not in text
    return not _BINARY.search(head)


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(data)
    except (UnicodeError, LookupError):
        return False
    return True


def _wide_encoding(sample: bytes) -> str | None:
    """Return the UTF-16 variant of text without a mark: zero bytes of ASCII are at even or at odd positions only."""
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if even + odd < max(2, len(sample) // 20):
        return None
    encoding = "utf-16-le" if odd > even else "utf-16-be"
    is_one_sided = min(even, odd) * 20 <= max(even, odd)
    return encoding if is_one_sided and _decodes(sample, encoding) else None


def _legacy_encoding(data: bytes) -> str:
    first = _BEYOND_ASCII.search(data)
    # The sample begins at a line start, because elsewhere it could begin inside a character.
    start = data.rfind(b"\n", 0, first.start()) + 1 if first else 0
    sample = data[start : start + _SAMPLE_BYTES]
    shares = {}
    for encoding, pattern in _COMMON_CHARACTERS.items():
        characters = pattern.findall(sample) if _decodes(sample, encoding) else []
        shares[encoding] = sum(map(bool, characters)) / max(len(characters), 1)
    likeliest = max(shares, key=lambda encoding: (shares[encoding], encoding))
    if shares[likeliest] >= 0.7:
        return likeliest
    if len(_BEYOND_ASCII.findall(sample)) < _MIN_LETTERS:
        return "cp1252"
    found = from_bytes(sample, cp_isolation=["cp1252", "cp1251"]).best()
    return found.encoding if found else "cp1252"
