"""The MCP inspector of the MCP project, as a command, over both transports."""

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
from tests.agents.mcp.conftest import User, ids_in
from tests.agents.mcp.test_client import SHORT_LIST, TOOLS
from tests.forked import PROJECT

pytestmark = pytest.mark.slow

Inspect = Callable[..., dict[str, Any]]
CONNECT_MS = "100000"  # by default 15 s, in which a busy machine may not start a server


def inspector(target: list[str]) -> Inspect:
    """Return a function that runs the inspector with options and returns the gateway's response."""
    program = node.installed(Path(__file__).parent / "node") / "node_modules" / ".bin" / "mcp-inspector"

    def run(*options: str) -> dict[str, Any]:
        process = subprocess.run(
            [str(program), "--cli", "--connect-timeout", CONNECT_MS, *target, *options],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert process.returncode == 0, process.stdout + process.stderr
        return dict(json.loads(process.stdout))

    return run


def over_http(user: User, *, is_whole: bool = False) -> Inspect:
    address = f"{user.server.url}/mcp{'?tools=all' if is_whole else ''}"
    return inspector([address, "--transport", "http", "--header", f"Authorization: Bearer {user.key}"])


def over_stdio(user: User, *, is_whole: bool = False) -> Inspect:
    """Start the gateway by `env`, which sets its variables: the inspector does not pass empty ones on."""
    prefixes = ("MEMORY_GATEWAY_", "DATABASE_URL", "DJANGO_SETTINGS_MODULE")
    variables = [f"{name}={value}" for name, value in user.server.env.items() if name.startswith(prefixes)]
    command = [sys.executable, str(PROJECT / "manage.py"), "mcp", "--user", user.user_id]
    command += ["--all-tools"] if is_whole else []
    return inspector([str(shutil.which("env")), *variables, *command])


# Over stdio each call starts a gateway.
@pytest.mark.parametrize("transport", [over_http, pytest.param(over_stdio, marks=pytest.mark.torture)])
def test_the_inspector_calls_every_tool(user: User, transport: Callable[..., Inspect]) -> None:
    """It refuses to call a tool that is not listed."""
    assert [tool["name"] for tool in transport(user)("--method", "tools/list", "--strict")["tools"]] == SHORT_LIST
    call_every_tool(transport(user, is_whole=True), user)


def test_the_inspector_works_over_stdio(user: User) -> None:
    inspect = over_stdio(user)
    assert [tool["name"] for tool in inspect("--method", "tools/list", "--strict")["tools"]] == SHORT_LIST
    stored = inspect("--method", "tools/call", "--tool-name", "memory_store", "--tool-arg", "text=爱丽丝对花生过敏")
    assert stored["structuredContent"]["action"] == "created"


def call_every_tool(inspect: Inspect, user: User) -> None:
    file = user.post("/resources", files={"file": ("note.txt", b"Payment within thirty days.", "text/plain")}).json()
    tools = [tool["name"] for tool in inspect("--method", "tools/list", "--strict")["tools"]]
    assert tools == list(TOOLS)

    def call(tool: str, **arguments: str) -> dict[str, Any]:
        tools.remove(tool)
        pairs = [f"{name}={value}" for name, value in arguments.items()]
        tool_options = ["--tool-arg", *pairs] if pairs else []
        answer = inspect("--method", "tools/call", "--tool-name", tool, *tool_options)
        return dict(answer.get("structuredContent", {"ids": ids_in(answer["content"][0]["text"])}))

    stored = call("memory_store", text="爱丽丝对花生过敏")
    assert call("memory_update", memory_id=stored["id"], importance="0.9")["action"] == "updated"
    assert call("memory_recall", query="花生", limit="1")["ids"] == [stored["id"]]
    assert call("memory_search", query="花生")["ids"] == [stored["id"]]
    assert call("memory_get", memory_id=stored["id"])["ids"] == [stored["id"]]
    assert call("memory_forget", memoryId=stored["id"])["action"] == "deleted"
    assert call("memory_list", deleted="true")["ids"] == [stored["id"]]
    assert call("memory_restore", memory_id=stored["id"])["action"] == "restored"
    assert call("profile_update", kind="user", content='{"occupation": "architect"}')["kind"] == "user"
    assert call("profile_get", kind="user")["content"]["occupation"] == "architect"
    messages = '[{"role": "user", "content": "I moved to Oslo."}]'
    assert call("session_add", session_id="chat:c1", messages=messages, flush="true")["memory_count"] == 1
    assert call("resources_list")["resources"][0]["resource_id"] == file["resource_id"]
    assert call("resources_read", resource_id=file["resource_id"])["text"] == "Payment within thirty days."
    assert tools == []


def test_the_inspector_reads_resources_and_prompts(user: User) -> None:
    inspect = over_http(user)
    user.post("/resources", files={"file": ("note.txt", b"Payment within thirty days.", "text/plain")})
    [_known, resource] = inspect("--method", "resources/list")["resources"]
    [content] = inspect("--method", "resources/read", "--uri", resource["uri"])["contents"]
    assert content["text"] == "Payment within thirty days."
    assert inspect("--method", "resources/templates/list")["resourceTemplates"]
    for prompt in inspect("--method", "prompts/list")["prompts"]:
        answer = inspect("--method", "prompts/get", "--prompt-name", prompt["name"], "--prompt-args", "language=en")
        assert answer["messages"][0]["content"]["text"]
