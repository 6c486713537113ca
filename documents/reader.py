"""Reading of documents as text. Plain text is decoded here; other types are parsed in a child process.

The child (`reader_child`) may crash, hang or use too much memory: it is then killed, and the document is `Unreadable`
with a reason for the user. Plain text costs no process; a typical PDF of a few pages takes 0.25 s, of which 0.2 s start
the child, and each further page of dense text about 6 ms.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import selectors
import signal
import subprocess  # nosec B404: the child is our own module
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final

import orjson

from core import cpu_affinity
from core.errors import EngineUnavailable, Unreadable
from documents import mime_types as mt
from documents.decoding import decode
from documents.document import Block, BlockKind, Document
from documents.guards import DAMAGED
from documents.limits import DEFAULT, MIB, Limits

PROJECT: Final = Path(__file__).resolve().parents[1]
HEADING_CHARACTERS: Final = 200
"""A heading is repeated with each of its passages; longer ones are cut there (not in the text)."""

_CHILDREN: Final = threading.BoundedSemaphore(2)
"""Together they may use a gigabyte; further documents wait."""
_POLL_SECONDS: Final = 0.02
_ENDING_SECONDS: Final = 1.0
_ERROR_BYTES: Final = 4096
_ENVIRONMENT: Final = {
    "TOKIO_WORKER_THREADS": "2",
    "RAYON_NUM_THREADS": "2",
    "MALLOC_ARENA_MAX": "2",
    "LANG": "C.UTF-8",
}
_NOT_STARTED: Final = "The process that reads documents could not be started."
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_MARKDOWN_HEADING: Final = re.compile(r"#{1,6}\s+(.+?)\s*#*", re.DOTALL)


def read_document(path: Path, mime_type: str, *, limits: Limits = DEFAULT) -> Document:
    """Return the text of a file whose type `sniff` found. Images, audio and video have none.

    Raises: Unreadable if the file is damaged, encrypted, too large, missing or of an unsupported type;
    EngineUnavailable when the machine cannot read it now.
    """
    try:
        return _read(path, mt.normalise(mime_type) or mt.OCTET_STREAM, limits)
    except FileNotFoundError as error:
        raise Unreadable("The file is no longer in the storage.") from error
    except OSError as error:
        raise EngineUnavailable("The document could not be read just now.") from error


def _read(path: Path, mime: str, limits: Limits) -> Document:
    if mime.startswith(("image/", "audio/", "video/")) or path.stat().st_size == 0:
        return Document(())
    if mime in mt.DOCUMENTS:
        return _in_child(path, mime, limits)
    if mime.startswith("text/") or mime in mt.INLINE_TEXTS:
        return _plain(path, mime, limits)
    raise Unreadable(f"Files of type {mime} hold no text that can be read.")


def _plain(path: Path, mime: str, limits: Limits) -> Document:
    with path.open("rb") as file:
        data = file.read(limits.text_bytes + 1)
    text = decode(data[: limits.text_bytes])
    rows = _paragraphs(text, mime)
    blocks = tuple(_blocks(itertools.islice(rows, limits.blocks)))
    return Document(blocks, truncated=len(data) > limits.text_bytes or next(rows, None) is not None)


def _paragraphs(text: str, mime: str) -> Iterator[tuple[str, None, str]]:
    """Yield rows like the child's: paragraphs are separated by empty lines, a table of values is one table."""
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


def _blocks(rows: Iterable[tuple[str, int | None, str]]) -> Iterator[Block]:
    """Yield blocks with their headings; the items of a list, one per line, form one paragraph."""
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
        if kind == "heading":
            heading = " ".join(text.split())[:HEADING_CHARACTERS]
        yield Block(text, page, heading, _KINDS.get(kind, "paragraph"))
    if items:
        yield Block("\n".join(items), items_page, heading)


_KINDS: Final[dict[str, BlockKind]] = {"heading": "heading", "table": "table"}


