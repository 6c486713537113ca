"""Process that has loaded the parsers and forks a sandboxed child for each document.

It runs as `python -m documents.reader_server`, with a Unix socket as standard input: a message is a job of
`reader_child` or `text_child` with the key "module", and four descriptors: the document, the child's output and errors,
and a connection. The connection returns the child's process number, then its exit code. When the other end closes it,
the child is killed. This process reads no document, and ends with the gateway or when it is idle.
"""

import gc
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final, NoReturn

import orjson

from documents import reader_child, text_child
from documents.document import Limits
from documents.sandbox import run_job

IDLE_SECONDS: Final = 300
MAX_JOB_BYTES: Final = 65_536
DESCRIPTORS: Final = 4
MAX_DESCRIPTORS: Final = 65_536
_READERS: Final[dict[str, Callable[[bytes, dict[str, Any], Limits], Iterable[dict[str, Any]]]]] = {
    "documents.reader_child": reader_child.answers,
    "documents.text_child": text_child.answers,
}


def serve(control: socket.socket) -> None:
    """Fork children for the jobs of a socket until it is closed or idle."""
    gc.freeze()  # a collection in a child would copy the memory of all modules
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        while True:
            events = selector.select(IDLE_SECONDS)
            if not events and len(selector.get_map()) == 1:
                return
            for key, _mask in events:
                if key.fileobj is control:
                    message, descriptors, _flags, _address = socket.recv_fds(control, MAX_JOB_BYTES, DESCRIPTORS)
                    if len(descriptors) != DESCRIPTORS:
                        return
                    _start(message, descriptors, selector)
                else:
                    key.data(selector)


def _start(message: bytes, descriptors: list[int], selector: selectors.BaseSelector) -> None:
    """Fork a child for a job and watch it."""
    server = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become_child(message, descriptors[:3], server)
    for descriptor in descriptors[:3]:
        os.close(descriptor)
    _Child(pid, socket.socket(fileno=descriptors[3])).watch(selector)


def _become_child(message: bytes, streams: list[int], server: int) -> NoReturn:
    try:
        os.setsid()
        for target, descriptor in enumerate(streams):
            os.dup2(descriptor, target)
        os.closerange(3, min(MAX_DESCRIPTORS, os.sysconf("SC_OPEN_MAX")))
        job = orjson.loads(message)
        run_job({**job, "parent": server}, _READERS[job["module"]])
    except BaseException:  # noqa: BLE001  a child never returns to the server's loop
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(1)


class _Child:
    """A forked child and the connection to those who wait for it."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self._pid, self._connection = pid, connection
        self._descriptor = os.pidfd_open(pid)

    def watch(self, selector: selectors.BaseSelector) -> None:
        selector.register(self._descriptor, selectors.EVENT_READ, self._ended)
        selector.register(self._connection, selectors.EVENT_READ, self._closed)
        self._send(self._pid)

    def _ended(self, selector: selectors.BaseSelector) -> None:
        """Send the exit code. The process number stays taken until the connection is closed."""
        selector.unregister(self._descriptor)
        status = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        if status is not None:
            self._send(status.si_status if status.si_code == os.CLD_EXITED else -status.si_status)

    def _closed(self, selector: selectors.BaseSelector) -> None:
        selector.unregister(self._connection)
        with suppress(KeyError):
            selector.unregister(self._descriptor)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)  # it may not have a group yet
        os.waitpid(self._pid, 0)
        os.close(self._descriptor)
        self._connection.close()

    def _send(self, number: int) -> None:
        with suppress(OSError):  # the reader of the answer is gone
            self._connection.send(str(number).encode())


if __name__ == "__main__":
    serve(socket.socket(fileno=os.dup(0)))
