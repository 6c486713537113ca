"""Rows of plain text."""

import re
from collections.abc import Iterator
from typing import Final

Row = tuple[str, int | None, str]
"""Kind, page from 1, text. Kinds are "heading", "table", "item" of a list and "paragraph"; "part", the path of names of
a part of a container; "slide", its title, which may be empty."""

_MARKDOWN_HEADING: Final = re.compile(r"#{1,6}\s+(.+?)\s*#*", re.DOTALL)


def paragraphs(text: str, mime: str) -> Iterator[Row]:
    """Yield rows of plain text: empty lines separate paragraphs, a CSV file is one table."""
    if mime in {"text/csv", "text/tab-separated-values"}:
        yield "table", None, "\n".join(line for line in text.split("\n") if line.strip())
        return
    for part in re.split(r"\n[^\S\n]*\n\s*?(?=\S|\Z)", text):
        paragraph = part.strip()
        heading = _MARKDOWN_HEADING.fullmatch(paragraph.partition("\n")[0]) if mime == "text/markdown" else None
        if heading:
            yield "heading", None, heading.group(1)
            paragraph = paragraph.partition("\n")[2].strip()
        if paragraph:
            yield "paragraph", None, paragraph
