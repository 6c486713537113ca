"""Prometheus metrics of the gateway."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from core import tracing

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
INGESTION_SECONDS: Final = Histogram(
    "memory_gateway_ingestion_seconds",
    "Time from an upload to the end of its ingestion.",
    ["status"],
    buckets=(*_SECONDS, 600.0, 3600.0),
    registry=REGISTRY,
)


def count_request(method: str, route: str, status: int, seconds: float) -> None:
    REQUESTS.labels(method, route, status).inc()
    REQUEST_SECONDS.labels(route).observe(seconds)
    tracing.record_seconds(
        "http.server.request.duration", seconds, {"http.request.method": method, "http.route": route}
    )


def count_engine_call(engine: str, call: str, outcome: str, seconds: float) -> None:
    ENGINE_CALLS.labels(engine, call, outcome).inc()
    ENGINE_SECONDS.labels(engine, call).observe(seconds)
    tracing.record_seconds(
        "memory_gateway.engine.duration", seconds, {"engine": engine, "call": call, "outcome": outcome}
    )
