"""The tools for MCP clients: OpenClaw's three agent tools, search, and the user's resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

import mcp_types as types
from pydantic import AfterValidator, ConfigDict, Field

from agents import tools
from agents.mcp import files
from agents.tools import Caller
from agents.tools.arguments import Arguments, Text, check_text, read
from agents.tools.frame import framed, quoted
from agents.tools.recall import visible
from agents.tools.results import Result, failed, result
from core.errors import NotFound
from core.times import from_ms, isoformat
from memories.services.search import Found, Scope, SearchCommand
from memories.services.search import search as search_memories


class SearchArguments(Arguments):
    model_config = ConfigDict(json_schema_extra={"required": ["query"]})

    query: Annotated[str, Field(max_length=8192), AfterValidator(check_text)] = Field(
        "", description="The question, in any language."
    )
    scope: list[Scope] = Field(
        default=["all_user_memory"],
        min_length=1,
        max_length=3,
        description="Where to search: the chat `conversation_id`, the user's files, or all that is remembered.",
    )
    conversation_id: Annotated[str, Field(max_length=123), AfterValidator(check_text)] | None = Field(
        None, description="The chat that `current_chat` searches."
    )
    top_k: int = Field(8, ge=1, le=100, description="At most so many results of each scope.")


class ListArguments(Arguments):
    limit: int = Field(files.PAGE, ge=1, le=100, description="At most so many resources.")
    cursor: Text | None = Field(None, description="The `next_cursor` of the page before.")


class ReadArguments(Arguments):
    resource_id: Text = Field(description="The id that resources_list shows.")
    offset: int = Field(0, ge=0, description="From which character on.")


def search(caller: Caller, arguments: SearchArguments) -> Result:
    if not arguments.query.strip():
        return failed("missing_param", "Provide query: what to look for.")
    command = SearchCommand(
        query=arguments.query,
        scopes=frozenset(arguments.scope),
        conversation_id=arguments.conversation_id,
        reader=caller.reader,
        top_k=arguments.top_k,
    )
    answer = search_memories(caller.owner, command).results
    seen = {hit.memory_id for hit, _ in visible(caller, (one.hit for one in answer))}
    found = [one for one in answer if one.hit.memory_id in seen]
    if not found:
        return result("Nothing was found.", results=[])
    lines = framed(_line(number, one) for number, one in enumerate(found, start=1))
    return result(f"Found {len(found)}:\n\n{lines}", results=[_details(one) for one in found])


def _line(number: int, found: Found) -> str:
    hit = found.hit
    files_of = "".join(f" [file: {quoted(file.name)}]" for file in found.attachments)
    return f"{number}. {isoformat(from_ms(hit.created_at_ms))} {quoted(hit.text)}{files_of} [id: {hit.memory_id}]"


def _details(found: Found) -> dict[str, Any]:
    hit = found.hit
    return {
        "id": hit.memory_id,
        "memory_type": hit.memory_type,
        "session_id": hit.session_id,
        "source_scope": found.scope,
        "text": hit.text,
        "score": hit.score,
        "created_at": isoformat(from_ms(hit.created_at_ms)),
        "attachments": [file.name for file in found.attachments],
    }


def list_resources(caller: Caller, arguments: ListArguments) -> Result:
    rows, following = files.page(caller.owner, arguments.cursor, arguments.limit)
    described = [files.described(row) for row in rows]
    if not described:
        return result("There are no resources.", resources=[], next_cursor=None)
    lines = [
        quoted(f"{one['filename']} ({one['mime_type']}, {one['status']}, {one['created_at']})")
        + f" [resource_id: {one['resource_id']}]"
        for one in described
    ]
    more = f"\nThere are more: call again with the cursor {following}" if following else ""
    return result(framed(lines) + more, resources=described, next_cursor=following)


def read_resource(caller: Caller, arguments: ReadArguments) -> Result:
    resource = files.find(caller.owner, arguments.resource_id)
    text, total = files.part(caller.owner, resource, arguments.offset)
    end = arguments.offset + len(text)
    return result(
        files.quotation(resource, text, arguments.offset, total),
        resource_id=resource.resource_id,
        status=resource.status,
        text=text,
        next_offset=end if end < total and text else None,
    )


_OWN: Final[dict[str, tuple[type[Arguments], Callable[[Caller, Any], Result], str]]] = {
    "memory_search": (
        SearchArguments,
        search,
        "Search the user's memories by scope: one chat, the files, or everything. Says which files a memory speaks of.",
    ),
    "resources_list": (ListArguments, list_resources, "List the files that the user gave to be remembered."),
    "resources_read": (ReadArguments, read_resource, "Read what is remembered of a file, as text."),
}
_WRITING: Final = {"memory_store": False, "memory_forget": True}  # True: destructive


def listing() -> list[types.Tool]:
    openclaw = [_tool(name, about["description"], about["parameters"]) for name, about in tools.DESCRIPTIONS.items()]
    return openclaw + [_tool(name, about, model.model_json_schema()) for name, (model, _, about) in _OWN.items()]


def _tool(name: str, description: str, schema: Mapping[str, Any]) -> types.Tool:
    annotations = types.ToolAnnotations(
        read_only_hint=name not in _WRITING, destructive_hint=_WRITING.get(name, False), open_world_hint=False
    )
    return types.Tool(name=name, description=description, input_schema=dict(schema), annotations=annotations)


def call(caller: Caller, name: str, arguments: Mapping[str, Any]) -> Result:
    """Call a tool. Raises: `NotFound` for an unknown tool, and the errors of the tools."""
    if name in _OWN:
        model, use, _ = _OWN[name]
        return use(caller, read(model, arguments))
    if name not in tools.DESCRIPTIONS:
        raise NotFound(f"There is no tool of this name; there are {', '.join([*tools.DESCRIPTIONS, *_OWN])}.")
    return tools.invoke(caller, name, arguments)
