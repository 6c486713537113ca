"""Decode files of unknown encoding: byte order marks, UTF-16, UTF-8, the encoding that a label names, a detector.

chardet compares all encodings that decode the bytes. Its answer about a few characters is weak, therefore two rules
help: a word has letters of one script, and a file in which nearly all characters are in the block of the common ones
of an East Asian encoding is in this encoding.
"""

import codecs
import contextlib
import re
import unicodedata
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Final

import chardet
from chardet.enums import EncodingEra

from documents import mime_types as mt
from documents.reading import Encoding

_BYTE_ORDER_MARKS: Final = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_SAMPLE_BYTES: Final = 65_536
TERMINAL: Final = re.compile(r"\x1b\[[\d;?]*[A-Za-z]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)")
"""Colors and titles that programs send to a terminal, which logs keep."""
_OVERSTRUCK: Final = re.compile(r"[^\n\b]\x08")
"""A letter that the next one replaces or makes bold, as in manual pages."""
_LINE_ENDS: Final = re.compile(r"\r\n?|[\x0b\x0c]")
_UNWANTED: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_BINARY: Final = re.compile(rb"[\x00-\x06\x0e-\x19\x1c-\x1f]")
_BEYOND_ASCII: Final = re.compile(rb"[\x80-\xff]")
_SHIFTS: Final = re.compile(rb"\x1b[$(-/]|~\{|\x0e")
"""Begin of characters in encodings of seven bits: ISO-2022, HZ."""
_UNASSIGNED: Final = frozenset({"Cc", "Cn", "Co", "Cs"})
_WRITTEN: Final = re.compile(
    r"[\t\n\r -~\xa0-\u024f\u0370-\u03ff\u0400-\u052f\u0590-\u06ff\u0900-\u097f\u0e00-\u0e5b\u2010-\u203b\u20ac\u2116"
    r"\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff9f]"
)
"""The characters that nearly all text consists of, in any language."""
_MIXED_WORD: Final = re.compile(
    r"[A-Za-zÀ-ɏ][Ͱ-ࣿ]|[Ͱ-ࣿ][A-Za-zÀ-ɏ]"
    r"|[a-zß-öø-ÿ](?:[À-ÖØ-ÞŠŒŽŸ]|[ˆ˜¯˘˙˚¸˝˛ˇﬁﬂ∂∆∑∏∫√∞≈≤≥◊¤¦§¨©ª«¬®´»¼½¾×÷‡†‰‹›]+)[a-zß-öø-ÿ]"
    r"|[ˆ˜¯˘˙˚¸˝˛ˇ][^\W\d_]"
)
"""A Latin letter next to one of another alphabet, or a capital, sign or lone accent in a word, as in no language."""
_RARE: Final = re.compile(r"hp-roman8|iso8859-(?:3|4|10|13|14|16)|mac-(?:croatian|iceland|latin2|romanian|turkish)")
"""Encodings that a short text has by chance more often than in truth."""
_ERAS: Final = EncodingEra.MODERN_WEB | EncodingEra.LEGACY_ISO | EncodingEra.LEGACY_MAC | EncodingEra.DOS
_EAST_ASIAN: Final = frozenset({"gb18030", "cp932", "big5hkscs", "euc_jp", "cp949", "johab"})
_COMMON_CHARACTERS: Final = {
    "euc_jp": re.compile(rb"([\xa1\xa4\xa5\xb0-\xcf].)|[\x80-\xff].", re.DOTALL),
    "gb18030": re.compile(rb"([\xa1\xa3\xb0-\xd7][\xa1-\xfe])|[\x80-\xff].", re.DOTALL),
    "cp932": re.compile(rb"([\x81-\x83\x88-\x97].|[\xa1-\xdf])|[\x80-\xff].", re.DOTALL),
    "big5hkscs": re.compile(rb"([\xa1-\xc6].)|[\x80-\xff].", re.DOTALL),
}
"""Patterns of one non-ASCII character; group 1 matches punctuation, kana and frequent characters (level 1)."""
_WEAK: Final = 0.05
"""A confidence of the detector that is hardly better than a guess."""

