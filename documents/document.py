"""What a document is once it has been read: blocks of text in reading order, and the passages they are cut into."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

BlockKind = Literal["paragraph", "heading", "table"]

SEPARATOR = "\n\n"
"""Between two blocks in `Document.text`."""


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a heading or a table, as plain text.

    `page` counts from 1 (PDF page, slide), None where the format has none. `heading` is the nearest heading that the
    block stands under; a heading's own is its text. A table's rows are its lines, the first one its header.
    """

    text: str
    page: int | None
    heading: str | None
    kind: BlockKind = "paragraph"


@dataclass(frozen=True)
class Document:
    """All text of a file. `truncated` says that there was more than the limit allows."""

    blocks: tuple[Block, ...]
    truncated: bool = False

    @cached_property
    def text(self) -> str:
        """The blocks joined: what the offsets of a `Passage` count in."""
        return SEPARATOR.join(block.text for block in self.blocks)


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document short enough to be remembered as one memory.

    `text` is `document.text[start:end]` (offsets in characters), `page` where it begins, `position` its number from 0.
    `heading` says where it stands: the heading above it, and for a later part of a table also the table's header row.
    """

    text: str
    page: int | None
    heading: str | None
    position: int
    start: int
    end: int
