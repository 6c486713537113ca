"""Which engine the settings ask for: one per process."""

from __future__ import annotations

from functools import cache

from django.conf import settings

from engines.embedded.engine import EmbeddedEngine
from engines.everos.adapter import UpstreamEngine
from engines.everos.client.client import Client, Options
from engines.everos.client.resilience import Retry
from engines.port import Engine


def get_engine() -> Engine:
    """The process-wide engine: EverOS where the settings name one, else our own."""
    if not settings.MEMORY_GATEWAY_BACKEND_BASE_URL:
        return _embedded()
    return _upstream(
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL,
        settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS,
        settings.MEMORY_GATEWAY_BACKEND_INGEST_ATTEMPTS,
        settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS,
        settings.MEMORY_GATEWAY_RESOURCE_SEARCH_BATCH_SIZE,
    )


@cache
def _embedded() -> Engine:
    return EmbeddedEngine()


@cache
def _upstream(
    base_url: str, timeout_seconds: float, attempts: int, delay_seconds: float, batch_size: int
) -> UpstreamEngine:
    """Kept by its settings: connections, the circuit breaker and the limits belong to the process."""
    options = Options(base_url, timeout_seconds, Retry(attempts, delay_seconds))
    return UpstreamEngine(Client(options), batch_size=batch_size)
