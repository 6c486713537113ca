"""The agent tools: three over HTTP, WebSocket and MCP. MCP has more (`agents.mcp.catalog`)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from accounts.authority import ADD, DELETE, VIEW
from agents.tools.arguments import Arguments, ForgetArguments, RecallArguments, StoreArguments, read
from agents.tools.caller import DEFAULT_AGENT, Caller
from agents.tools.forget import forget
from agents.tools.recall import recall
from agents.tools.results import Result
from agents.tools.store import store
from core.errors import NotFound

__all__ = ["DEFAULT_AGENT", "PERMISSIONS", "TOOLS", "Caller", "Tool", "invoke"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool. `run` takes the caller and the parsed arguments."""

    arguments: type[Arguments]
    run: Callable[[Caller, Any], Result]


TOOLS = {
    "memory_recall": Tool(RecallArguments, recall),
    "memory_store": Tool(StoreArguments, store),
    "memory_forget": Tool(ForgetArguments, forget),
}
# What an operator's token needs. `memory_store` also needs to change memories when it updates one, and `memory_forget`
# to view them when it searches.
PERMISSIONS = {"memory_recall": VIEW, "memory_store": ADD, "memory_forget": DELETE}


def invoke(caller: Caller, name: str, arguments: Mapping[str, Any], tools: Mapping[str, Tool] = TOOLS) -> Result:
    """Call a tool and return `{"content": [{"type": "text", "text": …}], "details": {…}}`.

    Documented tool errors are in `details.error`, such as "missing_param". Raises: `NotFound` for an unknown tool,
    `Forbidden` for an operator's token without the permission, `InvalidInput` for a wrong type or length, `Conflict`,
    and the engine's errors.
    """
    tool = tools.get(name)
    if tool is None:
        raise NotFound(f"There is no tool of this name; there are {', '.join(tools)}.")
    if name in PERMISSIONS:
        caller.require(PERMISSIONS[name])
    return tool.run(caller, read(tool.arguments, arguments))
