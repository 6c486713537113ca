"""Read words that are written so that a list misses them.

Their letters stand apart, are of another script, have added marks, or are digits and signs ("v0dk@"). Texts with such
words have further readings.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from itertools import islice, product
from typing import Final

from core.lookalikes import LIKE_LATIN, LOOKALIKES
from core.patterns import lazy_pattern
from store.text.normalize import FLAG_LETTERS, UNSPACED

_LETTER: Final = r"[^\W\d_]"
_EDGE: Final = r"[^\W_]"
_SIGN: Final = r"(?:[^\w\n'\u2019]|_)"
_INVISIBLE = lazy_pattern(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\U000e0000-\U000e01ef]+"
)
_MARKS = lazy_pattern("[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")
_LINE_END = lazy_pattern(rf"(?<={_LETTER})[-\u2010\u2011][ \t]*\r?\n[ \t]*(?={_LETTER})")
_GAP = lazy_pattern(rf"{_SIGN}{{1,3}}")
_APART = lazy_pattern(rf"(?<!{_EDGE}){_LETTER}(?:{_SIGN}{{1,3}}{_LETTER}){{2,200}}(?!{_EDGE})")
_BETWEEN: Final = r"[\s*._·\-/|~+]{1,3}"
_CHARACTERS_APART = lazy_pattern(
    f"[{UNSPACED}](?:{_BETWEEN}[{UNSPACED}]){{2,200}}|(?<![{UNSPACED}])[{UNSPACED}]{_BETWEEN}[{UNSPACED}](?![{UNSPACED}])"
)
_WORD = lazy_pattern(f"{_LETTER}+")
_LATIN = lazy_pattern("[A-Za-z]")
_CYRILLIC = lazy_pattern("[\u0400-\u04ff]")
_WITH_DIGITS = lazy_pattern(
    r"(?<![\w@$€£])(?=[\w@$€£|!+]*[^\W\d_])(?=[\w@$€£|!+]*[\d@$€£|!+])[\w@$€£|!+]{2,40}(?<![|!+])"
)
_AMOUNT = lazy_pattern(
    r"[$€£+]?\d+(?:st|nd|rd|th|s|k|m|am|pm|kg|km|cm|mm|g|h|min|gb|mb|x|d|p|uhr|er)?[$€£+]?", re.IGNORECASE
)
_SIGNS: Final = {
    "0": "o", "1": "il", "2": "z", "3": "e", "4": "a", "5": "s", "6": "gb", "7": "t", "8": "b", "9": "g",
    "@": "a", "$": "s", "€": "e", "£": "l", "|": "li", "!": "il", "+": "t",
}  # fmt: skip
_CYRILLIC_SIGNS: Final = {"0": "о", "3": "зе", "4": "ча", "6": "б", "@": "а"}
_MAX_WRITINGS: Final = 16
_NAMED = lazy_pattern(
    r"LATIN (?:LETTER SMALL CAPITAL|(?:SMALL|CAPITAL) LETTER(?: SCRIPT| DOTLESS| OPEN)?) ([A-Z])(?: WITH .*)?"
    r"|NEGATIVE (?:CIRCLED|SQUARED) LATIN CAPITAL LETTER ([A-Z])"
)
_LONE_FLAG_LETTER = lazy_pattern(f"(?<![{FLAG_LETTERS}])[{FLAG_LETTERS}](?![{FLAG_LETTERS}])")
_TO_CAPITAL: Final = ord("\U0001f1e6") - ord("A")


class _Latin(dict[int, str]):
    """The letter that each sign of a letter shows: "ᴠ", "ø", "🅥"."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        name = unicodedata.name(char, "") if code > 0x7F and not unicodedata.decomposition(char) else ""
        named = _NAMED.fullmatch(name)
        letter = (named[1] or named[2]) if named else char
        self[code] = letter.lower() if "SMALL" in name else letter
        return self[code]


_SHOWN: Final = _Latin({0x3F2: "c", 0x3F9: "C"})


def readings(text: str) -> list[str]:
    """Return what else a reader may see in a text, nothing for an ordinary one."""
    found: list[str] = []
    for seen in _without_invisible(_LINE_END.sub("", text)):
        plain = seen
        if not seen.isascii():
            plain = _LONE_FLAG_LETTER.sub(lambda sign: chr(ord(sign[0]) - _TO_CAPITAL), seen.translate(_SHOWN))
            plain = _MARKS.sub("", unicodedata.normalize("NFKC", plain))
            plain = _CHARACTERS_APART.sub(lambda run: _GAP.sub("", run[0]), plain)
        plain = _APART.sub(_together, plain)
        for spelled in dict.fromkeys((plain, _WITH_DIGITS.sub(_with_letters, plain))):
            found += [spelled, *_of_one_script(spelled)]
    return [one for one in dict.fromkeys(found) if one != text]


def _without_invisible(text: str) -> Iterator[str]:
    """Yield the text without invisible characters, and with spaces for them."""
    yield _INVISIBLE.sub("", text)
    if _INVISIBLE.search(text):
        yield _INVISIBLE.sub(" ", text)


def _together(run: re.Match[str]) -> str:
    """Return the words of letters apart: wider gaps may separate words, and "I" and "a" may stand next to one."""
    gaps = _GAP.findall(run[0])
    narrow = min(map(len, gaps))
    words = _GAP.sub(lambda gap: "" if len(gap[0]) == narrow else " ", run[0])
    letters = _GAP.sub("", run[0])
    tail = letters
    if letters[0] in "IiAa":
        words, tail = f"{letters[0]} {words[1:]}", letters[1:]
    heads = [one[:-1] for one in (letters, tail) if one[-1] in "IiAa"]
    return " ".join(dict.fromkeys([words, letters, tail, *heads]))


def _with_letters(word: re.Match[str]) -> str:
    """Return what a word may say whose digits and signs stand for letters; a number with its unit stays."""
    if _AMOUNT.fullmatch(word[0]):
        return word[0]
    signs = _SIGNS | _CYRILLIC_SIGNS if _CYRILLIC.search(word[0]) else _SIGNS
    writings = product(*(signs.get(char, char) for char in word[0]))
    return " ".join("".join(writing) for writing in islice(writings, _MAX_WRITINGS))


def _of_one_script(text: str) -> Iterator[str]:
    """Yield the text with each word in one script, if letters that look like those of another stand in it."""
    if text.isascii():
        return
    words = [word[0] for word in _WORD.finditer(text)]
    mixed = {word for word in words if not word.isascii() and _LATIN.search(word)}
    if sum(map(str.isascii, words)) * 2 > len(words):  # words that look Latin among Latin ones
        mixed |= {word for word in words if all(ord(char) in LIKE_LATIN for char in word)}
    if not mixed:
        return
    yield _translated(text, mixed, LIKE_LATIN)
    for script in LOOKALIKES:
        if any(not script.keys().isdisjoint(map(ord, word)) for word in mixed):
            yield _translated(text, mixed, {ord(latin): chr(code) for code, latin in script.items()})


def _translated(text: str, words: Collection[str], letters: Mapping[int, str]) -> str:
    """Return the text with the letters of some words translated."""
    return _WORD.sub(lambda word: word[0].translate(letters) if word[0] in words else word[0], text)
