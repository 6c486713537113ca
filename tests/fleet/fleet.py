"""A fleet on loopback: HAProxy, three gateways, two workers, PostgreSQL behind PgBouncer, an S3 store and Redis.

Needs `haproxy`, `pgbouncer` and `redis-server`, and a `DATABASE_URL` of PostgreSQL, or for a separate cluster the
programs of PostgreSQL.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import boto3
import psycopg
from moto.server import ThreadedMotoServer
from psycopg import sql

from tests.forked import HOST_NAME
from tests.server import RunningServer, RunningWorker, free_port, own_database, server_environment, wait_until

logging.getLogger("werkzeug").setLevel(logging.WARNING)  # of the object store, which writes a line for each call

GATEWAYS = 3
WORKERS = 2
PROGRAMS = ("haproxy", "pgbouncer", "redis-server")
START_SECONDS = 120.0
AS_NOBODY = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
"""PostgreSQL and PgBouncer refuse to run as root."""

_PGBOUNCER = """
[databases]
* = host={host} port={port} user={user}{password}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 1000
default_pool_size = 20
server_login_retry = 1
query_wait_timeout = 10
ignore_startup_parameters = extra_float_digits
logfile = {folder}/pgbouncer.log
pidfile = {folder}/pgbouncer.pid
"""
_HAPROXY = """
defaults
    mode http
    timeout connect 2s
    timeout client 150s
    timeout server 150s
    timeout check 3s
    retries 2
    option redispatch
    option forwardfor
    http-error status 503 content-type text/plain string "No gateway answers." hdr Retry-After 2

frontend gateway
    bind 127.0.0.1:{own_port}
    default_backend gateways

backend gateways
    balance roundrobin
    option httpchk GET /ready
    default-server check inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
{servers}
"""


class Program:
    """A process of another program; `start` again after `kill` goes on with its data."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._command, self._folder = command, folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._folder / f"{Path(self._command[0]).name}.out").open("ab") as output:
            self._process = subprocess.Popen(self._command, stdout=output, stderr=output, start_new_session=True)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _signal_all(self, number: signal.Signals) -> None:
        """Send a signal to the process and its children, whichever group they are in."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        for pid in (self._process.pid, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            self._process.wait()


class Cluster(Program):
    """A PostgreSQL server of one test, which `kill` stops as a crash would: the next start recovers from its log.

    With a `primary` it is a replica of it by streaming, copied at the first start.
    """

    def __init__(self, folder: Path, *, primary: Cluster | None = None) -> None:
        self.port, self._data, self._primary = free_port(), folder_of_nobody() / "postgres", primary
        self.url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"
        options = ["-p", str(self.port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
        command = [*AS_NOBODY, program("postgres"), "-D", str(self._data), *options, "-c", "max_connections=200"]
        super().__init__(command, folder)

    def start(self) -> None:
        if not self._data.exists():
            self._create()
        super().start()
        wait_until(self._answers, START_SECONDS)

    def _create(self) -> None:
        create = ["initdb", "--username=postgres", "--auth=trust", "--encoding=UTF8", "-D", str(self._data)]
        if self._primary:
            source = ["--host=127.0.0.1", "--username=postgres", f"--port={self._primary.port}"]
            create = ["pg_basebackup", *source, "--write-recovery-conf", "--checkpoint=fast", "-D", str(self._data)]
        subprocess.run([*AS_NOBODY, program(create[0]), *create[1:]], check=True, stdout=subprocess.DEVNULL)

    def kill(self) -> None:
        self._end(signal.SIGQUIT)

    def suspend(self) -> None:
        """Let it answer nothing, with its connections open, until `resume`."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal_all(signal.SIGCONT)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url) as connection:
            return connection.execute(sql.SQL(statement)).fetchall()

    def promote(self) -> None:
        """Make a primary of a replica."""
        subprocess.run(
            [*AS_NOBODY, program("pg_ctl"), "-D", str(self._data), "promote"], check=True, stdout=subprocess.DEVNULL
        )

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True


