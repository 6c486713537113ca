"""Fixtures of the embedded engine's tests: an engine and a stub of a language model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.store.conftest import engine
from tests.stub_llm import StubLlm, running_llm

__all__ = ["engine"]


@pytest.fixture
def llm(settings: Any) -> Iterator[StubLlm]:
    with running_llm() as running:
        settings.MEMORY_GATEWAY_LLM_BASE_URL = running.url
        settings.MEMORY_GATEWAY_LLM_MODEL = "stub"
        settings.MEMORY_GATEWAY_LLM_API_KEY = "sk-secret"
        yield running
