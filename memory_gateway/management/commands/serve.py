"""`manage.py serve`: REST, pages and static files on one port."""

from __future__ import annotations

from typing import Any

import uvicorn
from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser


class Command(BaseCommand):
    help = "Serve the API, its documentation and the panel on one port."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default=settings.MEMORY_GATEWAY_HOST)
        parser.add_argument("--port", type=int, default=settings.MEMORY_GATEWAY_PORT)

    def handle(self, *args: Any, host: str, port: int, **options: Any) -> None:
        uvicorn.run(
            "memory_gateway.asgi:application",
            host=host,
            port=port,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
        )
