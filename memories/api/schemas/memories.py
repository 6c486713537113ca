"""The wire shapes of stored memories: listed, looked at, corrected, deleted and restored."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from accounts.api.schemas import AuthenticatedBody, AuthenticatedQuery
from core import pagination
from core.errors import InvalidInput
from core.ids import Name, SessionId
from memories.api.schemas.common import MAX_TEXT_CHARS, Category, PageQuery, Reason
from memories.services.decisions import OverrideValues
from memories.services.lookup import MemoryRef
from store.filters import MAX_MS
from store.types import ListRequest, MemoryType, Position

_APP_ID = "The memory's application; found by itself if left out."
_PROJECT_ID = "The memory's project; found by itself if left out."


def _check_words(text: str) -> str:
    if not text.strip():
        raise ValueError("must hold words; to leave the memory out, delete it")
    return text


OverrideText = Annotated[
    str,
    Field(min_length=1, max_length=MAX_TEXT_CHARS, json_schema_extra={"pattern": r"\S"}),
    AfterValidator(_check_words),
]


class MemoryQuery(AuthenticatedQuery):
    """Where a memory is: needed only if several of the caller's scopes have the same id."""

    app_id: Name | None = Field(None, description=_APP_ID)
    project_id: Name | None = Field(None, description=_PROJECT_ID)

    def which(self, memory_id: str) -> MemoryRef:
        return MemoryRef(memory_id, None, self.app_id, self.project_id)


class MemoryBody(AuthenticatedBody):
    """Which memory is meant."""

    session_id: SessionId | None = Field(None, description="The memory's session. Left out for memories without one.")
    app_id: Name | None = Field(None, description=_APP_ID)
    project_id: Name | None = Field(None, description=_PROJECT_ID)

    def which(self, memory_id: str) -> MemoryRef:
        return MemoryRef(memory_id, self.session_id, self.app_id, self.project_id)


class CorrectionBody(MemoryBody):
    """What a memory is to say instead: at least one of `override_text`, `category` and `importance`."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["override_text"], "properties": {"override_text": {"type": "string"}}},
                {"required": ["category"], "properties": {"category": {"type": "string"}}},
                {"required": ["importance"], "properties": {"importance": {"type": "number"}}},
            ]
        }
    )

    override_text: OverrideText | None = Field(None, description="The corrected text.")
    category: Category | None = Field(None, description="The corrected category.")
    importance: float | None = Field(None, ge=0, le=1, description="The corrected importance.")

    def correction(self) -> OverrideValues:
        """Errors: `InvalidInput` if it says nothing."""
        if self.override_text is None and self.category is None and self.importance is None:
            raise InvalidInput.of_field("override_text", "is required, unless category or importance is given")
        return OverrideValues(self.override_text, self.category, self.importance)


class DeletionBody(MemoryBody):
    reason: Reason | None = Field(None, description="Why, in your words.")


class MemoryListQuery(PageQuery):
    session_id: SessionId | None = Field(None, description="Only memories of this session.")
    memory_type: MemoryType | None = Field(None, description="Only memories of this type.")
    category: Category | None = Field(None, description="Only memories of this category.")
    agent_id: Name | None = Field(None, description="Only what this agent said or did.")
    since_ms: int | None = Field(None, ge=0, le=MAX_MS, description="Said at this time or later.")
    until_ms: int | None = Field(None, ge=0, le=MAX_MS, description="Said before this time.")

    def request(self) -> ListRequest:
        return ListRequest(
            session_id=self.session_id,
            memory_type=self.memory_type,
            category=self.category,
            agent_id=self.agent_id,
            since_ms=self.since_ms,
            until_ms=self.until_ms,
            after=None if self.cursor is None else Position(*pagination.decode_numbers(self.cursor)),
            limit=self.limit,
        )


class Corrected(BaseModel):
    memory_id: str
    override_id: str
    status: Literal["active", "undone"]


class Deleted(BaseModel):
    memory_id: str
    tombstone_id: str
    status: Literal["deleted", "restored"]


class MemoryOut(BaseModel):
    """A memory as it is stored; `text`, `category` and `importance` are what holds now."""

    id: str
    memory_type: MemoryType
    session_id: str | None
    app_id: str
    project_id: str
    text: str
    category: str = Field(description="Empty where none was recognised.")
    importance: float | None
    sender_id: str
    agent_id: str = Field(description="Empty where no agent said it.")
    timestamp_ms: int = Field(description="When it was said, Unix milliseconds.")
    override_id: str | None = Field(description="The correction in force.")
    deleted_at: str | None = Field(description="Since when the memory by itself is in the trash.")


class MemoryPage(BaseModel):
    memories: list[MemoryOut]
    next_cursor: str | None


class HistoryEvent(BaseModel):
    """What was done and when, by what kind of actor; the other fields are there where they say something."""

    at: str
    action: Literal["original", "override", "override_undo", "delete", "restore", "superseded"]
    by: str
    override_id: str | None = None
    tombstone_id: str | None = None
    text: str | None = None
    category: str | None = None
    importance: float | None = None
    reason: str | None = None
    superseded_by: str | None = Field(None, description="The memory that an LLM put in its place.")


class MemoryDetail(BaseModel):
    memory: MemoryOut
    history: list[HistoryEvent] = Field(description="Everything that was decided about it, oldest first.")


class TrashItem(BaseModel):
    """One deletion that can be undone."""

    tombstone_id: str
    kind: Literal["memory", "session"]
    memory_id: str | None
    session_id: str | None
    memory_type: MemoryType | None
    text: str | None
    reason: str
    deleted_at: str


class TrashPage(BaseModel):
    trash: list[TrashItem]
    next_cursor: str | None
