"""Parsed documents: text blocks in reading order, and the passages into which they are split at natural breaks."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal

from documents.reading import Reading

BlockKind = Literal["paragraph", "heading", "table"]

Box = tuple[float, float, float, float]
"""Left, top, right and bottom of a place on a page, as fractions of its width and height."""

SEPARATOR = "\n\n"
"""Separates two blocks in `Document.text`."""


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a heading or a table, as plain text.

    `page` counts from 1 (PDF page, slide); None if the format has no pages. `heading` is the nearest heading above the
    block; for a heading, its own text. A table has one row per line, the header first. `box` is the place of recognized
    text.
    """

    text: str
    page: int | None
    heading: str | None
    kind: BlockKind = "paragraph"
    box: Box | None = None


@dataclass(frozen=True)
class Document:
    """All text of a file, and what was read of it. `truncated`: the file had more text than the limit allows."""

    blocks: tuple[Block, ...]
    truncated: bool = False
    reading: Reading | None = field(default=None, compare=False)

    @cached_property
    def text(self) -> str:
        """The text of all blocks; the offsets of a `Passage` refer to it."""
        return SEPARATOR.join(block.text for block in self.blocks)


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document that fits one memory.

    `text` is `document.text[start:end]` (offsets in characters), `page` the page where it begins, `position` its number
    from 0. `heading` is the heading above it; for a later part of a table also the table's header row. `box` surrounds
    its blocks, if their text was recognized.
    """

    text: str
    page: int | None
    heading: str | None
    position: int
    start: int
    end: int
    box: Box | None = None


MIB = 2**20


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for one document: resources of the parser, size of the input, size of the result."""

    seconds: float = 30.0
    page_seconds: float = 5.0  # average per page, and the limit to count the pages
    page_bytes: int = 100_000  # counts as one page in documents without pages
    memory_bytes: int = 512 * MIB  # resident
    text_bytes: int = 5_000_000  # text in UTF-8; the rest is cut off
    blocks: int = 100_000  # further ones are cut off
    zip_members: int = 2_000
    zip_bytes: int = 200 * MIB  # decompressed size of all members together
    zip_ratio: int = 200  # decompressed to compressed size of one member
    pdf_pages: int = 2_000
    table_cells: int = 500_000


DEFAULT_LIMITS = Limits()


def limits_for(text_bytes: int) -> Limits:
    """Return the limits for documents with this much text."""
    return replace(DEFAULT_LIMITS, text_bytes=text_bytes, blocks=max(DEFAULT_LIMITS.blocks, text_bytes // 50))


MAX_CHARACTERS: Final = 800

_HEADING_CHARACTERS: Final = 200
_BREAKS: Final = (
    re.compile(r"(?=\n\s*\n)"),
    re.compile(r"[。！？；…][」』”’）】》\"']*|[.!?;][\"'”’)\]]*(?=\s)"),
    re.compile(r"(?=\n)"),
    re.compile(r"[，、：,:](?!\d)|(?=\s)"),
)
"""Break patterns, best first: empty line, end of sentence, end of line, comma or space."""
_LOOK_AHEAD: Final = 8
"""The number of characters after the limit that patterns need to detect a break at the limit."""
_ZERO_WIDTH_JOINER: Final = "\u200d"
_SKIN_TONES: Final = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS: Final = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_HIGH_SURROGATES: Final = range(0xD800, 0xDC00)
_LOW_SURROGATES: Final = range(0xDC00, 0xE000)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the document's text. `is_closed` prevents joining it with its neighbors."""

    start: int
    end: int
    page: int | None
    heading: str | None
    is_heading: bool = False
    is_closed: bool = False
    box: Box | None = None


def split(document: Document, max_chars: int = MAX_CHARACTERS) -> list[Passage]:
    """Split a document into passages of at most `max_chars` characters.

    Every character except white space is in exactly one passage, in order. Small paragraphs are joined, but never
    across a heading or a page: a passage has one of each. A long table is cut between its rows; its later parts carry
    the header row in their heading.
    """
    text = document.text
    pieces = _join(_pieces(document, max_chars), max_chars)
    return [
        Passage(text[piece.start : piece.end], piece.page, piece.heading, position, piece.start, piece.end, piece.box)
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
                yield _Piece(piece_start, piece_end, block.page, block.heading, is_heading, box=block.box)
        start = end + len(SEPARATOR)


def _join(pieces: Iterator[_Piece], max_chars: int) -> Iterator[_Piece]:
    last: _Piece | None = None
    for piece in pieces:
        # Join pieces of the same page and heading, or a title and its subtitle.
        is_joinable = (
            last is not None
            and not (last.is_closed or piece.is_closed)
            and last.page == piece.page
            and (last.heading == piece.heading or (last.is_heading and piece.is_heading))
        )
        if last and is_joinable and piece.end - last.start <= max_chars:
            last = replace(piece, start=last.start, box=union(last.box, piece.box))
        else:
            if last:
                yield last
            last = piece
    if last:
        yield last


def union(first: Box | None, second: Box | None) -> Box | None:
    if first is None or second is None:
        return first or second
    return min(first[0], second[0]), min(first[1], second[1]), max(first[2], second[2]), max(first[3], second[3])


def _rows(text: str, start: int, end: int, block: Block, max_chars: int) -> Iterator[_Piece]:
    """Yield the rows of a table in groups of the maximum size; a row that is too long is cut like other text."""
    header_end = text.find("\n", start, end)
    header = text[start:header_end].strip()[:_HEADING_CHARACTERS] if header_end > 0 else ""
    heading = block.heading
    first = start
    while first < end:
        last = _last_row_end(text, first, end, max_chars)
        for piece_start, piece_end in _cuts(text, first, last, max_chars):
            yield _Piece(piece_start, piece_end, block.page, heading, is_closed=True)
            heading = " — ".join(part for part in (block.heading, header) if part) or None
        first = last + 1


def _last_row_end(text: str, first: int, end: int, max_chars: int) -> int:
    """Return the end of the last row that fits, at least of the first row."""
    if end - first <= max_chars:
        return end
    last = text.rfind("\n", first + 1, first + max_chars + 1)
    if last < 0:
        last = text.find("\n", first + 1, end)
    return last if last > 0 else end


def _cuts(text: str, start: int, end: int, max_chars: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of pieces that cover `start` to `end`, without surrounding white space."""
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
    """Return the last break of the best kind in the window; its first quarter is ignored."""
    window_start = start + (limit - start) // 4
    for break_pattern in _BREAKS:
        matches = break_pattern.finditer(text, window_start, limit + _LOOK_AHEAD)
        places = [match.end() for match in matches if match.end() <= limit]
        for place in reversed(places):
            if not _is_inside_character(text, place):
                return place
    return next((cut for cut in range(limit, start, -1) if not _is_inside_character(text, cut)), limit)


def _is_inside_character(text: str, place: int) -> bool:
    """Return True if `place` is inside one visible character (a grapheme)."""
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if unicodedata.category(after).startswith("M") or _ZERO_WIDTH_JOINER in {before, after}:
        return True
    code = ord(after)
    if code in _SKIN_TONES or (code in _LOW_SURROGATES and ord(before) in _HIGH_SURROGATES):
        return True
    # A flag is a pair of letters.
    return after in _FLAG_LETTERS and (place - len(text[:place].rstrip(_FLAG_LETTERS))) % 2 == 1
