"""Common behavior of the commands: progress, results, exit codes and signals."""

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
from operations.commands import Answer, OperationsCommand, Progress, Stop


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def command(run: Callable[[OperationsCommand], Answer]) -> OperationsCommand:
    class TestedCommand(OperationsCommand):
        requires_storage = False

        def run(self, **options: Any) -> Answer:
            return run(self)

    return TestedCommand()


def call(tested: OperationsCommand, *arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command(tested, *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_the_result_is_text_or_one_line_of_json() -> None:
    tested = command(lambda _: Answer({"users": 2}, "Two users."))
    assert call(tested) == ("Two users.\n", "")
    out, _ = call(tested, "--json")
    assert json.loads(out) == {"users": 2}
    assert out.count("\n") == 1


def test_a_failed_result_is_exit_code_1() -> None:
    with pytest.raises(SystemExit) as ended:
        call(command(lambda _: Answer({}, "", is_ok=False)))
    assert ended.value.code == 1


def test_a_gateway_error_is_its_message_and_exit_code_2() -> None:
    def refuse(self: OperationsCommand) -> Answer:
        raise NotFound("There is no such user.")

    with pytest.raises(CommandError, match=r"There is no such user\.") as refused:
        call(command(refuse))
    assert refused.value.returncode == 2


def test_a_signal_stops_the_command_between_two_steps() -> None:
    done = []

    def work(self: OperationsCommand) -> Answer:
        for step in range(3):
            self.report("Working", step, 3)
            done.append(step)
            os.kill(os.getpid(), signal.SIGTERM)
        return Answer({}, "")

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        call(command(work))
    assert (ended.value.code, done) == (143, [0])
    assert signal.getsignal(signal.SIGTERM) is before


def test_progress_is_printed_per_step_and_at_intervals() -> None:
    stream, clock = StringIO(), Clock()
    report = Progress(OutputWrapper(stream), Stop(), clock)
    report("Reading", 0, 3)
    report("Reading", 1, 3)
    clock.now += 5
    report("Reading", 2, 3)
    report("Reading", 3, 3)
    report("Writing", 0, 0)
    assert stream.getvalue().splitlines() == ["Reading: 0 of 3", "Reading: 2 of 3", "Reading: 3 of 3", "Writing: 0"]
