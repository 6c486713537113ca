"""Server startup and shutdown: checks, the listening socket, the banner and uvicorn's configuration."""

import logging
import os
import signal
import socket
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import uvicorn
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import autoreload
from uvicorn.supervisors.multiprocess import Multiprocess

from accounts.oidc import require_roles
from agents.rpc.connection_limits import MAX_MESSAGE_BYTES
from core.errors import GatewayError
from core.messages import MANAGE
from core.network.url_policy import is_loopback
from core.persistence import database_errors, replica
from core.persistence.sql import has_tables
from engines.registry import get_engine
from memory_gateway.safety import (
    require_known_migrations,
    require_no_reload,
    require_safe_local,
    require_shared_positions,
)
from memory_gateway.server.bounds import (
    FEW_CONNECTIONS,
    MAX_HEAD_BYTES,
    BoundedWebSocket,
    DirectHttp,
    Places,
    allowed_connections,
)
from resources.services import storage_binding
from store.vectors.local_model import WrongModelError, local_model

APPLICATION = "memory_gateway.server.asgi:application"
# Time for requests in flight at SIGTERM; the rest of ten seconds is for the background worker.
DRAIN_SECONDS = 8
# Interval of WebSocket pings. A connection is closed if its ping is not answered within the same time.
PING_SECONDS = 25
# Time after which a worker process that does not answer its parent is killed and restarted. On a busy machine, loading
# its modules takes longer than uvicorn's default of five seconds, so it would never start.
WORKER_HEALTH_SECONDS = 60
NO_WORKER = "MEMORY_GATEWAY_NO_WORKER"
"""Set or removed by `serve`, for its processes."""
EXIT_START_FAILED = 3
EXIT_INTERRUPTED = 130
_WAL_RESET_FIXED = (3, 51, 3)

logger = logging.getLogger("memory_gateway.server.serving")


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of `manage.py serve`."""

    host: str
    port: int
    workers: int
    reload: bool
    runs_tasks: bool = True


def check(plan: Plan) -> None:
    """Check the configuration and the database before the start. Raises: `CommandError`."""
    with _refusals():
        _require_safe(plan)
    require_database()


def check_before_migration(plan: Plan) -> None:
    """Check all that needs no tables, before anything is written to the database. Raises: `CommandError`."""
    with _refusals():
        _require_safe(plan)
        get_engine()
        if has_tables():
            require_known_migrations()
        storage_binding.require_before_migration()


def _require_safe(plan: Plan) -> None:
    if settings.IS_PRODUCTION:
        require_no_reload(plan.reload)
    else:
        require_safe_local(
            host=plan.host,
            hosts=settings.MEMORY_GATEWAY_ALLOWED_HOSTS,
            provisioning_token=settings.MEMORY_GATEWAY_PROVISIONING_TOKEN,
        )
    if not plan.runs_tasks:
        require_shared_database("serve --no-worker")
    if plan.workers > 1 or not plan.runs_tasks:
        require_shared_positions(has_replica=replica.is_configured(), redis_url=settings.MEMORY_GATEWAY_REDIS_URL)


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise refusals of the block as a `CommandError`, and close the connection."""
    try:
        yield
    except ImproperlyConfigured as error:
        raise CommandError(str(error)) from None
    except GatewayError as error:
        raise CommandError(error.detail) from None
    except DatabaseError as error:
        refusal = database_errors.explain(error)
        raise CommandError(refusal.detail if refusal else f"The database cannot be used: {error}") from error
    finally:
        connection.close()


def require_shared_database(command: str) -> None:
    """Check that a worker and gateways can share the database. Raises: `CommandError`."""
    if connection.vendor == "sqlite":
        raise CommandError(
            f"`{command}` needs PostgreSQL, because SQLite has one writing process. Set DATABASE_URL, or run "
            f"`{MANAGE} serve`, which does all work itself."
        )


def require_database() -> None:
    """Check the engine, the database, its migrations and its storage folder. Raises: `CommandError`."""
    with _refusals():
        get_engine()
        executor = MigrationExecutor(connection)
        require_known_migrations()
        if missing := executor.migration_plan(executor.loader.graph.leaf_nodes()):
            raise CommandError(f"The database has {len(missing)} unapplied migrations. Run `{MANAGE} migrate`.")
        storage_binding.require()
        require_roles()


def require_local_model() -> None:
    """Load the local embedding model, if one is configured, and try it. Raises: `CommandError`."""
    address = settings.MEMORY_GATEWAY_MODELS.get("embedding")
    if address is None or not address.folder:
        return
    try:
        local_model(address.folder).load()
    except WrongModelError as error:
        raise CommandError(f"MEMORY_GATEWAY_MODELS (embedding): {error}") from None


