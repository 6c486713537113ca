"""Sandboxed process that parses one document: `python -m documents.reader_child JOB`.

The document comes on standard input, so the process needs no path; JOB is JSON `{"mime": …, "parent": pid, "limits":
{…}}`. The answer is `{"rows": [[kind, page, text], …], "pages": number of pages or slides, "notes": [what was not read,
…]}`. This module loads neither Django nor the gateway's settings.
"""

import asyncio
import contextlib
import math
import re
import signal
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, Final, NamedTuple

import orjson
import xberg
from xberg._xberg import DocumentNode, ExtractedDocument

from core.messages import Translatable
from core.messages import Translatable as _
from documents import guards
from documents import mime_types as mt
from documents.containers import Tree
from documents.decoding import clean, decode
from documents.document import Limits
from documents.guards import Refused
from documents.plain_text import Row
from documents.reading import Note, lost_words
from documents.sandbox import run

_PAGED: Final = frozenset({mt.PDF, mt.PPT, mt.PPTX, mt.ODP})
"""Types with reliable page numbers. Files of word processors have none, because pages depend on the printer."""
_KINDS: Final = {"title": "heading", "heading": "heading", "list_item": "item", "table": "table"}
_SHEETS: Final = frozenset({mt.XLS, mt.XLSX, mt.ODS})
_CHARSET: Final = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w:.-]{1,40})", re.IGNORECASE)
_IMAGE: Final = re.compile(r"!\[([^\]\n]*)\]\([^)\s]*\)")
_COMMENT_MARK: Final = re.compile(r"\[cmt:\d+\]")
_MARKS: Final = re.compile(r"\(style_name: [^)\n]*\)|\[Image: [^\]\n]*\]|!?\[[^\]\n]*\]\([^)\s]*\)|\[cmt:\d+\]")
"""Marks that the parser adds to the text: names of styles and pictures, addresses, numbers of comments."""


def read(data: bytes, mime: str, limits: Limits, *, is_shallow: bool = False) -> dict[str, Any]:
    """Check and read one document; the parts of a container only if it is not shallow. Raises: `Refused`."""
    if mime in mt.CONTAINERS:
        if mime == mt.ZIP:
            guards.check_zip(data, mime, limits)
        tree = Tree(lambda part, kind: _text_part(part, kind, limits, is_shallow=is_shallow), limits)
        rows, cut = bounded(tree.rows(data, mime), limits)
        return _answer("mail" if mime != mt.ZIP else "zip", rows, 0, [cut, *tree.notes])
    parsed = _parse(data, mime, limits)
    rows, cut = bounded(_rows(parsed.extracted, mime), limits)
    if mime == mt.PDF and not rows and guards.is_broken_pdf(data):
        raise Refused(guards.DAMAGED)
    images = guards.images_in(data) if mime in mt.ZIP_DOCUMENTS else 0
    notes = [
        cut or lost_words(_MARKS.sub(" ", parsed.extracted.content), (text for _kind, _page, text in rows)),
        Note("images_skipped", images) if images else None,
    ]
    return _answer("xberg", rows, parsed.pages or (parsed.extracted.counts.pages if mime in _PAGED else 0), notes)


def _answer(parser: str, rows: list[Row], pages: int, notes: Iterable[Note | None]) -> dict[str, Any]:
    return {"parser": parser, "rows": rows, "pages": pages, "notes": [asdict(note) for note in notes if note]}


def _text_part(data: bytes, mime: str, limits: Limits, *, is_shallow: bool) -> Iterator[Row]:
    """Yield the rows of a part of a container. Raises: `Refused`."""
    if is_shallow and mime != mt.HTML:
        raise Refused(guards.DAMAGED)
    yield from _rows(_parse(data, mime, limits).extracted, mime)


class _Parsed(NamedTuple):
    """The result of the parser, and the number of a PDF's pages."""

    extracted: ExtractedDocument
    pages: int


def _parse(data: bytes, mime: str, limits: Limits) -> _Parsed:
    """Check and parse one document that is no container. Raises: `Refused`."""
    # The parser reports no progress: SIGALRM ends the process if pages take longer than `page_seconds` on average.
    pages, count = math.ceil(len(data) / limits.page_bytes), 0
    if mime == mt.PDF:
        signal.setitimer(signal.ITIMER_REAL, limits.page_seconds)
        with contextlib.suppress(RuntimeError, ValueError):  # the extraction reports the error
            pages = count = xberg.pdf_page_count(data)
    signal.setitimer(signal.ITIMER_REAL, limits.page_seconds * max(1, pages))
    if mime in mt.ZIP_DOCUMENTS:
        guards.check_zip(data, mime, limits)
    elif mime == mt.HTML:
        declared = _CHARSET.search(data[:4096])
        data = decode(data, declared=declared.group(1).decode() if declared else None).encode()
    source = xberg.ExtractInput(kind="bytes", bytes=data, mime_type=mime)
    try:
        result = asyncio.run(xberg.extract(source, _config(mime, limits)))
    except (RuntimeError, ValueError) as error:  # xberg's only errors, distinguished by their messages
        raise Refused(_reason(str(error))) from error
    if result.errors or not result.results:
        raise Refused(_reason(" ".join(error.message for error in result.errors)))
    return _Parsed(result.results[0], count)


