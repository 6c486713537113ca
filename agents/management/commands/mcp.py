"""Serve one user's memories to an MCP client over stdin and stdout."""

from __future__ import annotations

import asyncio
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError
from mcp.server.stdio import stdio_server

from accounts.audit import Actor
from accounts.services import find_user
from agents.mcp.server import build, current
from agents.mcp.work import Workers
from agents.tools.caller import caller_for
from core.errors import GatewayError
from resources.services import storage_binding
from store.types import Owner

THREADS = 4


class Command(BaseCommand):
    help = "Serve one user's memories over MCP on stdin and stdout."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", required=True, help="the user_id whose memories these are")
        parser.add_argument("--agent", default=None, help="which of the user's agents calls (main)")

    def handle(self, *args: Any, user: str, agent: str | None, **options: Any) -> None:
        try:
            found = find_user(user)
            storage_binding.require()
            caller = caller_for(Owner(found.pk, found.user_id), Actor.command("mcp"), agent_id=agent)
        except GatewayError as error:
            raise CommandError(error.detail, returncode=2) from None
        except DatabaseError as error:
            raise CommandError(f"The database cannot be used ({error}): run python manage.py migrate first.") from None
        current.set(caller)
        workers = Workers(THREADS)
        try:
            asyncio.run(_serve(workers))
        finally:
            workers.close()


async def _serve(workers: Workers) -> None:
    server = build(workers)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
