"""The official TypeScript client over HTTP."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import node
from tests.agents.mcp.conftest import User, ids_in
from tests.agents.mcp.test_client import INVALID_ARGUMENTS, REFUSED, SHORT_LIST

NODE = Path(__file__).parent / "node"


class TypeScriptClient:
    """A client. It validates each answer against the tool's output schema, as its users' clients do."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        answer = self.send(name=name, arguments=arguments)
        assert "thrown" not in answer, answer
        return answer

    def send(self, **line: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()
        return self.read()

    def details(self, name: str, **arguments: Any) -> dict[str, Any]:
        answer = self.call(name, **arguments)
        assert not answer.get("isError"), answer
        return dict(answer.get("structuredContent", {"ids": ids_in(answer["content"][0]["text"])}))

    def read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the client ended: {self._process.wait()}"
        return dict(json.loads(line))


@contextmanager
def running(name: str, *arguments: str) -> Iterator[TypeScriptClient]:
    packages = node.installed(NODE)
    script = packages / f"{os.getpid()}-{name}"  # Node searches modules next to the script
    shutil.copy(NODE / name, script)
    command = ["node", str(script), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield TypeScriptClient(process)
        finally:
            process.kill()
            script.unlink()


def test_the_client_calls_every_tool_and_shows_every_refusal(user: User) -> None:
    with running("client.mjs", f"{user.server.url}/mcp", user.key) as client:
        listed = client.read()
        assert "Call memory_recall before" in listed["instructions"]
        call_every_tool(client, listed, user)


def call_every_tool(client: TypeScriptClient, listed: dict[str, Any], user: User) -> None:
    assert [tool["name"] for tool in listed["tools"]] == SHORT_LIST
    user.post("/resources", files={"file": ("note.txt", b"Payment within thirty days.", "text/plain")})
    memory_id = client.details("memory_store", text="爱丽丝对花生过敏")["id"]
    assert client.details("memory_update", memory_id=memory_id, importance=0.9)["action"] == "updated"
    assert client.details("memory_recall", query="花生", limit=1)["ids"] == [memory_id]
    assert client.details("memory_search", query="花生")["ids"] == [memory_id]
    assert client.details("memory_forget", memoryId=memory_id)["action"] == "deleted"
    assert client.details("memory_list", deleted=True)["ids"] == [memory_id]
    assert client.details("memory_restore", memory_id=memory_id)["action"] == "restored"
    etag = client.details("profile_get", kind="user")["etag"]
    changed = client.details("profile_update", kind="user", content={"occupation": "architect"}, etag=etag)
    assert changed["etag"] != etag
    messages = [{"role": "user", "content": "I moved to Oslo."}, {"role": "assistant", "content": "Noted."}]
    added = client.details("session_add", session_id="chat:c1", messages=messages, flush=True)
    assert (added["message_count"], added["memory_count"]) == (2, 2)
    [file] = client.details("resources_list")["resources"]
    assert client.details("resources_read", resource_id=file["resource_id"])["text"] == "Payment within thirty days."
    for tool, arguments, error in REFUSED:
        answer = client.call(tool, **arguments)
        assert (answer["isError"], answer["structuredContent"]["error"]) == (True, error), answer
    for tool, arguments, sentence in INVALID_ARGUMENTS:
        assert sentence in client.call(tool, **arguments)["content"][0]["text"]
