"""The ASGI application of the gateway: REST, panel, MCP and WebSockets on one port."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from types import FrameType
from typing import Any

from memory_gateway.django_setup import application as django_application  # first: it sets Django up for the rest

# isort: split
from django.conf import settings
from django.db import connections
from starlette.middleware.cors import CORSMiddleware
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from agents.rpc.connection_limits import ConnectionLimiter
from agents.rpc.consumer import RpcConsumer, Timing
from agents.rpc.origins import is_probe_host
from core import monitoring
from core.background.tasks import limit_to
from core.errors import BadRequest, StorageUnavailable
from core.logs import choose_request_id, request_id
from core.messages import Translatable as _
from memories.services import search_log
from memory_gateway import probes
from memory_gateway.health import HealthMonitor, Report, health_document, monitor
from memory_gateway.server.base_path import BasePath
from memory_gateway.server.client_key import client_key
from memory_gateway.server.request_body import Receive, Scope, Send
from memory_gateway.server.responses import HeadTooLarge, json_answer, problem_answer, refusal_answer
from memory_gateway.server.wsgi_bridge import Answer, WSGIBridge
from operations import worker
from resources.services.storage_binding import StorageMismatch

MAX_HEADERS = 100
_PROBES = frozenset({"/health", "/live", "/ready"})
# Time for WebSockets to announce a restart.
ANNOUNCE_SECONDS = 0.3
# The remaining time of ten seconds after requests were drained. The next start resumes interrupted work.
WORKER_STOP_SECONDS = 1.0
# A multipart body's overhead besides the file: boundaries, part headers, form fields.
ENVELOPE_BYTES = 2**20
_EXPOSED_HEADERS = (
    "Accept-Ranges",
    "Content-Disposition",
    "Content-Range",
    "Deprecation",
    "ETag",
    "Idempotent-Replayed",
    "Location",
    "Preference-Applied",
    "Retry-After",
    "WWW-Authenticate",
    "X-Request-Id",
)

logger = logging.getLogger("memory_gateway.errors")
ASGIApplication = Callable[[Scope, Receive, Send], Awaitable[None]]


class Router:
    """Router of requests: probes are answered here, WebSockets at any path by `websocket`, the rest by `http`."""

    def __init__(
        self,
        http: ASGIApplication,
        websocket: ASGIApplication,
        health: HealthMonitor[Report],
        readiness: HealthMonitor[str],
    ) -> None:
        self._http = http
        self._websocket = websocket
        self._health = health
        self._readiness = readiness

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        elif scope["type"] == "http":
            connection = scope["state"].get("connection")  # of `bounds.DirectHttp`, if clients connect directly
            with connection.busy() if connection else contextlib.nullcontext():
                await self._request(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        scope["state"]["start"] = time.perf_counter()
        request_id.set(choose_request_id(headers.get(b"x-request-id", b"").decode("latin1")))
        if len(scope["headers"]) > MAX_HEADERS:
            await _send_answer(problem_answer(scope, HeadTooLarge(_("Send at most 100 headers."))), send)
            return
        if scope["path"] in _PROBES and scope["method"] == "GET":
            if not is_probe_host(headers.get(b"host", b"").decode("latin1")):
                refusal = BadRequest(_("This gateway does not serve the host that the request names."))
                await _send_answer(problem_answer(scope, refusal), send)
                return
            status, document = await self._probed(scope)
            await _send_answer(json_answer(scope, document, status), send)
            return
        carrier = {"traceparent": headers.get(b"traceparent", b"").decode("latin1")}
        with monitoring.request(scope["method"], carrier):
            await self._http(scope, receive, send)

    async def _probed(self, scope: Scope) -> tuple[int, dict[str, Any]]:
        """Return the status and the body for the path of a probe."""
        if scope["path"] == "/live":
            return 200, {"status": "ok"}
        if scope["path"] == "/health":
            return 200, health_document(await self._health.wait_on_loop())
        if scope["state"]["is_leaving"].is_set():
            return probes.readiness(probes.STOPPING)
        return probes.readiness(await self._readiness.wait_on_loop())

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._websocket(scope, receive, send)
        except OSError:  # the client disconnected during the response
            return
        except Exception:
            logger.exception("A WebSocket connection failed")
            with contextlib.suppress(Exception):
                await send({"type": "websocket.close", "code": 1011, "reason": "internal error"})

    async def _lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        scope["state"]["is_leaving"] = _announced_stop()
        monitoring.start()
        try:
            await asyncio.to_thread(_start_worker)
        except (StorageMismatch, StorageUnavailable) as error:
            await send({"type": "lifespan.startup.failed", "message": error.detail})
            return
        watcher = asyncio.create_task(_end_with_parent(os.environ.get("MEMORY_GATEWAY_WORKER", "")))
        gc.freeze()  # objects loaded so far live as long as the process: exclude them from garbage collection
        await send({"type": "lifespan.startup.complete"})
        await receive()
        watcher.cancel()
        await asyncio.to_thread(_stop_worker)
        await asyncio.to_thread(monitoring.stop)
        await send({"type": "lifespan.shutdown.complete"})


def _announced_stop() -> asyncio.Event:
    """Return an event that is set before the server stops: WebSockets announce it, then uvicorn closes them."""
    is_leaving = asyncio.Event()
    if threading.current_thread() is threading.main_thread():  # else the reloader has the signals
        stops = _Stops(asyncio.get_running_loop(), is_leaving)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, partial(stops.announce, signal.getsignal(number)))
    return is_leaving


class _Stops:
    """The handler of signals. The first one stops the server after the announcement, further ones at once.

    Ctrl+C reaches a worker process, and then SIGTERM of its parent. If the delayed SIGINT came after that, uvicorn
    would end without draining requests.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, is_leaving: asyncio.Event) -> None:
        self._loop = loop
        self._is_leaving = is_leaving
        self._has_stopped = False

    def announce(self, stop: Any, number: int, frame: FrameType | None) -> None:
        if self._is_leaving.is_set():
            self._has_stopped = True
            stop(number, frame)
            return
        self._loop.call_soon_threadsafe(self._is_leaving.set)
        self._loop.call_soon_threadsafe(self._loop.call_later, ANNOUNCE_SECONDS, self._stop, stop, number, frame)

    def _stop(self, stop: Any, number: int, frame: FrameType | None) -> None:
        if not self._has_stopped:
            self._has_stopped = True
            stop(number, frame)