def program(name: str) -> str:
    """Return the path of a program of PostgreSQL, which Debian keeps outside of `PATH`."""
    folders = (str(folder) for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True))
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(folders)) or name


def folder_of_nobody() -> Path:
    """Return a folder for programs that refuse to run as root. It is removed when the tests end."""
    folder = Path(tempfile.mkdtemp(prefix="memory-gateway-fleet-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if AS_NOBODY:
        shutil.chown(folder, "nobody", "nogroup")
    return folder


class Gateway(RunningServer):
    """A gateway without a worker, on the database and files of the fleet."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        folder.mkdir()
        super().__init__(folder, env | {"MEMORY_GATEWAY_PORT": str(free_port())}, ("--no-worker",))


class Fleet(RunningServer):
    """All processes together, used like one server: `url` is the balancer's, `log` that of all gateways."""

    def __init__(
        self, folder: Path, *, cluster: Cluster | None = None, replica: Cluster | None = None, **env: str
    ) -> None:
        direct = cluster.url if cluster else own_database(folder)
        self.replica = replica
        self._bucket = f"fleet-{secrets.token_hex(4)}"  # stand-in stores of one process share their buckets
        self.balancer_port, self.pooler_port, self.redis_port = free_port(), free_port(), free_port()
        self._files_port = free_port()
        self.object_store = self._start_files()
        common = server_environment(
            folder,
            direct,
            MEMORY_GATEWAY_STORAGE_URL=f"s3://{self._bucket}/fleet",
            AWS_ENDPOINT_URL_S3=f"http://127.0.0.1:{self._files_port}",
            AWS_ACCESS_KEY_ID="fleet",
            AWS_SECRET_ACCESS_KEY="fleet-secret",
            AWS_DEFAULT_REGION="us-east-1",
            MEMORY_GATEWAY_REDIS_URL=f"redis://127.0.0.1:{self.redis_port}/0",
            MEMORY_GATEWAY_SECRET_KEY="of-the-fleet-" * 6,
            MEMORY_GATEWAY_TRUSTED_PROXIES="127.0.0.1",
            MEMORY_GATEWAY_READ_DATABASE_URL=replica.url if replica else "",
            **{"MEMORY_GATEWAY_LOG_BODIES": "false", **env},  # as in production
        )
        del common["MEMORY_GATEWAY_STORAGE_DIR"]
        super().__init__(folder, common | {"MEMORY_GATEWAY_PORT": str(self.balancer_port)})
        # Transactions of one client may run on several connections: cursors must not outlive them.
        pooled = urlsplit(direct)._replace(
            netloc=f"postgres@127.0.0.1:{self.pooler_port}", query="DISABLE_SERVER_SIDE_CURSORS=True"
        )
        self.gateways = [
            Gateway(folder / f"gateway-{number}", common | {"DATABASE_URL": pooled.geturl()})
            for number in range(GATEWAYS)
        ]
        self.workers: list[RunningWorker] = []
        self.programs: dict[str, Program] = {"postgres": cluster} if cluster else {}
        self.programs |= {"replica": replica} if replica else {}
        self.programs |= {
            "redis-server": self._redis(),
            "pgbouncer": self._pooler(),
            "haproxy": self._balancer(),
        }

    def _start_files(self) -> ThreadedMotoServer:
        """Start the object store. Its objects are in this process and outlive it."""
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=self._files_port, verbose=False)
        server.start()
        return server

    @contextlib.contextmanager
    def away(self, kind: str) -> Iterator[None]:
        """Let a service be away during the block: "files" or the name of a program."""
        if kind == "files":
            self.object_store.stop()
            yield
            self.object_store = self._start_files()
        else:
            self.programs[kind].kill()
            yield
            self.programs[kind].start()

    def _redis(self) -> Program:
        options = ["--port", str(self.redis_port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.data_dir)]
        return Program(["redis-server", *options], self.data_dir)

    def point_pooler_to(self, cluster: Cluster) -> None:
        """Let the pooler begin again with another primary."""
        self.programs["pgbouncer"].kill()
        self.env["DATABASE_URL"] = cluster.url
        self.programs["pgbouncer"] = self._pooler()
        self.programs["pgbouncer"].start()

    def _pooler(self) -> Program:
        url = urlsplit(self.env["DATABASE_URL"])
        folder = folder_of_nobody()
        config = folder / "pgbouncer.ini"
        password = f" password={url.password}" if url.password else ""
        values = {"host": url.hostname, "port": url.port or 5432, "user": url.username, "password": password}
        config.write_text(_PGBOUNCER.format(**values, own_port=self.pooler_port, folder=folder))
        config.chmod(0o644)
        return Program([*AS_NOBODY, "pgbouncer", str(config)], self.data_dir)

    def _balancer(self) -> Program:
        config = self.data_dir / "haproxy.cfg"
        servers = "\n".join(
            f"    server gateway{number} {urlsplit(one.url).netloc}" for number, one in enumerate(self.gateways)
        )
        config.write_text(_HAPROXY.format(own_port=self.balancer_port, servers=servers))
        return Program(["haproxy", "-db", "-f", str(config)], self.data_dir)

    @property
    def _client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.env["AWS_ENDPOINT_URL_S3"],
            region_name="us-east-1",
            aws_access_key_id=self.env["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.env["AWS_SECRET_ACCESS_KEY"],
        )

    def objects(self) -> dict[str, bytes]:
        """Return the content of every object by its key."""
        client = self._client
        keys = [item["Key"] for item in client.list_objects_v2(Bucket=self._bucket).get("Contents", ())]
        return {key: client.get_object(Bucket=self._bucket, Key=key)["Body"].read() for key in keys}

    def stored_file(self, internal_uri: str) -> bytes:
        parts = urlsplit(internal_uri)
        assert (parts.scheme, parts.netloc) == ("s3", self._bucket)
        return self.objects()[unquote(parts.path.removeprefix("/"))]

    @property
    def log(self) -> str:
        return "".join(one.log for one in self.gateways)

    def start(self) -> None:
        self._client.create_bucket(Bucket=self._bucket)
        for one in self.programs.values():
            one.start()
        if "postgres" in self.programs:
            migrated = self.manage("migrate", "--verbosity", "0", "--skip-checks")
            assert migrated.returncode == 0, migrated.stderr
        for gateway in self.gateways:
            gateway.start()
        self.workers = [self._worker(number) for number in range(WORKERS)]
        for worker in self.workers:
            worker.wait_until_running()
        wait_until(lambda: all(self.answers() for _ in self.gateways), START_SECONDS)

    def restart_worker(self, number: int) -> None:
        """Replace a worker by a new one."""
        self.workers[number].kill()
        self.workers[number] = self._worker(number)

    def _worker(self, number: int) -> RunningWorker:
        """Start a worker with its own host name: others cannot know that it has ended, and wait for its leases."""
        return RunningWorker(self, **{HOST_NAME: f"worker-{number}-{secrets.token_hex(2)}"})

    def kill(self) -> None:
        for one in [*self.workers, *self.gateways, *reversed(self.programs.values())]:
            with contextlib.suppress(AssertionError):
                one.kill()
        self.object_store.stop()


@contextlib.contextmanager
def running_fleet(
    folder: Path, *, has_own_cluster: bool = False, has_replica: bool = False, **env: str
) -> Iterator[Fleet]:
    """A fleet that answers, if wanted with its own PostgreSQL and a replica; ended and cleared away afterwards."""
    data_dir = folder / "fleet"
    data_dir.mkdir(parents=True)
    cluster = Cluster(data_dir) if has_own_cluster else None
    replica = Cluster(data_dir, primary=cluster) if has_replica else None
    fleet = Fleet(data_dir, cluster=cluster, replica=replica, **env)
    try:
        fleet.start()
        yield fleet
    finally:
        fleet.kill()


def missing_programs(*more: str) -> list[str]:
    return [name for name in (*PROGRAMS, *more) if shutil.which(program(name)) is None]


def wait_until_healthy(fleet: Fleet, seconds: float) -> float:
    """Return the seconds until the balancer's answer is good again."""
    began = time.monotonic()
    wait_until(fleet.answers, seconds)
    return time.monotonic() - began
