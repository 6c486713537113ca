"""Measurements: metrics for Prometheus, and traces and metrics for OpenTelemetry.

Nothing goes to OpenTelemetry until `start` is called, which needs the extra `otel`. Spans contain no values: routes,
statements with placeholders, task names.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol

from django.conf import settings
from django.utils.module_loading import import_string
from prometheus_client import CollectorRegistry, Counter, Histogram

REGISTRY: Final = CollectorRegistry()
_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)

REQUESTS: Final = Counter(
    "memory_gateway_requests", "Requests by route and status.", ["method", "route", "status"], registry=REGISTRY
)
REQUEST_SECONDS: Final = Histogram(
    "memory_gateway_request_seconds", "Duration of requests.", ["route"], buckets=_SECONDS, registry=REGISTRY
)
ENGINE_CALLS: Final = Counter(
    "memory_gateway_engine_calls", "Engine calls by outcome.", ["engine", "call", "outcome"], registry=REGISTRY
)
ENGINE_SECONDS: Final = Histogram(
    "memory_gateway_engine_seconds",
    "Duration of engine calls.",
    ["engine", "call"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
REPLICA_READS: Final = Counter(
    "memory_gateway_replica_reads",
    "Reads that a replica may answer, by where they were done.",
    ["source"],
    registry=REGISTRY,
)
INGESTION_SECONDS: Final = Histogram(
    "memory_gateway_ingestion_seconds",
    "Time from an upload to the end of its ingestion.",
    ["status"],
    buckets=(*_SECONDS, 600.0, 3600.0),
    registry=REGISTRY,
)

Attributes = Mapping[str, str | int]
_NONE: Final = nullcontext()


class Tracer(Protocol):
    """The methods of `memory_gateway.telemetry.Telemetry`, which sends to a collector."""

    def span(self, name: str, attributes: Attributes, link: object) -> AbstractContextManager[object]: ...

    def request(self, method: str, headers: Mapping[str, str]) -> AbstractContextManager[object]: ...

    def annotate(self, name: str, attributes: Attributes) -> None: ...

    def current(self) -> object: ...

    def record_seconds(self, name: str, seconds: float, attributes: Attributes) -> None: ...

    def stop(self, timeout_seconds: float) -> None: ...


_STOP_SECONDS: Final = 1.0
_tracer: Tracer | None = None


def start() -> None:
    """Trace everything from now on, if the settings name a collector."""
    global _tracer  # noqa: PLW0603 - set once, at the start of the process
    if settings.OTEL_EXPORTER_OTLP_ENDPOINT:
        _tracer = import_string("memory_gateway.telemetry.Telemetry")()


def stop() -> None:
    """Send what is pending, for a second at most."""
    if _tracer:
        _tracer.stop(_STOP_SECONDS)


def span(name: str, attributes: Attributes | None = None, *, link: object = None) -> AbstractContextManager[object]:
    """Trace the block as a part of the current span, or as a separate trace that `link` led to."""
    return _tracer.span(name, attributes or {}, link) if _tracer else _NONE


def request(method: str, headers: Mapping[str, str]) -> AbstractContextManager[object]:
    """Trace the block as an HTTP request, as a part of the trace that its headers name."""
    return _tracer.request(method, headers) if _tracer else _NONE


def annotate(name: str, attributes: Attributes) -> None:
    """Name the current span and add attributes."""
    if _tracer:
        _tracer.annotate(name, attributes)


def current() -> object:
    """Return the current span, as the `link` of a later one; None without tracing."""
    return _tracer.current() if _tracer else None


def record_seconds(name: str, seconds: float, attributes: Attributes) -> None:
    """Add a duration to a histogram."""
    if _tracer:
        _tracer.record_seconds(name, seconds, attributes)


def count_request(method: str, route: str, status: int, seconds: float) -> None:
    REQUESTS.labels(method, route, status).inc()
    REQUEST_SECONDS.labels(route).observe(seconds)
    record_seconds("http.server.request.duration", seconds, {"http.request.method": method, "http.route": route})


def count_engine_call(engine: str, call: str, outcome: str, seconds: float) -> None:
    ENGINE_CALLS.labels(engine, call, outcome).inc()
    ENGINE_SECONDS.labels(engine, call).observe(seconds)
    record_seconds("memory_gateway.engine.duration", seconds, {"engine": engine, "call": call, "outcome": outcome})
