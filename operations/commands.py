"""What the commands of this app share: progress, one answer for people or machines, exit codes, a clean stop.

Exit codes: 0 done; 1 done, but something is not as it should be; 2 refused, nothing was done; 128 + the signal's number
where a signal ended it early: what was done stays, and the same call goes on from there.
`memory_gateway.commandline` has the sentences for a database or a disk that fails.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
import time
from abc import abstractmethod
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, ClassVar, Protocol

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.errors import GatewayError
from resources.services import storage_binding

Report = Callable[[str, int, int], None]
"""`report(step, done, total)`, called as often as one likes; a total of 0 is one that nobody knows yet."""

_BAR_CHARS = 30
_BAR_EVERY_SECONDS = 0.1
_LINE_EVERY_SECONDS = 5.0


def no_report(step: str, done: int, total: int) -> None:
    """For callers who show no progress."""


class Stopped(Exception):
    """A signal asked for an early end."""


class Stop:
    """Whether an end was asked for; services look between two steps that belong together."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.number = 0

    def set(self, number: int) -> None:
        self.number = number
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleeps at most so long; whether an end was asked for."""
        return self._event.wait(seconds)

    def check(self) -> None:
        """Errors: `Stopped`."""
        if self.is_set():
            raise Stopped


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """SIGTERM and SIGINT finish the step under way; a second SIGINT ends the process as ever."""
    stop = Stop()
    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def handler(number: int, _frame: FrameType | None) -> None:
        stop.set(number)
        signal.signal(signal.SIGINT, previous[signal.SIGINT])

    for number in previous:
        signal.signal(number, handler)
    try:
        yield stop
    finally:
        for number, old in previous.items():
            signal.signal(number, old)


class _Stream(Protocol):
    """Django's wrapper of stderr."""

    def isatty(self) -> bool: ...

    def write(self, msg: str = "", style_func: Callable[[str], str] | None = None, ending: str | None = None) -> None:
        """Writes with an ending, a line's end by default."""


class Progress:
    """A `Report`: a bar on a terminal, and for a log a line per step, with one every few seconds in a long step."""

    def __init__(self, stream: _Stream, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._is_terminal = stream.isatty()
        self._step = ""
        self._shown_at = 0.0
        self._is_line_open = False

    def __call__(self, step: str, done: int, total: int) -> None:
        now = self._clock()
        every = _BAR_EVERY_SECONDS if self._is_terminal else _LINE_EVERY_SECONDS
        if step == self._step and done != total and now - self._shown_at < every:
            return
        if step != self._step:
            self.close()
        self._step, self._shown_at = step, now
        if self._is_terminal:
            self._write(f"\r\x1b[K{_bar(done, total)} {step} {_count(done, total)}", ending="")
            self._is_line_open = True
        else:
            self._write(f"{step}: {_count(done, total)}")

    def close(self) -> None:
        """Leaves the bar of the last step standing and begins a new line."""
        if self._is_line_open:
            self._write("")
        self._is_line_open = False

    def _write(self, text: str, ending: str | None = None) -> None:
        self._stream.write(text, str, ending)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command ends with: `data` for `--json`, `text` for people. Not `is_ok`: exit code 1."""

    data: dict[str, Any]
    text: str
    is_ok: bool = True


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """The `type` of an argument that is a whole number within bounds."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text) or not least <= int(text) <= most:
            raise ArgumentTypeError(f"must be a whole number from {least:,} to {most:,}")
        return int(text)

    return parse


class LifecycleCommand(BaseCommand):
    """A command over a service. `run` does it and answers, with `self.report` for progress and `self.stop` to look at.

    A `GatewayError` becomes its sentence with exit code 2. A command that `requires_storage` is refused where the
    storage folder belongs to another database.
    """

    requires_storage: ClassVar[bool] = True
    report: Progress
    stop: Stop

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print the answer as one line of JSON")

    @abstractmethod
    def run(self, *args: Any, **options: Any) -> Answer:
        """Errors: `GatewayError`, `Stopped`."""

    def handle(self, *args: Any, **options: Any) -> None:
        as_json = options.pop("json")
        with stop_on_signals() as self.stop:
            self.report = Progress(self.stderr)
            try:
                if self.requires_storage:
                    storage_binding.require()
                answer = self.run(**options)
            except Stopped:
                self.stderr.write("Stopped. The same call goes on from here.")
                sys.exit(128 + self.stop.number)
            except GatewayError as error:
                raise CommandError(error.detail, returncode=2) from error
            finally:
                self.report.close()
        self.stdout.write(json.dumps(answer.data, ensure_ascii=False) if as_json else answer.text)
        if not answer.is_ok:
            sys.exit(1)


def _bar(done: int, total: int) -> str:
    filled = _BAR_CHARS * min(done, total) // total if total else 0
    return f"[{'#' * filled}{'.' * (_BAR_CHARS - filled)}]"


def _count(done: int, total: int) -> str:
    return f"{done:,} of {total:,}" if total else f"{done:,}"
