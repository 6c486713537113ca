"""Start and watch the processes that read documents (`reader_child`, `ocr_child`, `page_child`)."""

import contextlib
import os
import selectors
import signal
import subprocess  # the children are our own modules
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final

import orjson

from core.errors import EngineUnavailable, Unreadable
from core.messages import Translatable
from core.messages import Translatable as _
from documents.document import MIB, Limits
from documents.forked import MODULES, Forked, ReaderServer
from documents.guards import DAMAGED

PROJECT: Final = Path(__file__).resolve().parents[1]
NOT_STARTED: Final = _("The document reader process could not be started.")
_POLL_SECONDS: Final = 0.02
_READ_BYTES: Final = 1_048_576
_HAS_SERVER: Final = sys.platform == "linux"
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_ENVIRONMENT: Final = {
    "TOKIO_WORKER_THREADS": "2",
    "RAYON_NUM_THREADS": "2",
    "MALLOC_ARENA_MAX": "2",
    "OPENBLAS_NUM_THREADS": "1",
    "LANG": "C.UTF-8",
}


Process = subprocess.Popen[bytes] | Forked


def _start(arguments: list[str], stdin: IO[bytes] | int, *, is_server: bool = False) -> subprocess.Popen[bytes]:
    """Start one of our modules with a clean environment. Raises: `OSError`."""
    return subprocess.Popen(  # noqa: S603 - our module; the caller's only part is a known type
        [sys.executable, "-E", "-s", "-m", *arguments],
        stdin=stdin,
        stdout=subprocess.DEVNULL if is_server else subprocess.PIPE,
        stderr=subprocess.DEVNULL if is_server else subprocess.PIPE,
        cwd=PROJECT,
        env=_ENVIRONMENT,
        start_new_session=True,
    )


server: Final = ReaderServer(lambda control: _start(["documents.reader_server"], control.fileno(), is_server=True))


@contextlib.contextmanager
def started(module: str, file: IO[bytes], job: Mapping[str, Any], limits: Limits) -> Iterator[Process]:
    """Start a child for one file, in a process group that is killed at the end of the block.

    Raises: `EngineUnavailable`.
    """
    complete = {**job, "parent": os.getpid(), "limits": asdict(limits)}
    if _HAS_SERVER and module in MODULES and (forked := server.fork(module, file, complete)):
        try:
            yield forked
        finally:
            forked.end()
        return
    try:
        process = _start([module, orjson.dumps(complete).decode()], file)
    except OSError as error:
        raise EngineUnavailable(NOT_STARTED) from error
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process; 0 if it has ended, or if the system has no /proc."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0


def parsed(output: bytes) -> dict[str, Any]:
    """Return an answer of a child. Raises: `Unreadable` if the child refused the document."""
    answer: dict[str, Any] = orjson.loads(output)
    if refusal := answer.get("refused"):
        template, params = refusal
        raise Unreadable(Translatable(template, **params))
    return answer


def _streams(process: Process) -> Iterator[dict[int, bytearray]]:
    """Yield what the child wrote so far to its output and errors, at least every 20 ms until it closes them."""
    streams = [stream for stream in (process.stdout, process.stderr) if stream]
    found = {stream.fileno(): bytearray() for stream in streams}
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream.fileno(), selectors.EVENT_READ)
        while selector.get_map():
            for key, _mask in selector.select(_POLL_SECONDS):
                chunk = os.read(key.fd, _READ_BYTES)
                found[key.fd] += chunk
                if not chunk:
                    selector.unregister(key.fd)
            yield found


def answer_of(process: Process, limits: Limits) -> dict[str, Any]:
    """Return the child's result.

    Raises: Unreadable if the child refused the document, failed on it or exceeded time, memory or size,
    EngineUnavailable if it did not start.
    """
    max_bytes = limits.text_bytes * 2 + limits.blocks * 32  # JSON escapes quotes and newlines
    too_slow = _("Reading the document took longer than %(number)s seconds.", number=f"{limits.seconds:g}")
    too_large = _("Reading the document needed more than %(number)s MB of memory.", number=limits.memory_bytes // MIB)
    deadline = time.monotonic() + limits.seconds
    found: dict[int, bytearray] = {}
    try:
        for found in _streams(process):
            if sum(map(len, found.values())) > max_bytes:
                raise Unreadable(_("The document has too much text: send it in smaller parts."))
            if time.monotonic() > deadline:
                raise Unreadable(too_slow)
            if resident_bytes(process.pid) > limits.memory_bytes:
                raise Unreadable(too_large)
        process.wait(max(deadline - time.monotonic(), _POLL_SECONDS))
    except subprocess.TimeoutExpired:  # it closed its output and runs on
        raise Unreadable(too_slow) from None
    output, errors = (bytes(found[stream.fileno()]) for stream in (process.stdout, process.stderr) if stream)
    if not output:
        raise EngineUnavailable(NOT_STARTED)
    try:
        return parsed(output)
    except orjson.JSONDecodeError as error:
        seconds = f"{limits.page_seconds:g}"
        too_slow_page = _("Reading the document took longer than %(number)s seconds a page.", number=seconds)
        # This process sent no SIGKILL yet, so it came from the kernel's out-of-memory killer.
        reasons = {-signal.SIGXCPU: too_slow, -signal.SIGALRM: too_slow_page, -signal.SIGKILL: too_large}
        if b"memory allocation of" in errors or b"MemoryError" in errors:
            raise Unreadable(too_large) from error
        raise Unreadable(reasons.get(process.returncode or 0, DAMAGED)) from error
