"""The official Python client over both transports, with and without the handshake of the 2025 protocol."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import requests
from django.core.management import CommandError, call_command
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

from tests.agents.mcp.conftest import Talk, User, ids_in
from tests.agents.mcp.test_http import HALF
from tests.conftest import Person
from tests.forked import PROJECT

TOOLS = [
    *("memory_recall", "memory_store", "memory_forget", "memory_search", "memory_list", "memory_get", "memory_update"),
    *("memory_restore", "profile_get", "profile_update", "session_add", "resources_list", "resources_read"),
]
SHORT_LIST = ["memory_recall", "memory_store", "memory_forget", "memory_update", "session_add", "resources_read"]
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"tests","version":"1"}}}\n{"jsonrpc":"2.0","method":"notifications/initialized"}'
)
CONTRACT = "付款期限为三十天,逾期每日加收千分之一。"
MESSAGE = {"role": "user", "content": "I moved to Oslo."}
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("memory_recall", {}, "missing_param"),
    ("memory_search", {}, "missing_param"),
    ("memory_search", {"query": "x", "scope": ["current_chat"]}, "missing_param"),
    ("memory_recall", {"query": 5}, "invalid_input"),
    ("memory_search", {"query": "x", "scope": ["everything"]}, "invalid_input"),
    ("memory_store", {"text": "x", "category": "nonsense"}, "invalid_input"),
    ("memory_store", {"text": "x", "importance": "very"}, "invalid_input"),
    ("memory_recall", {"query": "x", "limit": 2.5}, "invalid_input"),
    ("memory_recall", {"query": "x", "limit": "five"}, "invalid_input"),
    ("memory_recall", {"query": "x", "limit": True}, "invalid_input"),
    ("memory_update", {"memory_id": "m", "memoryId": "n", "text": "x"}, "invalid_input"),
    ("resources_read", {}, "invalid_input"),
    ("resources_read", {"resource_id": "r_1"}, "not_found"),
    ("resources_list", {"cursor": "x"}, "invalid_input"),
    ("exec", {"command": "ls"}, "not_found"),
    ("memory_update", {}, "invalid_input"),
    ("memory_update", {"memory_id": "m"}, "missing_param"),
    ("memory_update", {"memory_id": "m", "text": "x"}, "not_found"),
    ("memory_update", {"memory_id": "m", "text": " "}, "invalid_input"),
    ("memory_update", {"memory_id": "m", "category": "nonsense"}, "invalid_input"),
    ("memory_restore", {"memory_id": "m"}, "not_found"),
    ("memory_list", {"cursor": "x"}, "invalid_input"),
    ("memory_list", {"deleted": "yes"}, "invalid_input"),
    ("memory_list", {"session_id": "a\nb"}, "invalid_input"),
    ("profile_get", {"kind": "both"}, "invalid_input"),
    ("profile_update", {"kind": "user", "content": {"occupation": 5}}, "invalid_input"),
    ("profile_update", {"kind": "user", "content": {}, "etag": "user-99"}, "precondition_failed"),
    ("session_add", {"session_id": "chat:c1"}, "missing_param"),
    ("session_add", {"session_id": "chat:c1", "messages": [{"role": "user"}]}, "invalid_input"),
    ("session_add", {"session_id": "resource:bob:r_1", "messages": [MESSAGE]}, "not_found"),
]
INVALID_ARGUMENTS: list[tuple[str, dict[str, Any], str]] = [
    ("memory_recall", {"query": "x", "color": 1}, "color: is not an argument; the arguments are query, limit"),
    ("memory_forget", {"id": "m"}, "id: is not an argument; the arguments are memory_id, query"),
    ("resources_list", {"limit": 0, "page": 2}, "page: is not an argument; the arguments are limit, cursor"),
    (
        "session_add",
        {"session_id": "chat:c1", "messages": [{**MESSAGE, "sender": "bob"}]},
        "messages.0.sender: is not an argument; the arguments are role, tool_calls, tool_call_id, content, sender_id,",
    ),
    (
        "profile_update",
        {"kind": "user", "content": {"job": "x"}},
        "content.job: is not a field; the fields are occupation,",
    ),
]


async def details(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return dict(answer.structured_content)


async def shown(client: Client, tool: str, **arguments: Any) -> str:
    """Return the text of a tool that answers with memories, which has no structured content."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    assert answer.structured_content is None
    return text_of(answer)


def text_of(answer: CallToolResult) -> str:
    [content] = answer.content
    assert isinstance(content, TextContent)
    return content.text


