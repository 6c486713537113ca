"""Sandboxed process for parsers, one per document: `python -m documents.reader_child JOB`.

The document is read from standard input, so that no path is passed; JOB is JSON `{"mime": …, "parent": pid, "limits":
{…}}`. Standard output gets a newline once the sandbox is ready, then JSON: `{"rows": [[kind, page, text], …],
"truncated": bool}` or `{"refused": sentence}`. This module loads neither Django nor the gateway's settings.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import resource
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson
import xberg
from xberg._xberg import DocumentNode, ExtractedDocument

from documents import guards
from documents import mime_types as mt
from documents.decoding import clean, decode
from documents.guards import Refused
from documents.limits import MIB, Limits

Row = tuple[str, int | None, str]
"""Kind ("heading", "table", "item" of a list or "paragraph"), page from 1, text."""

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NO_NEW_PRIVS: Final = 38
_CLONE_NEWUSER: Final = 0x10000000
_CLONE_NEWNET: Final = 0x40000000
_MEMORY_RESERVE: Final = 256 * MIB
"""Memory that may be reserved but not used: the parent kills the child by its resident memory."""
_OPEN_FILES: Final = 64

_PAGED: Final = frozenset({mt.PDF, mt.PPT, mt.PPTX, mt.ODP})
"""Page numbers of word processors exist only in print: those in their files are not reliable."""
_KINDS: Final = {"title": "heading", "heading": "heading", "list_item": "item", "table": "table"}
_SHEETS: Final = frozenset({mt.XLS, mt.XLSX, mt.ODS})
_CHARSET: Final = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w:.-]{1,40})", re.IGNORECASE)
_IMAGE: Final = re.compile(r"!\[([^\]\n]*)\]\([^)\s]*\)")
_COMMENT_MARK: Final = re.compile(r"\[cmt:\d+\]")


def main() -> None:
    job = orjson.loads(sys.argv[1])
    limits = Limits(**job["limits"])
    enter_sandbox(job["parent"], limits)
    sys.stdout.buffer.write(b"\n")  # from here on, a failure is caused by the document
    sys.stdout.buffer.flush()
    try:
        answer = read(sys.stdin.buffer.read(), job["mime"], limits)
    except Refused as refusal:
        answer = {"refused": str(refusal)}
    sys.stdout.buffer.write(orjson.dumps(answer))
    sys.stdout.buffer.flush()
    os._exit(0)  # do not wait for the parser's threads


def enter_sandbox(parent: int, limits: Limits) -> None:
    """Drop what a parser does not need: writing files, the network, and outliving the gateway."""
    if sys.platform == "linux":
        _enter_linux_sandbox(parent)
    for name, value in (
        (resource.RLIMIT_CPU, int(limits.seconds * 2) + 1),
        (resource.RLIMIT_DATA, limits.memory_bytes + _MEMORY_RESERVE),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(name)
        bounded = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (bounded, bounded))


def _enter_linux_sandbox(parent: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)  # the parent died before the death signal was set
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # When memory runs out, the kernel must kill this process before the gateway.
    Path("/proc/self/oom_score_adj").write_text("1000")
    # Without a user namespace only root may drop the network; if the kernel allows neither, the sandbox keeps it.
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        libc.unshare(_CLONE_NEWNET)


def read(data: bytes, mime: str, limits: Limits) -> dict[str, Any]:
    """Check and parse one document.

    Raises: `Refused`.
    """
    if mime in mt.ZIP_DOCUMENTS:
        guards.check_zip(data, mime, limits)
    elif mime == mt.HTML:
        data = _as_utf8(data)
    extracted = _extract(data, mime, limits)
    rows, is_truncated = _bounded(_rows(extracted, mime), limits)
    if mime == mt.PDF and not rows and guards.is_broken_pdf(data):
        raise Refused(guards.DAMAGED)
    return {"rows": rows, "truncated": is_truncated}


def _as_utf8(html: bytes) -> bytes:
    declared = _CHARSET.search(html[:4096])
    return decode(html, declared=declared.group(1).decode() if declared else None).encode()


def _extract(data: bytes, mime: str, limits: Limits) -> ExtractedDocument:
    source = xberg.ExtractInput(kind="bytes", bytes=data, mime_type=mime)
    try:
        result = asyncio.run(xberg.extract(source, _config(mime, limits)))
    except (RuntimeError, ValueError) as error:  # all that xberg raises, distinguished only by its message
        raise Refused(_reason(str(error))) from error
    if result.errors or not result.results:
        raise Refused(_reason(" ".join(error.message for error in result.errors)))
    return result.results[0]


def _config(mime: str, limits: Limits) -> xberg.ExtractionConfig:
    is_sheet = mime in _SHEETS
    return xberg.ExtractionConfig(
        use_cache=False,
        enable_quality_processing=False,
        disable_ocr=True,
        # A large sheet as a tree of cells takes three times the memory of its rows as lines.
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
            max_compression_ratio=limits.zip_ratio * 6,  # ours is stricter, but allows high ratios in small members
            max_files_in_archive=limits.zip_members,
            max_table_cells=limits.table_cells,
        ),
    )


def _reason(message: str) -> str:
    words = message.lower()
    if "encrypt" in words or "password" in words:
        return guards.ENCRYPTED
    if "too many pages" in words:
        return "The document has more pages than we read: send it in smaller parts."
    if "security violation" in words or "exceed" in words:
        return guards.TOO_LARGE
    return guards.DAMAGED


def _bounded(rows: Iterable[Row], limits: Limits) -> tuple[list[Row], bool]:
    """Return the rows within the limits, and True if there were more."""
    accepted: list[Row] = []
    left = limits.text_bytes
    for kind, page, text in rows:
        encoded = text.encode()
        if len(accepted) == limits.blocks or not left:
            return accepted, True
        accepted.append((kind, page, encoded[:left].decode(errors="ignore")))
        if len(encoded) > left:
            return accepted, True
        left -= len(encoded)
    return accepted, False


def _rows(extracted: ExtractedDocument, mime: str) -> Iterator[Row]:
    title = _tidy(extracted.metadata.title or "", mime) if mime == mt.HTML else ""
    if title:
        yield "heading", None, title
    if extracted.document and extracted.document.nodes:
        source = _of_nodes(extracted.document.nodes)
    else:
        source = _of_markdown(extracted.content)
    for kind, page, text in source:
        tidied = _tidy(text, mime)
        if tidied and (kind, tidied) != ("heading", title):
            yield kind, page if mime in _PAGED else None, tidied


def _tidy(text: str, mime: str) -> str:
    """Return clean text without the parser's own marks: image links in HTML, comment numbers in Word."""
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
            return _table(content["grid"])
        case "definition_item":
            return f"{content['term']}: {content['definition']}"
        case "metadata_block":
            return "\n".join(f"{entry['key']}: {entry['value']}" for entry in content["entries"])
        case "group" | "image" | "raw_block":  # repeated headings, images and markup are no text
            return ""
    return content.get("text") or ""


def _table(grid: dict[str, Any]) -> str:
    lines: dict[int, list[str]] = {}
    for cell in grid["cells"]:
        lines.setdefault(cell["row"], []).append(" ".join(cell["content"].split()))
    return "\n".join(" | ".join(cells).rstrip(" |") for cells in lines.values() if any(cells))


def _of_markdown(content: str) -> Iterator[Row]:
    """Yield sheets written as "## name" and "| cell | cell |"; for other content the paragraphs."""
    for part in re.split(r"\n\s*\n", content):
        if part.startswith("## "):
            yield "heading", None, part.removeprefix("## ")
        elif part.lstrip().startswith("|"):
            yield "table", None, _of_pipes(part)
        else:
            yield "paragraph", None, part


def _of_pipes(table: str) -> str:
    rows = (line.strip().removeprefix("|").rstrip(" |").lstrip() for line in table.split("\n"))
    return "\n".join(row for row in rows if row.strip("|- "))


if __name__ == "__main__":
    main()
