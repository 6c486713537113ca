"""The WebSocket of an OpenClaw client: challenge, connect, requests, ticks, close."""

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from channels.consumer import AsyncConsumer
from channels.exceptions import StopConsumer
from django.db import DatabaseError

from accounts import tokens
from accounts.audit import Source, source
from agents.rpc import frames, methods
from agents.rpc.connection_limits import (
    CONTROL_THREADS,
    MAX_OUTBOUND_BYTES,
    REQUESTS_IN_FLIGHT,
    THREADS,
    ConnectionLimiter,
)
from agents.rpc.failures import Failure, Refusal
from agents.rpc.frames import BadFrame, NotJson, Request
from agents.rpc.handshake import Peer, UpgradeInfo, connect, first_request, hello, token_ended
from agents.rpc.origins import is_host_allowed, is_secure
from agents.threads import Workers
from core import monitoring
from core.logs import choose_request_id, redact_text, request_id
from core.times import isoformat

logger = logging.getLogger("memory_gateway.rpc")
request_logger = logging.getLogger("memory_gateway.api")
_MAX_REASON_BYTES = 120
_MAX_LOGGED_CHARS = 100
_RESTART_MS = 5000
# Not asgiref's `sync_to_async`, which uses one thread for the whole process.
_requests = Workers(THREADS, "rpc")
_control = Workers(CONTROL_THREADS, "rpc-control")


@dataclass(frozen=True, slots=True)
class Timing:
    """Timeouts in seconds: `handshake` ends a socket without `connect`; `tick` is the interval of token checks."""

    handshake: float
    tick: float


