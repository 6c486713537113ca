"""The categories of memories, their labels, and the three tabs that group them."""

from typing import Final, Literal, get_args

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

Category = Literal[
    "user_memory_fact",
    "user_memory_preference",
    "user_memory_decision",
    "self_improving_learnings",
    "self_improving_errors",
    "self_improving_feature_requests",
    "full_context_user",
    "full_context_assistant",
    "full_context_system",
    "full_context_tool",
    "full_context_tool_result",
    "full_context_others",
]
CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)
_PREFIXES: Final = {"user": "user_memory_", "self": "self_improving_", "full": "full_context_"}
TABS: Final[dict[str, tuple[str, ...]]] = {
    tab: tuple(category for category in CATEGORIES if category.startswith(prefix)) for tab, prefix in _PREFIXES.items()
}

MEANINGS: Final[dict[str, str]] = {
    "user_memory_fact": "a fact about the user",
    "user_memory_preference": "what the user likes or wants",
    "user_memory_decision": "a decision of the user",
    "self_improving_learnings": "a practice that works for the agent",
    "self_improving_errors": "a mistake of the agent and its lesson",
    "self_improving_feature_requests": "a behavior that the user wants from the agent",
    "full_context_user": "a whole message of the user",
    "full_context_assistant": "a whole message of the agent",
    "full_context_system": "a whole system message",
    "full_context_tool": "a tool call",
    "full_context_tool_result": "the result of a tool call",
    "full_context_others": "any other message",
}
"""The purpose of each category, as tools tell language models."""

_LABELS: Final[dict[str, str | Promise]] = {
    "user_memory_fact": _("Fact"),
    "user_memory_preference": _("Preference"),
    "user_memory_decision": _("Decision"),
    "self_improving_learnings": _("Best practice"),
    "self_improving_errors": _("Error lesson"),
    "self_improving_feature_requests": _("Behavior request"),
    "full_context_memory": _("Full context"),
    "full_context_user": _("Full context · user message"),
    "full_context_assistant": _("Full context · assistant message"),
    "full_context_system": _("Full context · system message"),
    "full_context_tool": _("Full context · tool call"),
    "full_context_tool_result": _("Full context · tool result"),
    "full_context_others": _("Full context · other message"),
    "": _("No category"),
}
_TAB_OF: Final = {category: tab for tab, categories in TABS.items() for category in categories}


def label(category: str) -> str | Promise:
    """Return a category's name in the reader's language; its id if it is unknown."""
    return _LABELS.get(category, category)


def tab_of(category: str) -> str:
    """Return `user`, `self` or `full`; empty for a category that no tab shows."""
    return _TAB_OF.get(category, "")
