"""What the commands share: progress, answers, exit codes, stopping."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError, OutputWrapper

from core.errors import NotFound
from operations.commands import Answer, LifecycleCommand, Progress


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def command(run: Callable[[LifecycleCommand], Answer]) -> LifecycleCommand:
    class Made(LifecycleCommand):
        requires_storage = False

        def run(self, **options: Any) -> Answer:
            return run(self)

    return Made()


def call(made: LifecycleCommand, *arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command(made, *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_people_read_text_and_machines_one_line_of_json() -> None:
    made = command(lambda _: Answer({"users": 2}, "Two users."))
    assert call(made) == ("Two users.\n", "")
    out, _ = call(made, "--json")
    assert json.loads(out) == {"users": 2}
    assert out.count("\n") == 1


def test_something_wrong_is_exit_code_1() -> None:
    with pytest.raises(SystemExit) as ended:
        call(command(lambda _: Answer({}, "", is_ok=False)))
    assert ended.value.code == 1


def test_a_refusal_is_its_sentence_and_exit_code_2() -> None:
    def refuse(self: LifecycleCommand) -> Answer:
        raise NotFound("There is no such user.")

    with pytest.raises(CommandError, match=r"There is no such user\.") as refused:
        call(command(refuse))
    assert refused.value.returncode == 2


def test_a_signal_ends_it_between_two_steps_with_the_shell_s_code() -> None:
    done = []

    def work(self: LifecycleCommand) -> Answer:
        for step in range(3):
            self.stop.check()
            done.append(step)
            os.kill(os.getpid(), signal.SIGTERM)
        return Answer({}, "")

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        call(command(work))
    assert (ended.value.code, done) == (143, [0])
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_log_has_a_line_per_step_and_one_now_and_then() -> None:
    stream, clock = StringIO(), Clock()
    report = Progress(OutputWrapper(stream), clock)
    report("Reading", 0, 3)
    report("Reading", 1, 3)
    clock.now += 5
    report("Reading", 2, 3)
    report("Reading", 3, 3)
    report("Writing", 0, 0)
    assert stream.getvalue().splitlines() == ["Reading: 0 of 3", "Reading: 2 of 3", "Reading: 3 of 3", "Writing: 0"]


def test_a_terminal_has_a_bar_per_step() -> None:
    stream = Terminal()
    report = Progress(OutputWrapper(stream), Clock())
    report("Reading", 0, 2)
    report("Reading", 1, 2)
    report("Reading", 2, 2)
    report("Writing", 1, 2)
    report.close()
    lines = stream.getvalue().split("\n")
    assert lines[0].split("\r\x1b[K")[1:] == [
        "[" + "." * 30 + "] Reading 0 of 2",
        "[" + "#" * 30 + "] Reading 2 of 2",
    ]
    assert lines[1] == "\r\x1b[K[" + "#" * 15 + "." * 15 + "] Writing 1 of 2"
