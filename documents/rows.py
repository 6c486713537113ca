"""Rows, which parsers give: those of plain text, their limits, and the answer of a child process with them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, astuple
from typing import Any, Final

from documents.decoding import clean
from documents.document import Limits
from documents.reading import Encoding, Note

Row = tuple[str, int | None, str]
"""Kind, page from 1, text. Kinds are "heading", "table", "item" of a list and "paragraph"; "part", the path of names of
a part of a container; "slide", its title, which may be empty; "context", a heading that is no text of the file."""

SEPARATOR: Final = " › "
"""Separates the names of parts, and their headings."""
EMPTY_LINES: Final = re.compile(r"\n[^\S\n]*\n\s*?(?=\S|\Z)")


def paragraphs(text: str) -> Iterator[Row]:
    """Yield the paragraphs of plain text, which empty lines separate."""
    for part in EMPTY_LINES.split(text):
        if paragraph := part.strip():
            yield "paragraph", None, paragraph


def bounded(rows: Iterable[Row], limits: Limits) -> tuple[list[Row], Note | None]:
    """Return the rows within the limits, and a note if there were more."""
    accepted: list[Row] = []
    left = limits.text_bytes
    for kind, page, text in rows:
        encoded = clean(text).encode()
        if len(accepted) == limits.blocks:
            return accepted, Note("blocks_cut", limits.blocks)
        if left:
            accepted.append((kind, page, encoded[:left].decode(errors="ignore")))
        if len(encoded) > left:
            return accepted, Note("text_cut", limits.text_bytes)
        left -= len(encoded)
    return accepted, None


def answer(
    parser: str,
    rows: list[Row],
    notes: Iterable[Note | None],
    *,
    pages: int = 0,
    encoding: Encoding | None = None,
    scans: Sequence[int] = (),
) -> dict[str, Any]:
    """Return the answer of a child process: its rows, how it read them, and what it left out.

    `scans` are pages whose text is in a picture, but for a few words.
    """
    found = astuple(encoding) if encoding else None
    noted = [asdict(note) for note in notes if note]
    return {"parser": parser, "rows": rows, "pages": pages, "encoding": found, "notes": noted, "scans": scans}
