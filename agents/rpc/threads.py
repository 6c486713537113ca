"""Database threads of sockets, because asgiref uses one thread for the whole process."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from channels.db import database_sync_to_async

from agents.rpc.limits import CONTROL_THREADS, THREADS

_threads = ThreadPoolExecutor(THREADS, thread_name_prefix="rpc")
_control_threads = ThreadPoolExecutor(CONTROL_THREADS, thread_name_prefix="rpc-control")
_Result = TypeVar("_Result")


async def run_request(call: Callable[[], _Result]) -> _Result:
    """Run a request, which may be slow."""
    return await _in(_threads, call)


async def run_control(call: Callable[[], _Result]) -> _Result:
    """Run a connect or token check, which must not wait for slow requests."""
    return await _in(_control_threads, call)


async def _in(threads: ThreadPoolExecutor, call: Callable[[], _Result]) -> _Result:
    result: _Result = await database_sync_to_async(call, thread_sensitive=False, executor=threads)()
    return result
