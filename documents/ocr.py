"""Recognize the text of pictures and scanned pages in a child process (`ocr_child`), page by page.

A page that crashes the child, hangs or needs too much memory is skipped. Pages that were read are kept in a file until
the document is complete, so that the next attempt continues after them.
"""

import base64
import hashlib
import importlib.util
import os
import selectors
import shutil
import subprocess  # tesseract, a program that the operator chose
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import IO, Any, Final, Self

import orjson
from cryptography.fernet import Fernet, InvalidToken

from core.errors import EngineUnavailable
from core.limits.concurrency import FairSemaphore
from core.messages import Translatable as _
from documents import child
from documents.document import MIB, Box, Limits, union
from documents.reading import Note, NoteCode

LIMITS: Final = Limits(seconds=1800, page_seconds=120, memory_bytes=1536 * MIB, pdf_pages=500)
"""The time of one attempt and of one page, the resident memory, and the most pages of one document that are read."""
_PACKAGES: Final = {"rapidocr": ("rapidocr", "onnxruntime", "pypdfium2"), "tesseract": ("PIL", "pypdfium2")}
_MAX_FAILED_PAGES: Final = 3
"""After this many failed pages in a row the rest of a document is not tried."""
_LEAST_SCORE: Final = 0.75
"""The recognition of a page is doubtful if its characters have a lower score on average."""
_KEPT_SECONDS: Final = 86_400
_POLL_SECONDS: Final = 0.1
_PARAGRAPH_CHARACTERS: Final = 400
_slots: Final = FairSemaphore(1)

Line = tuple[str, Box]
Paragraph = tuple[int | None, str, Box]
"""Page from 1, text, and the box around it."""


@dataclass(frozen=True, slots=True)
class Ocr:
    """The settings of text recognition. `engine`: "rapidocr" or "tesseract". `folder` keeps unfinished documents.

    `models` are files that rapidocr reads other scripts with, or tesseract's languages.
    """

    engine: str
    folder: Path
    limits: Limits = LIMITS
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recognized:
    """The paragraphs of pages in order, the number of wanted pages, and those that were left out or are doubtful.

    `certainty` is the average score of the pages.
    """

    paragraphs: tuple[Paragraph, ...]
    wanted: int
    skipped: tuple[int, ...]
    doubtful: tuple[int, ...]
    certainty: float | None = None

    @property
    def notes(self) -> list[Note]:
        found: dict[NoteCode, tuple[int, ...]] = {"pages_skipped": self.skipped, "recognition_doubtful": self.doubtful}
        return [Note.of(code, pages) for code, pages in found.items() if pages]


def is_available(engine: str) -> bool:
    """Return True if the packages and the program that an OCR engine needs are installed."""
    packages = _PACKAGES.get(engine)
    if packages is None or any(importlib.util.find_spec(name) is None for name in packages):
        return False
    return engine != "tesseract" or shutil.which("tesseract") is not None


def models_of(engine: str, value: str) -> tuple[str, ...]:
    """Return the models that a setting names: a folder of rapidocr, languages of tesseract ("deu+rus").

    Raises: `ValueError`, with the remedy, if one is absent.
    """
    if engine == "tesseract" and value:
        command = [shutil.which(engine) or engine, "--list-langs"]
        listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split("\n")  # noqa: S603
        languages = tuple(value.split("+"))
        if missing := [language for language in languages if language not in listed]:
            raise ValueError(f"tesseract has no data of {', '.join(missing)}: install its language packages.")
        return languages
    if engine == "rapidocr" and value:
        models = tuple(sorted(str(model) for model in Path(value).glob("*_rec_*.onnx")))
        if not models:
            raise ValueError(f"the folder {value} has no recognition models (*_rec_*.onnx): download those of PP-OCR.")
        return models
    return ()


def recognize(path: Path, mime: str, pages: Sequence[int] | None, ocr: Ocr, user: object = None) -> Recognized:
    """Return the text of the given pages of a PDF, or of all pages of an image (None).

    Raises: `Unreadable` for a damaged or too large picture, `EngineUnavailable` if the time of the attempt is over or
    the child did not start.
    """
    progress = _Progress.of(path, ocr)
    with _slots.slot(user):
        _read_pages(path, mime, pages, ocr, progress)
    progress.file.unlink(missing_ok=True)
    read = sorted(progress.pages.items())
    is_paged = mime == "application/pdf" or len(read) > 1
    paragraphs = [
        (number if is_paged else None, text, turned(box, progress.turns.get(number, 0)))
        for number, lines in read
        for text, box in paragraphs_of(lines)
    ]
    wanted = range(1, progress.count + 1) if pages is None else pages
    skipped = tuple(number for number in wanted if number not in progress.pages or number in progress.failed)
    doubtful = tuple(sorted(number for number, score in progress.scores.items() if score < _LEAST_SCORE))
    certainty = round(fmean(progress.scores.values()), 3) if progress.scores else None
    return Recognized(tuple(paragraphs), len(wanted), skipped, doubtful, certainty)