def _start_worker() -> None:
    if os.environ.get("MEMORY_GATEWAY_NO_WORKER"):
        limit_to(())
    try:
        worker.start()
    finally:
        connections.close_all()


def _stop_worker() -> None:
    worker.stop(WORKER_STOP_SECONDS)
    search_log.write()


async def _send_answer(answer: Answer, send: Send) -> None:
    headers = [*answer.headers, (b"content-length", str(len(answer.body)).encode())]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def _end_with_parent(parent_pid: str) -> None:
    """Stop this worker process after its parent was killed. It would otherwise keep the port open."""
    while parent_pid:
        await asyncio.sleep(1)
        if os.getppid() != int(parent_pid):
            os.kill(os.getpid(), signal.SIGTERM)
            return


router = Router(
    WSGIBridge(
        django_application,
        refuse=refusal_answer,
        max_body_bytes=settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES + ENVELOPE_BYTES,
        threads=settings.MEMORY_GATEWAY_THREADS,
        client_key=client_key,
    ),
    RpcConsumer.as_asgi(
        limiter=ConnectionLimiter(requests_per_second=settings.RPC_REQUESTS_PER_SECOND),
        timing=Timing(handshake=settings.RPC_HANDSHAKE_SECONDS, tick=settings.RPC_TICK_SECONDS),
    ),
    monitor,
    probes.monitor,
)
# Around everything, because some refusals are answered outside Django. It costs 9 µs per request; Starlette comes with
# the MCP SDK.
_application: Any = CORSMiddleware(
    router,
    allow_origins=settings.MEMORY_GATEWAY_ALLOWED_ORIGINS,
    allow_methods=("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"),
    allow_headers=("*",),
    allow_private_network=True,
    expose_headers=_EXPOSED_HEADERS,
)
if settings.MEMORY_GATEWAY_TRUSTED_PROXIES:
    _application = ProxyHeadersMiddleware(_application, settings.MEMORY_GATEWAY_TRUSTED_PROXIES)
if settings.MEMORY_GATEWAY_TRUSTED_PROXIES or settings.MEMORY_GATEWAY_BASE_PATH:
    _application = BasePath(_application, settings.MEMORY_GATEWAY_BASE_PATH, settings.MEMORY_GATEWAY_TRUSTED_PROXIES)
application: ASGIApplication = _application
