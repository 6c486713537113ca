"""The choice of the engine by the settings."""

from __future__ import annotations

from typing import Any

from engines.registry import get_engine


def test_without_an_address_the_embedded_engine_is_used(settings: Any) -> None:
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = ""
    assert get_engine().label == "embedded"


def test_an_address_selects_one_upstream_engine_per_process(settings: Any) -> None:
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = "http://127.0.0.1:1"
    engine = get_engine()
    assert engine.label == "remote"
    assert get_engine() is engine
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = "http://127.0.0.1:2"
    assert get_engine() is not engine
