"""The connection to the process that forks readers of documents (`reader_server`). One serves the whole gateway.

It starts with the first document and again after it ended. Without it each document pays for loading the parsers.
"""

import atexit
import os
import signal
import socket
import subprocess  # the server is our own module
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import IO, Any, Final

import orjson

MODULES: Final = frozenset({"documents.reader_child", "documents.text_child"})
_START_SECONDS: Final = 30.0
_RETRY_SECONDS: Final = 60.0
"""The time for which a server that does not start is left alone."""


class Forked:
    """A child of the server, with the attributes of a `Popen`."""

    def __init__(self, pid: int, connection: socket.socket, stdout: IO[bytes], stderr: IO[bytes]) -> None:
        self.pid, self.stdout, self.stderr = pid, stdout, stderr
        self.returncode: int | None = None
        self._connection = connection

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code; `-SIGKILL` if the server was killed with its children. Raises: `TimeoutExpired`."""
        if self.returncode is None:
            self._connection.settimeout(timeout)
            try:
                self.returncode = int(self._connection.recv(32) or -signal.SIGKILL)
            except TimeoutError:
                raise subprocess.TimeoutExpired("reader", timeout or 0) from None
            except OSError:
                self.returncode = -signal.SIGKILL
        return self.returncode

    def end(self) -> None:
        """Kill the child and its group if they still run. Its number is its own until the connection is closed."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._connection.close()
        self.stdout.close()
        self.stderr.close()


class ReaderServer:
    """The server's process, and the socket for its jobs. `start` starts a process with a socket as standard input."""

    def __init__(self, start: Callable[[socket.socket], subprocess.Popen[bytes]]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._retry_at = 0.0
        atexit.register(self.stop)
        os.register_at_fork(after_in_child=self._forget)

    def fork(self, module: str, file: IO[bytes], job: Mapping[str, Any]) -> Forked | None:
        """Return a child that reads a file; None if the server does not start."""
        if time.monotonic() < self._retry_at:
            return None
        message = orjson.dumps({**job, "module": module})
        for _attempt in range(2):  # a server that ended when it was idle is started again
            with suppress(OSError, ValueError):
                return self._forked(message, file)
            self._end()
        self._retry_at = time.monotonic() + _RETRY_SECONDS  # such as on a kernel without `pidfd_open`
        return None

    def stop(self) -> None:
        """End the server and its children."""
        self._end()
        self._retry_at = 0.0

    def _end(self) -> None:
        with self._lock:
            process, control = self._process, self._control
            self._process = self._control = None
        if control is not None:
            control.close()
        if process is not None:
            process.kill()
            process.wait()

    def _forked(self, message: bytes, file: IO[bytes]) -> Forked:
        """Send a job and return its child. Raises: `OSError` or `ValueError` if the server has ended."""
        with ExitStack() as local, ExitStack() as remote:
            near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # two numbers are two messages
            remote.enter_context(far)
            local.enter_context(near)
            (output, output_end), (errors, errors_end) = os.pipe(), os.pipe()
            remote.callback(os.close, output_end)
            remote.callback(os.close, errors_end)
            streams = [local.enter_context(os.fdopen(end, "rb", buffering=0)) for end in (output, errors)]
            descriptors = [file.fileno(), output_end, errors_end, far.fileno()]
            with self._lock:
                socket.send_fds(self._connected(), [message], descriptors)
            remote.close()
            near.settimeout(_START_SECONDS)
            forked = Forked(int(near.recv(32)), near, *streams)
            local.pop_all()
            return forked

    def _connected(self) -> socket.socket:
        if self._control is None:
            near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with far, ExitStack() as failed:
                failed.enter_context(near)
                self._process = self._start(far)
                self._control = near
                failed.pop_all()
        return self._control

    def _forget(self) -> None:
        """Leave the server to the parent after a fork of the gateway."""
        self._lock = threading.Lock()
        if self._control is not None and self._process is not None:
            self._control.close()
            self._process.returncode = 0  # it is no child of this process
        self._process = self._control = None