async def call_every_tool(client: Client) -> None:
    """Call all tools by name, with the short list."""
    assert [tool.name for tool in (await client.list_tools()).tools] == SHORT_LIST
    for text, query in (("The tax number is 4711", "tax number"), ("爱丽丝对花生过敏", "花生")):
        created = await details(client, "memory_store", text=text)
        assert created["action"] == "created"
        assert ids_in(await shown(client, "memory_recall", query=query, limit=1)) == [created["id"]]
        assert created["id"] in ids_in(await shown(client, "memory_search", query=query))
        assert text in await shown(client, "memory_get", memory_id=created["id"])
        await details(client, "memory_update", memory_id=created["id"], importance=0.9)
        forgotten = await details(client, "memory_forget", memoryId=created["id"])
        assert (forgotten["action"], forgotten["id"]) == ("deleted", created["id"])
        assert ids_in(await shown(client, "memory_list", deleted=True))[0] == created["id"]
        assert (await details(client, "memory_restore", memory_id=created["id"]))["action"] == "restored"
        assert ids_in(await shown(client, "memory_list"))[0] == created["id"]
        await details(client, "memory_forget", memoryId=created["id"])
    document = await details(client, "profile_get", kind="work")
    await details(client, "profile_update", kind="work", content={"expertise": ["joinery"]}, etag=document["etag"])
    added = await details(client, "session_add", session_id="chat:c1", messages=[MESSAGE], flush=True)
    assert (added["status"], added["memory_count"]) == ("extracted", 1)
    [listed] = (await details(client, "resources_list"))["resources"]
    assert listed["filename"] == "合同.txt"
    read = await details(client, "resources_read", resource_id=listed["resource_id"])
    assert (read["text"], read["next_offset"]) == (CONTRACT, None)


async def read_files(client: Client) -> None:
    [known, resource] = (await client.list_resources()).resources
    [content] = (await client.read_resource(known.uri)).contents
    assert "relevant-memories" in str(getattr(content, "text", ""))
    assert (resource.name, resource.mime_type) == ("合同.txt", "text/plain")
    [content] = (await client.read_resource(resource.uri)).contents
    assert getattr(content, "text", None) == CONTRACT
    assert (await client.list_resource_templates()).resource_templates
    for uri in (f"resource://bob/{resource.uri.rpartition('/')[2]}", "resource://x/r_1", "file:///etc/passwd"):
        with pytest.raises(MCPError, match="no such resource"):
            await client.read_resource(uri)


async def get_prompts(client: Client) -> None:
    prompts = (await client.list_prompts()).prompts
    assert [prompt.name for prompt in prompts] == ["context", "router_profile", "worker_profile"]
    for prompt in prompts:
        answer = await client.get_prompt(prompt.name, {"language": "zh", "max_tokens": "500"})
        [message] = answer.messages
        assert getattr(message.content, "text", None)
    refused: list[tuple[str, dict[str, str]]] = [("nonsense", {}), ("router_profile", {"language": "xx"})]
    for name, arguments in refused:
        with pytest.raises(MCPError):
            await client.get_prompt(name, arguments)


async def get_refused(client: Client) -> None:
    for tool, arguments, error in REFUSED:
        answer = await client.call_tool(tool, arguments)
        assert answer.is_error, tool
        assert answer.structured_content == {"message": text_of(answer), "error": error}, tool
    for tool, arguments, sentence in INVALID_ARGUMENTS:
        answer = await client.call_tool(tool, arguments)
        assert answer.is_error
        assert sentence in text_of(answer)


@pytest.fixture
def reader(user: User) -> User:
    """A user with a file in an unusual encoding."""
    upload = user.post("/resources", files={"file": ("合同.txt", CONTRACT.encode("gb18030"), "text/plain")}).json()
    assert upload["status"] == "extracted", upload
    return user


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("talk", [call_every_tool, read_files, get_prompts, get_refused])
def test_the_client_works_over_http(reader: User, talk: Talk[None], mode: str) -> None:
    reader.over_http(talk, mode=mode)


def test_the_client_works_over_stdio(reader: User) -> None:
    async def talk(client: Client) -> None:
        for part in (call_every_tool, read_files, get_prompts, get_refused):
            await part(client)

    reader.over_stdio(talk)


def test_the_agent_is_chosen_by_header_or_option(user: User) -> None:
    async def store(client: Client) -> str:
        return str((await details(client, "memory_store", text="A secret of the helper"))["id"])

    async def recall(client: Client) -> int:
        searched = ids_in(await shown(client, "memory_search", query="secret helper"))
        recalled = ids_in(await shown(client, "memory_recall", query="secret helper"))
        assert recalled == searched
        return len(recalled)

    user.over_http(store, **{"X-Agent-Id": "helper"})
    assert user.over_http(recall, **{"X-Agent-Id": "helper"}) == 1
    assert user.over_http(recall) == 0
    assert user.over_stdio(recall, "--agent", "helper", mode="legacy") == 1


