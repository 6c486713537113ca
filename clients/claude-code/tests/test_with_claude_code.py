"""The plugin, installed from this checkout, in Claude Code from npm with a stand-in for the model."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.forked import PROJECT
from tests.node import installed
from tests.server import running_server

EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
     "content": [], "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Understood."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]  # fmt: skip


@contextmanager
def running_model() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A model that answers `Understood.`; its address and what it was asked."""
    asked: list[dict[str, Any]] = []

    class Model(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for event in EVENTS:
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


@pytest.mark.torture
def test_a_fact_of_one_session_is_in_the_prompt_of_the_next(tmp_path: Path) -> None:
    packages = installed(Path(__file__).parent / "node")
    kind = {"x86_64": "x64", "aarch64": "arm64"}[platform.machine()]
    claude = packages / "node_modules" / "@anthropic-ai" / f"claude-code-linux-{kind}" / "claude"
    (tmp_path / "home").mkdir()
    with running_server(tmp_path) as server, running_model() as (model, asked):
        key = requests.post(f"{server.url}/users", json={"user_id": "ann"}, timeout=30).json()["user_key"]
        env = {
            "PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "IS_SANDBOX": "1",
            "ANTHROPIC_BASE_URL": model, "ANTHROPIC_API_KEY": "k", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "MEMORY_GATEWAY_BASE_URL": server.url, "MEMORY_GATEWAY_USER_ID": "ann", "MEMORY_GATEWAY_USER_KEY": key,
        }  # fmt: skip

        def run(*arguments: str) -> str:
            command = [str(claude), *arguments]
            done = subprocess.run(
                command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        run("plugin", "validate", "--strict", str(PROJECT / "clients" / "claude-code"))
        run("plugin", "validate", "--strict", str(PROJECT))
        run("plugin", "marketplace", "add", str(PROJECT))
        run("plugin", "install", "memory-gateway@memory-gateway")
        assert "Connected" in run("mcp", "list")
        run("-p", "My bicycle is blue.")
        assert "<relevant-memories>" not in json.dumps(asked)
        asked.clear()
        run("-p", "Which color has my bicycle?")
        assert "My bicycle is blue." in json.dumps(asked).partition("<relevant-memories>")[2]
        assert "mcp__plugin_memory-gateway_memory__memory_recall" in json.dumps(asked)
        memories = requests.get(f"{server.url}/memories", headers={"Authorization": f"Bearer {key}"}, timeout=30).json()
        texts = sorted(memory["text"] for memory in memories["memories"])
        assert texts == ["My bicycle is blue.", "Understood.", "Understood.", "Which color has my bicycle?"]
