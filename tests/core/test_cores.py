"""A gateway stays on one of the cores that it may use; what it starts may use them all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from core import cpu_affinity
from tests.server import RunningServer, running_server

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="needs Linux and two cores"
)
_T = TypeVar("_T")
ASK = [sys.executable, "-c", "import os; print(len(os.sched_getaffinity(0)))"]


def in_a_thread(call: Callable[[], _T]) -> _T:
    """Each thread has cores of its own: the tests' own stay as they are."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(call).result()


def test_threads_started_afterwards_stay_there_too() -> None:
    def both() -> tuple[set[int], set[int]]:
        cpu_affinity.pin_to_current_cpu()
        return os.sched_getaffinity(0), in_a_thread(lambda: os.sched_getaffinity(0))

    own, following = in_a_thread(both)
    assert len(own) == 1
    assert following == own


def test_another_process_may_use_all_that_were_given() -> None:
    def started() -> tuple[int, int]:
        cpu_affinity.pin_to_current_cpu()
        with cpu_affinity.original_affinity():
            child = int(subprocess.run(ASK, capture_output=True, check=True).stdout)
        return child, len(os.sched_getaffinity(0))

    assert in_a_thread(started) == (len(os.sched_getaffinity(0)), 1)


def cores_of(server: RunningServer) -> set[str]:
    """What the threads of a gateway may use."""
    statuses = [path.read_text() for path in Path(f"/proc/{server.pid}/task").glob("*/status")]
    return {line for status in statuses for line in status.splitlines() if line.startswith("Cpus_allowed_list")}


def test_a_gateway_stays_on_one_core_unless_told_otherwise(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    with running_server(tmp_path / "one") as server:
        [only] = cores_of(server)
        assert only.split()[-1].isdigit()
    with running_server(tmp_path, MEMORY_GATEWAY_ONE_CORE="false") as server:
        [all_of_them] = cores_of(server)
        assert not all_of_them.split()[-1].isdigit()
