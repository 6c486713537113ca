"""Clients that know the URL of `/mcp` only: they find the authorization server, register, and get tokens."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
import requests
from mcp.client.client import Client

from tests import node
from tests.agents.mcp import test_client, test_inspector, test_typescript_client
from tests.agents.mcp.conftest import Talk, User, approve, parameters_of
from tests.agents.mcp.test_client import CONTRACT, TOOLS
from tests.agents.mcp.test_http import ACCEPT, call
from tests.server import free_port

READING = [
    "memory_recall",
    "memory_search",
    "memory_list",
    "memory_get",
    *("profile_get", "resources_list", "resources_read"),
]
reader = test_client.reader


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_python_client_connects_by_url_alone(reader: User, mode: str) -> None:
    parts: list[Talk[None]] = [
        test_client.call_every_tool,
        test_client.read_files,
        test_client.get_prompts,
        test_client.get_refused,
    ]

    async def talk(client: Client) -> None:
        for part in parts:
            await part(client)

    reader.over_oauth(talk, mode=mode)


def test_an_application_that_may_only_read_gets_a_sentence_for_each_other_tool(reader: User) -> None:
    async def talk(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == READING
        [listed] = (await test_client.details(client, "resources_list"))["resources"]
        read = await test_client.details(client, "resources_read", resource_id=listed["resource_id"])
        assert read["text"] == CONTRACT
        for name in set(TOOLS) - set(READING):
            answer = await client.call_tool(name, {})
            assert answer.is_error
            assert answer.structured_content == {"message": test_client.text_of(answer), "error": "forbidden"}
            assert "only to read" in test_client.text_of(answer)

    reader.over_oauth(talk, may_write=False, query="?tools=all")


def test_the_typescript_client_connects_by_url_alone(user: User) -> None:
    with test_typescript_client.running("oauth.mjs", f"{user.server.url}/mcp") as client:
        answer = parameters_of(approve(client.read()["authorize"], user.key))
        test_typescript_client.call_every_tool(client, client.send(**answer), user)
        client.send(expire=True)
        assert client.details("memory_list")  # after a refresh


@pytest.mark.slow
def test_the_inspector_connects_by_url_alone(user: User, tmp_path: Path) -> None:
    inspect = inspector_over_oauth(user, tmp_path)
    stored = inspect("--method", "tools/call", "--tool-name", "memory_store", "--tool-arg", "text=爱丽丝对花生过敏")
    assert stored["structuredContent"]["action"] == "created"


@pytest.mark.torture
def test_the_inspector_calls_every_tool_over_oauth(user: User, tmp_path: Path) -> None:
    test_inspector.call_every_tool(inspector_over_oauth(user, tmp_path), user)


def inspector_over_oauth(user: User, home: Path) -> test_inspector.Inspect:
    """Return a function like `test_inspector.inspector`; the user approves whenever the inspector asks."""
    program = node.installed(Path(__file__).parent / "node") / "node_modules" / ".bin" / "mcp-inspector"
    callback = f"http://127.0.0.1:{free_port()}/oauth/callback"
    command = [str(program), "--cli", f"{user.server.url}/mcp", "--transport", "http", "--callback-url", callback]
    env = {**os.environ, "HOME": str(home), "BROWSER": "true", "MCP_AUTO_OPEN_ENABLED": "true"}

    def run(*options: str) -> dict[str, Any]:
        with subprocess.Popen(
            [*command, "--connect-timeout", test_inspector.CONNECT_MS, *options],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            killer = threading.Timer(120, process.kill)
            killer.start()
            said = ""
            for line in process.stderr:
                said += line
                if found := re.search(r"http\S+/oauth/authorize\S+", line):
                    assert requests.get(approve(found[0], user.key), timeout=60).status_code == 200
                    break
            output, rest = process.communicate()
            killer.cancel()
        assert process.returncode == 0, said + rest
        return dict(json.loads(output))

    return run


def test_a_refusal_names_the_metadata(user: User) -> None:
    url = f"{user.server.url}/mcp"
    found = f'resource_metadata="{user.server.url}/.well-known/oauth-protected-resource/mcp"'
    scope = 'scope="memories:read memories:write"'
    answer = requests.post(url, json=call("memory_list"), headers=ACCEPT, timeout=60)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, f"Bearer {found}, {scope}")
    for token in ("oat_" + "x" * 43, "uk_" + "x" * 43):
        headers = {**ACCEPT, "Authorization": f"Bearer {token}"}
        answer = requests.post(url, json=call("memory_list"), headers=headers, timeout=60)
        assert answer.headers["WWW-Authenticate"] == f'Bearer error="invalid_token", {found}, {scope}'
        assert "unknown, expired or revoked" in answer.json()["error"]["message"]
    metadata = requests.get(found.split('"')[1], timeout=60).json()
    assert metadata["resource"] == url


def tokens(user: User) -> dict[str, Any]:
    """Return the tokens of a client that talks to the endpoints itself."""
    base, redirect = user.server.url, "http://localhost:1/cb"
    registered = requests.post(f"{base}/oauth/register", json={"redirect_uris": [redirect]}, timeout=60).json()
    client = {"client_id": registered["client_id"], "redirect_uri": redirect}
    challenge = {"code_challenge": "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", "code_challenge_method": "S256"}
    wanted = {**client, **challenge, "response_type": "code"}
    address = str(requests.Request("GET", f"{base}/oauth/authorize", params=wanted).prepare().url)
    code = parameters_of(approve(address, user.key))["code"]
    form = {**client, "grant_type": "authorization_code", "code": code, "code_verifier": "x"}
    wrong = requests.post(f"{base}/oauth/token", form, timeout=60)
    assert wrong.json() == {"error": "invalid_grant", "error_description": "incorrect code_verifier"}
    answer = requests.post(f"{base}/oauth/token", {**form, "code_verifier": ""}, timeout=60)
    return {**answer.json(), **client}


def test_a_token_acts_for_its_user_until_it_is_revoked(user: User) -> None:
    issued = tokens(user)
    holder = User(user.server, user.user_id, issued["access_token"])
    stored = holder.post("/mcp", json=call("memory_store", text="The tax number is 4711")).json()["result"]
    assert stored["structuredContent"]["action"] == "created"
    assert "1 listed" in user.post("/mcp", json=call("memory_list")).json()["result"]["content"][0]["text"]
    assert holder.post("/memories/search", json={}).status_code == 401
    assert requests.post(f"{user.server.url}/oauth/revoke", {"token": issued["refresh_token"]}, timeout=60).ok
    assert holder.post("/mcp", json=call("memory_list")).status_code == 401


def test_the_log_holds_no_token_and_no_key(user: User) -> None:
    issued = tokens(user)
    User(user.server, user.user_id, issued["access_token"]).post(f"/mcp?access_token={issued['access_token']}")
    for secret in (issued["access_token"], issued["refresh_token"], user.key):
        assert secret not in user.server.log
    assert '"path":"/oauth/token"' in user.server.log
