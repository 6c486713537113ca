"""What the bodies, queries and answers of `/memories` and `/sessions` share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from accounts.api.schemas import ScopedQuery
from store.filters import MAX_MS

MAX_TEXT_CHARS = 100_000
MAX_REASON_CHARS = 1000
MAX_SAID_MS = MAX_MS - 24 * 3600 * 1000
"""Of a message. The last day stays free, because messages of one moment move on to the next free milliseconds."""

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


Reason = Annotated[str, Field(max_length=MAX_REASON_CHARS)]


class PageQuery(ScopedQuery):
    """A page of a newest-first list."""

    limit: int = Field(20, ge=1, le=100, description="How many at most.")
    cursor: str | None = Field(None, max_length=200, description="`next_cursor` of the page before.")
