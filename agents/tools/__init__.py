"""The three agent tools, the same over HTTP, WebSocket and MCP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agents.tools.arguments import DESCRIPTIONS, ForgetArguments, RecallArguments, StoreArguments, read
from agents.tools.caller import DEFAULT_AGENT, Caller
from agents.tools.forget import forget
from agents.tools.recall import recall
from agents.tools.results import Result, failed
from agents.tools.store import store
from core.errors import NotFound

__all__ = ["DEFAULT_AGENT", "DESCRIPTIONS", "Caller", "invoke"]

_TOOLS: dict[str, Callable[[Caller, Mapping[str, Any]], Result]] = {
    "memory_recall": lambda caller, arguments: recall(caller, read(RecallArguments, arguments)),
    "memory_store": lambda caller, arguments: store(caller, read(StoreArguments, arguments)),
    "memory_forget": lambda caller, arguments: forget(caller, read(ForgetArguments, arguments)),
}


def invoke(caller: Caller | None, name: str, arguments: Mapping[str, Any]) -> Result:
    """Call a tool and return `{"content": [{"type": "text", "text": …}], "details": {…}}`.

    Documented tool errors are in `details.error` ("missing_param", "not_configured": no user is configured). Raises:
    `NotFound` for an unknown tool, `InvalidInput` for a wrong type or length, `Conflict`, and the engine's errors.
    """
    tool = _TOOLS.get(name)
    if tool is None:
        raise NotFound(f"There is no tool of this name; there are {', '.join(_TOOLS)}.")
    if caller is None:
        return failed("not_configured", "No user is set up whose memories these would be.")
    return tool(caller, arguments)
