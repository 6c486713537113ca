"""What the bodies, queries and answers of `/memories` and `/sessions` share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from accounts.api.schemas import ScopedQuery

MAX_TEXT_CHARS = 100_000
MAX_REASON_CHARS = 1000
MAX_TIMESTAMP_MS = 253_402_300_799_999
"""The end of the year 9999: beyond it no clock of ours and no upstream can go."""

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


def _without_nul(value: object) -> object:
    if isinstance(value, str) and "\x00" in value:
        raise ValueError("must not hold NUL characters")
    return value


Reason = Annotated[str, BeforeValidator(_without_nul), Field(max_length=MAX_REASON_CHARS)]


class PageQuery(ScopedQuery):
    """A page of a newest-first list."""

    limit: int = Field(20, ge=1, le=100, description="How many at most.")
    cursor: str | None = Field(None, max_length=200, description="`next_cursor` of the page before.")
