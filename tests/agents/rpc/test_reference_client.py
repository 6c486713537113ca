"""OpenClaw's client, `@openclaw/gateway-client` from npm, with both protocol versions."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.rpc.conftest import TOKEN
from tests.node import installed
from tests.server import RunningServer, running_server

NODE = Path(__file__).parent / "node"
LAST_WEEK = {"timeFrom": "2026-01-01T00:00:00.000Z", "timeTo": "2026-01-02T00:00:00.000Z"}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("health", {}),
    ("memory.admin.config", {}),
    ("memory.admin.add", {"agentId": "main", "text": "喝茶不加糖", "category": "user_memory_preference"}),
    ("memory.admin.facets", {"tab": "user"}),
    ("memory.admin.list", {"agentId": "main", "tab": "user", "page": 1, "limit": 100, "sortDesc": True}),
    ("memory.admin.dashboard", {"agentId": "main", **LAST_WEEK}),
    ("tools.invoke", {"tool": "memory_store", "args": {"text": "The train leaves at nine."}, "agentId": "main"}),
    ("tools.invoke", {"tool": "memory_recall", "args": {"query": "train"}, "agentId": "main"}),
    ("memory.admin.delete", {"items": [{"agentId": "main", "id": "00000000-0000-4000-8000-000000000000"}]}),
    ("memory.admin.delete", {"items": []}),
    ("nothing.of.the.kind", {}),
]
REFUSED = {"memory.admin.delete", "nothing.of.the.kind"}


@pytest.fixture(scope="module")
def packages() -> Path:
    return installed(NODE)


class Node:
    """The process of the client and the lines that it prints."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.lines: list[dict[str, Any]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)

    def read_until(self, kind: str, seconds: float = 60.0) -> list[dict[str, Any]]:
        """Return the lines up to and including the next one of this kind."""
        received: list[dict[str, Any]] = []
        while not received or received[-1]["what"] != kind:
            try:
                received.append(json.loads(self._lines.get(timeout=seconds)))
            except queue.Empty:
                pytest.fail(f"no {kind!r} after {received} (exit code {self._process.poll()})")
        self.lines += received
        return received

    def kinds(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["what"] == kind]


@contextlib.contextmanager
def node(packages: Path, server: RunningServer, wire: int, idle_ms: int) -> Iterator[Node]:
    script = packages / f"client-{os.getpid()}-{wire}.mjs"  # Node searches modules next to the script
    shutil.copy(NODE / "client.mjs", script)
    url = server.url.replace("http", "ws", 1)
    command = ["node", str(script), url, TOKEN, str(wire), str(idle_ms), json.dumps(CALLS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Node(process)
        finally:
            process.kill()
            script.unlink()


def check_calls(client: Node, wire: int) -> None:
    hello = client.read_until("hello")[-1]
    assert hello["isValid"]
    assert hello["hello"]["protocol"] == wire
    client.read_until("idle")
    answers = {line["method"]: line["payload"] for line in client.kinds("answer")}
    refusals = {line["method"]: line for line in client.kinds("refused")}
    assert set(answers) | set(refusals) == set(hello["hello"]["features"]["methods"]) | REFUSED
    assert set(refusals) == REFUSED
    assert refusals["memory.admin.delete"]["payload"] == {"error": "items required", "status": 400}
    assert refusals["memory.admin.delete"]["code"] == "http_400"
    assert "喝茶不加糖" in {item["text"] for item in answers["memory.admin.list"]["items"]}
    assert "The train leaves at nine." in json.dumps(answers["tools.invoke"])


def check_restart(client: Node) -> None:
    assert client.read_until("again")[-1]["health"]["ok"]
    assert client.kinds("close")[0]["code"] == 1012
    assert {line["event"] for line in client.kinds("event")} >= {"tick", "shutdown"}
    for unwanted in ("unexpected frame", "gap", "paused"):
        assert client.kinds(unwanted) == []


@pytest.mark.slow
def test_the_client_calls_every_method_and_survives_a_restart(packages: Path, tmp_path: Path) -> None:
    settings = {"DJANGO_SETTINGS_MODULE": "tests.agents.rpc.slow_ticks", "MEMORY_GATEWAY_RPC_TOKEN": TOKEN}
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(running_server(tmp_path, **settings))
        clients = {wire: stack.enter_context(node(packages, server, wire, idle_ms=4000)) for wire in (3, 4)}
        for wire, client in clients.items():
            check_calls(client, wire)
        for client in clients.values():
            idle = client.read_until("waiting")
            assert len([line for line in idle if line.get("event") == "tick"]) >= 3
            assert client.kinds("close") == []
        server.restart()
        for client in clients.values():
            check_restart(client)
