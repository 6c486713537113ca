"""A real EverOS for tests: the one at `UPSTREAM_URL`, or one started from the shared folder; with its LLM's faults."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

_RUN = Path(__file__).resolve().parents[2] / "shared" / "upstream" / "run"
_START_SECONDS = 600


@dataclass(frozen=True)
class EverOS:
    """Where it answers, and where the stand-in for its LLM takes orders."""

    url: str
    llm_url: str

    @contextmanager
    def failing_llm(self, mode: str) -> Iterator[None]:
        """Its LLM answers "500", "429", "400" or "garbage" meanwhile."""
        self._order(mode)
        try:
            yield
        finally:
            self._order("ok")

    def _order(self, mode: str) -> None:
        requests.post(f"{self.llm_url}/_stub/fault", json={"llm": mode}, timeout=5).raise_for_status()


@contextmanager
def running() -> Iterator[EverOS]:
    """Skips where nobody asked for it, or nothing is there to start."""
    if os.environ.get("RUN_BACKEND_INTEGRATION") != "1":
        pytest.skip("needs a real EverOS: set RUN_BACKEND_INTEGRATION=1")
    llm_url = f"http://127.0.0.1:{os.environ.get('STUB_PORT', '19950')}"
    if url := os.environ.get("UPSTREAM_URL"):
        yield EverOS(url.rstrip("/"), llm_url)
        return
    if not _RUN.exists():
        pytest.skip("needs a real EverOS: set UPSTREAM_URL, or provide ../shared/upstream/run")
    port = os.environ.get("UPSTREAM_PORT", "1995")
    subprocess.run([_RUN, "start"], check=True, capture_output=True, timeout=_START_SECONDS)
    try:
        yield EverOS(f"http://127.0.0.1:{port}", llm_url)
    finally:
        subprocess.run([_RUN, "stop"], check=True, capture_output=True, timeout=60)
