"""Re-ingests are killed and resumed: no memory and no decision is lost, and no search shows what was deleted."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import forked
from tests.everos import running as running_everos
from tests.forked import PROJECT
from tests.server import own_database, server_environment
from tests.stub_upstream import StubUpstream

pytestmark = pytest.mark.slow


class Size(NamedTuple):
    """The amount of data, and the time before a re-ingest is killed."""

    users: int
    chats: int
    messages: int
    agent_every: int
    resources: int
    tombstones: int
    overrides: int
    kills: int
    seconds: tuple[float, float]


SMALL = Size(2, 6, 8, agent_every=5, resources=4, tombstones=6, overrides=6, kills=1, seconds=(1.0, 2.0))
MIDDLE = Size(2, 40, 20, agent_every=5, resources=40, tombstones=30, overrides=30, kills=5, seconds=(3.0, 15.0))
BIG = Size(2, 400, 50, agent_every=25, resources=500, tombstones=300, overrides=300, kills=5, seconds=(5.0, 20.0))
# As large, with longer sessions of more users: a real EverOS creates a memory in one or two seconds, but in twenty
# seconds for a user with hundreds of memories.
LONG = Size(20, 200, 100, agent_every=50, resources=500, tombstones=300, overrides=300, kills=5, seconds=(5.0, 20.0))


class Gateway:
    """The data of a gateway, on which separate commands run with a remote attached or without."""

    def __init__(self, folder: Path, database_url: str, base_url: str, size: Size) -> None:
        self._folder = folder
        self._url = base_url
        self._size = size
        self._database_url = database_url
        self._state = folder / "state.json"
        self._rng = random.Random(size.chats)

    def environment(self, *, attached: bool) -> dict[str, str]:
        values = {
            "MEMORY_GATEWAY_BACKEND_BASE_URL": self._url if attached else "",
            "MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS": "0.05",
            "MEMORY_GATEWAY_PORT": "8010",
        }
        return server_environment(self._folder, self._database_url, **values)

    def drive(self, verb: str, *arguments: str, attached: bool = True) -> str:
        command = ["-m", "tests.operations.reingest.driver", verb, str(self._state), *arguments]
        done = forked.run(command, self.environment(attached=attached), timeout_seconds=600)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def fill(self) -> None:
        counts = ("users", "chats", "messages", "agent_every", "resources", "tombstones", "overrides")
        self.drive("fill", *(f"--{name}={getattr(self._size, name)}" for name in counts))

    def check(self) -> None:
        for attached in (True, False):
            found = json.loads(self.drive("check", attached=attached))
            assert (found["restored"], found["lost_overrides"], found["lost"]) == ([], [], []), found
            assert found["live"]

    def ingest_again(self) -> dict[str, Any]:
        """Send all sessions again, killed several times, while searches run with the remote and without."""
        with self._watched(attached=False), self._watched(attached=True):
            start = ["--all", "--apply"]
            for _ in range(self._size.kills):
                process = self._start(*start)
                time.sleep(self._rng.uniform(*self._size.seconds))
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                start = ["--resume"]
            process = self._start("--resume")
            out, err = process.communicate()
            if "There is no interrupted re-ingest" in err:  # it was complete before the kill
                process = self._start("--all", "--apply")
                out, err = process.communicate()
        assert process.returncode == 0, out + err
        answer: dict[str, Any] = json.loads(out)
        return answer

    def _start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "manage.py", "reingest", "--json", *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command,
            cwd=PROJECT,
            env=self.environment(attached=True),
            stdout=pipe,
            stderr=pipe,
            text=True,
            start_new_session=True,
        )

    @contextlib.contextmanager
    def _watched(self, *, attached: bool) -> Iterator[None]:
        command = [sys.executable, "-m", "tests.operations.reingest.driver", "watch", str(self._state)]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, cwd=PROJECT, env=self.environment(attached=attached), stdin=pipe, stdout=pipe, text=True
        ) as watcher:
            assert watcher.stdout is not None
            assert watcher.stdout.readline() == "ready\n"
            yield
            out, _ = watcher.communicate("stop\n")
        found = json.loads(out)
        assert found["restored"] == []
        assert found["searches"]


def ingest_again(folder: Path, base_url: str, size: Size) -> None:
    gateway = Gateway(folder, own_database(folder), base_url, size)
    gateway.fill()
    gateway.check()
    answer = gateway.ingest_again()
    assert answer["replaced"]
    gateway.check()


def test_a_killed_and_resumed_reingest_loses_nothing(tmp_path: Path) -> None:
    with StubUpstream() as stub:
        ingest_again(tmp_path, stub.url, SMALL)


@pytest.mark.torture
def test_a_large_one_killed_and_resumed_loses_nothing(tmp_path: Path) -> None:
    with StubUpstream() as stub:
        ingest_again(tmp_path, stub.url, BIG)


@pytest.mark.torture
@pytest.mark.upstream
@pytest.mark.parametrize("size", [MIDDLE, LONG], ids=["middle", "long"])
def test_a_killed_and_resumed_reingest_with_a_real_everos_loses_nothing(tmp_path: Path, size: Size) -> None:
    with running_everos() as everos:
        ingest_again(tmp_path, everos.url, size)
