"""`manage.py worker`: run background tasks."""

import os
import sys
import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from core import monitoring
from core.background import tasks
from core.background.leases import release_all
from core.errors import GatewayError
from memories.services import search_log
from memory_gateway.metrics import serve_worker
from memory_gateway.server.serving import require_database, require_local_model, require_shared_database
from operations import worker
from operations.commands import stop_on_signals, whole_number

STOP_SECONDS = 20.0
"""Time for running tasks at SIGTERM. Other workers continue what is left."""


class Command(BaseCommand):
    help = "Run background tasks beside `serve --no-worker`, in as many processes as needed (PostgreSQL)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--concurrency",
            type=whole_number(1, 1000),
            default=0,
            metavar="N",
            help="ingestions, webhooks and calls of the language model at once, N each (default: 2 to 8, by kind)",
        )
        parser.add_argument(
            "--queues",
            default=",".join(tasks.QUEUES),
            metavar="NAME,…",
            help="the queues to work on (default: %(default)s)",
        )
        parser.add_argument(
            "--metrics",
            default="",
            metavar="HOST:PORT",
            help="answer Prometheus at this address, with MEMORY_GATEWAY_METRICS_TOKEN as its bearer",
        )

    def handle(self, *args: Any, concurrency: int, queues: str, metrics: str, **options: Any) -> None:
        chosen = {name for name in queues.split(",") if name}
        if not chosen or not chosen <= set(tasks.QUEUES):
            raise CommandError(f"--queues must name one or more of {', '.join(tasks.QUEUES)}.")
        require_shared_database("worker")
        require_database()
        require_local_model()
        _serve_metrics(metrics)
        tasks.limit_to(chosen, concurrency)
        monitoring.start()
        with stop_on_signals() as stop:
            try:
                worker.start()
            except GatewayError as error:
                raise CommandError(error.detail) from None
            listener = worker.Listener()
            listener.start()
            self.stdout.write(f"The worker is running: {', '.join(sorted(chosen))}.")
            self.stdout.flush()
            stop.wait()
            until = time.monotonic() + STOP_SECONDS
            listener.stop()
            tasks.close()
            has_ended = worker.stop(STOP_SECONDS) and tasks.wait_until_idle(max(0.0, until - time.monotonic()))
        search_log.write()
        monitoring.stop()
        released = release_all()
        connections.close_all()
        self.stdout.write("The worker has ended." if has_ended else f"{released} tasks were given back.")
        sys.stdout.flush()
        os._exit(0)  # threads that are still running must not keep the process alive


def _serve_metrics(address: str) -> None:
    """Answer Prometheus if an address is given. Raises: `CommandError`."""
    if not address:
        return
    host, _colon, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise CommandError(f"--metrics must be HOST:PORT, such as 127.0.0.1:9464, not {address}.")
    if not settings.MEMORY_GATEWAY_METRICS_TOKEN:
        raise CommandError("--metrics needs MEMORY_GATEWAY_METRICS_TOKEN, which Prometheus sends as its bearer.")
    try:
        serve_worker(host.strip("[]"), int(port))
    except (OSError, OverflowError) as error:
        raise CommandError(f"Cannot listen on {address}: {error}") from None
