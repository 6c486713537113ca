from __future__ import annotations

from django.apps import AppConfig


class MemoryGatewayConfig(AppConfig):
    name = "memory_gateway"
