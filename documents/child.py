"""Start and watch the processes that read documents (`reader_child`, `ocr_child`)."""

import contextlib
import os
import signal
import subprocess  # nosec B404: the children are our own modules
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final

import orjson

from core import cpu_affinity
from core.errors import EngineUnavailable
from core.messages import Message as _
from documents.document import Limits

PROJECT: Final = Path(__file__).resolve().parents[1]
NOT_STARTED: Final = _("The document reader process could not be started.")
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
        with cpu_affinity.original_affinity():
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
