"""The tools for MCP clients, as `tools/list` describes them."""

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import mcp_types as types
from pydantic import BaseModel

from accounts.scopes import ADD, DECIDE, FILES, SEARCH, UNLIMITED
from agents import tools
from agents.mcp import files, memory_tools, openclaw_tools, profile_tools, resource_tools, session_tools
from agents.tools import Tool
from agents.tools.argument_forms import WithoutTitles, plain, schema_of

WHEN_TO_RECALL: Final = (
    "Call memory_recall before you answer what may depend on the user; memory_search, if listed, only to search one "
    "conversation or the files."
)
"""The instructions and both tools give this rule in the same words."""
_CUT: Final = "of a long memory the part that fits best."
_MESSAGE: Final = {"type": "string", "description": "The answer in words, without memories."}
_ERROR: Final = {"type": "string", "description": "The code of an error, if there is one."}


@dataclass(frozen=True, slots=True)
class McpTool(Tool):
    """A tool with its description for clients and language models.

    The first sentence of the description says what the tool does, the second when to call it. `output` is the schema of
    a successful answer; None for tools that answer with memories, whose texts stand in `content` alone. Tools that are
    neither `writes` nor `destructive` change nothing.
    """

    title: str
    description: str
    output: type[BaseModel] | None = None
    writes: bool = False
    destructive: bool = False
    idempotent: bool = True

    @property
    def is_read_only(self) -> bool:
        return not (self.writes or self.destructive)


SHORT_LIST: Final = (
    *("memory_recall", "memory_store", "memory_update", "memory_forget", "session_add", "resources_read"),
)
"""The tools that clients are shown by default. Others can be called by name."""
TOOLS: Final = {
    "memory_recall": McpTool(
        openclaw_tools.RecallArguments,
        tools.TOOLS["memory_recall"].run,
        SEARCH,
        "Recall memories",
        "Recall what is known about the user: preferences, facts, decisions, lessons, past conversations and files. "
        f"{WHEN_TO_RECALL} Returns memories, best first, each with its id, category, time and score; "
        f"{_CUT}",
    ),
    "memory_store": McpTool(
        openclaw_tools.StoreArguments,
        tools.TOOLS["memory_store"].run,
        ADD,
        "Store a memory",
        "Store one fact, preference or decision for later conversations. Call it when the user tells you something "
        "worth remembering or asks you to remember it. Returns its id, and similar memories that you may "
        "rather update. A memory with the same text is updated.",
        openclaw_tools.Stored,
        writes=True,
    ),
    "memory_forget": McpTool(
        openclaw_tools.ForgetArguments,
        tools.TOOLS["memory_forget"].run,
        DECIDE,
        "Forget a memory",
        "Move a memory to the trash. Call it when the user asks you to forget something. Give the memory's id, or a "
        "query: if one memory clearly matches, it is deleted; otherwise candidates with their ids are returned. "
        "Copies of the memory are deleted with it.",
        openclaw_tools.Forgotten,
        destructive=True,
        idempotent=False,  # what a query matches depends on what is stored
    ),
    "memory_search": McpTool(
        memory_tools.SearchArguments,
        memory_tools.search,
        SEARCH,
        "Search memories",
        f"Search the user's memories in one conversation, in the files or everywhere. {WHEN_TO_RECALL} Returns "
        f"memories, best first, with their ids, times and files; {_CUT}",
    ),
    "memory_list": McpTool(
        memory_tools.ListArguments,
        memory_tools.list_memories,
        SEARCH,
        "List memories",
        "List memories of a session, category, type or time, newest first. Call it to review what is stored, or with "
        "`deleted` to find a memory to restore. Returns memories with their ids, and a cursor if there are more.",
    ),
    "memory_get": McpTool(
        memory_tools.GetArguments,
        memory_tools.get,
        SEARCH,
        "Get a memory",
        "Get the whole text of a memory by its id. Call it when another tool shows only a part of a memory. Returns up "
        f"to {memory_tools.GET_CHARS} characters, and the next offset if there are more.",
    ),
    "memory_update": McpTool(
        memory_tools.UpdateArguments,
        memory_tools.update,
        DECIDE,
        "Update a memory",
        "Replace the text, the category or the importance of a memory. Call it when a memory is wrong or outdated, "
        "instead of storing a second one. The former text stays in the history. Copies of the "
        "memory are updated too.",
        memory_tools.Decided,
        destructive=True,
    ),
    "memory_restore": McpTool(
        memory_tools.RestoreArguments,
        memory_tools.restore,
        DECIDE,
        "Restore a memory",
        "Restore a memory from the trash. Call it when the user wants back what was forgotten. Give the id that "
        "memory_forget returned, or find it by memory_list with `deleted`. Copies deleted with it return too.",
        memory_tools.Decided,
        writes=True,
    ),
    "profile_get": McpTool(
        profile_tools.GetArguments,
        profile_tools.get,
        SEARCH,
        "Get a profile document",
        "Get one of the two documents about the user: `user` (who they are) or `work` (how they work). Call it before "
        "you change the document, or when you need more of it than the memories say. Returns all its fields.",
        profile_tools.ProfileDocument,
    ),
    "profile_update": McpTool(
        profile_tools.UpdateArguments,
        profile_tools.update,
        DECIDE,
        "Update a profile document",
        "Change fields of the document `user` or `work`. Call it when the user states something lasting that the "
        "document has a field for; use memory_store for everything else. Fields that you leave out stay.",
        profile_tools.Changed,
        destructive=True,
    ),
    "session_add": McpTool(
        session_tools.AddArguments,
        session_tools.add_messages,
        ADD,
        "Add messages to a session",
        "Add messages of a conversation to its session. Call it when you are to record a conversation, and with "
        "`flush` at its end. A flush turns the messages into memories, which memory_recall finds.",
        session_tools.Added,
        writes=True,
        idempotent=False,  # without timestamps
    ),
    "resources_list": McpTool(
        resource_tools.ListArguments,
        resource_tools.list_resources,
        FILES,
        "List files",
        "List the user's files. Call it to find a file's resource_id. Returns names, types, statuses and ids, newest "
        "first, and a cursor if there are more.",
        resource_tools.Listed,
    ),
    "resources_read": McpTool(
        resource_tools.ReadArguments,
        resource_tools.read_resource,
        FILES,
        "Read a file",
        "Read the text of a file. Call it when the passages that a search returned are not enough. Returns up to "
        f"{files.MAX_CHARS} characters, and next_offset if there are more.",
        resource_tools.Part,
    ),
}


