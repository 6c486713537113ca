"""Sandboxed process that parses one document: `python -m documents.reader_child JOB`.

The document comes on standard input, so the process needs no path; JOB is JSON `{"mime": …, "charset": declared or
null, "parent": pid, "limits": {…}}`. The answer is `{"rows": [[kind, page, text], …], "pages": number of pages or
slides, "encoding": [name, certainty] or null, "notes": [what was not read, …]}`. This module loads neither Django nor
the gateway's settings.
"""

import asyncio
import contextlib
import itertools
import math
import re
import signal
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree  # the members were checked for declarations

import orjson
import xberg
from xberg._xberg import DocumentNode, ExtractedDocument

from core.messages import Translatable
from core.messages import Translatable as _
from documents import guards
from documents import mime_types as mt
from documents.containers import Tree
from documents.decoding import clean, decode, label_in
from documents.document import Limits
from documents.drawings import OfficeFile, texts_in
from documents.guards import Refused
from documents.list_numbers import with_numbers
from documents.patches import as_usual
from documents.pdf_text import PdfText, is_right_to_left, undivided
from documents.reading import Note, lost_words
from documents.rows import Row, answer, bounded
from documents.sandbox import run
from documents.sheets import Sheets, prepared
from documents.slides import open_document_slides, power_point_titles
from documents.text_kinds import READERS

_PAGED: Final = frozenset({mt.PDF, mt.PPT, mt.PPTX, mt.ODP})
"""Types with reliable page numbers. Files of word processors have none, because pages depend on the printer."""
_KINDS: Final = {"title": "heading", "heading": "heading", "list_item": "item", "table": "table"}
_OFFICE: Final = frozenset({mt.DOCX, mt.XLSX, mt.PPTX})
_SHEETS: Final = frozenset({mt.XLS, mt.XLSX, mt.ODS})
_HIDDEN: Final = " (hidden)"
"""The mark that the parser adds to the name of a hidden sheet."""
_DRAWN: Final = frozenset({"chart", "chartEx", "diagramData"})
_SLIDE_NAME: Final = re.compile(r"[^\W\d]+ ?\d+")
_IMAGE: Final = re.compile(r"!\[([^\]\n]*)\]\([^)\s]*\)")
_ATTACHED: Final = re.compile(r"\(\d+B\)\Z")
_MARKED_LINE: Final = re.compile(r"^[^\S\n]*([(（]?\w{1,7}(?:\.\d{1,3}){0,5}[.)）、])[^\S\n]*(\S[^\n]*)$", re.MULTILINE)
"""A line that begins with the number or letter of an item."""
_COMMENT_MARK: Final = re.compile(r"\[cmt:\d+\]|\[\^\d+\]")
_RTF_IMAGE: Final = "[Image: image]"
_RTF_MARK: Final = re.compile(r"\A\[\^\d+\]: ?|\[\^\d+\]|\[Image: image\]")
_MARKS: Final = re.compile(
    r"\(style_name: [^)\n]*\)|\[Image: [^\]\n]*\]|!?\[[^\]\n]*\]\([^)\s]*\)|\[cmt:\d+\]|\[\^\d+\]"
)
"""Marks that the parser adds to the text: names of styles and pictures, addresses, numbers of comments."""


class _Parsed(NamedTuple):
    """The result of the parser, what it read, its whole text, the number of a PDF's pages, a prepared workbook."""

    data: bytes
    extracted: ExtractedDocument
    content: str
    pages: int
    sheets: Sheets | None


def read(data: bytes, mime: str, limits: Limits, *, is_shallow: bool = False) -> dict[str, Any]:
    """Check and read one document; the parts of a container only if it is not shallow. Raises: `Refused`."""
    if mime in mt.CONTAINERS:
        if mime == mt.ZIP:
            guards.check_zip(data, mime, limits)
        # The text of a message of Outlook is read like a part.
        tree = Tree(
            lambda part, kind, label: _rows_of_part(
                part, kind, label, limits, is_shallow=is_shallow and part is not data
            ),
            limits,
        )
        rows, cut = bounded(tree.rows(data, mime), limits)
        return answer("mail" if mime != mt.ZIP else "zip", rows, [cut, *tree.notes])
    parsed = _parse(data, mime, limits)
    if mime == mt.PDF:
        return _pdf(data, parsed, limits, is_shallow=is_shallow)
    tree = _tree(limits, is_shallow=is_shallow)
    files = OfficeFile(parsed.data).files() if mime in {mt.DOCX, mt.PPTX} else ()
    inserted = (row for name, content in files for row in tree.attached(name, content))
    rows, cut = bounded(itertools.chain(_all_rows(data, mime, parsed), inserted), limits)
    images = guards.images_in(data) if mime in mt.ZIP_DOCUMENTS else parsed.content.count(_RTF_IMAGE)
    notes = [
        cut or _lost(rows, parsed.content, mime),
        Note("images_skipped", images) if images else None,
        Note.of("sheets_skipped", parsed.sheets.skipped) if parsed.sheets and parsed.sheets.skipped else None,
        *tree.notes,
    ]
    return answer("xberg", rows, notes, pages=parsed.pages or _slides_in(rows, parsed.extracted, mime))


