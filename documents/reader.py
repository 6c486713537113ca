"""Read documents as text. Plain text is decoded in this process; other types are parsed in a child process.

The child (`reader_child`) may crash, hang or use too much memory: then it is killed, and the document is `Unreadable`
with a reason for the user. On Linux it is forked from a process that has loaded the parsers (`reader_server`): a PDF of
one page takes 23 ms of CPU time, instead of 0.36 s with a new process; each further page of dense text about 6 ms.
"""

import contextlib
import itertools
import os
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from core.errors import EngineUnavailable, Unreadable
from core.limits.concurrency import FairSemaphore
from core.messages import Translatable as _
from documents import mime_types as mt
from documents import ocr as text_recognition
from documents.calendars import readable
from documents.child import answer_of, started
from documents.decoding import decode_as, detect, label_in
from documents.document import DEFAULT_LIMITS, Block, BlockKind, Document, Limits
from documents.reading import Encoding, Note, Reading, notes_of
from documents.rows import SEPARATOR, Row, paragraphs

HEADING_CHARACTERS: Final = 200
"""The longest heading that is stored with each passage; longer ones are cut, but not in the text."""

MAX_CHILDREN: Final = min(max(2, os.cpu_count() or 1), 4)
"""The most concurrent children: one per CPU core up to four, because each may use half a gigabyte of memory."""
_slots: Final = FairSemaphore(MAX_CHILDREN)
_user: Final[ContextVar[Hashable]] = ContextVar("user", default=None)


def read_document(
    path: Path, mime_type: str, *, limits: Limits = DEFAULT_LIMITS, ocr: text_recognition.Ocr | None = None
) -> Document:
    """Return the text of a file of a type that `sniff` detected. Audio and video have none.

    The type may have the parameter `charset`: the encoding that the sender declares.
    With `ocr`, the text of images and of PDF pages without text is recognized; otherwise they have none.

    Raises: Unreadable if the file is damaged, encrypted, too large, missing or of an unsupported type;
    EngineUnavailable if the file cannot be read at the moment.
    """
    try:
        return _read(path, mt.normalize(mime_type) or mt.OCTET_STREAM, mt.charset_of(mime_type), limits, ocr)
    except FileNotFoundError as error:
        raise Unreadable(_("The stored file is missing. Upload it again.")) from error
    except OSError as error:
        raise EngineUnavailable(_("The document could not be read. Try again later.")) from error


@contextlib.contextmanager
def reading_for(user: Hashable) -> Iterator[None]:
    """Read documents inside the block on behalf of a user; users wait for children in round-robin order."""
    token = _user.set(user)
    try:
        yield
    finally:
        _user.reset(token)


def needs_parser(mime_type: str | None, *, has_ocr: bool = False) -> bool:
    """Return True if a file of this type needs one of the few child processes."""
    mime = mt.normalize(mime_type)
    return mime in mt.DOCUMENTS | mt.PARSED_TEXTS or (has_ocr and mt.is_picture(mime))


def _read(path: Path, mime: str, charset: str | None, limits: Limits, ocr: text_recognition.Ocr | None) -> Document:
    if ocr and mt.is_picture(mime) and path.stat().st_size:
        found = text_recognition.recognize(path, mime, None, ocr, _user.get())
        read = found.wanted - len(found.skipped)
        reading = Reading(ocr.engine, pages=found.wanted, pages_read=read, certainty=found.certainty)
        return _document(_recognized(found), reading.noting(*found.notes))
    if (mime.startswith(("image/", "audio/", "video/")) and mime != mt.SVG) or path.stat().st_size == 0:
        return Document(())
    if mime in mt.DOCUMENTS | mt.PARSED_TEXTS:
        answer = _parse(path, mime, charset, limits)
        blocks = list(_blocks(answer["rows"]))
        reading = Reading(answer["parser"], pages=answer["pages"] or None, notes=notes_of(answer["notes"]))
        if answer["encoding"]:
            reading = reading.decoded(Encoding(*answer["encoding"]))
        if mime == mt.PDF:
            return _with_scanned_pages(blocks, reading, answer["scans"], path, ocr)
        return _document(blocks, replace(reading, pages_read=reading.pages))
    if mime.startswith("text/") or mime in mt.INLINE_TEXTS:
        return _plain(path, mime, charset, limits)
    raise Unreadable(_("Files of type %(type)s contain no text that can be read.", type=mime))


