"""The processes that parse documents: their job and answers, limits and lost rights."""

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

import orjson

from documents.document import MIB, Limits
from documents.guards import Refused

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NO_NEW_PRIVS: Final = 38
_CLONE_NEWUSER: Final = 0x10000000
_CLONE_NEWNET: Final = 0x40000000
_MEMORY_RESERVE: Final = 256 * MIB
"""Memory that may be reserved in addition to the limit, which the parent checks against resident memory only."""
_OPEN_FILES: Final = 64


def run(read: Callable[[bytes, dict[str, Any], Limits], Iterable[dict[str, Any]]]) -> NoReturn:
    """Read the file of standard input by the job of the first argument, in the sandbox, and end this process.

    Standard output gets a newline when the sandbox is ready, because later failures are caused by the document; then
    each answer as a line of JSON, or `{"refused": [template, params]}`.
    """
    run_job(orjson.loads(sys.argv[1]), read)


def run_job(job: dict[str, Any], read: Callable[[bytes, dict[str, Any], Limits], Iterable[dict[str, Any]]]) -> NoReturn:
    """Do one job, as `run` does, and end this process."""
    limits = Limits(**job["limits"])
    enter_sandbox(job["parent"], limits)
    with suppress(BrokenPipeError):
        _send(b"")
        try:
            for answer in read(sys.stdin.buffer.read(), job, limits):
                _send(orjson.dumps(answer))
        except Refused as refusal:
            _send(orjson.dumps({"refused": [refusal.message.template, refusal.message.params]}))
    os._exit(0)  # do not wait for the parser's threads


def discard_warnings() -> None:
    """Discard what libraries write to standard error, where nothing reads it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _send(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def enter_sandbox(parent: int, limits: Limits) -> None:
    """Give up rights that a parser does not need: writing files, the network, running longer than the gateway."""
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
    # If memory runs out, the kernel must kill this process before the gateway.
    Path("/proc/self/oom_score_adj").write_text("1000")
    # Without a user namespace only root may drop the network. If the kernel refuses both, the network stays.
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        libc.unshare(_CLONE_NEWNET)
