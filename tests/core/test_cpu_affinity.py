"""The server is pinned to one of the allowed cores; processes that it starts may use all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pytest

from core.limits import cpu_affinity
from tests.forked import PROJECT
from tests.server import RunningServer, running_server

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="needs Linux and two cores"
)
_T = TypeVar("_T")
PRINT_CORE_COUNT = [sys.executable, "-c", "import os; print(len(os.sched_getaffinity(0)))"]


def in_a_thread(call: Callable[[], _T]) -> _T:
    """Run a call in a new thread: affinity belongs to a thread, and the test's thread keeps its cores."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(call).result()


def test_new_threads_inherit_the_pinned_core() -> None:
    def affinities() -> tuple[set[int], set[int]]:
        cpu_affinity.pin_to_free_cpu()
        return os.sched_getaffinity(0), in_a_thread(lambda: os.sched_getaffinity(0))

    pinned, of_new_thread = in_a_thread(affinities)
    assert len(pinned) == 1
    assert of_new_thread == pinned


def test_processes_are_pinned_to_different_cores_while_cores_are_free() -> None:
    pin = "import os, sys; from core.limits.cpu_affinity import pin_to_free_cpu; pin_to_free_cpu()"
    start = [sys.executable, "-c", f"{pin}; print(*os.sched_getaffinity(0), flush=True); sys.stdin.read()"]
    core_count = len(os.sched_getaffinity(0))
    with ExitStack() as stack:
        children = [
            stack.enter_context(subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=PROJECT))
            for _ in range(core_count + 1)
        ]
        cores = [int(child.stdout.readline()) for child in children if child.stdout]
    assert len(set(cores)) == core_count


def test_a_child_process_may_use_every_allowed_core() -> None:
    def core_counts() -> tuple[int, int]:
        cpu_affinity.pin_to_free_cpu()
        with cpu_affinity.original_affinity():
            child = int(subprocess.run(PRINT_CORE_COUNT, capture_output=True, check=True).stdout)
        return child, len(os.sched_getaffinity(0))

    assert in_a_thread(core_counts) == (len(os.sched_getaffinity(0)), 1)


def cores_of(server: RunningServer) -> set[str]:
    """Return the cores that the threads of a gateway may use."""
    statuses = [path.read_text() for path in Path(f"/proc/{server.pid}/task").glob("*/status")]
    return {line for status in statuses for line in status.splitlines() if line.startswith("Cpus_allowed_list")}


def test_the_server_is_pinned_to_one_core_unless_the_setting_disables_it(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    with running_server(tmp_path / "one") as server:
        [core_list] = cores_of(server)
        assert core_list.split()[-1].isdigit()
    with running_server(tmp_path, MEMORY_GATEWAY_CPU_PINNING="false") as server:
        [core_list] = cores_of(server)
        assert not core_list.split()[-1].isdigit()