def _parse(path: Path, mime: str, charset: str | None, limits: Limits) -> dict[str, Any]:
    """Return the answer of a child. A container whose parts make the child fail is read without them."""
    child = "documents.text_child" if mime in mt.PARSED_TEXTS else "documents.reader_child"
    jobs: list[dict[str, Any]] = [{"mime": mime, "charset": charset}]
    if mime in mt.CONTAINERS:
        jobs.append({**jobs[0], "is_shallow": True})
    for number, job in enumerate(jobs, 1):
        with (
            contextlib.suppress(*([Unreadable] if number < len(jobs) else [])),
            _slots.slot(_user.get()),
            path.open("rb") as file,
            started(child, file, job, limits) as process,
        ):
            return answer_of(process, limits)
    raise AssertionError("the last job returns or raises")


def _document(blocks: Iterable[Block], reading: Reading) -> Document:
    """Return a document with its reading, which counts its characters."""
    every = tuple(blocks)
    reading = replace(reading, characters=sum(len(block.text) for block in every))
    return Document(every, truncated=reading.is_cut, reading=reading)


def _with_scanned_pages(
    blocks: Sequence[Block], reading: Reading, scans: Sequence[int], path: Path, ocr: text_recognition.Ocr | None
) -> Document:
    """Return a PDF with the text of its pages that are pictures, if it can be recognized.

    `scans` are pages with a little text, such as a stamp.
    """
    with_text = {block.page for block in blocks} - set(scans)
    count = reading.pages or 0
    pages = [page for page in range(1, count + 1) if page not in with_text]
    unread = Note.of("pages_without_text", pages) if pages else None
    left = replace(reading, pages_read=count - len(pages)).noting(unread)
    if not pages or reading.is_cut or ocr is None:
        return _document(blocks, left)
    try:
        found = text_recognition.recognize(path, mt.PDF, pages, ocr, _user.get())
    except Unreadable:  # the renderer is stricter than the parser
        return _document(blocks, left)
    recognized = list(_recognized(found))
    # A picture of a page is drawn with its stamps: what is recognized has them too.
    replaced = {page for page in scans if _words_on(page, recognized) >= _words_on(page, blocks)}
    kept = [block for block in blocks if block.page not in replaced]
    recognized = [block for block in recognized if block.page in replaced or block.page not in scans]
    blocks = sorted([*kept, *recognized], key=lambda block: block.page or 0)
    parser, pages_read = f"{reading.parser}, {ocr.engine}", count - len(found.skipped)
    read = replace(reading, parser=parser, pages_read=pages_read, certainty=found.certainty)
    return _document(blocks, read.noting(*found.notes))


def _words_on(page: int, blocks: Iterable[Block]) -> int:
    return sum(len(block.text.split()) for block in blocks if block.page == page)


def _recognized(found: text_recognition.Recognized) -> Iterator[Block]:
    for page, text, box in found.paragraphs:
        yield Block(text, page, None, box=box)


def _plain(path: Path, mime: str, charset: str | None, limits: Limits) -> Document:
    with path.open("rb") as file:
        data = file.read(limits.text_bytes + 1)
    encoding = detect(data[: limits.text_bytes], declared=charset or label_in(data, mime))
    rows = paragraphs(readable(decode_as(data[: limits.text_bytes], encoding)))
    blocks = list(_blocks(itertools.islice(rows, limits.blocks)))
    cut = Note("text_cut", limits.text_bytes) if len(data) > limits.text_bytes else None
    if not cut and next(rows, None) is not None:
        cut = Note("blocks_cut", limits.blocks)
    return _document(blocks, Reading("text").decoded(encoding).noting(cut))


def _blocks(rows: Iterable[Row]) -> Iterator[Block]:
    """Yield blocks with their headings; consecutive list items are joined to one paragraph, one per line.

    The path of a part is the heading of what is in it, before its own headings.
    """
    path: str | None = None
    heading: str | None = None
    items: list[str] = []
    items_page: int | None = None
    for kind, page, text in rows:
        if items and (kind != "item" or page != items_page):
            yield Block("\n".join(items), items_page, heading)
            items = []
        if kind == "item":
            items_page = page
            items.append(text)
            continue
        if kind == "part":
            path = heading = text[:HEADING_CHARACTERS]
        if kind in {"heading", "slide", "context"}:
            named = filter(None, (path, " ".join(text.split())))
            heading = SEPARATOR.join(named)[:HEADING_CHARACTERS] or None
        if kind == "context" or (kind == "slide" and not text):  # it ends what the one before is about
            continue
        yield Block(text, page, heading, _KINDS.get(kind, "paragraph"))
    if items:
        yield Block("\n".join(items), items_page, heading)


_KINDS: Final[dict[str, BlockKind]] = {"heading": "heading", "part": "heading", "slide": "heading", "table": "table"}