@dataclass(slots=True)
class _Progress:
    """The pages that were read. A page that failed has no lines.

    `file` is encrypted with the document's own digest, so without the document it cannot be read.
    """

    file: Path
    cipher: Fernet
    pages: dict[int, list[Line]]
    failed: set[int]
    scores: dict[int, float]
    turns: dict[int, int]
    count: int = 1

    @classmethod
    def of(cls, path: Path, ocr: Ocr) -> Self:
        ocr.folder.mkdir(parents=True, exist_ok=True)
        for old in ocr.folder.glob("*.jsonl"):
            if time.time() - old.stat().st_mtime > _KEPT_SECONDS:
                old.unlink(missing_ok=True)
        with path.open("rb") as source:
            digest = hashlib.file_digest(source, "sha256").digest()
        name = hashlib.sha256(digest).hexdigest()
        cipher = Fernet(base64.urlsafe_b64encode(digest))
        progress = cls(ocr.folder / f"{name}-{ocr.engine}.jsonl", cipher, {}, set(), {}, {})
        if progress.file.exists():
            for line in progress.file.read_bytes().splitlines(keepends=True):
                with suppress(InvalidToken):  # the last one may be cut off
                    progress.take(orjson.loads(cipher.decrypt(line.rstrip(b"\n"))))
        return progress

    def take(self, answer: dict[str, Any]) -> None:
        self.pages[answer["page"]] = [(text, tuple(box)) for text, box in answer["lines"]]
        self.count = answer["of"]
        if answer.get("score") is not None:
            self.scores[answer["page"]] = answer["score"]
        self.turns[answer["page"]] = answer.get("turn", 0)
        if answer.get("failed"):
            self.failed.add(answer["page"])

    def add(self, answer: dict[str, Any]) -> None:
        self.take(answer)
        with self.file.open("ab") as file:
            file.write(self.cipher.encrypt(orjson.dumps(answer)) + b"\n")


def _read_pages(path: Path, mime: str, pages: Sequence[int] | None, ocr: Ocr, progress: _Progress) -> None:
    limits, failures = ocr.limits, 0
    deadline = time.monotonic() + limits.seconds
    while failures < _MAX_FAILED_PAGES:
        # The number of frames of an image is known after the first.
        wanted = list(pages if pages is not None else range(1, progress.count + 1))[: limits.pdf_pages]
        left = [number for number in wanted if number not in progress.pages]
        if not left:
            return
        before = len(progress.pages)
        for answer in _answers(path, mime, left, ocr, deadline):
            progress.add(answer)
        is_complete = all(number in progress.pages for number in left)
        failures = 0 if len(progress.pages) > before else failures
        if not is_complete:
            bad = next(number for number in left if number not in progress.pages)
            progress.add({"page": bad, "of": progress.count, "lines": [], "failed": True})
            failures += 1


def _answers(path: Path, mime: str, pages: list[int], ocr: Ocr, deadline: float) -> Iterator[dict[str, Any]]:
    """Yield the child's pages until it ends, hangs on a page or needs too much memory."""
    engine = ocr.engine if ocr.engine == "rapidocr" else shutil.which("tesseract") or ocr.engine
    job = {"mime": mime, "engine": engine, "models": ocr.models, "pages": pages}
    with path.open("rb") as file, child.started("documents.ocr_child", file, job, ocr.limits) as process:
        is_ready = False
        for line in _lines(process, ocr.limits, deadline):
            if not is_ready:
                is_ready = True
                continue
            yield child.parsed(line)
        if not is_ready:
            raise EngineUnavailable(child.NOT_STARTED)


def _lines(process: child.Process, limits: Limits, deadline: float) -> Iterator[bytes]:
    output: IO[bytes] | None = process.stdout
    if output is None:
        return
    os.set_blocking(output.fileno(), False)
    buffer, since = b"", time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while True:
            if selector.select(_POLL_SECONDS):
                chunk = output.read()
                if chunk == b"":
                    return
                *lines, buffer = (buffer + (chunk or b"")).split(b"\n")
                for line in lines:
                    since = time.monotonic()
                    yield line
            now = time.monotonic()
            if now > deadline:
                raise EngineUnavailable(_("Recognizing the text of the pages takes long. It will continue."))
            is_over = now - since > limits.page_seconds or len(buffer) > limits.text_bytes
            if is_over or child.resident_bytes(process.pid) > limits.memory_bytes:
                return


def turned(box: Box, turn: int) -> Box:
    """Return a place on a page as it is stored from that on the page turned against the clock by some degrees."""
    left, top, right, bottom = box
    places = {90: (1 - bottom, left, 1 - top, right), 180: (1 - right, 1 - bottom, 1 - left, 1 - top)}
    places[270] = top, 1 - right, bottom, 1 - left
    found = places.get(turn, box)
    return round(found[0], 4), round(found[1], 4), round(found[2], 4), round(found[3], 4)


def paragraphs_of(lines: Sequence[Line]) -> Iterator[tuple[str, Box]]:
    """Join lines to paragraphs: a gap of more than a line's height, or a full stop after 400 characters, ends one."""
    text, box, last = "", None, None
    for line, place in lines:
        if box is None or last is None:
            text, box = line, place
        elif place[1] - last[3] > last[3] - last[1] or last[1] - place[3] > 0 or len(text) > _PARAGRAPH_CHARACTERS:
            yield text, box
            text, box = line, place
        else:
            text = _joined(text, line)
            box = union(box, place)
        last = place
    if box is not None:
        yield text, box


def _joined(text: str, line: str) -> str:
    if text.endswith("-") and text[-2:-1].isalpha() and line[:1].islower():
        return text[:-1] + line
    return text + ("" if _is_cjk(text[-1]) and _is_cjk(line[0]) else " ") + line


def _is_cjk(character: str) -> bool:
    return "\u2e80" <= character <= "\u9fff" or "\uf900" <= character <= "\ufaff" or "\uff00" <= character <= "\uffef"
