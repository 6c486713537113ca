"""Time cut into what the rollups have whole, and the rest that only the rows can tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from store.rollups import HOUR_MS, LONG_HOURS

LAST_MS = LONG_HOURS * HOUR_MS * 360_000
FIRST_MS = -LAST_MS
"""Beyond every time that a memory can have, thirty thousand years from 1970; no cell of any length is cut there."""


class Piece(NamedTuple):
    """A stretch of time: `span` hours long cells of a rollup, or (`span` 0) rows."""

    span: int
    since_ms: int
    until_ms: int


def pieces(edges_ms: Sequence[int], spans: Sequence[int]) -> list[Piece]:
    """What lies between each edge and the next, in the largest cells that no edge cuts, in the order of time.

    `spans` are the lengths of the cells in hours, each a multiple of the one before; without any, all is rows.
    """
    return [piece for since, until in pairwise(edges_ms) for piece in _between(since, until, spans)]


def _between(since: int, until: int, spans: Sequence[int]) -> Iterable[Piece]:
    """In the longest cells that fit between, with shorter ones, and at last rows, around them."""
    if since >= until:
        return
    if not spans:
        yield Piece(0, since, until)
        return
    *shorter, longest = spans
    length = longest * HOUR_MS
    first, last = -(-since // length) * length, until // length * length
    if first >= last:
        yield from _between(since, until, shorter)
        return
    yield from _between(since, first, shorter)
    yield Piece(longest, first, last)
    yield from _between(last, until, shorter)