@cache
def list_tools(*, scopes: frozenset[str] = UNLIMITED, is_complete: bool = False) -> list[types.Tool]:
    """Return the tools of the short list, or all with the schemas of their answers, as far as the scopes allow them."""
    return [
        types.Tool(
            name=name,
            title=tool.title,
            description=tool.description,
            input_schema=schema_of(tool.arguments),
            output_schema=_output_schema(tool.output) if tool.output is not None and is_complete else None,
            annotations=types.ToolAnnotations(
                read_only_hint=tool.is_read_only,
                destructive_hint=tool.destructive,
                idempotent_hint=tool.idempotent,
                open_world_hint=False,
            ),
        )
        for name, tool in TOOLS.items()
        if (is_complete or name in SHORT_LIST) and tool.scope in scopes
    ]


def _output_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of `structuredContent`: a message with the fields of the model, or with an error."""
    schema = plain(model.model_json_schema(schema_generator=_Answers, mode="serialization"))
    for field in schema["properties"].values():
        for part in field.get("items", {}).get("properties", {}).values():
            part.pop("description", None)  # their names tell as much
    fields = {"message": _MESSAGE, **schema["properties"], "error": _ERROR}
    return {"type": "object", "properties": fields, "required": ["message"]}


class _Answers(WithoutTitles):
    """JSON Schema of answers, in which a field that may be absent has no default, and null any type."""

    def default_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        inner = self.generate_inner(schema["schema"])
        return {"description": inner["description"]} if "description" in inner else {}
