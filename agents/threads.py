"""Threads in which the WebSockets and MCP over stdio call services."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import close_old_connections, connections
from django.db.backends.base.base import BaseDatabaseWrapper

_Result = TypeVar("_Result")


class Workers:
    """At most `size` threads, each with a persistent database connection; `close` closes the connections."""

    def __init__(self, size: int, name: str = "mcp") -> None:
        self._executor = ThreadPoolExecutor(size, thread_name_prefix=name)
        self._connections: dict[threading.Thread, Sequence[BaseDatabaseWrapper]] = {}

    async def run(self, call: Callable[[], _Result]) -> _Result:
        """Run the call in a thread with a copy of the current context variables. Raises: its errors."""
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._executor, context.run, self._with_database, call)

    def _with_database(self, call: Callable[[], _Result]) -> _Result:
        close_old_connections()
        try:
            return call()
        finally:
            close_old_connections()
            self._connections[threading.current_thread()] = connections.all(initialized_only=True)

    def close(self) -> None:
        """Wait for running calls, then close the connections of their threads."""
        self._executor.shutdown(cancel_futures=True)
        for of_thread in self._connections.values():
            for connection in of_thread:
                connection.inc_thread_sharing()
                connection.close()
