"""Estimate how many tokens a language model reads, without its tokenizer."""

from typing import Final

ELLIPSIS: Final = "…"
_THIRDS: Final = 3  # weights are thirds of a token


def estimated_tokens(text: str) -> int:
    """Return an upper estimate of the tokens of a byte-pair tokenizer.

    Three ASCII characters count as one token, a common Chinese character as one, and any other character as one for
    each of its bytes.
    """
    return -(-(len(text) if text.isascii() else sum(map(_weight, text))) // _THIRDS)


def cut(text: str, max_tokens: int) -> str:
    """Return the text, cut with an ellipsis if it is longer than `max_tokens`."""
    text = text[: max_tokens * _THIRDS + 1]  # no character weighs less than a third; one more shows that it is cut
    if estimated_tokens(text) <= max_tokens:
        return text
    remaining = max_tokens * _THIRDS - _weight(ELLIPSIS)
    for index, char in enumerate(text):
        remaining -= _weight(char)
        if remaining < 0:
            return text[:index].rstrip() + ELLIPSIS
    return text


def _weight(char: str) -> int:
    """Return the estimated thirds of a token."""
    if char < "\x80":
        return 1
    return _THIRDS if "\u3000" <= char <= "\u9fff" or "\uff00" <= char <= "\uffef" else _THIRDS * len(char.encode())