def _in_child(path: Path, mime: str, limits: Limits) -> Document:
    with _CHILDREN, path.open("rb") as file, _child(file, mime, limits) as process:
        answer = _ResultCollector(process, limits).answer()
    if refusal := answer.get("refused"):
        raise Unreadable(refusal)
    return Document(tuple(_blocks(answer["rows"])), truncated=answer["truncated"])


@contextlib.contextmanager
def _child(file: IO[bytes], mime: str, limits: Limits) -> Iterator[subprocess.Popen[bytes]]:
    """Start a child for one file, in a process group that is killed at the end of the block."""
    job = orjson.dumps({"mime": mime, "parent": os.getpid(), "limits": asdict(limits)}).decode()
    try:
        with cpu_affinity.original_affinity():
            process = subprocess.Popen(  # noqa: S603  # nosec B603: our module; the caller's only part is a known type
                [sys.executable, "-E", "-s", "-m", "documents.reader_child", job],
                stdin=file,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=PROJECT,
                env=_ENVIRONMENT,
                start_new_session=True,
            )
    except OSError as error:
        raise EngineUnavailable(_NOT_STARTED) from error
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()


class _ResultCollector:
    """A collector of the child's result that stops when the child exceeds time, memory or size."""

    def __init__(self, process: subprocess.Popen[bytes], limits: Limits) -> None:
        self._process = process
        self._limits = limits
        self._deadline = time.monotonic() + limits.seconds
        self._output = bytearray()
        self._errors = bytearray()

    def answer(self) -> dict[str, Any]:
        """Return the child's result.

        Raises: Unreadable if the child failed on the document, EngineUnavailable if it did not start.
        """
        self._collect()
        if not self._output:
            raise EngineUnavailable(_NOT_STARTED)
        try:
            answer: dict[str, Any] = orjson.loads(self._output)
        except orjson.JSONDecodeError as error:
            raise Unreadable(self._cause()) from error
        return answer

    def _collect(self) -> None:
        """Read both pipes until the child closes its output."""
        max_bytes = self._limits.text_bytes * 2 + self._limits.blocks * 32  # JSON escapes quotes and newlines
        with selectors.DefaultSelector() as selector:
            selector.register(_pipe(self._process.stdout), selectors.EVENT_READ, self._output)
            selector.register(_pipe(self._process.stderr), selectors.EVENT_READ, self._errors)
            while _pipe(self._process.stdout) in selector.get_map():
                for key, _ in selector.select(_POLL_SECONDS):
                    self._take(selector, key)
                if len(self._output) > max_bytes:
                    raise Unreadable("The document holds more text than we read: send it in smaller parts.")
                self._check()

    def _take(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        chunk = os.read(key.fd, 65_536)
        if not chunk:
            selector.unregister(key.fileobj)
        buffer = key.data
        buffer += chunk
        if buffer is self._errors:
            del buffer[:-_ERROR_BYTES]

    def _check(self) -> None:
        if time.monotonic() > self._deadline:
            raise Unreadable(self._time_cause())
        if resident_bytes(self._process.pid) > self._limits.memory_bytes:
            raise Unreadable(self._memory_cause())

    def _cause(self) -> str:
        """Return the reason why the child ended without a result, from its error output or its exit signal."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDING_SECONDS)
        if self._process.returncode == -signal.SIGXCPU:
            return self._time_cause()
        # A SIGKILL that we did not send came from the kernel's out-of-memory killer.
        was_killed = self._process.returncode == -signal.SIGKILL
        if was_killed or b"memory allocation of" in self._errors or b"MemoryError" in self._errors:
            return self._memory_cause()
        return DAMAGED

    def _time_cause(self) -> str:
        return f"Reading the document took longer than {self._limits.seconds:g} seconds."

    def _memory_cause(self) -> str:
        return f"Reading the document needed more than {self._limits.memory_bytes // MIB} MB of memory."


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise ValueError("the child was started without this pipe")
    return stream


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process; 0 if it has ended, or if the system has no /proc."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0