class RpcConsumer(AsyncConsumer):  # type: ignore[misc]
    """One connection. Its scope's state has `allow_large_messages`, a function, and `is_leaving`, an event."""

    def __init__(self, limiter: ConnectionLimiter, timing: Timing) -> None:
        self._limiter = limiter
        self._timing = timing
        self._id = str(uuid.uuid4())
        self._peer: Peer | None = None
        self._handshake: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._request_slots = asyncio.Semaphore(0)
        self._unanswered = asyncio.Semaphore(REQUESTS_IN_FLIGHT)
        self._is_closed = False
        self._outbound_bytes = 0
        self._seq = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._is_closed = True
            self._limiter.remove(self, self._peer.principal.name if self._peer else None)
            for task in self._tasks:
                task.cancel()

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Handle an ASGI message without channels' database check, which uses one thread for all sockets."""
        if message["type"] == "websocket.connect":
            await self._accept()
        elif message["type"] == "websocket.receive":
            with contextlib.suppress(OSError):  # the client disconnected
                await self._receive(message)
        elif message["type"] == "websocket.disconnect":
            raise StopConsumer

    def disconnect(self) -> None:
        """Close this pending connection to make room for others."""
        self._start(self._close(1013, "too many connections"))

    # --- connection lifecycle ---

    async def _accept(self) -> None:
        hosts, origins, clients = (
            [value.decode("latin1") for name, value in self.scope["headers"] if name == wanted]
            for wanted in (b"host", b"origin", b"user-agent")
        )
        self._upgrade = UpgradeInfo(
            peer=(self.scope.get("client") or ("", 0))[0],
            host=hosts[0] if hosts else "",
            origin=origins[0] if origins else None,
            scheme=self.scope["scheme"],
            client=clients[0] if clients else "",
        )
        if len(hosts) != 1 or not is_host_allowed(hosts[0]) or not is_secure(self.scope["scheme"]):
            await self.send({"type": "websocket.close"})  # before accept, so the client gets 403
            return
        await self.send({"type": "websocket.accept"})
        challenge = {"nonce": str(uuid.uuid4()), "ts": int(time.time() * 1000)}
        await self._send(frames.event("connect.challenge", challenge))
        self._limiter.add_pending(self)
        self._handshake = self._start(self._end_slow_handshake())

    async def _end_slow_handshake(self) -> None:
        if not await self._shuts_down_within(self._timing.handshake):
            await self._close(1000)

    async def _tick(self, peer: Peer) -> None:
        """Send ticks while the token is valid, then close."""
        while not await self._shuts_down_within(self._timing.tick):
            if not await _control.run(lambda: _is_token_valid(peer)):
                ended = token_ended()
                await self._close(ended.code, ended.reason)
                return
            await self._send_event("tick", {"ts": int(time.time() * 1000)})

    async def _shuts_down_within(self, seconds: float) -> bool:
        """Return True after closing the socket if the server shuts down within `seconds`."""
        try:
            await asyncio.wait_for(self.scope["state"]["is_leaving"].wait(), seconds)
        except TimeoutError:
            return False
        if not self._is_closed:
            await self._send_event("shutdown", {"reason": "service restart", "restartExpectedMs": _RESTART_MS})
            await self._close(1012, "service restart")
        return True

    # --- incoming frames ---

    async def _receive(self, message: dict[str, Any]) -> None:
        if self._is_closed:
            return
        content = message.get("bytes")
        data: bytes = content if content is not None else message["text"].encode()
        if self._peer is None:
            await self._connect(data)
            return
        await self._limiter.throttle(self._peer.principal.name)
        try:
            request = frames.read(data)
        except NotJson:
            return
        except BadFrame as error:
            await self._send(frames.failed(error.id, error.failure))
            return
        await self._unanswered.acquire()
        self._start(self._answer(self._peer, request))

    async def _connect(self, data: bytes) -> None:
        try:
            request = first_request(data)
        except Refusal as refusal:
            await self._close(refusal.code, refusal.reason)
            return
        try:
            peer = await _control.run(lambda: connect(request, self._upgrade))
            if self._is_closed:
                return
            self._request_slots = self._limiter.admit(self, peer.principal.name)
        except Refusal as refusal:
            await self._refuse(request, refusal)
        except Exception:
            logger.exception("A WebSocket handshake failed")
            failure = Failure("UNAVAILABLE", "gateway starting; retry shortly", retry_after_ms=500)
            await self._refuse(request, Refusal(1013, "gateway starting", failure))
        else:
            self._peer = peer
            if self._handshake:
                self._handshake.cancel()
            self.scope["state"]["allow_large_messages"]()
            names = list(methods.METHODS)
            payload = hello(peer, connection_id=self._id, methods=names, tick_seconds=self._timing.tick)
            await self._send(frames.succeeded(request.id, payload))
            self._start(self._tick(peer))

    async def _refuse(self, request: Request, refusal: Refusal) -> None:
        if refusal.failure is not None:
            await self._send(frames.failed(request.id, refusal.failure))
        await self._close(refusal.code, refusal.reason)

    async def _answer(self, peer: Peer, request: Request) -> None:
        try:
            request_id.set(choose_request_id(""))
            async with self._request_slots:
                with monitoring.span("WebSocket request"):
                    frame = await _requests.run(lambda: _answer_to(peer, request, self._upgrade))
            await self._send(frame)
        except Refusal as refusal:
            await self._refuse(request, refusal)
        finally:
            self._unanswered.release()

    # --- outgoing frames ---

    async def _send_event(self, name: str, payload: dict[str, Any]) -> None:
        self._seq += 1
        await self._send(frames.event(name, payload, self._seq))

    async def _send(self, frame: bytes) -> None:
        """Send a frame, waiting for a slow client; close the socket if too many bytes are waiting."""
        if self._is_closed:
            return
        self._outbound_bytes += len(frame)
        try:
            if self._outbound_bytes > MAX_OUTBOUND_BYTES:
                await self._close(1008, "slow consumer")
            else:
                await self.send({"type": "websocket.send", "text": frame.decode()})
        except RuntimeError:  # closed while this waited
            self._is_closed = True
        finally:
            self._outbound_bytes -= len(frame)

    async def _close(self, code: int, reason: str = "") -> None:
        if self._is_closed:
            return
        self._is_closed = True
        reason = reason.encode()[:_MAX_REASON_BYTES].decode(errors="ignore")
        with contextlib.suppress(RuntimeError):  # already closed by the protocol
            await self.send({"type": "websocket.close", "code": code, "reason": reason})

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(_log_failures(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _answer_to(peer: Peer, request: Request, upgrade: UpgradeInfo) -> bytes:
    """Return the response frame, and log the request as the REST API does, without its parameters and result.

    Raises: `Refusal` if the token is no longer valid.
    """
    started_at, outcome = time.perf_counter(), "ok"
    called = f"{request.method} {orjson.dumps(request.params, option=orjson.OPT_SORT_KEYS).decode()}"
    sources = source.set(Source.of(upgrade.peer, upgrade.client, called))
    try:
        if not _is_token_valid(peer):
            outcome = "UNAUTHORIZED"
            raise token_ended()
        return frames.succeeded(request.id, methods.call(peer, request))
    except Failure as failure:
        outcome = failure.error["code"]
        return frames.failed(request.id, failure)
    finally:
        duration_ms = (time.perf_counter() - started_at) * 1000
        line = {
            "request_time": isoformat(datetime.now(UTC) - timedelta(milliseconds=duration_ms)),
            "duration_ms": round(duration_ms, 2),
            "method": "RPC",
            "path": redact_text(request.method[:_MAX_LOGGED_CHARS]),
            "client": upgrade.peer,
            "request_id": request_id.get(),
            "user_id": peer.principal.user_id,
            "token": peer.principal.name,
            "output": {"status": outcome},
        }
        request_logger.info("%s", orjson.dumps(line).decode())
        source.reset(sources)


def _is_token_valid(peer: Peer) -> bool:
    try:
        return tokens.is_still_valid(peer.principal)
    except DatabaseError:
        logger.exception("A token could not be checked. The check is repeated with the next request or tick.")
        return True


async def _log_failures(work: Coroutine[Any, Any, None]) -> None:
    """Await the work and log its failure. `OSError` is ignored: the client is gone."""
    try:
        await work
    except OSError:
        return
    except Exception:
        logger.exception("A WebSocket task failed")
