"""Threads for what an event loop must not do itself: the gateway's services and their database."""

from __future__ import annotations

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
    """At most `size` threads. Each keeps its database connection from call to call; `close` closes them all."""

    def __init__(self, size: int) -> None:
        self._executor = ThreadPoolExecutor(size, thread_name_prefix="mcp")
        self._kept: dict[threading.Thread, Sequence[BaseDatabaseWrapper]] = {}

    async def run(self, call: Callable[[], _Result]) -> _Result:
        """Calls in a thread, with a copy of the present context variables; what it raises is raised here."""
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._executor, context.run, self._with_database, call)

    def _with_database(self, call: Callable[[], _Result]) -> _Result:
        close_old_connections()
        try:
            return call()
        finally:
            close_old_connections()
            self._kept[threading.current_thread()] = connections.all(initialized_only=True)

    def close(self) -> None:
        """Waits for the calls that run, then closes the connections that their threads leave behind."""
        self._executor.shutdown(cancel_futures=True)
        for kept in self._kept.values():
            for connection in kept:
                connection.inc_thread_sharing()
                connection.close()