def listen(plan: Plan) -> socket.socket:
    """Return the listening socket. Raises: `CommandError`, exit code 3, if the address is not available."""
    listener = socket.socket(socket.AF_INET6 if ":" in plan.host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((plan.host, plan.port))
    except (OSError, OverflowError) as error:
        listener.close()
        if isinstance(error, OverflowError):
            reason = "the port must be 0 to 65535."
        else:
            advice = "Another gateway may be running. Set MEMORY_GATEWAY_PORT to use another port."
            reason = f"{error.strerror or error}. {advice}"
        raise CommandError(
            f"Cannot listen on {plan.host} port {plan.port}: {reason}", returncode=EXIT_START_FAILED
        ) from None
    listener.set_inheritable(True)
    return listener


def banner(plan: Plan, port: int) -> str:
    """Return the startup message for the operator."""
    host = f"[{plan.host}]" if ":" in plan.host else plan.host
    url = f"http://{host}:{port}{settings.MEMORY_GATEWAY_BASE_PATH}"
    backend = settings.MEMORY_GATEWAY_BACKEND_BASE_URL
    lines = [
        f"Memory Gateway is running at {url}",
        f"  API docs   {url}/api/docs/",
        f"  panel      {url}/admin/memory/",
        f"  OpenClaw   {url.replace('http', 'ws', 1)}",
        f"  engine     {f'embedded, with the remote at {backend}' if backend else 'embedded'}",
        f"  database   {connection.vendor}",
        f"  profile    {settings.MEMORY_GATEWAY_PROFILE}",
    ]
    if not plan.runs_tasks:
        lines.append(f"  tasks      none; they wait for `{MANAGE} worker`")
    if serves_clients_directly(plan):
        lines.append(
            "  note       no MEMORY_GATEWAY_TRUSTED_PROXIES: only a proxy encrypts, and bounds the connections of one "
            "address"
        )
    if plan.workers > 1:
        lines.append(f"  workers    {plan.workers}")
        if connection.vendor == "sqlite" and sqlite3.sqlite_version_info < _WAL_RESET_FIXED:
            lines.append(
                f"  note       SQLite {sqlite3.sqlite_version} can, very rarely, damage a database that several "
                "processes write (fixed in 3.51.3); use one worker, or PostgreSQL"
            )
    return "\n".join(lines)


def serves_clients_directly(plan: Plan) -> bool:
    """Return True if clients on a network connect without a proxy."""
    return not is_loopback(plan.host) and not settings.MEMORY_GATEWAY_TRUSTED_PROXIES


def configuration(plan: Plan, connections: int) -> uvicorn.Config:
    """Return uvicorn's configuration. `connections` is the limit per process."""
    # A worker process gets a copy of the places while all are free.
    direct = partial(
        DirectHttp,
        places=Places(connections),
        head_seconds=settings.HTTP_HEAD_SECONDS,
        idle_seconds=settings.HTTP_KEEP_ALIVE_SECONDS,
    )
    http: Any = direct if serves_clients_directly(plan) else "httptools"
    websocket: Any = BoundedWebSocket
    return uvicorn.Config(
        APPLICATION,
        host=plan.host,
        port=plan.port,
        workers=plan.workers,
        http=http,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        ws=websocket,
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        ws_per_message_deflate=False,
        lifespan="on",
        timeout_keep_alive=settings.HTTP_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        timeout_worker_healthcheck=WORKER_HEALTH_SECONDS,
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,  # the application has them: it needs the proxy's own address too
    )


def run(plan: Plan, listener: socket.socket | None = None) -> NoReturn:
    """Serve until a signal, then end the process. `listener` is what `listen` returned before, if anything.

    Exit codes: 0 after SIGTERM, 130 after Ctrl+C, 3 for a failed start.

    Raises: `CommandError` if the address is not available.
    """
    # After its shutdown uvicorn raises the signal again, and the process must then exit normally.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    if plan.reload:
        if listener is not None:
            listener.close()  # the process that is restarted after each change opens its own
        autoreload.run_with_reloader(_serve, plan)
    try:
        code = _serve(plan, listener)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # request threads that are still running must not keep the process alive


class _Supervisor(Multiprocess):
    """uvicorn's supervisor, which in addition immediately detects the end of a loading worker, and logs each end."""

    def keep_subprocess_alive(self) -> None:
        watched = list(self.processes)
        for process in watched:
            # The worker has its own copy. While the parent's is open, the pipe does not close when the worker ends.
            process.child_conn.close()
        super().keep_subprocess_alive()
        for process in watched:
            if process not in self.processes:
                logger.warning(
                    "Worker process %s ended with exit code %s and was replaced.", process.pid, process.exitcode
                )


def _serve(plan: Plan, listener: socket.socket | None = None) -> int:
    listener = listener or listen(plan)
    connections = allowed_connections(settings.MEMORY_GATEWAY_THREADS)
    sys.stdout.write(banner(plan, listener.getsockname()[1]) + "\n")
    if connections < FEW_CONNECTIONS:
        sys.stdout.write(
            f"  note       the limit of open files (ulimit -n) allows {connections} connections per process; "
            "raise it to allow more\n"
        )
    sys.stdout.flush()
    if plan.workers == 1 or plan.reload:
        uvicorn.Server(configuration(plan, connections)).run(sockets=[listener])
        return 0
    os.environ["MEMORY_GATEWAY_WORKER"] = str(os.getpid())
    supervisor = _Supervisor(configuration(plan, connections), sockets=[listener])
    with tempfile.TemporaryDirectory(prefix="memory-gateway-metrics-") as shared:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = shared  # each worker can report the metrics of all workers
        supervisor.run()
    failed = any(process.exitcode == EXIT_START_FAILED for process in supervisor.processes)
    return EXIT_START_FAILED if failed else 0
