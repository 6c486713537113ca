"""Gateways with a thousand and with a million memories beside each other, for tests of what must not grow with them.

`MILLION_MEMORIES_FOLDER` names a folder that keeps the two SQLite files from one run to the next: the million takes
about twenty minutes to be made and indexed. Without it they are made again each time.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.server import DATABASE_FILE, RunningServer, running_server, server_environment

FEW, MANY = 1_000, 1_000_000
MAX_MS, MAX_RATIO = 300.0, 3.0
ROUNDS = 11
_KEPT = "MILLION_MEMORIES_FOLDER"
_MAKING_SECONDS = 4 * 3600


class Pair(NamedTuple):
    """The same of the small gateway and of the large one."""

    few: float
    many: float


@contextmanager
def two_gateways(folder: Path, **env: str) -> Iterator[tuple[RunningServer, RunningServer]]:
    with ExitStack() as stack:
        few, many = (stack.enter_context(_gateway(folder / str(number), number, env)) for number in (FEW, MANY))
        yield few, many


@contextmanager
def _gateway(folder: Path, number: int, env: Mapping[str, str]) -> Iterator[RunningServer]:
    kept = _kept(number)
    if kept is not None and kept.exists():
        with _started_on(kept, folder, env) as server:
            yield server
        return
    with running_server(folder, **env) as server:
        managed(server, "seed_memories", str(number))
        if kept is not None:
            server.stop()  # which leaves everything in the one file
            shutil.copyfile(server.data_dir / DATABASE_FILE, kept)
            server.start()
        yield server


@contextmanager
def _started_on(kept: Path, folder: Path, env: Mapping[str, str]) -> Iterator[RunningServer]:
    """A gateway with a copy of a file that an earlier run left, perhaps of an older version."""
    folder.mkdir(parents=True)
    shutil.copyfile(kept, folder / DATABASE_FILE)
    server = RunningServer(folder, server_environment(folder, "", **env))
    managed(server, "migrate", "--verbosity", "0")
    server.start()
    try:
        yield server
    finally:
        server.kill()


def managed(server: RunningServer, *arguments: str) -> str:
    """Return the output of a command that must succeed, however long it takes."""
    done = server.manage(*arguments, timeout_seconds=_MAKING_SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _kept(number: int) -> Path | None:
    is_sqlite = not os.environ.get("DATABASE_URL", "").startswith("postgres")
    return Path(os.environ[_KEPT]) / f"{number}.sqlite3" if _KEPT in os.environ and is_sqlite else None


def in_turns(
    servers: tuple[RunningServer, RunningServer], call: Callable[[RunningServer], object], *, rounds: int = ROUNDS
) -> Pair:
    """Medians in milliseconds of a call to the small and to the large gateway, asked in turns after one that does not
    count.

    On SQLite the processor time of the gateway, which all of an answer is: what else the machine does would be
    measured otherwise. On PostgreSQL the time by the clock.
    """
    took: list[list[float]] = [[], []]
    for number in range(rounds + 1):
        for server, times in zip(servers, took, strict=True):
            before = _clock(server)
            call(server)
            if number:
                times.append((_clock(server) - before) * 1000)
    return Pair(*(median(times) for times in took))


def _clock(server: RunningServer) -> float:
    """Seconds that the threads of the gateway have computed, to the nanosecond."""
    if os.environ.get("DATABASE_URL", "").startswith("postgres"):
        return time.perf_counter()
    threads = Path(f"/proc/{server.pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text(encoding="ascii").split()[0]) for thread in threads) / 1e9


def too_slow(found: Mapping[str, Pair]) -> dict[str, Pair]:
    """Those that take more than 300 ms, or more than three times as long as with a thousand; all are printed."""
    for name, took in found.items():
        sys.stdout.write(f"{name:45} {took.few:8.1f} ms {took.many:8.1f} ms {took.many / took.few:6.2f}\n")
    return {name: took for name, took in found.items() if took.many > min(MAX_MS, MAX_RATIO * took.few)}
