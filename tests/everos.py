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
_START_SECONDS = 1200  # the first start installs it


@dataclass(frozen=True)
class EverOS:
    """Its address, and that of the stand-in for its LLM."""

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
    """Skip without the switch, or without an EverOS to start."""
    if os.environ.get("RUN_BACKEND_INTEGRATION") != "1":
        pytest.skip("needs a real EverOS: set RUN_BACKEND_INTEGRATION=1")
    if url := os.environ.get("UPSTREAM_URL"):
        yield EverOS(url.rstrip("/"), _llm_url(os.environ.get("STUB_PORT", "19950")))
        return
    with started() as service:
        yield service


@contextmanager
def started(**env: str) -> Iterator[EverOS]:
    """One from the shared folder; `env` are the variables of its `run`. Skips where that is absent."""
    service = start(**env)
    try:
        yield service
    finally:
        stop(**env)


def start(**env: str) -> EverOS:
    """Start one as `started` does; `stop` stops it, and its data stay."""
    if not _RUN.exists():
        pytest.skip("needs a real EverOS: set UPSTREAM_URL, or provide ../shared/upstream/run")
    env = {"UPSTREAM_PORT": "1995", "STUB_PORT": "19950", **os.environ, **env}
    subprocess.run([_RUN, "start"], check=True, capture_output=True, timeout=_START_SECONDS, env=env)
    return EverOS(f"http://127.0.0.1:{env['UPSTREAM_PORT']}", _llm_url(env["STUB_PORT"]))


def stop(**env: str) -> None:
    subprocess.run([_RUN, "stop"], check=True, capture_output=True, timeout=60, env={**os.environ, **env})


def installed() -> Path:
    """Return the environment into which `run` installed the default version."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return cache / "memory-gateway-upstream" / os.environ.get("EVEROS_VERSION", "1.5.1") / "venv"


def _llm_url(port: str) -> str:
    return f"http://127.0.0.1:{port}"
