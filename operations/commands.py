"""The base class of commands: progress, output as text or JSON, exit codes, stops by signals.

Exit codes: 0 done; 1 done with findings; 2 refused, nothing was changed; 128 + the number of a signal that stopped it:
completed work stays, and the same command continues from there. `memory_gateway.commandline` handles failures of the
database and the disk.
"""

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
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError, CommandParser, OutputWrapper

from accounts import services
from accounts.models import UserKey
from core.errors import Conflict, GatewayError, NotFound
from operations import jobs
from operations.models import Job
from resources.services import storage_binding

Report = Callable[[str, int, int], None]
"""A callback for progress, called between steps: `report(step, done, total)`; a total of 0 means unknown.

Raises: `Stopped`.
"""

_LINE_EVERY_SECONDS = 5.0
_POLL_SECONDS = 0.5


def no_report(step: str, done: int, total: int) -> None:
    """Ignore progress."""


class Stopped(Exception):
    """Raised between steps after a signal requested an early end."""


class Stop(threading.Event):
    """Set if the signal `number` requested an early end."""

    number = 0


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Yield a `Stop` that SIGTERM and SIGINT set. A second SIGINT ends the process immediately."""
    stop = Stop()
    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def handler(number: int, _frame: FrameType | None) -> None:
        stop.number = number
        stop.set()
        signal.signal(signal.SIGINT, previous[signal.SIGINT])

    for number in previous:
        signal.signal(number, handler)
    try:
        yield stop
    finally:
        for number, old in previous.items():
            signal.signal(number, old)


class Progress:
    """A `Report` that prints to stderr: a line per step, and one every few seconds in a long step."""

    def __init__(self, stream: OutputWrapper, stop: Stop, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._stop = stop
        self._clock = clock
        self._step = ""
        self._shown_at = 0.0

    def __call__(self, step: str, done: int, total: int) -> None:
        now = self._clock()
        if step != self._step or done == total or now - self._shown_at >= _LINE_EVERY_SECONDS:
            self._step, self._shown_at = step, now
            self._stream.write(f"{step}: {done:,} of {total:,}" if total else f"{step}: {done:,}", str)
        if self._stop.is_set():
            raise Stopped


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a command: `data` for `--json`, `text` for operators. If not `is_ok`, the exit code is 1."""

    data: dict[str, Any]
    text: str
    is_ok: bool = True


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return the `type` of an argument (argparse) that is a whole number from `least` to `most`."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text) or not least <= int(text) <= most:
            raise ArgumentTypeError(f"must be a whole number from {least:,} to {most:,}")
        return int(text)

    return parse


def add_key_file(parser: CommandParser) -> None:
    """Add the option of commands that write or read archives."""
    parser.add_argument("--key-file", type=Path, metavar="FILE", help="encrypt or decrypt the archive with this key")


class OperationsCommand(BaseCommand):
    """A command over a service. `run` calls it with `self.report`.

    A `GatewayError` becomes its message with exit code 2. A command that `requires_storage` is refused if the storage
    folder belongs to another database.
    """

    requires_storage: ClassVar[bool] = True
    report: Progress
    stop: Stop

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.add_argument("--json", action="store_true", help="print the result as one line of JSON")
        return parser

    @abstractmethod
    def run(self, *args: Any, **options: Any) -> Answer:
        """Run the command. Raises: `GatewayError`, `Stopped`."""

    def handle(self, *args: Any, **options: Any) -> None:
        as_json = options.pop("json")
        with stop_on_signals() as self.stop:
            self.report = Progress(self.stderr, self.stop)
            try:
                if self.requires_storage:
                    storage_binding.require()
                answer = self.run(**options)
            except Stopped:
                self.stderr.write("Stopped. Run the same command again to continue.")
                sys.exit(128 + self.stop.number)
            except GatewayError as error:
                raise CommandError(error.detail, returncode=2) from error
        self.stdout.write(json.dumps(answer.data, ensure_ascii=False) if as_json else answer.text)
        if not answer.is_ok:
            sys.exit(1)


class KeyCommand(OperationsCommand):
    """A command about one API key of a user."""

    requires_storage = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user_id", help="user ID")
        parser.add_argument("--key", help="key ID or prefix; optional if the user has one active key")

    def find_key(self, user_id: str, named: str | None) -> UserKey:
        """Return the user's live key with that id or prefix; if `named` is None, the only live key.

        Raises: `NotFound`, `Conflict` if several match.
        """
        keys = [key for key in services.keys_of(services.find_user(user_id).pk) if services.is_live(key)]
        if named is not None:
            keys = [key for key in keys if str(key.pk) == named or named.startswith(key.prefix)]
        if not keys:
            raise NotFound("The user has no such active API key.")
        if len(keys) > 1:
            shown = ", ".join(f"{key.pk} ({key.prefix}… {key.label})".replace(" )", ")") for key in keys)
            raise Conflict(f"Several active API keys match. Choose one with --key: {shown}")
        return keys[0]


class JobCommand(OperationsCommand):
    """A command that runs a job. A signal stops it after a step; the same command continues it."""

    def run_job(self, job: Job) -> Job:
        """Run a job, or wait for the process that does. Raises: `Conflict` if it fails, `Stopped`."""
        done = jobs.run_now(job, should_end=self.stop.is_set)
        while not done.is_over:
            if self.stop.is_set():
                raise Stopped
            time.sleep(_POLL_SECONDS)
            done = jobs.run_now(job, should_end=self.stop.is_set)
        if done.status != Job.Status.DONE:
            raise Conflict(str(done.error) or "The job was stopped.")
        return done
