"""The prompts about the user for MCP clients, and the resource that holds the same."""

from __future__ import annotations

from typing import Annotated, Final

import mcp_types as types
from pydantic import Field

from agents.tools import Caller
from agents.tools.arguments import Arguments, Text, read
from agents.tools.context import MAX_TOKENS, make_context
from core.errors import NotFound
from profiles.labels import Language
from profiles.prompts import ROUTER, WORKER, AgentType
from profiles.services import make_prompt

_NOTHING: Final = "Nothing is known of the user yet."
_CONTEXT: Final = "context"
_PROFILES: Final[dict[str, tuple[AgentType, str]]] = {
    "router_profile": (ROUTER, "Who the user is and how they work, for an agent that chooses who answers."),
    "worker_profile": (WORKER, "Who the user is and how they work, for an agent that does the work."),
}
_ABOUT: Final = "The user's profile and facts, and memories that fit a query or are new."
CONTEXT: Final = types.Resource(
    uri="memory://context", name=_CONTEXT, title="Context about the user", description=_ABOUT, mime_type="text/plain"
)


class ProfileArguments(Arguments):
    """The arguments of the prompts of profiles. MCP sends them as text."""

    language: Language | None = None
    max_tokens: Annotated[int, Field(ge=1, le=100_000)] | None = None


class ContextArguments(Arguments):
    query: Text = ""
    max_tokens: Annotated[int, Field(ge=100, le=100_000)] = MAX_TOKENS


def listed() -> list[types.Prompt]:
    """Return all prompts."""
    tokens = types.PromptArgument(name="max_tokens", description="At most so many tokens.", required=False)
    language = types.PromptArgument(name="language", description="en or zh; else the user's own.", required=False)
    query = types.PromptArgument(name="query", description="What the user asks now.", required=False)
    profiles = [
        types.Prompt(name=name, description=about, arguments=[language, tokens])
        for name, (_agent, about) in _PROFILES.items()
    ]
    return [types.Prompt(name=_CONTEXT, description=_ABOUT, arguments=[query, tokens]), *profiles]


def get(caller: Caller, name: str, arguments: dict[str, str]) -> types.GetPromptResult:
    """Return a prompt. Raises: `NotFound`, `InvalidInput`."""
    if name == _CONTEXT:
        given = read(ContextArguments, arguments)
        text = make_context(caller, given.query, max_tokens=given.max_tokens).text
        return _result(_ABOUT, text)
    if name not in _PROFILES:
        raise NotFound(f"There is no prompt of this name; there are {', '.join((_CONTEXT, *_PROFILES))}.")
    agent, about = _PROFILES[name]
    options = read(ProfileArguments, arguments)
    prompt = make_prompt(caller.owner.user_pk, agent, max_tokens=options.max_tokens, language=options.language)
    text = prompt.text
    if not text and options.max_tokens and make_prompt(caller.owner.user_pk, agent).text:
        text = f"Nothing of what is known of the user fits into {options.max_tokens} tokens. Ask for more."
    return _result(about, text)


def context_resource(caller: Caller) -> types.TextResourceContents:
    """Return what is known of the user as the contents of `CONTEXT`."""
    text = make_context(caller).text or _NOTHING
    return types.TextResourceContents(uri=CONTEXT.uri, mime_type="text/plain", text=text)


def _result(about: str, text: str) -> types.GetPromptResult:
    # Models reject empty messages.
    content = types.TextContent(type="text", text=text or _NOTHING)
    return types.GetPromptResult(description=about, messages=[types.PromptMessage(role="user", content=content)])
