"""What is made of a message without an LLM: it stays whole, and rules say under what it is filed.

With an LLM endpoint messages are filed by who said them, and `engines.embedded.extraction_fill` makes short memories.
"""

from __future__ import annotations

from engines.embedded import extraction_rules
from engines.embedded.llm import client as llm
from store.types import Role

_CATEGORIES: dict[Role, str] = {
    "user": "full_context_user",
    "assistant": "full_context_assistant",
    "tool": "full_context_tool",
}


def category_of(role: Role, text: str) -> str:
    """The category under which what was said in a role is browsed."""
    return (not llm.is_set() and extraction_rules.category(role, text)) or _CATEGORIES[role]
