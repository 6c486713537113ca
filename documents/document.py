"""Data types of a parsed document: text blocks in reading order, and the passages they are cut into."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

BlockKind = Literal["paragraph", "heading", "table"]

SEPARATOR = "\n\n"
"""Separates two blocks in `Document.text`."""


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a heading or a table, as plain text.

    `page` counts from 1 (PDF page, slide); None if the format has no pages. `heading` is the nearest heading above the
    block; for a heading, its own text. A table has one row per line, the header first.
    """

    text: str
    page: int | None
    heading: str | None
    kind: BlockKind = "paragraph"


@dataclass(frozen=True)
class Document:
    """All text of a file. `truncated`: the file had more text than the limit allows."""

    blocks: tuple[Block, ...]
    truncated: bool = False

    @cached_property
    def text(self) -> str:
        """The blocks joined; the offsets of a `Passage` refer to this text."""
        return SEPARATOR.join(block.text for block in self.blocks)


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document that fits one memory.

    `text` is `document.text[start:end]` (offsets in characters), `page` the page where it begins, `position` its number
    from 0. `heading` is the heading above it; for a later part of a table also the table's header row.
    """

    text: str
    page: int | None
    heading: str | None
    position: int
    start: int
    end: int
