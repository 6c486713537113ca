"""With a million memories, methods of the plugin's panel are as fast as with a thousand."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.agents.rpc.client import connected
from tests.agents.rpc.conftest import TOKEN
from tests.million import MAX_MS, Pair, in_turns, too_slow, two_gateways
from tests.server import RunningServer

YEARS = {"timeFrom": "2024-01-01T00:00:00.000Z", "timeTo": "2026-12-31T23:59:59.999Z"}
PAGE = {"limit": 20}  # full with a thousand memories too
AGENT = {"agentId": "coder"}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "config": ("memory.admin.config", {}),
    "dashboard of years": ("memory.admin.dashboard", {**AGENT, **YEARS}),
    "dashboard of a month": (
        "memory.admin.dashboard",
        {**AGENT, "timeFrom": "2026-10-05", "timeTo": "2026-11-04T07:31:11Z"},
    ),
    "list": ("memory.admin.list", {**AGENT, "tab": "user", **PAGE}),
    "list of lessons": ("memory.admin.list", {**AGENT, "tab": "self", **PAGE}),
    "list of turns": ("memory.admin.list", {**AGENT, "tab": "full", **PAGE}),
    "list of half a year": ("memory.admin.list", {**AGENT, "tab": "user", "timeFrom": "2026-06-05", **PAGE}),
    "oldest first": ("memory.admin.list", {**AGENT, "tab": "user", "sortDesc": False, **PAGE}),
    "deletion of what is not there": ("memory.admin.delete", {"items": [{**AGENT, "id": "nothing"}]}),
}
# Returns the names of up to two thousand sessions, so its result grows with them.
FACETS: tuple[str, dict[str, Any]] = ("memory.admin.facets", {})


@pytest.mark.torture
def test_methods_are_as_fast_with_a_million_memories_as_with_a_thousand(tmp_path: Path) -> None:
    settings = {"DJANGO_SETTINGS_MODULE": "tests.agents.rpc.server_settings", "MEMORY_GATEWAY_RPC_TOKEN": TOKEN}
    with two_gateways(tmp_path, **settings) as servers, ExitStack() as sockets:
        clients = {server.url: sockets.enter_context(connected(server, TOKEN)) for server in servers}

        def measured(method: str, params: dict[str, Any]) -> Pair:
            def call(server: RunningServer) -> None:
                clients[server.url].call(method, **params)

            return in_turns(servers, call)

        assert too_slow({name: measured(*call) for name, call in CALLS.items()}) == {}
        assert measured(*FACETS).many < MAX_MS