@pytest.mark.slow
def test_rest_http_and_stdio_share_memories(user: User) -> None:
    async def recall(client: Client) -> str:
        [memory_id] = ids_in(await shown(client, "memory_recall", query="tax number"))
        return memory_id

    body = {"tool": "memory_store", "args": {"text": "The tax number is 4711"}}
    stored = user.post("/tools/invoke", json=body).json()["result"]["details"]
    assert user.over_http(recall) == user.over_stdio(recall) == stored["id"]


def test_texts_stand_once_and_after_the_warning(user: User) -> None:
    async def talk(client: Client) -> None:
        for text in ("Alice drinks green tea", "Alice drinks black tea"):
            await client.call_tool("memory_store", {"text": text})
        question = {"query": "Alice drinks tea"}
        for tool, sentence in (("memory_recall", "Found 2 memories:"), ("memory_search", "Found 2:")):
            answer = await client.call_tool(tool, question)
            assert sentence in text_of(answer)
            assert answer.model_dump_json().count("green tea") == 1
        answer = await client.call_tool("memory_forget", question)
        for part in (text_of(answer), json.dumps(answer.structured_content)):
            assert "Call again with the memoryId of one of them:" in part
            assert part.index("untrusted historical data") < part.index("green tea")

    user.over_http(talk)


def test_a_list_of_files_names_the_next_cursor(user: User) -> None:
    for name in ("a.txt", "b.txt"):
        assert user.post("/resources", files={"file": (name, name.encode(), "text/plain")}).ok

    async def talk(client: Client) -> None:
        first = await client.call_tool("resources_list", {"limit": 1})
        cursor = text_of(first).rpartition(" ")[2]
        second = await client.call_tool("resources_list", {"limit": 1, "cursor": cursor})
        assert ["b.txt" in text_of(first), "a.txt" in text_of(second)] == [True, True]
        assert "There are more" not in text_of(second)

    user.over_http(talk)


@pytest.mark.django_db
def test_stdio_refuses_unknown_users_and_invalid_agents(alice: Person) -> None:
    for arguments, sentence in (
        (["--user", "nobody"], "no such user"),
        (["--user", alice.user_id, "--agent", "../x"], "agentId"),
        ([], "--user"),
    ):
        with pytest.raises(CommandError, match=sentence):
            call_command("mcp", *arguments)


def test_a_client_shows_why_it_is_refused(user: User) -> None:
    async def talk(client: Client) -> None:
        await client.list_tools()

    wrong = User(user.server, user.user_id, f"uk_{'x' * 43}")
    with pytest.raises(MCPError, match="unknown, expired or revoked"):
        unwrapped(lambda: wrong.over_http(talk, mode="legacy"))
    with pytest.raises(MCPError, match="agentId"):
        unwrapped(lambda: user.over_http(talk, mode="legacy", **{"X-Agent-Id": "a b"}))


def unwrapped(call: Any) -> None:
    """Raise the error itself in the place of the client's group of one."""
    try:
        call()
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            [error] = error.exceptions
        raise error from None


@pytest.mark.slow
def test_over_stdio_every_line_is_answered(user: User) -> None:
    command = [sys.executable, "manage.py", "mcp", "--user", user.user_id]
    lines = [HALF, b"this is not json", b"[]", b'{"jsonrpc":"2.0","id":6,"method":"ping"}']
    with subprocess.Popen(
        command, cwd=PROJECT, env=user.server.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n".join([INITIALIZE, *lines, b""]))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(5)]
        process.stdin.close()
        assert process.wait(20) == 0
    codes = {(answer["id"], answer.get("error", {}).get("code")) for answer in answers}
    assert codes == {(0, None), (5, -32600), (None, -32700), (None, -32600), (6, None)}


@pytest.mark.slow
def test_a_client_that_is_gone_is_no_failure(user: User) -> None:
    command = [sys.executable, "manage.py", "mcp", "--user", user.user_id]
    with subprocess.Popen(
        command, cwd=PROJECT, env=user.server.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(INITIALIZE + b"\n")
        process.stdin.close()
        assert (process.wait(60), process.stderr.read()) == (0, b"")


def test_a_small_budget_does_not_deny_what_is_known(user: User) -> None:
    async def talk(client: Client) -> str:
        [message] = (await client.get_prompt("router_profile", {"max_tokens": "5"})).messages
        return str(getattr(message.content, "text", ""))

    assert "Nothing is known" in user.over_http(talk)
    body = {"content": {"occupation": "architect"}}
    answer = requests.put(f"{user.server.url}/api/v1/memories/user", json=body, headers=user.headers, timeout=30)
    assert answer.status_code == 200
    assert "fits into 5 tokens" in user.over_http(talk)