def _pdf(data: bytes, parsed: _Parsed, limits: Limits, *, is_shallow: bool) -> dict[str, Any]:
    """Return the answer for a PDF; the files in it are its parts. Raises: `Refused`."""
    tree = _tree(limits, is_shallow=is_shallow)
    with PdfText(data) as pdf:
        rows, cut = bounded(_pdf_rows(pdf, parsed), limits)
        if not rows and guards.is_broken_pdf(data):
            raise Refused(guards.DAMAGED)
        lost = None if cut else _lost(rows, parsed.content, mt.PDF)
        scans = pdf.scans(rows)
        parts = (row for name, content in pdf.attachments() for row in tree.attached(name, content))
        rows, cut = (rows, cut) if cut else bounded([*rows, *parts], limits)
    return answer("xberg", rows, [cut or lost, *tree.notes], pages=parsed.pages, scans=scans)


def _tree(limits: Limits, *, is_shallow: bool) -> Tree:
    """Return the reader of files in a document."""
    return Tree(lambda part, kind, label: _rows_of_part(part, kind, label, limits, is_shallow=is_shallow), limits)


def _pdf_rows(pdf: PdfText, parsed: _Parsed) -> Iterator[Row]:
    """Yield the rows of the pages of a PDF, each with its comments."""
    only = 1 if parsed.pages == 1 else None
    comments = [(kind, page, found) for kind, page, text in pdf.comments() if (found := clean(text).strip())]
    listed = _with_markers(_rows(parsed, mt.PDF), clean(parsed.content))
    on_pages = ((kind, page or only, text) for kind, page, text in listed)
    rows = [row for row in pdf.rows(on_pages) if row[2]]
    yield from sorted([*rows, *comments], key=lambda row: row[1] or 0) if comments else rows


def _with_markers(rows: Iterable[Row], content: str) -> Iterator[Row]:
    """Yield the rows of a PDF; items have the numbers or letters that only the parser's whole text has."""
    markers: dict[str, list[str]] = {}
    for match in reversed(list(_MARKED_LINE.finditer(content))):
        markers.setdefault(match[2].strip(), []).append(match[1])
    for kind, page, text in rows:
        found = markers.get(text) if kind == "item" else None
        yield kind, page, f"{found.pop()} {text}" if found else text


def _lost(rows: list[Row], seen: str, mime: str) -> Note | None:
    """Return a note if the rows lack words that the parser saw, except names of slides ("page1")."""
    if mime == mt.ODP:
        seen = "\n".join(line for line in seen.split("\n") if not _SLIDE_NAME.fullmatch(line.strip()))
    elif mime == mt.PDF:
        seen = undivided(seen)
        if any(is_right_to_left(text) for _kind, _page, text in rows):  # pdfium reads other forms of letters
            return None
    return lost_words(_MARKS.sub(" ", seen), (text for _kind, _page, text in rows))


def _slides_in(rows: list[Row], extracted: ExtractedDocument, mime: str) -> int:
    last = max((page or 0 for _kind, page, _text in rows), default=0)
    return max(last, extracted.counts.pages) if mime in _PAGED else 0


def _rows_of_part(data: bytes, mime: str, charset: str | None, limits: Limits, *, is_shallow: bool) -> Iterator[Row]:
    """Yield the rows of a part of a container. Raises: `Refused`."""
    if is_shallow:
        raise Refused(guards.DAMAGED)
    if mime in mt.PARSED_TEXTS:
        yield from READERS[mime](decode(data, declared=charset or label_in(data, mime)))
    else:
        yield from _all_rows(data, mime, _parse(data, mime, limits))


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
    data = with_numbers(as_usual(data) if mime in _OFFICE else data, mime)
    sheets = prepared(data, mime, limits) if mime in _SHEETS else None
    data = sheets.data if sheets else data
    source = xberg.ExtractInput(kind="bytes", bytes=data, mime_type=mime)
    try:
        result = asyncio.run(xberg.extract(source, _config(mime, limits)))
    except (RuntimeError, ValueError) as error:  # xberg's only errors, distinguished by their messages
        is_protected = mime == mt.DOC and guards.is_protected_doc(data)
        raise Refused(guards.ENCRYPTED if is_protected else _reason(str(error))) from error
    if result.errors or not result.results:
        is_protected = mime == mt.DOC and guards.is_protected_doc(data)
        said = " ".join(error.message for error in result.errors)
        raise Refused(guards.ENCRYPTED if is_protected else _reason(said))
    extracted = result.results[0]
    content = sheets.as_shown(extracted.content) if sheets else extracted.content
    return _Parsed(data, extracted, content, count, sheets)


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


