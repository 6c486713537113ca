"""Create the engines that the settings name, one of each kind per process."""

from functools import cache

from django.conf import settings

from engines.embedded.engine import EmbeddedEngine
from remote.client.client import Client
from remote.client.resilience import Retry
from remote.everos import EverOSEngine
from store.port import Engine, ExternalEngine, LocalEngine


def get_engine() -> Engine:
    """Return the engine in use: EverOS if the settings name one, otherwise the embedded one."""
    return external_engine() or local_engine()


def external_engine() -> ExternalEngine | None:
    """Return the external engine that the settings name, if any."""
    if not settings.MEMORY_GATEWAY_BACKEND_BASE_URL:
        return None
    return _everos(
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL,
        settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS,
        settings.MEMORY_GATEWAY_BACKEND_INGEST_ATTEMPTS,
        settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS,
        settings.MEMORY_GATEWAY_RESOURCE_SEARCH_BATCH_SIZE,
        may_delete=settings.MEMORY_GATEWAY_EVEROS_DELETE,
        search_seconds=settings.MEMORY_GATEWAY_BACKEND_SEARCH_SECONDS,
    )


@cache
def local_engine() -> LocalEngine:
    """Return the embedded engine. Its memories stay in this database while an external engine is in use."""
    return EmbeddedEngine()


@cache
def _everos(
    base_url: str,
    timeout_seconds: float,
    attempts: int,
    delay_seconds: float,
    batch_size: int,
    *,
    may_delete: bool,
    search_seconds: float,
) -> ExternalEngine:
    """Return the engine for these settings: connections, circuit breaker and limits belong to the process."""
    client = Client(base_url, timeout_seconds=timeout_seconds, retry=Retry(attempts, delay_seconds))
    return EverOSEngine(client, batch_size=batch_size, may_delete=may_delete, search_seconds=search_seconds)
