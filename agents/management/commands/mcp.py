"""Serve one user's memories to an MCP client over stdin and stdout."""

import asyncio
import os
import sys
from typing import Any

import anyio
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from accounts.audit import Actor
from accounts.services import find_user
from agents.mcp.server import build, current, is_list_complete, unreadable
from agents.threads import Workers
from agents.tools.caller import caller_for
from core.errors import GatewayError
from core.messages import MANAGE
from memories.services import search_log
from resources.services import storage_binding
from store.types import Owner

THREADS = 4
LOG_SECONDS = 2


class Command(BaseCommand):
    requires_system_checks = ()  # `start` makes them; a client starts this for each of its sessions
    help = "Serve one user's memories over MCP on stdin and stdout."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", required=True, help="user ID")
        parser.add_argument("--agent", default=None, help="agent ID (default: main)")
        parser.add_argument("--all-tools", action="store_true", help="list all tools, not only the six most used")

    def handle(self, *args: Any, user: str, agent: str | None, all_tools: bool = False, **options: Any) -> None:
        try:
            found = find_user(user)
            storage_binding.require()
            caller = caller_for(Owner(found.pk, found.user_id), Actor.command("mcp"), interface="mcp", agent_id=agent)
        except GatewayError as error:
            raise CommandError(error.detail, returncode=2) from None
        except DatabaseError as error:
            raise CommandError(f"The database cannot be used: {error}. Run `{MANAGE} migrate`.") from None
        current.set(caller)
        is_list_complete.set(all_tools)
        workers = Workers(THREADS)
        try:
            asyncio.run(_serve(workers))
        except* BrokenPipeError:  # the client is gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is buffered is flushed at the exit
        finally:
            workers.close()
            search_log.write()


async def _serve(workers: Workers) -> None:
    server = build(workers.run)
    sender, readable = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    async with stdio_server() as (incoming, outgoing), anyio.create_task_group() as group:

        async def answer_unreadable() -> None:
            """Answer what the SDK cannot read, which it would drop: the client would wait for ever."""
            async with sender:
                async for item in incoming:
                    if isinstance(item, ValidationError):
                        await outgoing.send(SessionMessage(unreadable(item.errors()[0]["input"])))
                    else:
                        await sender.send(item)

        async def write_search_log() -> None:
            while True:
                await anyio.sleep(LOG_SECONDS)
                await workers.run(search_log.write)

        group.start_soon(answer_unreadable)
        group.start_soon(write_search_log)
        await server.run(readable, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()
