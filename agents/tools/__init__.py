"""The agent tools: three over HTTP, WebSocket and MCP. MCP has more (`agents.mcp.catalog`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from accounts import scopes
from accounts.authority import ADD, DELETE, VIEW
from agents.tools.arguments import (
    Arguments,
    ForgetArguments,
    RecallArguments,
    StoreArguments,
    argument_names,
    read,
)
from agents.tools.caller import DEFAULT_AGENT, Caller
from agents.tools.forget import forget
from agents.tools.recall import recall
from agents.tools.results import Result, with_notes
from agents.tools.store import store
from core.errors import NotFound
from core.persistence import replica

__all__ = ["DEFAULT_AGENT", "PERMISSIONS", "TOOLS", "Caller", "Tool", "invoke", "warnings"]

FIELDS: Final = ("tool", "args", "agentId", "sessionKey")
"""The fields of a call in OpenClaw's shape."""
_MAX_WARNINGS: Final = 20
_SHOWN_CHARS: Final = 100
ACCEPTED_FIELDS: Final = frozenset({*FIELDS, "name", "user_id", "user_key"})


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool. `run` takes the caller, who has the scope, and the parsed arguments."""

    arguments: type[Arguments]
    run: Callable[[Caller, Any], Result]
    scope: str


TOOLS = {
    "memory_recall": Tool(RecallArguments, recall, scopes.SEARCH),
    "memory_store": Tool(StoreArguments, store, scopes.ADD),
    "memory_forget": Tool(ForgetArguments, forget, scopes.DECIDE),
}
# What an operator's token needs. `memory_store` also needs to change memories when it updates one, and `memory_forget`
# to view them when it searches.
PERMISSIONS = {"memory_recall": VIEW, "memory_store": ADD, "memory_forget": DELETE}


def invoke(caller: Caller, name: str, arguments: Mapping[str, Any], tools: Mapping[str, Tool] = TOOLS) -> Result:
    """Call a tool and return `{"content": [{"type": "text", "text": …}], "details": {…}}`.

    Documented tool errors are in `details.error`, such as "missing_param". Raises: `NotFound` for an unknown tool,
    `Forbidden` for an operator's token without the permission, `MissingScope`, `InvalidInput` for a wrong type or
    length, `Conflict`, and the engine's errors.
    """
    tool = tools.get(name)
    if tool is None:
        raise NotFound(f"There is no tool of this name; there are {', '.join(tools)}.")
    if name in PERMISSIONS:
        caller.require(PERMISSIONS[name])
    scopes.require(caller.scopes, tool.scope)
    given = read(tool.arguments, arguments)
    done = tool.run(caller, given)
    if tool.scope != scopes.SEARCH:
        replica.note_write(replica.user_of(caller.owner.user_pk))
    return with_notes(given.notes, done)


def warnings(name: str, call: Mapping[str, Any]) -> list[dict[str, str]]:
    """Name the fields and arguments of a call in OpenClaw's shape that have no meaning here and were ignored."""
    arguments = argument_names(TOOLS[name].arguments)
    ignored: dict[str, Sequence[str]] = {
        field: FIELDS for field, value in call.items() if value is not None and field not in ACCEPTED_FIELDS
    }
    ignored |= {
        f"args.{field}": arguments
        for field, value in (call.get("args") or {}).items()
        if value is not None and field not in arguments
    }
    return [
        {"field": field[:_SHOWN_CHARS], "message": f"is ignored: it is none of {', '.join(known)}"}
        for field, known in islice(ignored.items(), _MAX_WARNINGS)
    ]
