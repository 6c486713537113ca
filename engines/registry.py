"""Create the engine that the settings describe, one per process, and the remote that is attached to it."""

from functools import cache

from django.conf import settings

from engines.attached import AttachedEngine
from engines.embedded.engine import EmbeddedEngine
from remote.client.client import Client
from remote.client.resilience import Retry
from remote.everos import EverOS
from store.port import Engine, Remote


def get_engine() -> Engine:
    """Return the engine in use, with the remote that the settings name, if any."""
    return _attached() or local_engine()


def attached_remote() -> Remote | None:
    """Return the remote that the settings name, if any."""
    engine = _attached()
    return engine.remote if engine else None


@cache
def local_engine() -> EmbeddedEngine:
    """Return the engine without a remote. Its memories stay in this database while a remote is attached."""
    return EmbeddedEngine()


def _attached() -> AttachedEngine | None:
    if not settings.MEMORY_GATEWAY_BACKEND_BASE_URL:
        return None
    return _with_everos(
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL,
        settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS,
        settings.MEMORY_GATEWAY_BACKEND_INGEST_ATTEMPTS,
        settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS,
        settings.MEMORY_GATEWAY_RESOURCE_SEARCH_BATCH_SIZE,
        may_delete=settings.MEMORY_GATEWAY_EVEROS_DELETE,
        search_seconds=settings.MEMORY_GATEWAY_BACKEND_SEARCH_SECONDS,
    )


@cache
def _with_everos(
    base_url: str,
    timeout_seconds: float,
    attempts: int,
    delay_seconds: float,
    batch_size: int,
    *,
    may_delete: bool,
    search_seconds: float,
) -> AttachedEngine:
    """Return the engine for these settings: connections, circuit breaker and limits belong to the process."""
    client = Client(base_url, timeout_seconds=timeout_seconds, retry=Retry(attempts, delay_seconds))
    return AttachedEngine(EverOS(client, batch_size=batch_size, may_delete=may_delete, search_seconds=search_seconds))
