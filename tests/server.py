"""A real gateway process for tests, with its own port, folder and database; it can be stopped and killed."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import psycopg
import requests
from psycopg import sql

from tests import forked

START_SECONDS = 120.0  # several start at once
DATABASE_FILE = "memory_gateway.sqlite3"


class Memory(NamedTuple):
    """Resident memory of a process in bytes: the most it ever had, and what it has now."""

    peak: int
    current: int


class RunningServer:
    """`manage.py serve` in its own process group.

    `data_dir` holds the SQLite file, the storage and the secret; it outlives `kill()` and `stop()`, so that `start()`
    goes on with the same data. `log` is all that the server wrote to stdout and stderr, over all its starts.
    """

    def __init__(self, data_dir: Path, env: dict[str, str], arguments: tuple[str, ...] = ()) -> None:
        self.data_dir = data_dir
        self.env = env
        self.url = f"http://127.0.0.1:{env['MEMORY_GATEWAY_PORT']}"
        self._arguments = arguments
        self._log_file = data_dir / "server.log"
        self._process: ForkServerProcess | None = None

    @property
    def process(self) -> ForkServerProcess:
        assert self._process is not None, "the server was not started"
        return self._process

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    @property
    def log(self) -> str:
        return self._log_file.read_text(encoding="utf-8", errors="replace")

    def start(self) -> None:
        """Starts on the data that is there and returns once /health answers."""
        self._process = forked.start(["manage.py", "serve", *self._arguments], self.env, self._log_file, self._log_file)
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            assert self.process.is_alive(), f"the server ended with {self.process.exitcode}:\n{self.log}"
            assert time.monotonic() < deadline, f"the server does not answer:\n{self.log}"
            time.sleep(0.05)

    def answers(self) -> bool:
        """True if /health answers 200."""
        try:
            return requests.get(f"{self.url}/health", timeout=5).status_code == 200
        except requests.RequestException:
            return False

    def kill(self) -> None:
        """SIGKILL to the whole process group, as a crash or a lost machine would do."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.wait(10)

    def stop(self, timeout_seconds: float = 30.0) -> int:
        """SIGTERM; waits for the end and returns the exit code."""
        self.process.terminate()
        return self.wait(timeout_seconds)

    def wait(self, timeout_seconds: float) -> int:
        """Waits for the end and returns the exit code."""
        self.process.join(timeout_seconds)
        assert self.process.exitcode is not None, f"the server still runs:\n{self.log}"
        return self.process.exitcode

    def restart(self) -> None:
        self.stop()
        self.start()

    def manage(self, *arguments: str, timeout_seconds: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Runs a management command in the server's environment, on its data."""
        return forked.run(["manage.py", *arguments], self.env, timeout_seconds=timeout_seconds)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Rows of the server's database, read beside it: a command would take seconds to start."""
        if url := self.env["DATABASE_URL"]:
            with psycopg.connect(url) as connection:
                return connection.execute(sql.SQL(statement)).fetchall()
        with contextlib.closing(sqlite3.connect(self.env["MEMORY_GATEWAY_DB_PATH"], timeout=30)) as file:
            return file.execute(statement).fetchall()

    def write(self, statement: str) -> None:
        """Change rows of the server's database beside it."""
        if url := self.env["DATABASE_URL"]:
            with psycopg.connect(url) as connection:
                connection.execute(sql.SQL(statement))
            return
        with contextlib.closing(sqlite3.connect(self.env["MEMORY_GATEWAY_DB_PATH"], timeout=30)) as file, file:
            file.execute(statement)

    def stored_file(self, internal_uri: str) -> bytes:
        """Return the content of a stored file, given by the address that searches show."""
        parts = urlsplit(internal_uri)
        assert parts.scheme == "file"
        return Path(unquote(parts.path)).read_bytes()

    def rss_bytes(self) -> Memory:
        """Resident memory of the server's main process, from /proc (Linux)."""
        return resident_memory(self.pid)


class RunningWorker:
    """`manage.py worker` beside a server, in its own process group. `log` is all that it wrote."""

    def __init__(self, server: RunningServer, *arguments: str, **env: str) -> None:
        self._log_file = server.data_dir / f"worker-{uuid.uuid4().hex}.log"
        all_of_it = ["manage.py", "worker", *arguments]
        self.process = forked.start(all_of_it, server.env | env, self._log_file, self._log_file)

    @property
    def log(self) -> str:
        return self._log_file.read_text(encoding="utf-8", errors="replace") if self._log_file.exists() else ""

    def wait_until_running(self) -> None:
        wait_until(lambda: "The worker is running" in self.log or not self.process.is_alive(), START_SECONDS)
        assert self.process.is_alive(), self.log

    def kill(self) -> None:
        if self.process.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.join(10)

    def stop(self, timeout_seconds: float = 40.0) -> int:
        """SIGTERM; waits for the end and returns the exit code."""
        self.process.terminate()
        self.process.join(timeout_seconds)
        assert self.process.exitcode is not None, f"the worker still runs:\n{self.log}"
        return self.process.exitcode


def resident_memory(pid: int) -> Memory:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    values = dict(re.findall(r"(VmHWM|VmRSS):\s+(\d+) kB", status))
    return Memory(peak=int(values["VmHWM"]) * 1024, current=int(values["VmRSS"]) * 1024)


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until the condition holds; fail after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def free_port() -> int:
    """Return a free port below those of outgoing connections, which would take it before its server starts."""
    while True:
        port = random.SystemRandom().randrange(15_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def server_environment(data_dir: Path, database_url: str, **env: str) -> dict[str, str]:
    """The environment of a separate gateway; `env` has the last word."""
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
        "MEMORY_GATEWAY_OCR": "off",  # as without the extra
        "MEMORY_GATEWAY_EXTERNAL_BUCKETS": "beaver-user-files,bucket,documents",
        **env,
    }


def own_database(data_dir: Path, original: RunningServer | None = None) -> str:
    """An address for `DATABASE_URL` with a migrated, empty database: a SQLite file in `data_dir` (empty address), or
    a PostgreSQL database for this test alone if the test run itself has a `DATABASE_URL` for one.

    With an `original`, a gateway that does not run, it is a copy of its database.
    """
    if not os.environ.get("DATABASE_URL", "").startswith("postgres"):
        copied = original.data_dir / DATABASE_FILE if original else migrated_file()
        shutil.copyfile(copied, data_dir / DATABASE_FILE)
        return ""
    template = _name(original.env["DATABASE_URL"]) if original else migrated_database()
    return _create_database("mg_server", template=template)


@cache
def migrated_file() -> Path:
    """A SQLite file that one process of a test run migrates, for all of them to copy."""
    folder = Path(os.environ["TESTS_FOLDER"], "template")
    with _first_of_the_run("file") as first:
        if first:
            folder.mkdir()
            _migrate(server_environment(folder, ""))
    return folder / DATABASE_FILE


@cache
def migrated_database() -> str:
    """The same for PostgreSQL: the name of a template, which `drop_migrated_database` drops."""
    url = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{_template_name()}").geturl()
    with _first_of_the_run("database") as first, tempfile.TemporaryDirectory() as folder:
        if first:
            _administer(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(_template_name())))
            _migrate(server_environment(Path(folder), url))
    return _template_name()


