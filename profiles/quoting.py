"""Quoting of memory text in prompts: one line that cannot close its frame, and an estimate of its tokens."""

from __future__ import annotations

import re
import unicodedata

# Angle brackets form comments, tags and the markers of chat templates.
_BRACKETS = str.maketrans(dict.fromkeys("<＜﹤", "‹") | dict.fromkeys(">＞﹥", "›"))
_MARKER = re.compile(r"(USER|WORK)[_＿\s]*MEMORY[_＿\s]*(START|END)", re.IGNORECASE)
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"  # part of letters in some scripts, and of emoji
_ELLIPSIS = "…"
_PARTS = 3  # tokens are counted in thirds


def quoted(text: str) -> str:
    """Return the text on one line, without hidden characters, angle brackets and the gateway's markers."""
    visible = "".join(_shown(char) for char in text).translate(_BRACKETS)
    return _MARKER.sub(r"\1 memory \2", " ".join(visible.split()))


def _shown(char: str) -> str:
    category = unicodedata.category(char)
    if category not in _HIDDEN or char in _JOINERS:
        return char
    return "" if category == "Cf" else " "


def estimated_tokens(text: str) -> int:
    """Return an upper estimate of the tokens of a byte-pair tokenizer.

    Three ASCII characters count as one token, a common Chinese character as one, any other character as its number of
    bytes.
    """
    return -(-sum(map(_weight, text)) // _PARTS)


def cut(text: str, max_tokens: int) -> str:
    """Return the longest beginning that fits, with an ellipsis if it is cut."""
    if estimated_tokens(text) <= max_tokens:
        return text
    left = max_tokens * _PARTS - _weight(_ELLIPSIS)
    for place, char in enumerate(text):
        left -= _weight(char)
        if left < 0:
            return text[:place].rstrip() + _ELLIPSIS
    return text


def _weight(char: str) -> int:
    if char < "\x80":
        return 1
    return _PARTS if "\u3000" <= char <= "\u9fff" or "\uff00" <= char <= "\uffef" else _PARTS * len(char.encode())
