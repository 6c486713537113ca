"""Which engine the settings ask for: one per process."""

from __future__ import annotations

from functools import cache

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from engine.embedded.engine import EmbeddedEngine
from engine.port import Engine


def get_engine() -> Engine:
    """The process-wide engine. Errors: `ImproperlyConfigured` where an upstream is asked for."""
    if settings.MEMORY_GATEWAY_BACKEND_BASE_URL:
        raise ImproperlyConfigured(
            "MEMORY_GATEWAY_BACKEND_BASE_URL is set, but this version has the embedded engine only: leave it empty."
        )
    return _embedded()


@cache
def _embedded() -> Engine:
    return EmbeddedEngine()