def drop_migrated_database() -> None:
    """Drop the template of this run if there is one."""
    if os.environ.get("DATABASE_URL", "").startswith("postgres"):
        _administer(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(_template_name())))


def _template_name() -> str:
    return f"mg_template_{Path(os.environ['TESTS_FOLDER']).name.rpartition('-')[2]}"


@contextlib.contextmanager
def _first_of_the_run(made: str) -> Iterator[bool]:
    """Let one process in at a time, and say whether it is the first one that comes through."""
    with Path(os.environ["TESTS_FOLDER"], f"{made}.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        yield not lock.read()
        lock.write("made")


def _name(url: str) -> str:
    return urlsplit(url).path.lstrip("/")


def _migrate(env: dict[str, str]) -> None:
    migrated = forked.run(["manage.py", "migrate", "--verbosity", "0", "--skip-checks"], env)
    assert migrated.returncode == 0, migrated.stdout + migrated.stderr


def _create_database(prefix: str, template: str) -> str:
    """Create a database and return its address. It is dropped when the tests end: each drop is a checkpoint."""
    url = urlsplit(os.environ["DATABASE_URL"])
    name = f"{prefix}_{uuid.uuid4().hex[:12]}"
    database = sql.Identifier(name)
    _administer(
        sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(database, sql.Identifier(template)),
        # No test ends PostgreSQL itself.
        sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(database),
    )
    atexit.register(_administer, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))
    return url._replace(path=f"/{name}").geturl()


def _administer(*statements: sql.Composed) -> None:
    admin_url = urlsplit(os.environ["DATABASE_URL"])._replace(path="/postgres").geturl()
    with psycopg.connect(admin_url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


@contextlib.contextmanager
def running_server(tmp_path: Path, *arguments: str, **env: str) -> Iterator[RunningServer]:
    """A migrated, answering server on a free loopback port; ended and cleared away afterwards.

    `arguments` go to `manage.py serve`; `env` holds environment variables such as `MEMORY_GATEWAY_THREADS="2"`.
    """
    data_dir = tmp_path / "gateway"
    data_dir.mkdir(parents=True, exist_ok=True)
    server = RunningServer(data_dir, server_environment(data_dir, own_database(data_dir), **env), arguments)
    try:
        server.start()
        yield server
    finally:
        if server._process is not None:
            server.kill()
