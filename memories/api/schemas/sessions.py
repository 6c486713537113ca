"""The wire shapes of `/sessions`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from accounts.api.schemas import ScopedBody
from memories.api.schemas.common import PageQuery, Reason


class SessionBody(ScopedBody):
    """Which scope the session is in."""


class SessionDeletionBody(SessionBody):
    reason: Reason | None = Field(None, description="Why, in your words.")


class SessionListQuery(PageQuery):
    deleted: bool = Field(False, description="List the sessions in the trash instead.")


class SessionDecided(BaseModel):
    session_id: str
    tombstone_id: str
    status: Literal["deleted", "restored"]


class SessionItem(BaseModel):
    session_id: str
    kind: str = Field(description="chat, resource, memory_edit or other")
    memories: int = Field(description="How many live memories it has.")
    pending: int = Field(description="How many messages wait for a flush.")
    created_at: str
    flushed_at: str | None
    searchable_at: str | None
    deleted_at: str | None = Field(description="Since when it is in the trash.")


class SessionPage(BaseModel):
    sessions: list[SessionItem]
    next_cursor: str | None
