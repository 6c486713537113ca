"""A real gateway process for tests, with a port, data folder and database of its own; it can be stopped and killed."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import psycopg
import requests
from psycopg import sql

PROJECT = Path(__file__).resolve().parent.parent
START_SECONDS = 40.0
DATABASE_FILE = "memory_gateway.sqlite3"


class Memory(NamedTuple):
    """Resident memory of a process in bytes: the most it ever had, and what it has now."""

    peak: int
    current: int


class RunningServer:
    """`manage.py serve` in a process group of its own.

    `data_dir` holds the SQLite file, the storage and the secret; it outlives `kill()` and `stop()`, so that `start()`
    goes on with the same data. `log` is all that the server wrote to stdout and stderr, over all its starts.
    """

    def __init__(self, data_dir: Path, env: dict[str, str], arguments: tuple[str, ...] = ()) -> None:
        self.data_dir = data_dir
        self.env = env
        self.url = f"http://127.0.0.1:{env['MEMORY_GATEWAY_PORT']}"
        self._arguments = arguments
        self._log_file = data_dir / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the server was not started"
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        return self._log_file.read_text(encoding="utf-8", errors="replace")

    def start(self) -> None:
        """Starts on the data that is there and returns once /health answers."""
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "manage.py", "serve", *self._arguments],
                cwd=PROJECT,
                env=self.env,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            assert self.process.poll() is None, f"the server ended with {self.process.returncode}:\n{self.log}"
            assert time.monotonic() < deadline, f"the server does not answer:\n{self.log}"
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            return requests.get(f"{self.url}/health", timeout=5).status_code == 200
        except requests.RequestException:
            return False

    def kill(self) -> None:
        """SIGKILL to the whole process group, as a crash or a lost machine would do."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait(timeout=10)

    def stop(self, timeout_seconds: float = 30.0) -> int:
        """SIGTERM; waits for the end and returns the exit code."""
        self.process.terminate()
        return self.process.wait(timeout=timeout_seconds)

    def restart(self) -> None:
        self.stop()
        self.start()

    def manage(self, *arguments: str, timeout_seconds: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Runs a management command in the server's environment, on its data."""
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )

    def rss_bytes(self) -> Memory:
        """Resident memory of the server's main process, from /proc (Linux)."""
        return resident_memory(self.pid)


def resident_memory(pid: int) -> Memory:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    values = dict(re.findall(r"(VmHWM|VmRSS):\s+(\d+) kB", status))
    return Memory(peak=int(values["VmHWM"]) * 1024, current=int(values["VmRSS"]) * 1024)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def server_environment(data_dir: Path, database_url: str, **env: str) -> dict[str, str]:
    """The environment of a gateway of its own; `env` has the last word."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_GATEWAY_")}
    return {
        **inherited,
        "DJANGO_SETTINGS_MODULE": "memory_gateway.settings",
        "DATABASE_URL": database_url,
        "PYTHONUNBUFFERED": "1",
        "MEMORY_GATEWAY_ENV_FILE": "",
        "MEMORY_GATEWAY_DB_PATH": str(data_dir / DATABASE_FILE),
        "MEMORY_GATEWAY_STORAGE_DIR": str(data_dir / "storage"),
        "MEMORY_GATEWAY_PORT": str(free_port()),
        "MEMORY_GATEWAY_MIN_FREE_DISK_BYTES": "0",
        **env,
    }


@contextlib.contextmanager
def own_database(data_dir: Path) -> Iterator[str]:
    """An address for `DATABASE_URL` with a migrated, empty database: a SQLite file in `data_dir` (empty address), or
    a PostgreSQL database for this test alone if the test run itself has a `DATABASE_URL` for one.
    """
    if not os.environ.get("DATABASE_URL", "").startswith("postgres"):
        shutil.copyfile(_migrated_file(), data_dir / DATABASE_FILE)
        yield ""
        return
    with _created_database("mg_server", template=_migrated_database()) as url:
        yield url


@cache
def _migrated_file() -> Path:
    """Migrated once, copied for each server."""
    folder = Path(tempfile.mkdtemp(prefix="memory-gateway-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _migrate(server_environment(folder, ""))
    return folder / DATABASE_FILE


@cache
def _migrated_database() -> str:
    """The same for PostgreSQL: the name of a template that is dropped when the tests end."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    url = stack.enter_context(_created_database("mg_template", template="template1"))
    with tempfile.TemporaryDirectory() as folder:
        _migrate(server_environment(Path(folder), url))
    return urlsplit(url).path.lstrip("/")


def _migrate(env: dict[str, str]) -> None:
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    migrated = subprocess.run(command, cwd=PROJECT, env=env, capture_output=True, text=True, check=False)
    assert migrated.returncode == 0, migrated.stdout + migrated.stderr


@contextlib.contextmanager
def _created_database(prefix: str, template: str) -> Iterator[str]:
    url = urlsplit(os.environ["DATABASE_URL"])
    name = f"{prefix}_{uuid.uuid4().hex[:12]}"
    admin_url = url._replace(path="/postgres").geturl()
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
    with psycopg.connect(admin_url, autocommit=True) as connection:
        connection.execute(create)
    try:
        yield url._replace(path=f"/{name}").geturl()
    finally:
        with psycopg.connect(admin_url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextlib.contextmanager
def running_server(tmp_path: Path, *arguments: str, **env: str) -> Iterator[RunningServer]:
    """A migrated, answering server on a free loopback port; ended and cleared away afterwards.

    `arguments` go to `manage.py serve`; `env` holds environment variables such as `MEMORY_GATEWAY_THREADS="2"`.
    """
    data_dir = tmp_path / "gateway"
    data_dir.mkdir(parents=True, exist_ok=True)
    with own_database(data_dir) as database_url:
        server = RunningServer(data_dir, server_environment(data_dir, database_url, **env), arguments)
        try:
            server.start()
            yield server
        finally:
            if server._process is not None:
                server.kill()
