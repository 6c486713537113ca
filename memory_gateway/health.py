"""Health check of the gateway and its engine: `GET /health`."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal

from django.conf import settings
from django.db import connections
from drf_spectacular.utils import extend_schema
from pydantic import BaseModel
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from engines.port import Health
from engines.registry import get_engine

logger = logging.getLogger("memory_gateway.health")

PROBE_SECONDS = 1.0
ANSWER_SECONDS = 1.5
FRESH_SECONDS = 1.0


class HealthMonitor:
    """A health probe of the engine that runs once at a time; its result is cached for a second.

    `probe` gets its timeout in seconds. A caller that has waited for `ANSWER_SECONDS` gets "unavailable" and starts no
    second probe while the first one hangs.
    """

    def __init__(self, probe: Callable[[float], Health], clock: Callable[[], float] = time.monotonic) -> None:
        self._probe = probe
        self._clock = clock
        self._lock = threading.Lock()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="health")
        self._answer: Future[Health] | None = None
        self._answered_at = 0.0

    def wait(self) -> Health:
        try:
            return self._ask().result(ANSWER_SECONDS)
        except TimeoutError:
            return unavailable(f"no answer within {ANSWER_SECONDS} seconds")

    async def wait_on_loop(self) -> Health:
        answer = asyncio.wrap_future(self._ask())
        try:
            # Shielded: other callers may wait for the same result.
            return await asyncio.wait_for(asyncio.shield(answer), ANSWER_SECONDS)
        except TimeoutError:
            return unavailable(f"no answer within {ANSWER_SECONDS} seconds")

    def _ask(self) -> Future[Health]:
        with self._lock:
            if self._answer is None or (self._answer.done() and self._clock() - self._answered_at >= FRESH_SECONDS):
                self._answer = self._executor.submit(self._probe_once)
            return self._answer

    def _probe_once(self) -> Health:
        try:
            return self._probe(PROBE_SECONDS)
        except Exception:
            logger.exception("The engine's health check failed")
            return unavailable("the health check failed; the log says why")
        finally:
            self._answered_at = self._clock()
            connections.close_all()  # this thread serves no requests, at whose end Django closes connections


def unavailable(error: str) -> Health:
    return Health("unavailable", base_url=settings.MEMORY_GATEWAY_BACKEND_BASE_URL or None, error=error)


def probe_engine(timeout_seconds: float) -> Health:
    return get_engine().health(timeout_seconds)


monitor = HealthMonitor(probe_engine)


def health_document(health: Health) -> dict[str, Any]:
    """Return the body of `GET /health`.

    The status is always 200, so that a dead engine is not mistaken for a dead gateway.
    """
    backend: dict[str, Any] = {"status": health.status, "base_url": health.base_url}
    if health.status == "ok":
        backend["data"] = dict(health.data)
    else:
        backend["error"] = health.error
    overall = "ok" if health.status == "ok" else "degraded"
    return {"status": overall, "api": {"status": "ok"}, "backend": backend}


class HealthAnswer(BaseModel):
    """Health of the gateway (`api`) and of the memory engine behind it (`backend`)."""

    class Api(BaseModel):
        status: Literal["ok"]

    class Backend(BaseModel):
        status: Literal["ok", "unavailable"]
        base_url: str | None
        data: dict[str, Any] | None = None
        error: str | None = None

    status: Literal["ok", "degraded"]
    api: Api
    backend: Backend


# The same response inside Django, for the OpenAPI schema; the ASGI router answers first. No docstring: OPTIONS would
# show it.
class HealthView(APIView):
    authentication_classes = []
    permission_classes = [AllowAny]

    @extend_schema(
        operation_id="health",
        tags=["health"],
        summary="Is the gateway alive, and its engine?",
        description="Always 200: `degraded` means that the gateway answers and the memory engine behind it does not.",
        responses=HealthAnswer,
    )
    def get(self, request: Request) -> Response:
        return Response(health_document(monitor.wait()))