def _config(mime: str, limits: Limits) -> xberg.ExtractionConfig:
    is_sheet = mime in _SHEETS
    return xberg.ExtractionConfig(
        use_cache=False,
        enable_quality_processing=False,
        disable_ocr=True,
        # For a large sheet a tree of cells takes three times the memory of lines.
        include_document_structure=not is_sheet,
        output_format="markdown" if is_sheet else "plain",
        escape_markdown=False,
        max_archive_depth=0,
        content_filter=xberg.ContentFilterConfig(
            include_headers=True, include_footers=True, include_footnotes=True, strip_repeating_text=False
        ),
        postprocessor=xberg.PostProcessorConfig(enabled=False),
        concurrency=xberg.ConcurrencyConfig(max_threads=2),
        security_limits=xberg.SecurityLimits(
            max_pages=limits.pdf_pages,
            max_archive_size=limits.zip_bytes,
            max_compression_ratio=limits.zip_ratio * 6,  # `guards` is stricter, but allows high ratios of small members
            max_files_in_archive=limits.zip_members,
            max_table_cells=limits.table_cells,
        ),
    )


def _reason(message: str) -> Translatable:
    words = message.lower()
    if "encrypt" in words or "password" in words:
        return guards.ENCRYPTED
    if "too many pages" in words:
        return _("The document has too many pages: send it in smaller parts.")
    if "security violation" in words or "exceed" in words:
        return guards.TOO_LARGE
    return guards.DAMAGED


def bounded(rows: Iterable[Row], limits: Limits) -> tuple[list[Row], Note | None]:
    """Return the rows within the limits, and a note if there were more."""
    accepted: list[Row] = []
    left = limits.text_bytes
    for kind, page, text in rows:
        encoded = text.encode()
        if len(accepted) == limits.blocks:
            return accepted, Note("blocks_cut", limits.blocks)
        if left:
            accepted.append((kind, page, encoded[:left].decode(errors="ignore")))
        if len(encoded) > left:
            return accepted, Note("text_cut", limits.text_bytes)
        left -= len(encoded)
    return accepted, None


def _rows(extracted: ExtractedDocument, mime: str) -> Iterator[Row]:
    title = _tidy(extracted.metadata.title or "", mime) if mime == mt.HTML else ""
    if title:
        yield "heading", None, title
    nodes = extracted.document.nodes if extracted.document else []
    for kind, page, text in _of_nodes(nodes) if nodes else _of_markdown(extracted.content):
        tidied = _tidy(text, mime)
        if tidied and (kind, tidied) != ("heading", title):
            yield kind, page if mime in _PAGED else None, tidied


def _tidy(text: str, mime: str) -> str:
    """Return clean text without marks that the parser adds: image links in HTML, comment numbers in Word."""
    if mime in {mt.HTML, mt.EPUB}:
        text = _IMAGE.sub(r"\1", text)
    elif mime == mt.DOCX:
        text = _COMMENT_MARK.sub("", text)
    return clean(text).strip()


def _of_nodes(nodes: Iterable[DocumentNode]) -> Iterator[Row]:
    slide: int | None = None
    for node in nodes:
        content = orjson.loads(str(node.content))
        if content["node_type"] == "slide":
            slide = content["number"]
        yield _KINDS.get(content["node_type"], "paragraph"), node.page or slide, _text_of(content)


def _text_of(content: dict[str, Any]) -> str:
    match content["node_type"]:
        case "table":
            lines: dict[int, list[str]] = {}
            for cell in content["grid"]["cells"]:
                lines.setdefault(cell["row"], []).append(" ".join(cell["content"].split()))
            return "\n".join(" | ".join(cells).rstrip(" |") for cells in lines.values() if any(cells))
        case "definition_item":
            return f"{content['term']}: {content['definition']}"
        case "metadata_block":
            return "\n".join(f"{entry['key']}: {entry['value']}" for entry in content["entries"])
        case "group" | "image" | "raw_block":  # repeated headings, images and markup
            return ""
    return content.get("text") or ""


def _of_markdown(content: str) -> Iterator[Row]:
    """Yield the rows of sheets, written as "## name" and "| cell | cell |", or the paragraphs of other content."""
    for part in re.split(r"\n\s*\n", content):
        if part.startswith("## "):
            yield "heading", None, part.removeprefix("## ")
        elif part.lstrip().startswith("|"):
            lines = (line.strip().removeprefix("|").rstrip(" |").lstrip() for line in part.split("\n"))
            yield "table", None, "\n".join(line for line in lines if line.strip("|- "))
        else:
            yield "paragraph", None, part


if __name__ == "__main__":
    run(lambda data, job, limits: [read(data, job["mime"], limits, is_shallow=job.get("is_shallow", False))])
