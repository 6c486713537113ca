"""Start and watch the processes that read documents (`reader_child`, `ocr_child`, `page_child`)."""

import contextlib
import os
import signal
import subprocess  # nosec B404: the children are our own modules
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
from documents.guards import DAMAGED

PROJECT: Final = Path(__file__).resolve().parents[1]
NOT_STARTED: Final = _("The document reader process could not be started.")
_POLL_SECONDS: Final = 0.02
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_ENVIRONMENT: Final = {
    "TOKIO_WORKER_THREADS": "2",
    "RAYON_NUM_THREADS": "2",
    "MALLOC_ARENA_MAX": "2",
    "OPENBLAS_NUM_THREADS": "1",
    "LANG": "C.UTF-8",
}


@contextlib.contextmanager
def started(module: str, file: IO[bytes], job: Mapping[str, Any], limits: Limits) -> Iterator[subprocess.Popen[bytes]]:
    """Start a child for one file, in a process group that is killed at the end of the block.

    Raises: `EngineUnavailable`.
    """
    argument = orjson.dumps({**job, "parent": os.getpid(), "limits": asdict(limits)}).decode()
    try:
        process = subprocess.Popen(  # noqa: S603  # nosec B603: our module; the caller's only part is a known type
            [sys.executable, "-E", "-s", "-m", module, argument],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=PROJECT,
            env=_ENVIRONMENT,
            start_new_session=True,
        )
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


def answer_of(process: subprocess.Popen[bytes], limits: Limits) -> dict[str, Any]:
    """Return the child's result.

    Raises: Unreadable if the child refused the document, failed on it or exceeded time, memory or size,
    EngineUnavailable if it did not start.
    """
    max_bytes = limits.text_bytes * 2 + limits.blocks * 32  # JSON escapes quotes and newlines
    too_slow = _("Reading the document took longer than %(number)s seconds.", number=f"{limits.seconds:g}")
    too_large = _("Reading the document needed more than %(number)s MB of memory.", number=limits.memory_bytes // MIB)
    deadline = time.monotonic() + limits.seconds
    while True:
        try:
            output, errors = process.communicate(timeout=_POLL_SECONDS)
            break
        except subprocess.TimeoutExpired as timeout:
            if len(timeout.stdout or b"") + len(timeout.stderr or b"") > max_bytes:
                raise Unreadable(_("The document has too much text: send it in smaller parts.")) from None
            if time.monotonic() > deadline:
                raise Unreadable(too_slow) from None
            if resident_bytes(process.pid) > limits.memory_bytes:
                raise Unreadable(too_large) from None
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
        raise Unreadable(reasons.get(process.returncode, DAMAGED)) from error
