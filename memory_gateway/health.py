"""Health check of the gateway and its engine: `GET /health`."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from django.conf import settings
from django.db import DatabaseError, connections
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, Field
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api import limits
from accounts.api.openapi import success
from core.errors import StorageUnavailable
from core.persistence import database_errors, files, replica
from engines.registry import get_engine
from remote import outbox
from remote.outbox import Backlog
from resources.services import storage_binding
from store.cover import is_attached
from store.port import Health

logger = logging.getLogger("memory_gateway.health")

PROBE_SECONDS = 1.0
MAX_WAIT_SECONDS = 1.5
CACHE_SECONDS = 1.0


class Report(NamedTuple):
    """The health of the engine, and messages about problems of the gateway itself."""

    engine: Health
    problems: tuple[str, ...] = ()
    waiting: Backlog | None = None
    """What waits for the remote; None without one."""


_Result = TypeVar("_Result")


class HealthMonitor(Generic[_Result]):
    """A health probe that runs once at a time; its result is cached for a second.

    `probe` gets its timeout in seconds. If it raises, and for callers that waited for `MAX_WAIT_SECONDS`, the result is
    `failed(reason)`; callers do not start a second probe while the first one hangs.
    """

    def __init__(
        self,
        probe: Callable[[float], _Result],
        clock: Callable[[], float] = time.monotonic,
        *,
        failed: Callable[[str], _Result],
    ) -> None:
        self._probe = probe
        self._failed = failed
        self._clock = clock
        self._lock = threading.Lock()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="health")
        self._result: Future[_Result] | None = None
        self._finished_at = 0.0

    def wait(self) -> _Result:
        try:
            return self._current_probe().result(MAX_WAIT_SECONDS)
        except TimeoutError:
            return self._failed(f"no answer within {MAX_WAIT_SECONDS} seconds")

    async def wait_on_loop(self) -> _Result:
        result = asyncio.wrap_future(self._current_probe())
        try:
            # Shielded: other callers may wait for the same result.
            return await asyncio.wait_for(asyncio.shield(result), MAX_WAIT_SECONDS)
        except TimeoutError:
            return self._failed(f"no answer within {MAX_WAIT_SECONDS} seconds")

    def _current_probe(self) -> Future[_Result]:
        with self._lock:
            if self._result is None or (self._result.done() and self._clock() - self._finished_at >= CACHE_SECONDS):
                self._result = self._executor.submit(self._probe_once)
            return self._result

    def _probe_once(self) -> _Result:
        try:
            return self._probe(PROBE_SECONDS)
        except Exception:
            logger.exception("A health check failed")
            return self._failed("the health check failed; see the log")
        finally:
            self._finished_at = self._clock()
            connections.close_all()  # this thread serves no requests, at whose end Django closes connections


def unavailable(error: str) -> Report:
    return Report(Health("unavailable", base_url=settings.MEMORY_GATEWAY_BACKEND_BASE_URL or None, error=error))


def probe(timeout_seconds: float) -> Report:
    engine = get_engine()
    try:
        waiting = outbox.backlog() if is_attached() else None
    except DatabaseError:
        waiting = None  # reported by the engine's health
    return Report(engine.health(timeout_seconds), tuple(problems()), waiting)


def problems() -> Iterator[str]:
    """Yield messages about problems of the database, the disks and the storage folder. They contain no paths."""
    if database_errors.is_damaged():
        yield database_errors.DAMAGED
    full = [
        files.disk_problem(files.root(), "storage folder", settings.MEMORY_GATEWAY_MIN_FREE_DISK_BYTES),
        files.disk_problem(Path(settings.MEMORY_GATEWAY_DB_PATH).parent, "data folder", 0),
    ]
    yield from filter(None, full)
    if files.has_write_failed_lately() and not any(full):
        yield "A write to disk failed within the last minute: a quota or limit may be exhausted."
    if left := replica.problem():
        yield left
    if (counter := limits.shared_counter()) and not counter.answers():
        yield "Redis does not answer: each process counts requests alone."
    try:
        if storage_binding.is_changed(is_quick=True):
            yield storage_binding.CHANGED
    except StorageUnavailable:
        yield "The object store does not answer: files can be neither stored nor read."
    except DatabaseError:
        pass  # reported by the engine's health


monitor = HealthMonitor(probe, failed=unavailable)


def health_document(report: Report) -> dict[str, Any]:
    """Return the body of `GET /health`.

    The HTTP status is always 200, so that an unavailable engine is not taken for an unavailable gateway.
    """
    health = report.engine
    backend: dict[str, Any] = {"status": health.status, "base_url": health.base_url}
    if health.status == "ok":
        backend["data"] = dict(health.data)
    else:
        backend["error"] = health.error
    if report.waiting:
        age = report.waiting.age_seconds(timezone.now())
        counts = {"waiting": report.waiting.waiting, "oldest_seconds": age, "refused": report.waiting.refused}
        backend["outbox"] = counts
    overall = "ok" if health.status == "ok" and not report.problems else "degraded"
    document = {"status": overall, "api": {"status": "ok"}, "backend": backend}
    return document | {"problems": list(report.problems)} if report.problems else document


class HealthAnswer(BaseModel):
    """The health of the gateway and of its memory engine."""

    class Api(BaseModel):
        """The health of the API."""

        status: Literal["ok"] = Field(description="Always `ok`.", examples=["ok"])

    class Backend(BaseModel):
        """The health of the memory engine."""

        status: Literal["ok", "unavailable"] = Field(description="`ok` if the engine can be used.", examples=["ok"])
        base_url: str | None = Field(description="The address of the remote; null without one.")
        data: dict[str, Any] | None = Field(
            None,
            description="The engine's own report. Absent if it is unavailable.",
            examples=[{"engine": "embedded", "status": "ok", "database": "sqlite"}],
        )
        error: str | None = Field(None, description="Why the engine is unavailable. Absent if it is not.")
        outbox: dict[str, int] | None = Field(
            None,
            description="Messages that wait for the remote, the age of the oldest in seconds, and those that it "
            "refused: `waiting`, `oldest_seconds`, `refused`. Absent without a remote.",
        )

    status: Literal["ok", "degraded"] = Field(
        description="`degraded` if the engine is unavailable or there are `problems`.", examples=["ok"]
    )
    api: Api = Field(description="The API, which answers this request.")
    backend: Backend = Field(description="The memory engine.")
    problems: list[str] | None = Field(
        None, description="Problems of the database, disks or storage folder, in sentences. Absent if there are none."
    )


# For the OpenAPI schema and other WSGI servers; in `manage.py serve` the ASGI router answers. It has no docstring
# because responses to OPTIONS would contain it.
class HealthView(APIView):
    authentication_classes = []
    permission_classes = [AllowAny]

    @extend_schema(
        operation_id="health",
        tags=["health"],
        summary="Check the health",
        description="Check the gateway and its memory engine. The status is 200 even if the engine is unavailable.",
        responses={200: success(HealthAnswer, "The gateway is running; `status` tells if it can be used.")},
    )
    def get(self, request: Request) -> Response:
        return Response(health_document(monitor.wait()))
