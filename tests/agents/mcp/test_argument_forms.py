"""Schemas that every client reads, and the forms in which clients send arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import orjson
import pytest
from mcp.client.client import Client
from pydantic import BaseModel

from accounts.scopes import READ, UNLIMITED, of_oauth
from agents.mcp import catalog
from agents.tools.argument_forms import schema_of
from store.models import Memory
from tests.agents.mcp.conftest import User, ids_in
from tests.agents.mcp.test_client import SHORT_LIST, TOOLS, details, shown, text_of
from tests.agents.mcp.test_tools import Agent
from tests.conftest import Person

KEYWORDS = {
    *("type", "description", "enum", "items", "properties", "required", "additionalProperties", "default"),
    *("minimum", "maximum", "minItems", "maxItems", "maxLength"),
}
MAX_LIST_BYTES = 12_000


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Return a schema and the schemas in it."""
    yield schema
    for inner in [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]:
        yield from parts(inner)


@pytest.mark.parametrize("tool", catalog.list_tools(is_complete=True), ids=lambda tool: str(tool.name))
def test_a_schema_has_only_what_every_client_reads(tool: Any) -> None:
    for schema in filter(None, (tool.input_schema, tool.output_schema)):
        for part in parts(schema):
            assert set(part) <= KEYWORDS, part
            assert part.get("default", 0) is not None
            assert "items" in part or part.get("type") != "array"
    for part in parts(tool.input_schema):
        assert isinstance(part["type"], str)
        assert set(part.get("required", ())) <= set(part.get("properties", ()))


def test_an_argument_of_several_types_is_refused_when_the_list_is_made() -> None:
    class Several(BaseModel):
        value: int | list[str]

    with pytest.raises(TypeError, match="must have one type"):
        schema_of(Several)


def test_the_short_list_is_short() -> None:
    for scopes, names in ((UNLIMITED, SHORT_LIST), (of_oauth([READ]), ["memory_recall", "resources_read"])):
        listed = catalog.list_tools(scopes=scopes)
        assert [tool.name for tool in listed] == names
        sent = orjson.dumps({"tools": [tool.model_dump(mode="json", by_alias=True) for tool in listed]})
        assert len(sent) <= MAX_LIST_BYTES


def test_all_tools_are_listed_for_who_asks(user: User) -> None:
    async def names(client: Client) -> list[str]:
        return [tool.name for tool in (await client.list_tools()).tools]

    assert user.over_http(names) == SHORT_LIST
    assert user.over_http(names, query="?tools=all") == TOOLS
    assert user.over_oauth(names, query="?tools=all") == TOOLS
    assert user.over_stdio(names, "--all-tools") == TOOLS
    answer = user.post("/mcp?tools=most", json={})
    assert (answer.status_code, answer.json()["error"]["data"]["errors"][0]["field"]) == (422, "tools")


def test_numbers_lists_and_truth_values_may_be_text(user: User) -> None:
    async def talk(client: Client) -> None:
        stored = await details(client, "memory_store", text="Alice drinks tea", importance="0.9")
        assert ids_in(await shown(client, "memory_recall", query="tea", limit="1")) == [stored["id"]]
        assert ids_in(await shown(client, "memory_search", query="tea", scope="all_user_memory")) == [stored["id"]]
        assert ids_in(await shown(client, "memory_search", query="tea", topK="5.0", conversationId=None))
        message = '[{"role": "user", "content": "I moved to Oslo.", "timestamp": "1781172177000", "senderName": "A"}]'
        added = await details(client, "session_add", sessionId="chat:c1", messages=message, flush="True")
        assert (added["stored"], added["memory_count"]) == (1, 1)
        assert "2026-06-11" in await shown(client, "memory_list", session_id="chat:c1", since="", until=None)
        changed = await details(client, "memory_update", memoryId=stored["id"], text="", importance=1)
        assert changed["action"] == "updated"
        assert (await details(client, "memory_forget", memory_id=stored["id"]))["action"] == "deleted"
        assert ids_in(await shown(client, "memory_list", deleted="true")) == [stored["id"]]
        assert (await details(client, "memory_restore", MemoryID=stored["id"]))["action"] == "restored"

    user.over_http(talk)


def test_labels_may_be_text_and_words(user: User) -> None:
    async def talk(client: Client) -> None:
        given = {"text": "Alice drinks tea", "tags": "drinks, home", "metadata": '{"cups": 2}', "externalId": "t-1"}
        stored = await details(client, "memory_store", **given, expiresAt="2999-12-31")
        changed = await details(client, "memory_store", text="Alice drinks green tea", external_id="t-1", tags=[])
        assert (changed["action"], changed["id"]) == ("updated", stored["id"])

    user.over_http(talk)


@pytest.mark.django_db
def test_a_tool_sets_and_ends_an_expiry(alice: Person) -> None:
    agent = Agent(alice)
    stored = agent.use("memory_store", text="Alice drinks tea", tags="drinks, home", expires_at="2999-12-31")
    memory = Memory.objects.get(memory_id=stored["id"])
    assert (memory.payload["tags"], memory.expires_at is None) == (["drinks", "home"], False)
    agent.use("memory_update", memory_id=stored["id"], expires_at="Never")
    memory.refresh_from_db()
    assert memory.expires_at is None
    assert agent.refused("memory_update", memory_id=stored["id"], expires_at="2001-01-01") == "invalid_input"


def test_limits_are_brought_into_their_range_with_a_note(user: User) -> None:
    async def talk(client: Client) -> None:
        await client.call_tool("memory_store", {"text": "Alice drinks tea"})
        for tool, argument, value, used in (
            ("memory_recall", "limit", 1000, "30, the largest value"),
            ("memory_recall", "limit", "1e99", "30, the largest value"),
            ("memory_recall", "limit", "-5", "1, the smallest value"),
            ("memory_recall", "maxTokens", 5, "300, the smallest value"),
            ("memory_search", "top_k", 1000, "100, the largest value"),
            ("memory_list", "limit", 101, "100, the largest value"),
        ):
            answer = await client.call_tool(
                tool, {"query": "tea", argument: value} if tool != "memory_list" else {argument: value}
            )
            assert not answer.is_error
            assert f"is out of range; {used}, was used." in text_of(answer)
            assert "Alice drinks tea" in text_of(answer)
        answer = await client.call_tool("memory_store", {"text": "Bob drinks tea", "importance": 7})
        assert text_of(answer).startswith("importance: 7 is out of range; 1, the largest value, was used.\n\nStored")

    user.over_http(talk)


@pytest.mark.django_db
def test_times_are_no_limits(alice: Person) -> None:
    agent = Agent(alice)
    for timestamp in (-5, 0, 10**15, "10e17"):
        message = {"role": "user", "content": "Hello", "timestamp": timestamp}
        assert agent.refused("session_add", session_id="chat:c1", messages=[message]) == "invalid_input"


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["", "five", "nan", "inf", "9" * 5000, "0x10", "1_000", "٣", "[", "{}", " "])
def test_text_that_is_no_number_is_refused_or_absent(alice: Person, text: str) -> None:
    agent = Agent(alice)
    if text == "":
        assert agent.use("memory_recall", query="tea", limit=text)["count"] == 0
    else:
        assert agent.refused("memory_recall", query="tea", limit=text) == "invalid_input"


class Kinds(BaseModel):
    kind: Literal["a"] = "a"
    parent: Literal["b"] | None = None


def test_null_is_absent_from_a_schema() -> None:
    assert schema_of(Kinds)["properties"] == {
        "kind": {"type": "string", "enum": ["a"], "default": "a"},
        "parent": {"type": "string", "enum": ["b"]},
    }
