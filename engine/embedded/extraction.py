"""What is made of a message when its session is flushed.

Without an LLM a message stays whole: it becomes an episode that keeps its speaker and time. This is the place of the
rules (and, with an endpoint, of the model) that recognise facts, preferences, decisions and lessons in it.
"""

from __future__ import annotations

from engine.port import Role

_CATEGORIES: dict[Role, str] = {
    "user": "full_context_user",
    "assistant": "full_context_assistant",
    "tool": "full_context_tool",
}


def category_of(role: Role) -> str:
    """The category under which what was said in a role is browsed."""
    return _CATEGORIES[role]
