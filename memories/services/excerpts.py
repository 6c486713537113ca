"""Cut long texts: show the part that fits a query best, in whole sentences where they end in reach.

A long text is cut into blocks, and plain substring search tells which words of the query each block may hold. Only the
best few windows of blocks are split into tokens, so that a text of a million characters takes milliseconds.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from store.text.normalize import fold_in_place
from store.text.tokens import query_tokens, tokenize

MAX_CHARS: Final = 1200
_BLOCKS: Final = 6
"""The number of blocks of a window, which is as long as an excerpt."""
_WINDOWS: Final = 6
_MAX_NEEDLES: Final = 32
_MAX_PLACES: Final = 4096
_BOUNDARY = re.compile(r"\n+\s*|[.!?…]+[\"'”’)\]]*\s+|[。！？；]+[”’」』）]*\s*")
_LONGEST_WORD: Final = 30
_CUT_SHARE: Final = 4
"""A sentence may end up to this part of an excerpt away from the place of a cut."""
_DATE_TOKEN = re.compile(r"(?:said-)?(?:d|md|m|mo|w|s|c):")


class Excerpt(NamedTuple):
    """A part of a text: its characters from `start` to `end`, without white space at the ends."""

    text: str
    start: int
    end: int


class Budget(NamedTuple):
    """The limits of an answer; None for none. `max_tokens` are those of the whole answer, by `core.token_estimates`."""

    max_tokens: int | None = None
    max_chars: int | None = None


def excerpt(text: str, query: str = "", max_chars: int = MAX_CHARS) -> Excerpt:
    """Return the part of a text that holds most of the query's words, rare ones first; else its beginning.

    At most `max_chars` characters; a shorter text is returned whole.
    """
    if len(text) <= max_chars:
        return Excerpt(text, 0, len(text))
    start, end = _best_window(text, query, max_chars) or (0, max_chars)
    return _trimmed(text, start, min(end, len(text)))


@lru_cache(maxsize=256)
def _needles(query: str) -> tuple[tuple[str, str], ...]:
    """Return the tokens of a query, each with the letters that words of it begin with."""
    found = []
    for token in query_tokens(query):
        letters = token.removeprefix("y:")
        if _DATE_TOKEN.match(letters):
            continue
        if letters.isascii() and letters.isalpha() and len(letters) > 3 and letters[-1] in "iy":
            letters = letters[:-1]  # stems, such as happi
        found.append((letters, token))
    return tuple(found[:_MAX_NEEDLES])


def _best_window(text: str, query: str, max_chars: int) -> tuple[int, int] | None:
    """Return the window with the most words of the query, or None if there are none."""
    needles = _needles(query) if query else ()
    if not needles:
        return None
    lower, size = fold_in_place(text), max(max_chars // _BLOCKS, 1)
    count = -(-len(text) // size)
    is_in = np.zeros((len(needles), count), np.float64)
    for row, (letters, _token) in enumerate(needles):
        is_in[row, list(_blocks_with(lower, letters, size))] = 1
    if not is_in.any():
        return None
    totals = np.cumsum(np.pad(is_in, ((0, 0), (1, _BLOCKS))), axis=1)
    windows = np.minimum(totals[:, _BLOCKS:] - totals[:, :-_BLOCKS], 1)[:, :count]
    weights = np.log(1 + count / np.maximum(is_in.sum(axis=1), 1))
    scores = weights @ windows
    starts = _apart(scores, size)
    best = max(
        starts,
        key=lambda start: (_weight_of(text[start : start + max_chars + _LONGEST_WORD], needles, weights), -start),
    )
    return _centered(lower, best, max_chars, [letters for letters, _token in needles])


def _blocks_with(text: str, letters: str, size: int) -> Iterator[int]:
    """Yield the blocks in which a word begins with the letters, at most `_MAX_PLACES`."""
    at, is_word = 0, letters.isascii()
    for _ in range(_MAX_PLACES):
        at = text.find(letters, at)
        if at < 0:
            return
        if is_word and at and text[at - 1].isascii() and text[at - 1].isalnum():
            at += 1
            continue
        yield at // size
        at = (at // size + 1) * size


def _apart(scores: "np.ndarray[tuple[int], np.dtype[np.float64]]", size: int) -> list[int]:
    """Return the first characters of the best windows that do not overlap, best first."""
    starts: list[int] = []
    left = scores.copy()
    while len(starts) < _WINDOWS and (best := int(left.argmax())) >= 0 and left[best] > 0:
        starts.append(best * size)
        left[max(best - _BLOCKS + 1, 0) : best + _BLOCKS] = 0
    return starts


def _weight_of(text: str, needles: Sequence[tuple[str, str]], weights: Sequence[float]) -> float:
    tokens = set(tokenize(text))
    return sum(weight for (_letters, token), weight in zip(needles, weights, strict=True) if token in tokens)


def _centered(text: str, start: int, max_chars: int, needles: Sequence[str]) -> tuple[int, int]:
    """Return a window that has the matches of another in its middle."""
    end = start + max_chars + _LONGEST_WORD  # a word may begin in the last block and end after it
    first = [at for letters in needles if (at := text.find(letters, start, end)) >= 0]
    last = [at for letters in needles if (at := text.rfind(letters, start, end)) >= 0]
    if not first:
        return start, start + max_chars
    start = max(min((min(first) + max(last) - max_chars) // 2, *first, len(text) - max_chars), 0)
    return start, start + max_chars


def _trimmed(text: str, start: int, end: int) -> Excerpt:
    """Return the window without the parts of sentences, and then of words, at its ends."""
    reach = (end - start) // _CUT_SHARE
    if start and (found := _BOUNDARY.search(text, start, start + reach)):
        start = found.end()
    elif start and (space := text.find(" ", start, start + 20)) >= 0:
        start = space + 1
    if end < len(text):
        ends = [found.end() for found in _BOUNDARY.finditer(text, end - reach, end)]
        space = text.rfind(" ", end - 20, end)
        end = ends[-1] if ends else space if space > start else end
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    return Excerpt(part.strip(), start, start + len(part.strip()))
