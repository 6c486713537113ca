"""The one ASGI application behind the one port."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable

from memory_gateway.django_setup import application as django_application  # first: it sets Django up for the rest

# isort: split
from django.conf import settings
from django.db import connections

from agents.rpc.connection_limits import ConnectionLimiter
from agents.rpc.consumer import RpcConsumer, Timing
from core import cpu_affinity
from core.request_context import choose_request_id, request_id
from memory_gateway.health import HealthMonitor, health_document, monitor
from memory_gateway.server.client_key import caller_of
from memory_gateway.server.mcp_endpoint import McpDoor
from memory_gateway.server.request_body import Receive, Send
from memory_gateway.server.responses import json_answer, problem_answer
from memory_gateway.server.wsgi_bridge import Answer, Scope, WSGIBridge
from operations import worker
from resources.services.storage_binding import StorageMismatch

# What is left of ten seconds after the requests in flight had theirs; what a sweep leaves, the next start finishes.
SWEEPER_STOP_SECONDS = 1.0
MCP_STOP_SECONDS = 0.5
# What a multipart body holds besides the file: boundaries, part headers, form fields.
ENVELOPE_BYTES = 2**20

logger = logging.getLogger("memory_gateway.errors")
ASGIApplication = Callable[[Scope, Receive, Send], Awaitable[None]]


class Router:
    """Answers `/health` itself, gives WebSockets at any path to `websocket`, `/mcp` to a door that is made for each
    start, and the rest to `http`."""

    def __init__(self, http: ASGIApplication, websocket: ASGIApplication, health: HealthMonitor) -> None:
        self._http = http
        self._mcp: McpDoor | None = None
        self._websocket = websocket
        self._health = health

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        elif scope["type"] == "http":
            await self._request(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        scope.setdefault("state", {})["began"] = time.perf_counter()
        request_id.set(choose_request_id(headers.get(b"x-request-id", b"").decode("latin1")))
        if scope["path"] == "/health" and scope["method"] == "GET":
            document = health_document(await self._health.wait_on_loop())
            await _send_whole(json_answer(scope, document), send)
        elif scope["path"] in {"/mcp", "/mcp/"} and self._mcp is not None:
            answer = await self._mcp.answer(scope, receive)
            if answer is not None:
                await _send_whole(answer, send)
        else:
            await self._http(scope, receive, send)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._websocket(scope, receive, send)
        except OSError:  # the client left while we spoke
            return
        except Exception:
            logger.exception("A WebSocket failed")
            with contextlib.suppress(Exception):
                await send({"type": "websocket.close", "code": 1011, "reason": "internal error"})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        if settings.MEMORY_GATEWAY_ONE_CORE:
            cpu_affinity.stay_on_one()
        try:
            await asyncio.to_thread(_start_sweeper)
        except StorageMismatch as error:
            await send({"type": "lifespan.startup.failed", "message": error.detail})
            return
        watch = asyncio.create_task(_end_with_parent(os.environ.get("MEMORY_GATEWAY_WORKER", "")))
        self._mcp = McpDoor(settings.MEMORY_GATEWAY_THREADS)
        async with self._mcp.open(MCP_STOP_SECONDS):
            gc.freeze()  # what is here now stays: nobody has to look through it again and again for what is garbage
            await send({"type": "lifespan.startup.complete"})
            await receive()
        watch.cancel()
        await asyncio.to_thread(worker.stop, SWEEPER_STOP_SECONDS)
        await send({"type": "lifespan.shutdown.complete"})


def _start_sweeper() -> None:
    try:
        worker.start()
    finally:
        connections.close_all()


async def _send_whole(answer: Answer, send: Send) -> None:
    headers = [*answer.headers, (b"content-length", str(len(answer.body)).encode())]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def _end_with_parent(parent_pid: str) -> None:
    """A worker whose parent was killed would go on holding the port: it ends too."""
    while parent_pid:
        await asyncio.sleep(1)
        if os.getppid() != int(parent_pid):
            os.kill(os.getpid(), signal.SIGTERM)
            return


application = Router(
    WSGIBridge(
        django_application,
        refuse=problem_answer,
        max_body_bytes=settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES + ENVELOPE_BYTES,
        threads=settings.MEMORY_GATEWAY_THREADS,
        caller_of=caller_of,
    ),
    RpcConsumer.as_asgi(
        limiter=ConnectionLimiter(requests_per_second=settings.RPC_REQUESTS_PER_SECOND),
        timing=Timing(handshake=settings.RPC_HANDSHAKE_SECONDS, tick=settings.RPC_TICK_SECONDS),
    ),
    monitor,
)