_ALIASES: Final = {
    **dict.fromkeys(("cnbig5", "xxbig5"), "big5hkscs"),
    "csisolatin9": "iso8859-15",
    **dict.fromkeys(("koi", "koi8"), "koi8-r"),
    "koi8ru": "koi8-u",
    **dict.fromkeys(("iso88598e", "csiso88598e", "visual", "iso88598i", "csiso88598i", "logical"), "iso8859-8"),
    **dict.fromkeys(("iso88596e", "csiso88596e", "iso88596i", "csiso88596i"), "iso8859-6"),
    "suneugreek": "iso8859-7",
    **dict.fromkeys(("csmacintosh", "mac", "xmacroman"), "mac-roman"),
    **dict.fromkeys(("xmaccyrillic", "xmacukrainian"), "mac-cyrillic"),
    "dos874": "cp874",
    **dict.fromkeys(("csgb2312", "xgbk", "gb231280"), "gb18030"),
    **dict.fromkeys(("cseuckr", "csksc56011987", "isoir149", "ksc56011989"), "cp949"),
    **dict.fromkeys(("cseucpkdfmtjapanese", "xeucjp"), "euc_jp"),
    **dict.fromkeys(("windows31j", "xsjis"), "cp932"),
    **dict.fromkeys(("unicode11utf8", "unicode20utf8", "xunicode20utf8"), "utf-8"),
    **dict.fromkeys(("ucs2", "iso10646ucs2", "csunicode", "unicode", "unicodefeff"), "utf-16-le"),
    "unicodefffe": "utf-16-be",
}
"""Labels of the WHATWG Encoding Standard that Python does not know, without marks between their letters."""
_SUPERSETS: Final = {
    **dict.fromkeys(("ascii", "iso8859-1"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    "big5": "big5hkscs",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
    "iso8859-9": "cp1254",
    **dict.fromkeys(("iso8859-11", "tis-620"), "cp874"),
    "utf-16": "utf-16-le",
    "utf-32": "utf-32-le",
    **dict.fromkeys(("iso2022_jp", "iso2022_jp_1", "iso2022_jp_2", "iso2022_jp_3"), "iso2022_jp_ext"),
}
"""Encodings that the standard reads as a larger one, which text labeled with the smaller one often needs."""
_CODECS: Final = re.compile(
    r"big5hkscs|cp\d+|euc_\w+|gb18030|hp-roman8|hz|iso2022_\w+|iso8859-\d+|johab|koi8-\w|kz1048|mac-\w+|ptcp154"
    r"|shift_jis\w+|utf-(?:8|16-..|32-..)"
)
"""Python's text encodings. Others are ways to write bytes or code, which a label in a file must not choose."""


def clean(text: str) -> str:
    """Return text that every database accepts: no control characters but tab and newline, no lone surrogates.

    The end of a page is that of a line.
    """
    text = _LINE_ENDS.sub("\n", text.lstrip("\ufeff"))
    if "\b" in text:
        text = _OVERSTRUCK.sub("", text)
    return _UNWANTED.sub("", TERMINAL.sub("", text) if "\x1b" in text else text)


def decode(data: bytes, *, declared: str | None = None) -> str:
    """Decode all of `data` to clean text. Undecodable bytes become U+FFFD; a truncated last character is dropped.

    `declared` is the label of the encoding that the file or its sender names; it is used only if it decodes the bytes.
    """
    return decode_as(data, detect(data, declared=declared))


def decode_as(data: bytes, encoding: Encoding) -> str:
    """Decode all of `data` to clean text in an encoding of `detect`."""
    return clean(codecs.getincrementaldecoder(encoding.name)("replace").decode(data))


def detect(data: bytes, *, declared: str | None = None) -> Encoding:
    """Return the encoding that fits the bytes best, and how certain it is."""
    for mark, name in _BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            return Encoding(name)
    label = codec_of(declared or "")
    if wide := _wide_encoding(data[:_SAMPLE_BYTES], label):
        return Encoding(wide)
    if shifted := _shifted_encoding(data, label):
        return Encoding(shifted)
    decoder = codecs.getincrementaldecoder("utf-8")()
    with contextlib.suppress(UnicodeError):
        text = decoder.decode(data)
        # The last character may be truncated, unless it is the only non-ASCII one.
        if not (decoder.getstate()[0] and text.isascii()):
            return Encoding("utf-8")
    sample = _telling_part(data)
    # A few invalid bytes, as in logs, must not make the rest unreadable.
    # Among letters of ASCII, half of the other characters are not UTF-8 by chance.
    is_sparse = len(_BEYOND_ASCII.findall(sample)) * 4 <= len(sample)
    for fitting, bearable in (("utf-8", 0.5 if is_sparse else 0.1), (label or "utf-16", 0.1)):
        if not fitting.startswith(("utf-16", "utf-32")) and (damage := _damage(sample, fitting)) <= bearable:
            return Encoding(fitting, round(1 - damage, 2))
    return _detected(sample)


def is_text(head: bytes) -> bool:
    """Return True if the first bytes of a file can be text in any known encoding."""
    if head.startswith(tuple(_BYTE_ORDER_MARKS)) or _wide_encoding(head, None):
        text = codecs.getincrementaldecoder(detect(head).name)("replace").decode(head)
        # Random pairs of bytes decode to many unassigned characters.
        unassigned = sum(unicodedata.category(char) in _UNASSIGNED and not char.isspace() for char in text)
        return unassigned * 100 <= len(text) and "\x00" not in text
    return not _BINARY.search(head)


def codec_of(label: str) -> str | None:
    """Return Python's name of a text encoding with this label, as browsers understand it; None for an unknown one."""
    name = label.strip().lower()
    bare = re.sub(r"[^a-z0-9]", "", name)
    numbered = re.sub(r"^iso8859(?=\d)", "iso8859-", re.sub(r"^x?cp|^windows", "cp", bare))
    for known in (_ALIASES.get(bare), name, bare, numbered):
        with contextlib.suppress(LookupError, ValueError, UnicodeError):
            codec = codecs.lookup(known or "").name
            codec = _SUPERSETS.get(codec, codec)
            if _CODECS.fullmatch(codec):
                return codec
    return None


def label_in(markup: bytes, mime: str) -> str | None:
    """Return the encoding that HTML or XML names itself: in its XML declaration, or in a `<meta>` of its first part."""
    if mime not in mt.MARKUP:
        return None
    head = markup[:_SAMPLE_BYTES].decode("latin-1")
    if declaration := re.match(r"\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})", head):
        return declaration[1]
    parser = _MetaCharset()
    with contextlib.suppress(_Found):
        parser.feed(head)
    return parser.label


class _Found(Exception):
    """Raised to stop parsing."""


class _MetaCharset(HTMLParser):
    label: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag != "meta":
            return
        content = re.search(r"charset\s*=\s*[\"']?\s*([^\s\"';]{1,40})", values.get("content") or "", re.IGNORECASE)
        is_type = (values.get("http-equiv") or "").strip().lower() == "content-type"
        self.label = values.get("charset") or (content[1] if content and is_type else None)
        if self.label:
            raise _Found


def _wide_encoding(sample: bytes, label: str | None) -> str | None:
    """Return the UTF-16 variant of text without a mark.

    Zero bytes of ASCII are at even or at odd positions only. Other scripts give bytes of control characters, which
    no other encoding has, and text in one variant only. A label replaces these bytes.
    """
    sample = sample[: len(sample) // 2 * 2]
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if even + odd >= max(2, len(sample) // 20):
        encoding = "utf-16-le" if odd > even else "utf-16-be"
        is_one_sided = min(even, odd) * 20 <= max(even, odd)
        return encoding if is_one_sided and _decodes(sample, encoding) else None
    is_labeled = label is not None and label.startswith("utf-16")
    if not (is_labeled or (_BINARY.search(sample) and len(sample) >= 16)):
        return None
    texts = {name: codecs.decode(sample[:2048], name, "replace") for name in ("utf-16-le", "utf-16-be")}
    shares = {name: len(_WRITTEN.findall(text)) / max(len(text), 1) for name, text in texts.items()}
    if is_labeled and label is not None and shares[label] > 0.95:
        return label
    likeliest, other = sorted(shares, key=lambda name: -shares[name])
    return likeliest if shares[likeliest] > 0.95 and shares[other] < 0.9 and _decodes(sample, likeliest) else None


def _shifted_encoding(data: bytes, label: str | None) -> str | None:
    """Return the encoding of ASCII that stands for other characters (ISO-2022, HZ); None for plain ASCII and others."""
    if not _SHIFTS.search(data) or not data.isascii():
        return None
    found = chardet.detect(data, max_bytes=len(data), encoding_era=EncodingEra.ALL & ~EncodingEra.MAINFRAME)
    for name in (label, codec_of(found["encoding"] or "")):
        if name and name.startswith(("iso2022", "hz")) and _decodes(data, name):
            return name
    return None


def _telling_part(data: bytes) -> bytes:
    """Return the first lines with other characters than ASCII, together at most `_SAMPLE_BYTES`."""
    return b"".join(_telling_lines(data)) or data[:_SAMPLE_BYTES]


def _telling_lines(data: bytes) -> Iterator[bytes]:
    left = _SAMPLE_BYTES
    for line in data.splitlines(keepends=True):
        if first := _BEYOND_ASCII.search(line):
            # A part begins at a space, because elsewhere it could begin inside a character.
            start = line.rfind(b" ", 0, first.start()) + 1 if first.start() > 200 else 0
            yield line[start : start + left]
            left -= len(line) - start
        if left <= 0:
            return


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(data)
    except UnicodeError:
        return False
    return True


def _damage(sample: bytes, encoding: str) -> float:
    """Return the share of invalid bytes among all characters beyond ASCII."""
    text = codecs.getincrementaldecoder(encoding)("replace").decode(sample)
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    return text.count("\ufffd") / beyond_ascii if beyond_ascii else 1.0


def _detected(sample: bytes) -> Encoding:
    """Return chardet's best encoding. Its certainty is 0.5 if another one fits as well, or if there is little text."""
    confidences: dict[str, tuple[float, str]] = {}
    for found in chardet.detect_all(sample, max_bytes=len(sample), encoding_era=_ERAS):
        name, confidence = codec_of(found["encoding"] or ""), found["confidence"]
        if not name:
            continue
        text = codecs.getincrementaldecoder(name)("replace").decode(sample)
        if len(_MIXED_WORD.findall(text)) * 10 > len(text) - len(text.encode("ascii", "ignore")):
            confidence *= 0.3
        if _RARE.fullmatch(name):
            confidence *= 0.8
        if confidence > confidences.get(text, (-1.0, ""))[0]:
            confidences[text] = confidence, name
    best, *others = sorted(confidences.values(), reverse=True) or [(0.0, "cp1252")]
    is_weak = best[0] < _WEAK and best[1] not in _EAST_ASIAN
    has_rare = best[1] in _COMMON_CHARACTERS and not _has_common_characters(sample, best[1])
    if (is_weak or has_rare) and (common := _common_characters(sample)):
        return Encoding(common, 0.5)
    second = others[0][0] if others else 0.0
    return Encoding(best[1], round(best[0] / (best[0] + second + 0.02), 2))


def _common_characters(sample: bytes) -> str | None:
    """Return the East Asian encoding in which all characters of a short text are common ones."""
    return next((one for one in _COMMON_CHARACTERS if _has_common_characters(sample, one)), None)


def _has_common_characters(sample: bytes, encoding: str) -> bool:
    characters = _COMMON_CHARACTERS[encoding].findall(sample) if _decodes(sample, encoding) else []
    return len(characters) > 1 and all(characters)
