"""The MCP project's own inspector, as a command, over both transports."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import node
from tests.agents.mcp.conftest import User
from tests.server import PROJECT

Inspect = Callable[..., dict[str, Any]]
CONNECT_MS = "100000"  # a busy machine takes longer to start a server than the fifteen seconds it would wait


def inspector(target: list[str]) -> Inspect:
    """Gives the inspector's options, returns what the gateway answered."""
    program = node.installed(Path(__file__).parent / "node") / "node_modules" / ".bin" / "mcp-inspector"

    def run(*options: str) -> dict[str, Any]:
        ended = subprocess.run(
            [str(program), "--cli", "--connect-timeout", CONNECT_MS, *target, *options],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return dict(json.loads(ended.stdout))

    return run


def over_http(user: User) -> Inspect:
    return inspector([
        f"{user.server.url}/mcp", "--transport", "http", "--header", f"Authorization: Bearer {user.key}"
    ])  # fmt: skip


def over_stdio(user: User) -> Inspect:
    """The inspector passes no empty variables on, so `env` sets what the gateway needs."""
    ours = ("MEMORY_GATEWAY_", "DATABASE_URL", "DJANGO_SETTINGS_MODULE")
    variables = [f"{name}={value}" for name, value in user.server.env.items() if name.startswith(ours)]
    command = [sys.executable, str(PROJECT / "manage.py"), "mcp", "--user", user.user_id]
    return inspector([str(shutil.which("env")), *variables, *command])


def test_it_calls_every_tool_over_http(user: User) -> None:
    call_every_tool(over_http(user), user)


@pytest.mark.torture  # each call starts a gateway of its own
def test_it_calls_every_tool_over_stdio(user: User) -> None:
    call_every_tool(over_stdio(user), user)


def test_it_speaks_over_stdio(user: User) -> None:
    inspect = over_stdio(user)
    assert len(inspect("--method", "tools/list", "--strict")["tools"]) == 6
    stored = inspect("--method", "tools/call", "--tool-name", "memory_store", "--tool-arg", "text=爱丽丝对花生过敏")
    assert stored["structuredContent"]["action"] == "created"


def call_every_tool(inspect: Inspect, user: User) -> None:
    file = user.post("/resources", files={"file": ("note.txt", b"Payment within thirty days.", "text/plain")}).json()
    tools = [tool["name"] for tool in inspect("--method", "tools/list", "--strict")["tools"]]

    def call(tool: str, **arguments: str) -> dict[str, Any]:
        tools.remove(tool)
        pairs = [f"{name}={value}" for name, value in arguments.items()]
        given = ["--tool-arg", *pairs] if pairs else []
        return dict(inspect("--method", "tools/call", "--tool-name", tool, *given)["structuredContent"])

    stored = call("memory_store", text="爱丽丝对花生过敏")
    assert call("memory_recall", query="花生", limit="1")["memories"][0]["id"] == stored["id"]
    assert call("memory_search", query="花生")["results"][0]["id"] == stored["id"]
    assert call("memory_forget", memoryId=stored["id"])["action"] == "deleted"
    assert call("resources_list")["resources"][0]["resource_id"] == file["resource_id"]
    assert call("resources_read", resource_id=file["resource_id"])["text"] == "Payment within thirty days."
    assert tools == []


def test_it_lists_and_reads_resources_and_prompts(user: User) -> None:
    inspect = over_http(user)
    user.post("/resources", files={"file": ("note.txt", b"Payment within thirty days.", "text/plain")})
    [resource] = inspect("--method", "resources/list")["resources"]
    [content] = inspect("--method", "resources/read", "--uri", resource["uri"])["contents"]
    assert content["text"] == "Payment within thirty days."
    assert inspect("--method", "resources/templates/list")["resourceTemplates"]
    for prompt in inspect("--method", "prompts/list")["prompts"]:
        answer = inspect("--method", "prompts/get", "--prompt-name", prompt["name"], "--prompt-args", "language=en")
        assert answer["messages"][0]["content"]["text"]