def _all_rows(data: bytes, mime: str, parsed: _Parsed) -> Iterator[Row]:
    """Yield the rows of a document that was parsed. Raises: `Refused`."""
    if mime == mt.ODP:
        rows = ((kind, page, _tidy(text, mime)) for kind, page, text in open_document_slides(data))
        yield from ((kind, page, text) for kind, page, text in rows if text or kind == "slide")
    elif mime == mt.PDF:
        with PdfText(data) as pdf:
            yield from _pdf_rows(pdf, parsed)
    elif mime == mt.PPTX:
        yield from _under_titles(_rows(parsed, mime), OfficeFile(parsed.data))
    elif mime == mt.DOCX:
        yield from _rows(parsed, mime)
        yield from _drawn(OfficeFile(parsed.data))
    elif mime == mt.MSG:
        yield from _without_list(list(_rows(parsed, mime)))
    elif parsed.sheets:
        yield from _with_comments(_rows(parsed, mime), parsed.sheets)
    else:
        yield from _rows(parsed, mime)


def _without_list(rows: list[Row]) -> list[Row]:
    """Return the rows of a message without the list of its attachments, which the parser adds."""
    places = [at for at, (_kind, _page, text) in enumerate(rows) if text == "Attachments:"]
    is_list = places and all(_ATTACHED.search(text) for _kind, _page, text in rows[places[-1] + 1 :])
    return rows[: places[-1]] if is_list else rows


def _with_comments(rows: Iterable[Row], sheets: Sheets) -> Iterator[Row]:
    """Yield the rows of a workbook; the comments of a sheet follow it."""
    left, name = dict(sheets.comments), ""
    for kind, page, text in rows:
        if kind == "heading":
            yield from (("paragraph", None, comment) for comment in left.pop(name, ()))
            name = text.removesuffix(_HIDDEN)
        yield kind, page, text
    yield from (("paragraph", None, comment) for comment in left.pop(name, ()))
    for name, comments in left.items():  # of sheets without cells
        yield "heading", None, name
        yield from (("paragraph", None, comment) for comment in comments)


def _drawn(office: OfficeFile) -> Iterator[Row]:
    """Yield the texts of the diagrams and charts of a document of Word."""
    texts = [one for part in office.shown() for one in texts_in(office.load, part, _DRAWN)]
    yield from [("context", None, "")] if texts else []
    yield from (("paragraph", None, text) for text in texts)


def _under_titles(rows: Iterable[Row], office: OfficeFile) -> Iterator[Row]:
    """Yield the rows of a presentation; the first of a slide that is its title becomes a heading.

    The comments on a slide follow it.
    """
    slides, titles = dict[int | None, str](), dict[int | None, str]()
    with contextlib.suppress(ElementTree.ParseError):  # the parser is more tolerant
        slides = dict(enumerate(office.shown(), 1))
        titles = dict(enumerate(power_point_titles(office), 1))
    for page, group in itertools.groupby(rows, key=lambda row: row[1]):
        yield "slide", page, ""
        for kind, _page, text in group:
            is_title = text and titles.get(page) == " ".join(text.split())
            if is_title:
                del titles[page]
            yield "heading" if is_title else kind, page, text
        comments = texts_in(office.load, slides.get(page, ""), {"comments"})
        yield from (("paragraph", page, text) for text in comments)


def _rows(parsed: _Parsed, mime: str) -> Iterator[Row]:
    nodes = parsed.extracted.document.nodes if parsed.extracted.document else []
    if mime == mt.RTF:  # its headers and footers are in the body too, with their spaces
        nodes = [node for node in nodes if str(node.content_layer) == "body"]
    for kind, page, text in _of_nodes(nodes) if nodes else _of_markdown(parsed.content):
        tidied = _tidy(text, mime)
        if tidied or kind == "slide":
            yield kind, page if mime in _PAGED else None, tidied


def _tidy(text: str, mime: str) -> str:
    """Return clean text without marks that the parser adds: image links in books, numbers of notes in Word and RTF."""
    if mime == mt.EPUB:
        text = _IMAGE.sub(r"\1", text)
    elif mime == mt.DOCX:
        text = _COMMENT_MARK.sub("", text)
    elif mime == mt.RTF:
        text = _RTF_MARK.sub("", text)

    return clean(text).replace("\N{NO-BREAK SPACE}", " ").strip()


def _of_nodes(nodes: Iterable[DocumentNode]) -> Iterator[Row]:
    slide: int | None = None
    title: str | None = None
    for node in nodes:
        content = orjson.loads(str(node.content))
        if content["node_type"] == "slide":
            slide, title = content["number"], " ".join((content.get("title") or "").split())
            yield "slide", slide, title
            continue
        if title and " ".join(_text_of(content).split()) == title:
            title = None  # the title is also a node of the slide
            continue
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
            yield "table", None, "\n".join(line.replace("\\|", "|") for line in lines if line.strip("|- "))
        else:
            yield "paragraph", None, part


def answers(data: bytes, job: dict[str, Any], limits: Limits) -> list[dict[str, Any]]:
    """Return the answer for a job. Raises: `Refused`."""
    return [read(data, job["mime"], limits, is_shallow=job.get("is_shallow", False))]


if __name__ == "__main__":
    run(answers)
