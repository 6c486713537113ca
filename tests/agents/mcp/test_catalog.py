"""Results of the MCP tools, called without a client."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from accounts.audit import Actor
from agents import tools
from agents.mcp import catalog, files
from agents.tools import Caller
from core.errors import InvalidInput
from memories.api.schemas.memories import MemoryListQuery, OverrideBody
from memories.api.schemas.search import SearchBody
from resources.models import Resource
from tests.conftest import Person
from tests.console.people import remember

RESOURCE = f"r_{'0' * 32}"
SESSION = f"resource:alice:{RESOURCE}"

pytestmark = pytest.mark.django_db


@pytest.fixture
def resource_id(alice: Person) -> str:
    """A file of two hundred passages, some long and some almost empty."""
    Resource.objects.create(user_id=alice.user_pk, resource_id=RESOURCE, session_id=SESSION, filename="foxes.txt")
    for number in range(200):
        text = f"{number}. {'The fox is quick. 狐狸很快。😀 ' * (number % 40)}"
        remember(alice.owner, text, session_id=SESSION, created_at_ms=number)
    return RESOURCE


def call(person: Person, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and return the details of its result."""
    caller = Caller(person.owner, "main", Actor.command("tests"))
    return dict(tools.invoke(caller, tool, arguments, catalog.TOOLS)["details"])


def read(person: Person, resource_id: str, offset: int = 0) -> dict[str, Any]:
    return call(person, "resources_read", resource_id=resource_id, offset=offset)


def test_the_parts_of_a_document_add_up_to_its_text(alice: Person, resource_id: str) -> None:
    whole = files.extracted_text(alice.owner, files.find(alice.owner, resource_id))
    assert len(whole) > 3 * files.MAX_CHARS
    parts, offset = [], 0
    while offset is not None:
        answer = read(alice, resource_id, offset)
        parts.append(answer["text"])
        offset = answer["next_offset"]
    assert "".join(parts) == whole
    assert {len(part) for part in parts[:-1]} == {files.MAX_CHARS}
    for start in [*range(0, 3_000, 77), len(whole) - 1, len(whole), 10**12]:
        assert read(alice, resource_id, start)["text"] == whole[start : start + files.MAX_CHARS]


def test_every_part_takes_the_same_statements(alice: Person, resource_id: str, django_assert_num_queries: Any) -> None:
    for offset in (0, 40_000, 10**12):
        with django_assert_num_queries(2 if offset == 10**12 else 3):
            read(alice, resource_id, offset)


def test_too_long_arguments_are_refused_with_the_limit(alice: Person) -> None:
    for arguments in ({"query": "x" * 8193}, {"query": "x", "conversation_id": "x" * 124}):
        with pytest.raises(InvalidInput, match=r"must (be|have) (at most|1 to) \d+ characters"):
            call(alice, "memory_search", **arguments)


LIMITS = {"minimum", "maximum", "exclusiveMinimum", "maxLength", "pattern", "enum"}


def limits(part: Any) -> dict[str, Any]:
    """Return the limits of an argument, of its alternatives and of its items."""
    found = {key: value for key, value in part.items() if key in LIMITS}
    for inner in [*part.get("anyOf", ()), *([part["items"]] if "items" in part else [])]:
        found |= limits(inner)
    return found


@pytest.mark.parametrize(
    ("name", "body"), [("memory_search", SearchBody), ("memory_list", MemoryListQuery), ("memory_update", OverrideBody)]
)
def test_a_tool_takes_what_the_api_takes_of_an_argument_that_both_have(name: str, body: type[BaseModel]) -> None:
    fields = body.model_json_schema()["properties"]
    taken = catalog.TOOLS[name].arguments.model_json_schema()["properties"]
    arguments = {name: part for name, part in taken.items() if name in fields}
    arguments.pop("max_tokens", None)  # the answer of a tool goes into a model's window
    arguments.pop("expires_at", None)  # a tool also takes days and words
    assert len(arguments) > 1
    assert {name: limits(part) for name, part in arguments.items()} == {
        name: limits(fields[name]) for name in arguments
    }
