"""Fold text to one form per character, and define the characters of words."""

import re
import unicodedata
from collections.abc import Iterable
from importlib import resources
from typing import Final

from core.patterns import lazy_pattern

# Scripts without spaces between words, and Hangul, whose words have many endings. Indexed as characters and pairs.
UNSPACED: Final = (
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17df"  # Thai, Lao, Burmese, Khmer
    "\u1100-\u11ff\uac00-\ud7a3"  # Hangul
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"  # kana
    "\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua48c\uf900-\ufaff"  # bopomofo, Han, Yi
    "\U0001b000-\U0001b2ff\U00020000-\U0003ffff"
)
SKIN_TONES: Final = "\U0001f3fb-\U0001f3ff"
FLAG_LETTERS: Final = "\U0001f1e6-\U0001f1ff"

_INVISIBLE = lazy_pattern(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u180b-\u180e\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u20e3\ud800-\udfff\ufe00-\ufe0f\ufeff\ufff9-\uffff]"
)
_ACCENTED = lazy_pattern("[\u00c0-\u024f\u0300-\u036f\u0370-\u03ff\u1e00-\u1fff]")
_ACCENTS = lazy_pattern("(?<=[a-z\u0370-\u03ff])[\u0300-\u036f]+")
_VOWEL_POINTS = lazy_pattern("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u0640\u064b-\u065f\u0670]")
_OTHER_DIGITS = lazy_pattern(r"[^\D0-9]")
_SPELLINGS = str.maketrans({
    "ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d",
    "\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u2010": "-", "\u2011": "-",
})  # fmt: skip


_HAN = lazy_pattern("[\u3400-\u9fff\U00020000-\U0003ffff]")


def _simplified_characters() -> dict[int, str]:
    """Return the simplified form of each traditional Chinese character, by OpenCC; the first if it has several."""
    table = resources.files("opencc").joinpath("dictionary/TSCharacters.txt").read_text(encoding="utf-8")
    pairs = (line.split("\t") for line in table.splitlines() if line)
    return {ord(traditional): simplified.split()[0] for traditional, simplified in pairs}


_SIMPLIFIED = _simplified_characters()


def fold(text: str) -> str:
    """Return the text for comparison: compatibility forms, case, accents of Latin and Greek and vowel points removed.

    Full-width and half-width forms become the usual ones, traditional Chinese characters simplified ones; invisible
    characters and lone surrogates are removed.
    """
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold()
    if text.isascii():
        return text
    if _ACCENTED.search(text):
        text = _ACCENTS.sub("", unicodedata.normalize("NFD", text))
    text = _VOWEL_POINTS.sub("", unicodedata.normalize("NFKC", text)).translate(_SPELLINGS)
    if _HAN.search(text):
        text = text.translate(_SIMPLIFIED)
    return _OTHER_DIGITS.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)


def _base_letters() -> dict[int, str]:
    """Return the letter without accent of each accented Latin or Greek one, as one character."""
    letters = [*range(0xC0, 0x250), *range(0x370, 0x400), *range(0x1E00, 0x2000)]
    bases = {code: unicodedata.normalize("NFD", chr(code))[0] for code in letters}
    return {code: base for code, base in bases.items() if ord(base) != code}


_IN_PLACE = {**_base_letters(), **{code: simple for code, simple in _SIMPLIFIED.items() if len(simple) == 1}}


def fold_in_place(text: str) -> str:
    """Return the text in lower case, without accents and traditional characters, each character at its place.

    A rougher form of `fold`, whose places are those of the text.
    """
    lower = text.replace("İ", "i").lower()
    return lower if lower.isascii() else lower.translate(_IN_PLACE)


def _ranges(codes: Iterable[int]) -> str:
    """Return sorted code points as ranges for a character class."""
    spans: list[list[int]] = []
    for code in codes:
        if spans and spans[-1][1] == code - 1:
            spans[-1][1] = code
        else:
            spans.append([code, code])
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in spans)


def _letters_and_pictures() -> tuple[str, str]:
    unspaced = re.compile(f"[{UNSPACED}]")
    letters, pictures = [], []
    for code in range(0x80, 0x10000):
        category = unicodedata.category(chr(code))
        if category[0] in "LNM" and not unspaced.match(chr(code)):
            letters.append(code)
        elif category in {"So", "Sc"}:
            pictures.append(code)
    return _ranges(letters), _ranges(pictures)


_LETTERS, _PICTURES = _letters_and_pictures()
WORD: Final = "0-9a-z" + _LETTERS + "\U00010000-\U0001afff\U0001e000-\U0001efff"
"""Letters, digits and marks of scripts that put spaces between words."""
PICTURE: Final = "$" + _PICTURES + "\U0001d000-\U0001d3ff\U0001f000-\U0001fbff"
"""Emoji and other pictographs, currency signs."""

_MARK_CATEGORIES = frozenset({"Mn", "Mc", "Me"})


def characters(run: str) -> list[str]:
    """Return a run of an unspaced script as characters, each with its combining marks."""
    if not _HAS_MARKS.search(run):
        return list(run)
    found: list[str] = []
    for char in run:
        if found and unicodedata.category(char) in _MARK_CATEGORIES:
            found[-1] += char
        else:
            found.append(char)
    return found


_HAS_MARKS = lazy_pattern("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17df]")
