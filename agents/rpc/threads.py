"""Where sockets wait for the database: asgiref's own way has one thread for the whole process."""

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
    """For requests, which may take their time."""
    return await _in(_threads, call)


async def run_control(call: Callable[[], _Result]) -> _Result:
    """For what every socket needs however busy the others are."""
    return await _in(_control_threads, call)


async def _in(threads: ThreadPoolExecutor, call: Callable[[], _Result]) -> _Result:
    result: _Result = await database_sync_to_async(call, thread_sensitive=False, executor=threads)()
    return result
