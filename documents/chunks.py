"""Splitting of documents into passages: pieces that fit one memory, cut at natural breaks.

Every character of the document except white space is in exactly one passage, in order.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from documents.document import SEPARATOR, Block, Document, Passage

MAX_CHARACTERS: Final = 800

_HEADING_CHARACTERS: Final = 200
_PAUSES: Final = (
    re.compile(r"(?=\n\s*\n)"),
    re.compile(r"[。！？；…][」』”’）】》\"']*|[.!?;][\"'”’)\]]*(?=\s)"),
    re.compile(r"(?=\n)"),
    re.compile(r"[，、：,:](?!\d)|(?=\s)"),
)
"""Break patterns, best first: empty line, end of sentence, end of line, comma or space."""
_LOOK_AHEAD: Final = 8
"""Characters after the limit that show whether a break is at the limit."""
_ZERO_WIDTH_JOINER: Final = "\u200d"
_SKIN_TONES: Final = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS: Final = range(0x1F1E6, 0x1F200)
_HIGH_SURROGATES: Final = range(0xD800, 0xDC00)
_LOW_SURROGATES: Final = range(0xDC00, 0xE000)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of the document's text. `is_closed` prevents joining it with its neighbours."""

    start: int
    end: int
    page: int | None
    heading: str | None
    is_heading: bool = False
    is_closed: bool = False


def split(document: Document, max_chars: int = MAX_CHARACTERS) -> list[Passage]:
    """Split a document into passages of at most `max_chars` characters.

    Small paragraphs are joined, but never across a heading or a page: a passage has one of each. A long table is cut
    between its rows; its later parts carry the header row in their heading.
    """
    text = document.text
    pieces = _joined(_pieces(document, max_chars), max_chars)
    return [
        Passage(text[piece.start : piece.end], piece.page, piece.heading, position, piece.start, piece.end)
        for position, piece in enumerate(pieces)
    ]


def _pieces(document: Document, max_chars: int) -> Iterator[_Piece]:
    text, start = document.text, 0
    for block in document.blocks:
        end = start + len(block.text)
        if block.kind == "table" and len(block.text) > max_chars:
            yield from _rows(text, start, end, block, max_chars)
        else:
            is_heading = block.kind == "heading"
            for piece_start, piece_end in _cuts(text, start, end, max_chars):
                yield _Piece(piece_start, piece_end, block.page, block.heading, is_heading)
        start = end + len(SEPARATOR)


def _joined(pieces: Iterator[_Piece], max_chars: int) -> Iterator[_Piece]:
    last: _Piece | None = None
    for piece in pieces:
        if last and _belong(last, piece) and piece.end - last.start <= max_chars:
            last = replace(piece, start=last.start)
        else:
            if last:
                yield last
            last = piece
    if last:
        yield last


def _belong(first: _Piece, second: _Piece) -> bool:
    """Return True if two neighbours may form one passage: same page and same heading, or a title and its subtitle."""
    if first.is_closed or second.is_closed or first.page != second.page:
        return False
    return first.heading == second.heading or (first.is_heading and second.is_heading)


def _rows(text: str, start: int, end: int, block: Block, max_chars: int) -> Iterator[_Piece]:
    """Yield a table's rows, as many together as fit; a row that is too long is cut like prose."""
    header_end = text.find("\n", start, end)
    header = text[start:header_end].strip() if header_end > 0 else ""
    heading = block.heading
    first = start
    while first < end:
        last = _last_row_end(text, first, end, max_chars)
        for piece_start, piece_end in _cuts(text, first, last, max_chars):
            yield _Piece(piece_start, piece_end, block.page, heading, is_closed=True)
            heading = _with_header(block.heading, header)
        first = last + 1


def _last_row_end(text: str, first: int, end: int, max_chars: int) -> int:
    """Return the end of the last row that still fits, or of the first row."""
    if end - first <= max_chars:
        return end
    last = text.rfind("\n", first + 1, first + max_chars + 1)
    if last < 0:
        last = text.find("\n", first + 1, end)
    return last if last > 0 else end


def _with_header(heading: str | None, header: str) -> str | None:
    parts = [part for part in (heading, header[:_HEADING_CHARACTERS]) if part]
    return " — ".join(parts) or None


def _cuts(text: str, start: int, end: int, max_chars: int) -> Iterator[tuple[int, int]]:
    """Yield stretches without surrounding white space that together cover `start` to `end`."""
    while True:
        start, end = _trimmed(text, start, end)
        if start >= end:
            return
        cut = end if end - start <= max_chars else _best_cut(text, start, start + max_chars)
        yield _trimmed(text, start, cut)
        start = cut


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _best_cut(text: str, start: int, limit: int) -> int:
    """Return the last good break in the window; a poor break near the end beats a good one near the start."""
    least = start + (limit - start) // 4
    for pause in _PAUSES:
        matches = pause.finditer(text, least, limit + _LOOK_AHEAD)
        places = [match.end() for match in matches if match.end() <= limit]
        for place in reversed(places):
            if not _is_inside_character(text, place):
                return place
    return _hard_cut(text, start, limit)


def _hard_cut(text: str, start: int, limit: int) -> int:
    cut = limit
    while cut > start and _is_inside_character(text, cut):
        cut -= 1
    return cut if cut > start else limit


def _is_inside_character(text: str, place: int) -> bool:
    """Return True if one visible character spans `place`."""
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if unicodedata.category(after).startswith("M") or _ZERO_WIDTH_JOINER in {before, after}:
        return True
    code = ord(after)
    if code in _SKIN_TONES or (code in _LOW_SURROGATES and ord(before) in _HIGH_SURROGATES):
        return True
    return code in _FLAG_LETTERS and _flags_before(text, place) % 2 == 1


def _flags_before(text: str, place: int) -> int:
    """Count the flag letters directly before `place`: flags are pairs of letters."""
    count = 0
    while place - count > 0 and ord(text[place - count - 1]) in _FLAG_LETTERS:
        count += 1
    return count
