"""`manage.py serve`: run the server."""

import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from core.messages import MANAGE
from memory_gateway.server import serving


class Command(BaseCommand):
    help = "Run the server: REST API, API docs, panel, MCP and WebSocket on one port."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--host", default=settings.MEMORY_GATEWAY_HOST, help="address to listen on (default: %(default)s)"
        )
        parser.add_argument(
            "--port",
            type=int,
            default=settings.MEMORY_GATEWAY_PORT,
            help="port to listen on; 0 for any free port (default: %(default)s)",
        )
        parser.add_argument(
            "--workers", type=int, default=1, help="number of processes; use one with SQLite (default: %(default)s)"
        )
        parser.add_argument(
            "--reload",
            action="store_true",
            default=settings.MEMORY_GATEWAY_RELOAD,
            help="restart when the code changes; uses one process (development)",
        )

        parser.add_argument(
            "--no-worker",
            action="store_true",
            help=f"run no background task; `{MANAGE} worker` does (PostgreSQL)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        plan = self.plan(**options)
        serving.check(plan)
        serving.require_local_model()
        serving.run(plan)

    def plan(
        self, *, host: str, port: int, workers: int, reload: bool, no_worker: bool, **options: Any
    ) -> serving.Plan:
        """Return the plan of the options, and set what the processes of the server read."""
        if host not in settings.ALLOWED_HOSTS and not settings.MEMORY_GATEWAY_ALLOWED_HOSTS:
            settings.ALLOWED_HOSTS.append(host)
            os.environ["MEMORY_GATEWAY_HOST"] = host  # for worker processes, which read their own settings
        os.environ.pop(serving.NO_WORKER, None)
        if no_worker:
            os.environ[serving.NO_WORKER] = "true"
        return serving.Plan(host, port, max(workers, 1), reload, runs_tasks=not no_worker)
