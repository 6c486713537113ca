"""The official Python client over both transports, with the handshake of 2025 and without it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

from tests.agents.mcp.conftest import Talk, User
from tests.conftest import Person

TOOLS = ["memory_recall", "memory_store", "memory_forget", "memory_search", "resources_list", "resources_read"]
CONTRACT = "付款期限为三十天,逾期每日加收千分之一。"
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("memory_recall", {}, "missing_param"),
    ("memory_search", {}, "missing_param"),
    ("memory_recall", {"query": 5}, "invalid_input"),
    ("memory_search", {"query": "x", "scope": ["everything"]}, "invalid_input"),
    ("memory_store", {"text": "x", "category": "nonsense"}, "invalid_input"),
    ("resources_read", {}, "invalid_input"),
    ("resources_read", {"resource_id": "r_1"}, "not_found"),
    ("resources_list", {"cursor": "x"}, "invalid_input"),
    ("exec", {"command": "ls"}, "not_found"),
]


async def details(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return dict(answer.structured_content)


def text_of(answer: CallToolResult) -> str:
    [content] = answer.content
    assert isinstance(content, TextContent)
    return content.text


async def call_every_tool(client: Client) -> None:
    assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
    for text, query in (("The tax number is 4711", "tax number"), ("爱丽丝对花生过敏", "花生")):
        created = await details(client, "memory_store", text=text)
        assert created["action"] == "created"
        recalled = await details(client, "memory_recall", query=query, limit=1)
        assert [memory["id"] for memory in recalled["memories"]] == [created["id"]]
        found = await details(client, "memory_search", query=query)
        assert created["id"] in {one["id"] for one in found["results"]}
        gone = await details(client, "memory_forget", memoryId=created["id"])
        assert (gone["action"], gone["id"]) == ("deleted", created["id"])
    [listed] = (await details(client, "resources_list"))["resources"]
    assert listed["filename"] == "合同.txt"
    read = await details(client, "resources_read", resource_id=listed["resource_id"])
    assert (read["text"], read["next_offset"]) == (CONTRACT, None)


async def read_files(client: Client) -> None:
    [resource] = (await client.list_resources()).resources
    assert (resource.name, resource.mime_type) == ("合同.txt", "text/plain")
    [content] = (await client.read_resource(resource.uri)).contents
    assert getattr(content, "text", None) == CONTRACT
    assert (await client.list_resource_templates()).resource_templates
    for uri in (f"resource://bob/{resource.uri.rpartition('/')[2]}", "resource://x/r_1", "file:///etc/passwd"):
        with pytest.raises(MCPError, match="no such resource"):
            await client.read_resource(uri)


async def get_prompts(client: Client) -> None:
    prompts = (await client.list_prompts()).prompts
    assert [prompt.name for prompt in prompts] == ["router_profile", "worker_profile"]
    for prompt in prompts:
        answer = await client.get_prompt(prompt.name, {"language": "zh", "max_tokens": "500"})
        [message] = answer.messages
        assert getattr(message.content, "text", None)
    refused: list[tuple[str, dict[str, str]]] = [("nonsense", {}), ("router_profile", {"language": "xx"})]
    for name, arguments in refused:
        with pytest.raises(MCPError):
            await client.get_prompt(name, arguments)


async def be_refused(client: Client) -> None:
    for tool, arguments, error in REFUSED:
        answer = await client.call_tool(tool, arguments)
        assert answer.is_error, tool
        assert answer.structured_content == {"message": text_of(answer), "error": error}, tool


@pytest.fixture
def reader(user: User) -> User:
    """A user who gave a file, in an encoding of its own."""
    upload = user.post("/resources", files={"file": ("合同.txt", CONTRACT.encode("gb18030"), "text/plain")}).json()
    assert upload["status"] == "extracted", upload
    return user


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("talk", [call_every_tool, read_files, get_prompts, be_refused])
def test_it_talks_over_http(reader: User, talk: Talk[None], mode: str) -> None:
    reader.over_http(talk, mode=mode)


def test_it_talks_over_stdio(reader: User) -> None:
    async def talk(client: Client) -> None:
        for part in (call_every_tool, read_files, get_prompts, be_refused):
            await part(client)

    reader.over_stdio(talk)


def test_the_agent_is_named_by_header_and_by_option(user: User) -> None:
    async def store(client: Client) -> str:
        return str((await details(client, "memory_store", text="A secret of the helper"))["id"])

    async def recall(client: Client) -> int:
        searched = await details(client, "memory_search", query="secret helper")
        recalled = await details(client, "memory_recall", query="secret helper")
        assert recalled["count"] == len(searched["results"])
        return int(recalled["count"])

    user.over_http(store, **{"X-Agent-Id": "helper"})
    assert user.over_http(recall, **{"X-Agent-Id": "helper"}) == 1
    assert user.over_http(recall) == 0
    assert user.over_stdio(recall, "--agent", "helper", mode="legacy") == 1


def test_the_doors_share_one_memory(user: User) -> None:
    async def recall(client: Client) -> str:
        [memory] = (await details(client, "memory_recall", query="tax number"))["memories"]
        return str(memory["id"])

    body = {"tool": "memory_store", "args": {"text": "The tax number is 4711"}}
    stored = user.post("/tools/invoke", json=body).json()["result"]["details"]
    assert user.over_http(recall) == user.over_stdio(recall) == stored["id"]


def test_what_a_client_shows_its_model_says_what_it_is(user: User) -> None:
    """Some show the text, some the structured content alone."""

    async def talk(client: Client) -> None:
        for text in ("Alice drinks green tea", "Alice drinks black tea"):
            await client.call_tool("memory_store", {"text": text})
        question = {"query": "Alice drinks tea"}
        for tool, sentence in (
            ("memory_recall", "Found 2 memories:"),
            ("memory_search", "Found 2:"),
            ("memory_forget", "Call again with the memoryId of one of them:"),
        ):
            answer = await client.call_tool(tool, question)
            for shown in (text_of(answer), json.dumps(answer.structured_content)):
                assert sentence in shown
                assert shown.index("untrusted historical data") < shown.index("green tea")

    user.over_http(talk)


def test_a_list_of_files_says_how_it_goes_on(user: User) -> None:
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
def test_stdio_serves_existing_users_only(alice: Person) -> None:
    for arguments, sentence in (
        (["--user", "nobody"], "no such user"),
        (["--user", alice.user_id, "--agent", "../x"], "agentId"),
        ([], "--user"),
    ):
        with pytest.raises(CommandError, match=sentence):
            call_command("mcp", *arguments)
