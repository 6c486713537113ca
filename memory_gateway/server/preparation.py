"""Run the preparation of a start in a separate process, whose memory ends with it."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from importlib import import_module

from memory_gateway.server.serving import APPLICATION


def run_apart(prepare: Callable[[], None], *, loads_application: bool) -> None:
    """Run it in a forked process, while this one may load the application. Ends this process if it fails.

    Migrations of a new database leave 30 MB behind. Without Linux, or beside other threads, it runs in this process.
    """
    if sys.platform != "linux" or threading.active_count() > 1:
        prepare()
        return
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        prepare()  # an error is reported and ends the process as in the command itself
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    status = _wait(pid, loads_application=loads_application)
    if status:
        os._exit(status if status > 0 else 128 - status)


def _wait(pid: int, *, loads_application: bool) -> int:
    """Return the exit code; the signals that end a command reach the other process instead."""
    former = {
        number: signal.signal(number, lambda received, _frame: os.kill(pid, received))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        if loads_application:
            import_module(APPLICATION.partition(":")[0])
            import_module("memory_gateway.urls")
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
