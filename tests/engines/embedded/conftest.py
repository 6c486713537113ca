"""Fixtures of the embedded engine's tests: an engine and a stub of a language model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from core.network.model_endpoint import ModelAddress
from tests.store.conftest import engine
from tests.stub_llm import StubLlm, running_llm

__all__ = ["engine"]


@pytest.fixture
def llm(settings: Any) -> Iterator[StubLlm]:
    with running_llm() as running:
        settings.MEMORY_GATEWAY_MODELS = settings.MEMORY_GATEWAY_MODELS | {
            "llm": ModelAddress(running.url, "stub", "sk-secret")
        }
        yield running
