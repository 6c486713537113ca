"""The user's profile documents as MCP prompts, for an agent's system prompt."""

from __future__ import annotations

from typing import Annotated, Final

import mcp_types as types
from pydantic import Field

from agents.tools import Caller
from agents.tools.arguments import Arguments, read
from core.errors import NotFound
from profiles.labels import Language
from profiles.prompts import ROUTER, WORKER, AgentType
from profiles.services import prompt_for

_PROMPTS: Final[dict[str, tuple[AgentType, str]]] = {
    "router_profile": (ROUTER, "Who the user is and how they work, for an agent that chooses who answers."),
    "worker_profile": (WORKER, "Who the user is and how they work, for an agent that does the work."),
}


class PromptArguments(Arguments):
    """The arguments of a prompt. MCP sends them as text."""

    language: Language | None = None
    max_tokens: Annotated[int, Field(ge=1, le=100_000)] | None = None


def listing() -> list[types.Prompt]:
    arguments = [
        types.PromptArgument(name="language", description="en or zh; else the user's own.", required=False),
        types.PromptArgument(name="max_tokens", description="At most so many tokens.", required=False),
    ]
    return [types.Prompt(name=name, description=about, arguments=arguments) for name, (_, about) in _PROMPTS.items()]


def get(caller: Caller, name: str, arguments: dict[str, str]) -> types.GetPromptResult:
    """Return a prompt. Raises: `NotFound`, `InvalidInput`."""
    if name not in _PROMPTS:
        raise NotFound(f"There is no prompt of this name; there are {', '.join(_PROMPTS)}.")
    agent, about = _PROMPTS[name]
    asked = read(PromptArguments, arguments)
    text = prompt_for(caller.owner.user_pk, agent, max_tokens=asked.max_tokens, language=asked.language)
    # Models reject empty messages.
    content = types.TextContent(type="text", text=text or "Nothing is known of the user yet.")
    message = types.PromptMessage(role="user", content=content)
    return types.GetPromptResult(description=about, messages=[message])
