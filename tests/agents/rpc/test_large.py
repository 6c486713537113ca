"""A million memories: the panel's calls answer as quickly as with a thousand."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.agents.rpc.client import Client, connected
from tests.agents.rpc.conftest import TOKEN
from tests.server import running_server

ROUNDS = 15
YEARS = {"timeFrom": "2024-01-01T00:00:00.000Z", "timeTo": "2026-12-31T23:59:59.999Z"}
PAGE = {"limit": 20}  # full with a thousand memories too
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "config": ("memory.admin.config", {}),
    "facets": ("memory.admin.facets", {}),
    "dashboard of years": ("memory.admin.dashboard", YEARS),
    "dashboard of a month": ("memory.admin.dashboard", {"timeFrom": "2026-10-05", "timeTo": "2026-11-04T07:31:11Z"}),
    "list": ("memory.admin.list", {"tab": "user", **PAGE}),
    "list of turns": ("memory.admin.list", {"tab": "full", **PAGE}),
    "list of half a year": ("memory.admin.list", {"tab": "user", "timeFrom": "2026-06-05", **PAGE}),
    "oldest first": ("memory.admin.list", {"tab": "user", "sortDesc": False, **PAGE}),
}
HELD = [name for name in CALLS if name not in {"config", "facets"}]


@pytest.mark.torture
def test_a_million_memories_answer_like_a_thousand(tmp_path: Path) -> None:
    few, many = (measured(tmp_path / str(number), number) for number in (1_000, 1_000_000))
    print("\n".join(f"{name:22} {few[name]:8.1f} ms {many[name]:8.1f} ms" for name in CALLS))  # noqa: T201
    for name in HELD:
        assert many[name] < 300, name
        assert many[name] < 3 * max(few[name], 5), name


def measured(folder: Path, memories: int) -> dict[str, float]:
    """Milliseconds of each call over the socket, the median of some."""
    settings = {"DJANGO_SETTINGS_MODULE": "tests.agents.rpc.server_settings", "MEMORY_GATEWAY_RPC_TOKEN": TOKEN}
    with running_server(folder, **settings) as server:
        made = server.manage("many_memories", str(memories), "--no-index", timeout_seconds=3600)
        assert made.returncode == 0, made.stderr
        with connected(server, TOKEN) as client:
            agent = client.call("memory.admin.facets")["agents"][0]
            return {
                name: timed(client, method, {"agentId": agent, **params}) for name, (method, params) in CALLS.items()
            }


def timed(client: Client, method: str, params: dict[str, Any]) -> float:
    took = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        client.call(method, **params)
        took.append((time.perf_counter() - began) * 1000)
    return median(took)
